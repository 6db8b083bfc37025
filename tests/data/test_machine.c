#include "failing.h"

#include <math.h>

#include "data/machine.h"

static hbp_machine_fields some_fields(void)
{
    hbp_machine_fields f;
    hbp_machine_fields_init(&f, sizeof f);
    f.nodes = 2;
    f.gpus_per_node = 4;
    f.hbm_bytes = INT64_C(1) << 40;
    f.flops_per_s = 1e15;
    return f;
}

static hbp_machine *make(hbp_context *context)
{
    hbp_machine_fields f = some_fields();
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &f, &machine));
    return machine;
}

START_TEST(fields_keep_their_values_and_sources)
{
    hbp_context *context = test_context();
    hbp_machine *machine = make(context);
    hbp_machine_fields got = {.struct_size = sizeof got};
    OK(context, hbp_machine_get_fields(context, machine, &got));
    ck_assert_int_eq(got.nodes, 2);
    ck_assert_int_eq(got.gpus_per_node, 4);
    ck_assert_int_eq(got.hbm_bytes, INT64_C(1) << 40);
    ck_assert_double_eq(got.flops_per_s, 1e15);
    ck_assert_int_eq(got.domain_gpus, 0);
    ck_assert_str_eq(hbp_machine_get_name(machine), "given");
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), "given");
    ck_assert_str_eq(hbp_machine_get_source(machine, "flops_per_s"), "given");
    ck_assert_str_eq(hbp_machine_get_source(machine, "domain_gpus"), "unknown");
    ck_assert_ptr_null(hbp_machine_get_source(machine, "struct_size"));
    ck_assert_ptr_null(hbp_machine_get_source(machine, "node"));
    ck_assert_ptr_null(hbp_machine_get_source(machine, NULL));
    ck_assert_ptr_null(hbp_machine_get_source(NULL, "nodes"));
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* Each field is set to a value of its own through its name and read back through the struct. */
START_TEST(every_field_is_reached_by_name)
{
    hbp_context *context = test_context();
    hbp_machine *machine = make(context);
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        OK(context, hbp_machine_set_field(context, machine, hbp__machine_field_name(i), i + 10, "test"));
        ck_assert_double_eq(hbp__machine_field_value(machine, i), i + 10);
    }
    hbp_machine_fields got = {.struct_size = sizeof got};
    OK(context, hbp_machine_get_fields(context, machine, &got));
    int32_t i = 10;
#define SAME(name, type)                                                                                     \
    ck_assert_double_eq((double)got.name, i++);                                                              \
    ck_assert_str_eq(hbp_machine_get_source(machine, #name), "test");
    HBP__MACHINE_FIELDS(SAME)
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

#define WRONG(status, text, name, value)                                                                     \
    FAILS(context, status, text, hbp_machine_set_field(context, machine, name, value, "test"))

START_TEST(wrong_values_change_nothing)
{
    hbp_context *context = test_context();
    hbp_machine *machine = make(context);
    WRONG(HBP_E_INVALID, "nodes is -1; it must be finite and at least 0", "nodes", -1);
    WRONG(HBP_E_INVALID, "nodes is 1.5; it must be a whole number", "nodes", 1.5);
    WRONG(HBP_E_OVERFLOW, "nodes is 2147483648; it must be at most 2147483647", "nodes", 2147483648.);
    WRONG(HBP_E_OVERFLOW, "hbm_bytes is 9007199254740994; it must be at most 9007199254740992", "hbm_bytes",
          9007199254740994.);
    WRONG(HBP_E_INVALID, "hbm_bytes is inf", "hbm_bytes", INFINITY);
    WRONG(HBP_E_INVALID, "flops_per_s is", "flops_per_s", NAN);
    WRONG(HBP_E_INVALID, "flops_per_s is -inf", "flops_per_s", -INFINITY);
    WRONG(HBP_E_INVALID, "a machine has no field 'hbm_byte'; the nearest is 'hbm_bytes'", "hbm_byte", 1);
    char source[65];
    memset(source, 's', 64);
    source[64] = '\0';
    FAILS(context, HBP_E_INVALID, "the source has 64 characters; it must have 1..63",
          hbp_machine_set_field(context, machine, "nodes", 3, source));
    FAILS(context, HBP_E_INVALID, "the source has 0 characters",
          hbp_machine_set_field(context, machine, "nodes", 3, ""));
    FAILS(context, HBP_E_INVALID, "byte 1 of the source is a control character",
          hbp_machine_set_field(context, machine, "nodes", 3, "a\nb"));
    FAILS(context, HBP_E_INVALID, "machine is NULL",
          hbp_machine_set_field(context, NULL, "nodes", 3, "test"));
    FAILS(context, HBP_E_INVALID, "field is NULL", hbp_machine_set_field(context, machine, NULL, 3, "test"));
    ck_assert_int_eq(machine->fields.nodes, 2);
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), "given");
    OK(context, hbp_machine_set_field(context, machine, "nodes", 3, source + 1));
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), source + 1);
    OK(context, hbp_machine_set_field(context, machine, "nodes", 5, NULL));
    ck_assert_int_eq(machine->fields.nodes, 5);
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), "given");
    OK(context, hbp_machine_set_field(context, machine, "nodes", 2147483647, NULL));
    ck_assert_int_eq(machine->fields.nodes, INT32_MAX);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(wrong_structs_are_refused)
{
    hbp_context *context = test_context();
    hbp_machine *machine = (hbp_machine *)context;
    hbp_machine_fields f = some_fields();
    f.cores = -3;
    FAILS(context, HBP_E_INVALID, "cores is -3", hbp_machine_create(context, &f, &machine));
    ck_assert_ptr_null(machine);
    f = some_fields();
    f.hbm_bytes = -1;
    FAILS(context, HBP_E_INVALID, "hbm_bytes is -1", hbp_machine_create(context, &f, &machine));
    f = some_fields();
    f.network_latency_ns = NAN;
    FAILS(context, HBP_E_INVALID, "network_latency_ns is", hbp_machine_create(context, &f, &machine));
    f = some_fields();
    f.hbm_bytes = INT64_MAX;
    FAILS(context, HBP_E_OVERFLOW, "hbm_bytes is 9.2233720368547758e+18",
          hbp_machine_create(context, &f, &machine));
    f.hbm_bytes = INT64_C(1) << 53;
    OK(context, hbp_machine_create(context, &f, &machine));
    ck_assert_int_eq(machine->fields.hbm_bytes, INT64_C(1) << 53);
    hbp_machine_free(machine);
    FAILS(context, HBP_E_INVALID, "fields is NULL", hbp_machine_create(context, NULL, &machine));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_machine_create(context, &f, NULL));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_machine_get_fields(context, NULL, &f));
    ck_assert_ptr_null(hbp_machine_get_name(NULL));
    hbp_machine_free(NULL);
    hbp_context_free(context);
}
END_TEST

