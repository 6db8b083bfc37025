#include "traps.h"

#include "failing.h"

#include <math.h>

#include "data/machine/machine.h"
#include "keep.h"

static hbp_machine_fields some_fields(void)
{
    hbp_machine_fields f = {.struct_size = sizeof f};
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

START_TEST_IN_CONTEXT(fields_keep_their_values_and_sources)
{
    hbp_machine *machine = keep(make(context));
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
}
END_TEST

/* A share is at most 1. */
static double value_of(const char *name, int32_t i)
{
    return strstr(name, "_efficiency") ? i / 64. : i + 10;
}

/* Each field is set to a value of its own through its name and read back through the struct. */
START_TEST_IN_CONTEXT(every_field_is_reached_by_name)
{
    hbp_machine *machine = make(context);
    for (int32_t i = 0; i < HBP__MACHINE_FIELD_COUNT; i++) {
        const char *name = hbp__machine_field_name(i);
        OK(context, hbp_machine_set_field(context, machine, name, value_of(name, i), "test"));
        ck_assert_double_eq(hbp__machine_field_value(machine, i), value_of(name, i));
    }
    hbp_machine_fields got = {.struct_size = sizeof got};
    OK(context, hbp_machine_get_fields(context, machine, &got));
    int32_t i = 0;
#define SAME(name, type)                                                                                     \
    ck_assert_double_eq((double)got.name, value_of(#name, i++));                                             \
    ck_assert_str_eq(hbp_machine_get_source(machine, #name), "test");
    HBP__MACHINE_FIELDS(SAME)
    hbp_machine_free(machine);
}
END_TEST

#define WRONG(status, text, name, value)                                                                     \
    FAILS(context, status, text, hbp_machine_set_field(context, machine, name, value, "test"))

START_TEST_IN_CONTEXT(wrong_values_change_nothing)
{
    hbp_machine *machine = keep(make(context));
    WRONG(HBP_E_INVALID, "nodes is -1; it must be finite and at least 0", "nodes", -1);
    WRONG(HBP_E_INVALID, "nodes is 1.5; it must be a whole number", "nodes", 1.5);
    WRONG(HBP_E_OVERFLOW, "nodes is 2147483648; it must be at most 2147483647", "nodes", 2147483648.);
    WRONG(HBP_E_OVERFLOW, "hbm_bytes is 9007199254740994; it must be at most 9007199254740992", "hbm_bytes",
          9007199254740994.);
    WRONG(HBP_E_OVERFLOW, "hbm_bytes is 1e+300; it must be at most", "hbm_bytes", 1e300);
    WRONG(HBP_E_INVALID, "gemm_efficiency is 45; it is a share, at most 1, such as 0.45 or 45%",
          "gemm_efficiency", 45);
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
}
END_TEST

START_TEST_IN_CONTEXT(wrong_structs_are_refused)
{
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
}
END_TEST

START_TEST_IN_CONTEXT(a_machine_is_named)
{
    hbp_machine *machine = keep(make(context));
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    FAILS(context, HBP_E_INVALID, "the name has 64 characters; it must have 1..63",
          hbp_machine_set_name(context, machine, name));
    FAILS(context, HBP_E_INVALID, "the name has 0 characters", hbp_machine_set_name(context, machine, ""));
    FAILS(context, HBP_E_INVALID, "byte 2 of the name is a control character",
          hbp_machine_set_name(context, machine, "ab\x7f"));
    FAILS(context, HBP_E_INVALID, "name is NULL", hbp_machine_set_name(context, machine, NULL));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_machine_set_name(context, NULL, "x"));
    ck_assert_str_eq(hbp_machine_get_name(machine), "given");
    OK(context, hbp_machine_set_name(context, machine, name + 1));
    ck_assert_str_eq(hbp_machine_get_name(machine), name + 1);
}
END_TEST

static hbp_status build_once(hbp_context *context, void *user)
{
    hbp_machine_fields f = some_fields();
    hbp_machine *machine;
    (void)user;
    hbp_status status = hbp_machine_create(context, &f, &machine);
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(build_once, NULL);
}
END_TEST

START_TEST_IN_CONTEXT(a_text_sets_all_of_its_fields_or_none)
{
    hbp_machine *machine = keep(make(context));
    OK(context, hbp_machine_set_fields(context, machine, "network_bytes_per_s=25e9,nodes=7"));
    ck_assert_int_eq(machine->fields.nodes, 7);
    ck_assert_double_eq(machine->fields.network_bytes_per_s, 25e9);
    ck_assert_str_eq(hbp_machine_get_source(machine, "network_bytes_per_s"), "given");
    FAILS(context, HBP_E_INVALID, "machine 'nodes=9,cores=.5': cores is 0.5; it must be a whole number",
          hbp_machine_set_fields(context, machine, "nodes=9,cores=.5"));
    FAILS(context, HBP_E_OVERFLOW, "cores is 1e+30; it must be at most 2147483647",
          hbp_machine_set_fields(context, machine, "nodes=9,cores=1e30"));
    FAILS(context, HBP_E_INVALID, "there is no field 'colour'",
          hbp_machine_set_fields(context, machine, "nodes=9,colour=1"));
    FAILS(context, HBP_E_INVALID, "nodes is given twice",
          hbp_machine_set_fields(context, machine, "nodes=9,nodes=9"));
    FAILS(context, HBP_E_INVALID, "'' is not FIELD=VALUE", hbp_machine_set_fields(context, machine, ""));
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_machine_set_fields(context, machine, NULL));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_machine_set_fields(context, NULL, "nodes=9"));
    ck_assert_int_eq(machine->fields.nodes, 7);
}
END_TEST

TEST_MAIN_WITH("machine", traps_on, NULL, fields_keep_their_values_and_sources,
               every_field_is_reached_by_name, wrong_values_change_nothing, wrong_structs_are_refused,
               a_machine_is_named, a_text_sets_all_of_its_fields_or_none, failed_allocations_leave_nothing)
