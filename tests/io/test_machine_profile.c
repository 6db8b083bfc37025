#include "harm.h"
#include "hbp/io.h"
#include "nodes.h"

#include <locale.h>
#include <unistd.h>

#include "io/file/stream.h"
#include "io/machine/machine_profile.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/hbp-profile-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

static hbp_machine *some_machine(hbp_context *context)
{
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create_preset(context, "h200:3", &machine));
    OK(context, hbp_machine_set_field(context, machine, "cores", 64, "hwloc"));
    OK(context, set_collective(context, machine, 0, 8, 20500.25, 3.1e11, "nccl-tests 2.19"));
    const hbp_machine_collective all_reduce = {sizeof all_reduce, 3, 24, 40000, 4.2e10, .0625, "given"};
    OK(context, hbp_machine_set_collective(context, machine, &all_reduce));
    static const hbp_machine_rate rates[] = {
        {sizeof *rates, HBP_RATE_COPY, INT64_C(1) << 40, 1.9e9, 0, "copied"},
        {sizeof *rates, HBP_RATE_GEMM, 512, 1.5e11, .3, "test, 2026-11-22"},
        {sizeof *rates, HBP_RATE_ATTENTION, 2048, 6e13, .5, NULL}};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        OK(context, hbp_machine_set_rate(context, machine, &rates[i]));
    return machine;
}

static void check_same(const hbp_machine *a, const hbp_machine *b)
{
    ck_assert_str_eq(a->name, b->name);
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        ck_assert_str_eq(a->source[i], b->source[i]);
        ck_assert_double_eq(hbp__machine_field_value(a, i), hbp__machine_field_value(b, i));
    }
    ck_assert_int_eq(a->collective_count, b->collective_count);
    for (int64_t i = 0; i < a->collective_count; i++) {
        const hbp__collective *x = &a->collectives[i], *y = &b->collectives[i];
        ck_assert(x->collective == y->collective && x->ranks == y->ranks);
        ck_assert_double_eq(x->latency_ns, y->latency_ns);
        ck_assert_double_eq(x->bytes_per_s, y->bytes_per_s);
        ck_assert_double_eq(x->spread, y->spread);
        ck_assert_str_eq(x->source, y->source);
    }
    ck_assert_int_eq(a->rate_count, b->rate_count);
    for (int64_t i = 0; i < a->rate_count; i++) {
        const hbp__rate *x = &a->rates[i], *y = &b->rates[i];
        ck_assert(x->rate == y->rate && x->size == y->size);
        ck_assert_double_eq(x->per_s, y->per_s);
        ck_assert_double_eq(x->spread, y->spread);
        ck_assert_str_eq(x->source, y->source);
    }
}

static void check_round_trip(hbp_context *context, const hbp_machine *machine)
{
    hbp_machine *read = NULL;
    OK(context, hbp_machine_save(context, machine, path));
    OK(context, hbp_machine_load(context, path, &read));
    check_same(machine, read);
    hbp_machine_free(read);
}