/* Collectives set in any order stay sorted; the last of two for the same ranks counts. */
START_TEST(collectives_are_found_again)
{
    hbp_context *context = test_context();
    hbp_machine *machine = make(context);
    static const int32_t ranks[] = {8, 2, 64, 16, 8};
    for (int round = 0; round < 5; round++)
        for (int32_t c = HBP_COLLECTIVE_COUNT - 1; c >= 0; c--)
            OK(context, hbp_machine_set_collective(context, machine, c, ranks[round], c * 100 + round,
                                                   1e9 + round, round == 4 ? NULL : "test"));
    ck_assert_int_eq(machine->collective_count, 4 * HBP_COLLECTIVE_COUNT);
    for (int64_t i = 1; i < machine->collective_count; i++)
        ck_assert_int_lt(machine->collectives[i - 1].collective * 1000 + machine->collectives[i - 1].ranks,
                         machine->collectives[i].collective * 1000 + machine->collectives[i].ranks);
    double latency = 0, bandwidth = 0;
    const char *source = NULL;
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 16, &latency, &bandwidth, &source), 1);
    ck_assert_double_eq(latency, 203);
    ck_assert_double_eq(bandwidth, 1e9 + 3);
    ck_assert_str_eq(source, "test");
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 8, &latency, NULL, &source), 1);
    ck_assert_double_eq(latency, 204);
    ck_assert_str_eq(source, "given");
    ck_assert_int_eq(hbp_machine_get_collective(machine, 2, 32, NULL, NULL, NULL), 0);
    ck_assert_int_eq(hbp_machine_get_collective(machine, 4, 8, NULL, NULL, NULL), 0);
    ck_assert_int_eq(hbp_machine_get_collective(NULL, 2, 8, NULL, NULL, NULL), 0);
    ck_assert_int_eq(hbp_machine_get_collective(machine, 3, 64, NULL, NULL, NULL), 1);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(wrong_collectives_are_refused)
{
    hbp_context *context = test_context();
    hbp_machine *machine = make(context);
#define REFUSED(text, ...)                                                                                   \
    FAILS(context, HBP_E_INVALID, text, hbp_machine_set_collective(context, machine, __VA_ARGS__, "test"))
    REFUSED("collective is 4", 4, 8, 0, 1);
    REFUSED("collective is -1", -1, 8, 0, 1);
    REFUSED("ranks is 1; a collective has at least 2", 0, 1, 0, 1);
    REFUSED("latency_ns is -1", 0, 2, -1, 1);
    REFUSED("latency_ns is inf", 0, 2, INFINITY, 1);
    REFUSED("bytes_per_s is 0; it must be finite and above 0", 0, 2, 0, 0);
    REFUSED("bytes_per_s is", 0, 2, 0, NAN);
    FAILS(context, HBP_E_INVALID, "machine is NULL",
          hbp_machine_set_collective(context, NULL, 0, 2, 0, 1, "test"));
    ck_assert_int_eq(machine->collective_count, 0);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

static hbp_status build_once(hbp_context *context, void *user)
{
    hbp_machine_fields f = some_fields();
    hbp_machine *machine;
    (void)user;
    hbp_status status = hbp_machine_create(context, &f, &machine);
    for (int32_t i = 0; i < 3 && status == HBP_OK; i++)
        status = hbp_machine_set_collective(context, machine, 0, 2 + i, 1, 1, "test");
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(build_once, NULL);
}
END_TEST

TEST_MAIN("machine", fields_keep_their_values_and_sources, every_field_is_reached_by_name,
          wrong_values_change_nothing, wrong_structs_are_refused, collectives_are_found_again,
          wrong_collectives_are_refused, failed_allocations_leave_nothing)
