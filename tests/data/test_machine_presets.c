#include "failing.h"

#include "data/machine/machine.h"
#include "keep.h"
#include "nodes.h"

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
    OK(context, make_nodes(context, name, nodes, &machine));
    ck_assert_str_eq(hbp_machine_get_name(machine), name);
    OK(context, hbp_machine_get_fields(context, machine, &f));
    hbp_machine_free(machine);
    return f;
}

START_TEST_IN_CONTEXT(every_row_of_the_table)
{
    for (int64_t i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];
        ck_assert_str_eq(hbp_preset_get_name("machine", i), r->name);
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
    ck_assert_ptr_null(hbp_preset_get_name("machine", row_count));
    ck_assert_ptr_null(hbp_preset_get_name("machine", -1));
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
    MAKES(context, machine, hbp_machine_create_preset(context, "h200:2", &machine));
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

static hbp_machine_fields described(hbp_context *context, const char *text)
{
    hbp_machine *machine = NULL;
    hbp_machine_fields f = {.struct_size = sizeof f};
    OK(context, hbp_machine_create_preset(context, text, &machine));
    OK(context, hbp_machine_get_fields(context, machine, &f));
    hbp_machine_free(machine);
    return f;
}

START_TEST_IN_CONTEXT(a_name_alone_is_one_node)
{
    hbp_machine_fields one = described(context, "gb200-nvl72"), same = described(context, "gb200-nvl72:1");
    ck_assert_mem_eq(&one, &same, sizeof one);
    ck_assert_int_eq(one.nodes, 1);
}
END_TEST

START_TEST_IN_CONTEXT(fields_follow_the_preset)
{
    hbp_machine *machine = NULL;
    MAKES(context, machine,
          hbp_machine_create_preset(context, "h100:4,nvlink_bytes_per_s=4e11,cores=96", &machine));
    hbp_machine_fields f = {.struct_size = sizeof f};
    OK(context, hbp_machine_get_fields(context, machine, &f));
    ck_assert_int_eq(f.nodes, 4);
    ck_assert_int_eq(f.cores, 96);
    ck_assert_double_eq(f.nvlink_bytes_per_s, 4e11);
    NEAR(f.network_bytes_per_s, 50e9);
    ck_assert_str_eq(hbp_machine_get_name(machine), "h100");
    ck_assert_str_eq(hbp_machine_get_source(machine, "nvlink_bytes_per_s"), "given");
    ck_assert_str_eq(hbp_machine_get_source(machine, "network_bytes_per_s"), "preset h100");
    ck_assert_int_eq(described(context, "gb200-nvl72:18,domain_gpus=36").domain_gpus, 36);
}
END_TEST

/* NVLink reaches as far as there are GPUs, whichever way their number is given. */
START_TEST_IN_CONTEXT(nodes_are_a_number_or_a_field)
{
    hbp_machine_fields number = described(context, "gb200-nvl72:5,cores=3");
    hbp_machine_fields field = described(context, "gb200-nvl72,cores=3,nodes=5");
    ck_assert_mem_eq(&number, &field, sizeof field);
    ck_assert_int_eq(field.domain_gpus, 20);
}
END_TEST

static const struct wrong {
    const char *text, *message;
} wrongs[] = {
    {"h10", "no machine preset 'h10'; the nearest is 'h100'"},
    {"h10:4,cores=x", "no machine preset 'h10'; the nearest is 'h100'"},
    {"", "no machine preset ''; there are a100-40, a100-80, a800-80, h100, h200, b200, gb200-nvl72"},
    {"h100x8", "no machine preset 'h100x8'; 8 nodes of h100 are 'h100:8'"},
    {"a100-80*16,cores=3", "no machine preset 'a100-80*16'; 16 nodes of a100-80 are 'a100-80:16'"},
    {"h100x", "no machine preset 'h100x'; the nearest is 'h100'"},
    {"h100x8x", "no machine preset 'h100x8x'; the nearest is 'h100'"},
    {"H100-80GB", "no machine preset 'H100-80GB'; the nearest is 'h100'; there are a100-40, a100-80"},
    {"h100,memory=80GiB", "there is no field 'memory'; the nearest is 'hbm_bytes'"},
    {"h100,xyz=1", "there is no field 'xyz'; there are nodes, gpus_per_node, domain_gpus, cpu_packages"},
    {"h100,cores=8GB", "cores is '8GB'; it must be a finite decimal number, without a unit"},
    {"h100,hbm_bytes=80Gb",
     "hbm_bytes is '80Gb'; it must be a number of bytes or one with a unit, such as 80GB or 80GiB"},
    {"h100,hbm_bytes=0.3B", "hbm_bytes is '0.3B', which rounds to 0"},
    {"h100,hbm_bytes=-1GiB", "hbm_bytes is -1GiB; it must be finite and at least 0"},
    {"h100,hbm_bytes=0.3", "hbm_bytes is 0.3; it must be a whole number"},
    {"h100,gemm_efficiency=3", "gemm_efficiency is 3; it is a share, at most 1"},
    {":4", "no machine preset ''"},
    {"nodes=4", "no machine preset 'nodes=4'"},
    {"h100:", "machine 'h100:': nodes is ''; it must be a number in 1..268435455"},
    {"h100:0", "machine 'h100:0': `nodes` is 0; it must be in 1..268435455"},
    {"h100:-1", "nodes is '-1'; it must be a number in 1..268435455"},
    {"h100:4:4", "nodes is '4:4'"},
    {"h100:4.0", "nodes is '4.0'"},
    {"h100: 4", "nodes is ' 4'"},
    {"h100:268435456", "`nodes` is 268435456; it must be in 1..268435455"},
    {"gb200-nvl72:536870912", "`nodes` is 536870912; it must be in 1..536870911"},
    {"h100:9223372036854775807", "`nodes` is 9223372036854775807; it must be in 1..268435455"},
    {"h100:99999999999999999999", "nodes is '99999999999999999999'; it must be a number in 1..268435455"},
    {"h100:4,nodes=4", "machine 'h100:4,nodes=4': nodes is given twice"},
    {"h100,nodes=0", "machine 'h100,nodes=0': `nodes` is 0; it must be in 1..268435455"},
    {"h100,nodes=1.5", "nodes is 1.5; it must be a whole number in 1..268435455"},
    {"h100,nodes=1e20", "nodes is 1e+20; it must be a whole number in 1..268435455"},
    {"h100:4,", "machine 'h100:4,': '' is not FIELD=VALUE"},
    {"h100:4,,cores=1", "machine 'h100:4,,cores=1': '' is not FIELD=VALUE"},
    {"h100:4,cores", "'cores' is not FIELD=VALUE"},
    {"h100:4,=3", "'=3' is not FIELD=VALUE"},
    {"h100:4,cores=", "cores is ''; it must be a finite decimal number, without a unit"},
    {"h100:4,cores=1=2", "cores is '1=2'"},
    {"h100:4,cores=nan", "cores is 'nan'; it must be a finite decimal number"},
    {"h100:4,cores=inf", "cores is 'inf'"},
    {"h100:4,nvlink_bytes_per_s=1e999",
     "nvlink_bytes_per_s is '1e999'; it must be a number of bytes per second or one with a unit"},
    {"h100:4,cores=1,cores=1", "machine 'h100:4,cores=1,cores=1': cores is given twice"},
    {"h100:4,core=1", "machine 'h100:4,core=1': there is no field 'core'; the nearest is 'cores'"},
    {"h100,cores=-1", "machine 'h100,cores=-1': cores is -1; it must be finite and at least 0"},
    {"h100,cores=1.5", "machine 'h100,cores=1.5': cores is 1.5; it must be a whole number"},
};

START_TEST_IN_CONTEXT(wrong_texts_are_named)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        hbp_machine *machine = (hbp_machine *)context;
        FAILS(context, HBP_E_INVALID, wrongs[i].message,
              hbp_machine_create_preset(context, wrongs[i].text, &machine));
        ck_assert_ptr_null(machine);
    }
    hbp_machine *machine = NULL;
    FAILS(context, HBP_E_OVERFLOW, "cores is 3000000000; it must be at most 2147483647",
          hbp_machine_create_preset(context, "h100,cores=3e9", &machine));
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_machine_create_preset(context, NULL, &machine));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_machine_create_preset(context, "h100", NULL));
    ck_assert_int_eq(preset(context, "h100", 268435455).nodes, 268435455);
}
END_TEST

/* A text of any length is one line of a message, and no name of a thousand bytes is taken for a shorter one.
 */
START_TEST_IN_CONTEXT(long_texts_are_refused)
{
    static char text[5000];
    hbp_machine *machine = NULL;
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "h100", 4);
    FAILS(context, HBP_E_INVALID, "no machine preset 'h100aaa",
          hbp_machine_create_preset(context, text, &machine));
    memcpy(text, "h100,cores", 10);
    FAILS(context, HBP_E_INVALID, "is not FIELD=VALUE", hbp_machine_create_preset(context, text, &machine));
    text[4000] = '=';
    FAILS(context, HBP_E_INVALID, "there is no field 'coresaaa",
          hbp_machine_create_preset(context, text, &machine));
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_machine *machine;
    hbp_status status = hbp_machine_create_preset(context, user, &machine);
    hbp_machine_free(machine);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(create_once, "b200:3,cores=4");
}
END_TEST

TEST_MAIN("machine_presets", every_row_of_the_table, a_domain_is_no_larger_than_the_machine,
          sources_name_the_preset, a_name_alone_is_one_node, fields_follow_the_preset,
          nodes_are_a_number_or_a_field, wrong_texts_are_named, long_texts_are_refused,
          failed_allocations_leave_nothing)