START_TEST(what_is_saved_is_loaded)
{
    hbp_context *context = test_context();
    make_path();
    hbp_machine *machine = some_machine(context);
    check_round_trip(context, machine);
    /* Numbers that need every digit, and one that a locale could spell with a comma. */
    OK(context, hbp_machine_set_field(context, machine, "flops_per_s", 1e15 / 7, "measured"));
    OK(context, hbp_machine_set_field(context, machine, "gemm_efficiency", .1 + .2, "measured"));
    OK(context, hbp_machine_set_rate(context, machine,
                                     &(hbp_machine_rate){sizeof(hbp_machine_rate), HBP_RATE_GEMM, 64,
                                                         1e12 / 7, .1 + .2, NULL}));
    OK(context, hbp_machine_set_field(context, machine, "nvlink_latency_ns", 1e-300, "measured"));
    OK(context, hbp_machine_set_field(context, machine, "network_bytes_per_s", 1e300, "measured"));
    OK(context, hbp_machine_set_field(context, machine, "cpu_memory_bytes", 9007199254740991., "measured"));
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    check_round_trip(context, machine);
    setlocale(LC_NUMERIC, "C");
    check_round_trip(context, machine);
    hbp_machine_free(machine);
    OK(context, hbp_machine_create(context, &(hbp_machine_fields){.struct_size = sizeof(hbp_machine_fields)},
                                   &machine));
    check_round_trip(context, machine);
    hbp_machine_free(machine);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_profile_reads_well)
{
    hbp_context *context = test_context();
    make_path();
    hbp_machine *machine = some_machine(context);
    OK(context, hbp_machine_save(context, machine, path));
    char *text;
    int64_t bytes;
    OK(context, hbp__read_file(context, path, 1 << 20, &text, &bytes));
    text[bytes - 1] = '\0'; /* the file ends with a line end */
    ck_assert_ptr_nonnull(strstr(text, "\"format\": \"hbp-machine\""));
    ck_assert_ptr_nonnull(strstr(text, "\"version\": 1"));
    ck_assert_ptr_nonnull(strstr(text, "\"value\": 0.45,"));
    ck_assert_ptr_nonnull(strstr(text, "\"value\": 151397597184,"));
    ck_assert_ptr_nonnull(strstr(text, "\"latency_ns\": 20500.25"));
    ck_assert_ptr_nonnull(strstr(text, "\"rate\": \"gemm\""));
    ck_assert_ptr_nonnull(strstr(text, "\"size\": 1099511627776,"));
    ck_assert_ptr_nonnull(strstr(text, "\"spread\": 0.0625"));
    ck_assert_ptr_null(strstr(text, "\"spread\": -1")); /* unknown ones are left out */
    ck_assert_ptr_null(strstr(text, "numa_nodes"));
    hbp__delete(&context->memory, text);
    hbp_machine_free(machine);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

START_TEST(text_that_is_not_utf8_is_made_printable)
{
    hbp_context *context = test_context();
    make_path();
    hbp_machine *machine = some_machine(context), *read = NULL;
    OK(context, hbp_machine_set_field(context, machine, "cores", 3, "caf\xe9"));
    OK(context, hbp_machine_set_field(context, machine, "nodes", 3, "caf\xc3\xa9"));
    OK(context, hbp_machine_save(context, machine, path));
    OK(context, hbp_machine_load(context, path, &read));
    ck_assert_str_eq(hbp_machine_get_source(read, "cores"), "caf?");
    ck_assert_str_eq(hbp_machine_get_source(read, "nodes"), "caf\xc3\xa9");
    hbp_machine_free(read);
    hbp_machine_free(machine);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

static hbp_status parse(hbp_context *context, const char *text, hbp_machine **machine)
{
    return hbp__machine_read(context, "m.json", text, (int64_t)strlen(text), machine);
}

#define HEAD "{\"format\": \"hbp-machine\", \"version\": 1, \"name\": \"x\", "

START_TEST(bad_profiles_are_refused)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
#define REFUSED(text, json) FAILS(context, HBP_E_FORMAT, text, parse(context, json, &machine))
    REFUSED("m.json, line 1: ", "{");
    REFUSED("m.json: 'format' is not \"hbp-machine\"", "{}");
    REFUSED("m.json: 'format' is not", "{\"format\": \"hbp-plan\"}");
    REFUSED("m.json: 'version' is not a whole number", "{\"format\": \"hbp-machine\", \"version\": \"1\"}");
    REFUSED("m.json: 'name' is no text", "{\"format\": \"hbp-machine\", \"version\": 1}");
    REFUSED("m.json: 'fields' is no object", HEAD "\"fields\": []}");
    REFUSED("m.json: 'fields' is no object or 'collectives' no array",
            HEAD "\"fields\": {}, \"collectives\": {}}");
    REFUSED("m.json: field 'nodes' has no 'value' that is a number or a text such as \"80GiB\"",
            HEAD "\"fields\": {\"nodes\": [3]}}");
    REFUSED("m.json: field 'nodes' has no 'value'", HEAD "\"fields\": {\"nodes\": {\"value\": 3}}}");
    REFUSED("m.json: field 'n?' has no 'value'", HEAD "\"fields\": {\"n\\n\": {\"source\": \"s\"}}}");
    REFUSED("m.json: field 'nodes' has no 'value' that is a number or a text such as \"80GiB\", or no text "
            "'source'",
            HEAD "\"fields\": {\"nodes\": {\"value\": 3, \"source\": 5}}}");
    REFUSED("m.json: nodes is '3GB'; it must be a finite decimal number, without a unit",
            HEAD "\"fields\": {\"nodes\": \"3GB\"}}");
    REFUSED("m.json: hbm_bytes is '80Gb'; it must be a number of bytes or one with a unit",
            HEAD "\"fields\": {\"hbm_bytes\": {\"value\": \"80Gb\", \"source\": \"s\"}}}");
    REFUSED("m.json: it has a 'model_type': it is a model's config.json", "{\"model_type\": \"llama\"}");
    REFUSED("m.json: a machine has no field 'node'; the nearest is 'nodes'",
            HEAD "\"fields\": {\"node\": {\"value\": 3, \"source\": \"s\"}}}");
    REFUSED("m.json: nodes is -3", HEAD "\"fields\": {\"nodes\": {\"value\": -3, \"source\": \"s\"}}}");
    REFUSED("m.json: nodes is 1e+30", HEAD "\"fields\": {\"nodes\": {\"value\": 1e30, \"source\": \"s\"}}}");
    REFUSED("m.json: the source has 0 characters",
            HEAD "\"fields\": {\"nodes\": {\"value\": 3, \"source\": \"\"}}}");
    REFUSED("m.json: collective 0 lacks", HEAD "\"fields\": {}, \"collectives\": [3]}");
#define ROW(ranks, latency)                                                                                  \
    HEAD "\"fields\": {}, \"collectives\": [{\"collective\": \"all_reduce\", \"ranks\": " ranks              \
         ", \"latency_ns\": " latency ", \"bytes_per_s\": 1, \"source\": \"s\"}]}"
    REFUSED("m.json: ranks is 1", ROW("1", "0"));
    REFUSED("m.json: collective 0 lacks", ROW("99999999999", "0"));
    REFUSED("m.json: latency_ns is -1", ROW("2", "-1"));
    REFUSED("m.json: 'rates' is no array", HEAD "\"fields\": {}, \"rates\": 3}");
    REFUSED("m.json: collective 0 lacks", ROW("2", "0, \"spread\": \"much\""));
    REFUSED("m.json: spread is -2", ROW("2", "0, \"spread\": -2"));
#define RATE(name, size, spread)                                                                             \
    HEAD "\"fields\": {}, \"rates\": [{\"rate\": \"gemm\", \"size\": 8, \"per_s\": 1, \"spread\": 0, "       \
         "\"source\": \"s\"}, {\"rate\": \"" name "\", \"size\": " size                                      \
         ", \"per_s\": 2, \"spread\": " spread ", \"source\": \"s\"}]}"
    REFUSED("m.json: rate 1 lacks one of rate, size, per_s, spread and source", RATE("gem", "8", "0"));
    REFUSED("m.json: rate 1 lacks", RATE("gemm", "8.5", "0"));
    REFUSED("m.json: rate 1 lacks", RATE("gemm", "8", "null"));
    REFUSED("m.json: size is 0; it must be at least 1", RATE("gemm", "0", "0"));
    REFUSED("m.json: spread is -1; it must be", RATE("copy", "8", "-1"));
    REFUSED("m.json: rate 0 lacks", HEAD "\"fields\": {}, \"rates\": [3]}");
    FAILS(context, HBP_E_VERSION, "m.json: a machine's profile of version 2; this library reads 1",
          parse(context, "{\"format\": \"hbp-machine\", \"version\": 2, \"name\": \"x\"}", &machine));
    ck_assert_ptr_null(machine);
    OK(context, parse(context, ROW("2", "0"), &machine));
    ck_assert_int_eq(machine->collective_count, 1);
    ck_assert_int_eq(machine->rate_count, 0);
    ck_assert_double_eq(machine->collectives[0].spread, 0);
    hbp_machine_free(machine);
    OK(context, parse(context, RATE("attention", "8", "0.5"), &machine));
    ck_assert_int_eq(machine->rate_count, 2);
    ck_assert_double_eq(machine->rates[1].per_s, 2);
    hbp_machine_free(machine);
    OK(context,
       parse(context, HEAD "\"fields\": {\"nodes\": {\"value\": 3, \"source\": \"s\", \"date\": \"2026\"}}}",
             &machine));
    ck_assert_int_eq(machine->fields.nodes, 3);
    hbp_machine_free(machine);
    OK(context,
       parse(context,
             HEAD "\"fields\": {\"hbm_bytes\": \"80GiB\", \"network_bytes_per_s\": {\"value\": \"400Gb/s\", "
                  "\"source\": \"NIC\"}, \"nvlink_latency_ns\": \"5us\", \"cores\": 96}, \"collectives\": "
                  "[{\"collective\": \"all_reduce\", \"ranks\": 8, \"latency_ns\": \"20us\", "
                  "\"bytes_per_s\": \"360GB/s\", \"source\": \"s\"}]}",
             &machine));
    ck_assert_int_eq(machine->fields.hbm_bytes, INT64_C(80) << 30);
    ck_assert_double_eq(machine->fields.network_bytes_per_s, 50e9);
    ck_assert_double_eq(machine->fields.nvlink_latency_ns, 5000);
    ck_assert_int_eq(machine->fields.cores, 96);
    ck_assert_str_eq(hbp_machine_get_source(machine, "hbm_bytes"), "given");
    ck_assert_str_eq(hbp_machine_get_source(machine, "network_bytes_per_s"), "NIC");
    ck_assert_double_eq(machine->collectives[0].latency_ns, 20000);
    ck_assert_double_eq(machine->collectives[0].bytes_per_s, 360e9);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(wrong_arguments_are_named)
{
    hbp_context *context = test_context();
    hbp_machine *machine = some_machine(context), *none = machine;
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_machine_save(context, NULL, "/tmp/x"));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_machine_save(context, machine, NULL));
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_machine_save(context, machine, "/nowhere/x"));
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_machine_load(context, "/nowhere/x", &none));
    ck_assert_ptr_null(none);
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_machine_load(context, NULL, &none));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_machine_load(context, "x", NULL));
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

