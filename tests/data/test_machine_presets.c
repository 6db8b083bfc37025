#include "failing.h"

#include "data/machine/machine.h"
#include "keep.h"

static const struct row {
    const char *name;
    double tflops, gibibytes, hbm_gbps, nvlink_gbps, network_gbps;
    int32_t per_node, domain;
} rows[] = {
    {"a100-40", 312, 40, 1555, 240, 25, 8, 8},        {"a100-80", 312, 80, 2039, 240, 25, 8, 8},
    {"a800-80", 312, 80, 2039, 160, 6.25, 8, 8},      {"h100", 989, 80, 3350, 371, 50, 8, 8},
    {"h200", 989, 141, 4800, 371, 50, 8, 8},          {"b200", 2250, 180, 8000, 722, 50, 8, 8},
    {"gb200-nvl72", 2500, 186, 8000, 722, 50, 4, 72},
};

static const int64_t row_count = sizeof rows / sizeof *rows;

#define NEAR(a, b) ck_assert_double_eq_tol((double)(a), (double)(b), 1e-12 * (double)(b))

static hbp_machine_fields preset(hbp_context *context, const char *name, int32_t nodes)
{
    hbp_machine *machine = NULL;
    hbp_machine_fields f = {.struct_size = sizeof f};
    OK(context, hbp_machine_create_preset(context, name, nodes, &machine));
    ck_assert_str_eq(hbp_machine_get_name(machine), name);
    OK(context, hbp_machine_get_fields(context, machine, &f));
    hbp_machine_free(machine);
    return f;
}

START_TEST_IN_CONTEXT(every_row_of_the_table)
{
    ck_assert_int_eq(hbp_machine_count_presets(), row_count);
    for (int64_t i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];
        ck_assert_str_eq(hbp_machine_get_preset_name(i), r->name);
        hbp_machine_fields f = preset(context, r->name, 18);
        ck_assert_int_eq(f.nodes, 18);
        ck_assert_int_eq(f.gpus_per_node, r->per_node);
        ck_assert_int_eq(f.domain_gpus, r->domain);
        NEAR(f.flops_per_s, r->tflops * 1e12);
        NEAR(f.hbm_bytes, r->gibibytes * 1073741824);
        NEAR(f.hbm_bytes_per_s, r->hbm_gbps * 1e9);
        NEAR(f.nvlink_bytes_per_s, r->nvlink_gbps * 1e9);
        NEAR(f.network_bytes_per_s, r->network_gbps * 1e9);
        NEAR(f.gemm_efficiency, .45);
        NEAR(f.attention_efficiency, .45);
        NEAR(f.nvlink_latency_ns, 20000);
        NEAR(f.network_latency_ns, 35000);
        ck_assert_int_eq(f.cores, 0);
    }
    ck_assert_ptr_null(hbp_machine_get_preset_name(row_count));
    ck_assert_ptr_null(hbp_machine_get_preset_name(-1));
}
END_TEST

START_TEST_IN_CONTEXT(a_domain_is_no_larger_than_the_machine)
{
    ck_assert_int_eq(preset(context, "gb200-nvl72", 1).domain_gpus, 4);
    ck_assert_int_eq(preset(context, "gb200-nvl72", 5).domain_gpus, 20);
    ck_assert_int_eq(preset(context, "gb200-nvl72", 36).domain_gpus, 72);
    ck_assert_int_eq(preset(context, "h100", 1).domain_gpus, 8);
}
END_TEST

START_TEST_IN_CONTEXT(sources_name_the_preset)
{
    hbp_machine *machine = NULL;
    MAKES(context, machine, hbp_machine_create_preset(context, "h200", 2, &machine));
    ck_assert_str_eq(hbp_machine_get_source(machine, "hbm_bytes"), "preset h200");
    ck_assert_str_eq(hbp_machine_get_source(machine, "domain_gpus"), "preset h200");
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), "given");
    ck_assert_str_eq(hbp_machine_get_source(machine, "numa_nodes"), "unknown");
    OK(context, hbp__machine_set_gpu(context, machine, "a100-40"));
    ck_assert_str_eq(hbp_machine_get_source(machine, "hbm_bytes"), "preset a100-40");
    ck_assert_int_eq(machine->fields.gpus_per_node, 8);
    FAILS(context, HBP_E_INVALID, "no machine preset 'a100'", hbp__machine_set_gpu(context, machine, "a100"));
}
END_TEST

START_TEST_IN_CONTEXT(wrong_arguments_are_named)
{
    hbp_machine *machine = (hbp_machine *)context;
    FAILS(context, HBP_E_INVALID, "no machine preset 'h10'; the nearest is 'h100'",
          hbp_machine_create_preset(context, "h10", 1, &machine));
    ck_assert_ptr_null(machine);
    FAILS(context, HBP_E_INVALID, "nodes is 0; it must be at least 1",
          hbp_machine_create_preset(context, "h100", 0, &machine));
    FAILS(context, HBP_E_OVERFLOW, "nodes is 268435456",
          hbp_machine_create_preset(context, "h100", 268435456, &machine));
    FAILS(context, HBP_E_INVALID, "name is NULL", hbp_machine_create_preset(context, NULL, 1, &machine));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_machine_create_preset(context, "h100", 1, NULL));
    ck_assert_int_eq(preset(context, "h100", 268435455).nodes, 268435455);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_machine *machine;
    hbp_status status = hbp_machine_create_preset(context, user, 3, &machine);
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(create_once, "b200");
}
END_TEST

TEST_MAIN("machine_presets", every_row_of_the_table, a_domain_is_no_larger_than_the_machine,
          sources_name_the_preset, wrong_arguments_are_named, failed_allocations_leave_nothing)
