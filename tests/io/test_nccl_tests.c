#include "failing.h"
#include "hbp/io.h"

#include "data/machine/machine.h"
#include "io/file/stream.h"
#include "io/machine/nccl_tests.h"

static hbp_machine *some_machine(hbp_context *context)
{
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create_preset(context, "h100", &machine));
    return machine;
}

static hbp_status apply_file(hbp_context *context, hbp_machine *machine, const char *name, int32_t collective,
                             int32_t ranks)
{
    char path[512];
    char *text;
    int64_t bytes;
    snprintf(path, sizeof path, "%s/machines/%s", HBP_TESTS_DIR, name);
    hbp_status status = hbp__read_file(context, path, 1 << 20, &text, &bytes);
    if (status == HBP_OK)
        status = hbp_machine_apply_nccl_tests(context, machine, collective, ranks, text, bytes);
    hbp__delete(&context->memory, text);
    return status;
}

/* Made up in the formats of these versions; they follow latency + moved / bandwidth to 2 %. */
static const struct output {
    const char *name;
    int32_t collective;
    int32_t ranks;
    double latency_ns;
    double bytes_per_s;
    const char *source;
} outputs[] = {
    {"dgx_a100.all_reduce.nccl-tests-2.13.txt", HBP_COLLECTIVE_ALL_REDUCE, 8, 31e3, 230e9, "nccl-tests"},
    {"dgx_a100.alltoall.nccl-tests-2.16.txt", HBP_COLLECTIVE_ALL_TO_ALL, 8, 42e3, 190e9, "nccl-tests"},
    {"dgx_h100.all_gather.nccl-tests-2.19.txt", HBP_COLLECTIVE_ALL_GATHER, 8, 24e3, 350e9, "nccl-tests 2.19"},
    {"two_h200.reduce_scatter.nccl-tests-v3.json", HBP_COLLECTIVE_REDUCE_SCATTER, 16, 55e3, 180e9,
     "nccl-tests JSON v3"},
};

START_TEST(outputs_of_each_version_are_fitted)
{
    hbp_context *context = test_context();
    hbp_machine *machine = some_machine(context);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const struct output *r = &outputs[i];
        hbp_machine_collective found = {.struct_size = sizeof found};
        OK(context, apply_file(context, machine, r->name, r->collective, r->ranks));
        ck_assert_int_eq(hbp_machine_get_collective(machine, r->collective, r->ranks, &found), 1);
        ck_assert_double_eq_tol(found.latency_ns, r->latency_ns, .02 * r->latency_ns);
        ck_assert_double_eq_tol(found.bytes_per_s, r->bytes_per_s, .02 * r->bytes_per_s);
        ck_assert_str_eq(found.source, r->source);
    }
    ck_assert_int_eq(machine->collective_count, 4);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* JSON is known by its first character that is no blank. */