static hbp_status load_bytes(hbp_context *context, const void *user, const void *data, size_t bytes,
                             void **out)
{
    hbp_machine *machine = NULL;
    (void)user;
    hbp_status status = hbp__machine_read(context, "m.json", data, (int64_t)bytes, &machine);
    *out = machine;
    return status;
}

static hbp_status open_machine(hbp_context *context, const void *user, const char *from, void **out)
{
    hbp_machine *machine = NULL;
    (void)user;
    hbp_status status = hbp_machine_load(context, from, &machine);
    *out = machine;
    return status;
}

static hbp_status save_machine(hbp_context *context, const void *user, const char *to)
{
    return hbp_machine_save(context, user, to);
}

static void free_machine(hbp_context *context, const void *user, void *machine)
{
    (void)context, (void)user;
    hbp_machine_free(machine);
}

/* One that could have been made field by field. */
static void expect_made(hbp_context *context, const void *user, void *object)
{
    const hbp_machine *machine = object;
    hbp_machine *again = NULL;
    hbp_machine_fields fields = machine->fields;
    (void)user;
    fields.struct_size = sizeof fields;
    OK(context, hbp_machine_create(context, &fields, &again));
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++)
        ck_assert_double_eq(hbp__machine_field_value(machine, i), hbp__machine_field_value(again, i));
    for (int64_t i = 0; i < machine->collective_count; i++) {
        const hbp__collective *c = &machine->collectives[i];
        OK(context,
           set_collective(context, again, c->collective, c->ranks, c->latency_ns, c->bytes_per_s, c->source));
    }
    for (int64_t i = 0; i < machine->rate_count; i++) {
        const hbp__rate *r = &machine->rates[i];
        OK(context, hbp_machine_set_rate(context, again,
                                         &(hbp_machine_rate){sizeof(hbp_machine_rate), r->rate, r->size,
                                                             r->per_s, r->spread, r->source}));
    }
    ck_assert_int_eq(again->collective_count, machine->collective_count);
    ck_assert_int_eq(again->rate_count, machine->rate_count);
    hbp_machine_free(again);
}

START_TEST(harm_is_found_or_makes_another_machine)
{
    hbp_context *context = test_context();
    hbp_machine *machine = some_machine(context);
    const harm_kind kind = {.load = load_bytes,
                            .release = free_machine,
                            .expect = expect_made,
                            .save = save_machine,
                            .open = open_machine,
                            .user = machine};
    size_t bytes;
    make_path();
    OK(context, hbp_machine_save(context, machine, path));
    uint8_t *data = (uint8_t *)file_read(path, &bytes);
    harm_done(&kind, data, bytes, bytes - 1); /* the file ends with a line end */
    harm_survived(&kind, data, bytes);
    free(data);
    hbp_machine_free(machine);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("machine_profile", what_is_saved_is_loaded, a_profile_reads_well,
          text_that_is_not_utf8_is_made_printable, bad_profiles_are_refused, wrong_arguments_are_named,
          harm_is_found_or_makes_another_machine)