START_TEST(blanks_may_stand_before_json)
{
    hbp_context *context = test_context();
    hbp_machine *machine = some_machine(context);
    const char *text = " \n\t {\"results\": 3}";
    ck_assert_int_eq(hbp_machine_apply_nccl_tests(context, machine, 0, 2, text, (int64_t)strlen(text)),
                     HBP_E_FORMAT);
    char there[HBP__MESSAGE_BYTES];
    snprintf(there, sizeof there, "%s", hbp_context_message(context));
    FAILS(context, HBP_E_FORMAT, there,
          hbp_machine_apply_nccl_tests(context, machine, 0, 2, strchr(text, '{'), 14));
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

#define HEADER                                                                                               \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw " \
    "  busbw #wrong\n"

static hbp_status apply_text(hbp_context *context, hbp_machine *machine, const char *text)
{
    return hbp_machine_apply_nccl_tests(context, machine, HBP_COLLECTIVE_ALL_TO_ALL, 2, text,
                                        (int64_t)strlen(text));
}

/* 2 ranks move half of the size: 10 us + 500 B / 50 MB/s = 20 us, and 1500 B more 30 us more. */
static void check_plain(hbp_context *context, const char *text)
{
    hbp_machine *machine = some_machine(context);
    hbp_machine_collective found = {.struct_size = sizeof found};
    OK(context, apply_text(context, machine, text));
    ck_assert_int_eq(hbp_machine_get_collective(machine, 0, 2, &found), 1);
    ck_assert_double_eq_tol(found.latency_ns, 10000, 1e-6);
    ck_assert_double_eq_tol(found.bytes_per_s, 50e6, 1);
    hbp_machine_free(machine);
}

START_TEST(columns_are_found_by_name)
{
    hbp_context *context = test_context();
    check_plain(context, HEADER "1000 250 float none -1 20.00 0 0 0 33.00 0 0 0\n"
                                "4000 1000 float none -1 50.00 0 0 0 99.00 0 0 0\n");
    check_plain(context, HEADER "1000 250 float none -1 2.0e+01 0 0 N/A N/A N/A N/A N/A\r\n"
                                "4000 1000 float none -1 50 0 0 N/A N/A N/A N/A N/A");
    check_plain(context, HEADER "0 0 float none -1 0.5 0 0 0 0.5 0 0 0\n"
                                "1000 250 float none -1 20.00 0 0 0 33.00 0 0 0\n"
                                "node0:1:2 [0] NCCL INFO comm\n\n   \n"
                                "4000 1000 float none -1 N/A 0 0 N/A 50.00 0 0 0\n"
                                "# Avg bus bandwidth : 3\n");
    check_plain(context,
                "#  size  count  type  cputime  algbw busbw #wrong cputime algbw busbw #wrong timestamp\n"
                "# (B)\n1000 250 float 20 0 0 0 20 0 0 0 2026-01-01 00:00:01\n"
                "4000 999 float 50 0 0 0 50 0 0 0 2026-01-01 00:00:02\n");
    check_plain(context,
                "{\"results\": [{\"size\": 1000, \"out_of_place\": {\"time\": 20.0, \"nwrong\": 0.0}},"
                "{\"size\": 4000, \"out_of_place\": {\"time\": \"nan\", \"nwrong\": null},"
                " \"in_place\": {\"cpu_time\": 50}}, {\"size\": 9000, \"out_of_place\": null}]}");
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_outputs_are_refused_by_line)
{
    hbp_context *context = test_context();
    hbp_machine *machine = some_machine(context);
#define REFUSED(status, message, text) FAILS(context, status, message, apply_text(context, machine, text))
    REFUSED(HBP_E_FORMAT, "no line with the names of the columns", "");
    REFUSED(HBP_E_FORMAT, "no line with the names of the columns", "hello\n# size of the hall\n");
    REFUSED(HBP_E_FORMAT, "nccl-tests, line 2: a row before the names",
            "\n8 2 float sum -1 1 1 1 0 1 1 1 0\n");
    REFUSED(HBP_E_FORMAT, "line 2: a row of 12 columns under a header of 13",
            HEADER "8 2 float sum -1 1 1 1 0 1 1 1\n");
    REFUSED(HBP_E_FORMAT, "line 2: the time is neither", HEADER "8 2 float sum -1 x 1 1 0 1 1 1 0\n");
    REFUSED(HBP_E_FORMAT, "line 2: the time is neither", HEADER "8 2 float sum -1 -1 1 1 0 1 1 1 0\n");
    REFUSED(HBP_E_FORMAT, "line 2: the count of wrong values is",
            HEADER "8 2 float sum -1 1 1 1 ? 1 1 1 0\n");
    REFUSED(HBP_E_FORMAT, "line 3: the collective gave wrong values",
            HEADER "8 2 float sum -1 1 1 1 0 1 1 1 0\n8 2 float sum -1 1 1 1 0 1 1 1 3\n");
    REFUSED(HBP_E_INVALID, "0 timings of fewer than two sizes", HEADER);
    REFUSED(HBP_E_INVALID, "2 timings of fewer than two sizes",
            HEADER "8 2 float sum -1 1 1 1 0 1 1 1 0\n8 2 float sum -1 2 1 1 0 1 1 1 0\n");
    REFUSED(HBP_E_INVALID, "the times do not grow with the size",
            HEADER "8 2 float sum -1 2 1 1 0 1 1 1 0\n16 2 float sum -1 1 1 1 0 1 1 1 0\n");
    REFUSED(HBP_E_FORMAT, "nccl-tests, line 1: ", "{\"results\": [");
    REFUSED(HBP_E_FORMAT, "'results' is missing", "{}");
    REFUSED(HBP_E_FORMAT, "'results' is missing", "{\"results\": 3}");
    REFUSED(HBP_E_FORMAT, "result 0: 'size' is not a whole number", "{\"results\": [{\"size\": 1.5}]}");
    REFUSED(HBP_E_FORMAT, "result 0: 'time' is not a number",
            "{\"results\": [{\"size\": 1, \"out_of_place\": {\"time\": []}}]}");
    REFUSED(HBP_E_FORMAT, "result 0: the collective gave wrong values",
            "{\"results\": [{\"size\": 1, \"in_place\": {\"time\": 1, \"nwrong\": 2}}]}");
    FAILS(context, HBP_E_INVALID, "collective is 4",
          hbp_machine_apply_nccl_tests(context, machine, 4, 8, HEADER, 10));
    FAILS(context, HBP_E_INVALID, "ranks is 1",
          hbp_machine_apply_nccl_tests(context, machine, 0, 1, HEADER, 10));
    FAILS(context, HBP_E_INVALID, "bytes is -1",
          hbp_machine_apply_nccl_tests(context, machine, 0, 8, HEADER, -1));
    FAILS(context, HBP_E_INVALID, "data is NULL",
          hbp_machine_apply_nccl_tests(context, machine, 0, 8, NULL, 0));
    FAILS(context, HBP_E_INVALID, "machine is NULL",
          hbp_machine_apply_nccl_tests(context, NULL, 0, 8, HEADER, 10));
    ck_assert_int_eq(machine->collective_count, 0);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

static hbp_status apply_once(hbp_context *context, void *user)
{
    const struct output *r = user;
    hbp_machine *machine = NULL;
    hbp_status status = hbp_machine_create_preset(context, "h100", &machine);
    if (status == HBP_OK)
        status = apply_file(context, machine, r->name, r->collective, r->ranks);
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        struct output copy = outputs[i];
        failing_sweep(apply_once, &copy);
    }
}
END_TEST

TEST_MAIN("nccl_tests", outputs_of_each_version_are_fitted, blanks_may_stand_before_json,
          columns_are_found_by_name, bad_outputs_are_refused_by_line, failed_allocations_leave_nothing)
