#include <hwloc.h>

#include "failing.h"
#include "files.h"
#include "hbp/io.h"

#include "data/machine/machine.h"
#include "io/machine/probe.h"

static hbp_machine *probe_file(const char *name)
{
    hbp_context *context = test_context();
    char path[512];
    snprintf(path, sizeof path, "%s/machines/%s", HBP_TESTS_DIR, name);
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_probe(context, HBP_PROBE_XML_FILE, path, &machine));
    hbp_context_free(context);
    return machine;
}

START_TEST(a_known_board_gets_its_numbers)
{
    hbp_machine *machine = probe_file("dgx_h100.hwloc.xml");
    const hbp_machine_fields *f = &machine->fields;
    hbp_context *context = test_context();
    hbp_machine *preset = NULL;
    OK(context, hbp_machine_create_preset(context, "h100", &preset));
    ck_assert_int_eq(f->nodes, 1);
    ck_assert_int_eq(f->gpus_per_node, 8);
    ck_assert_int_eq(f->domain_gpus, 8);
    ck_assert_int_eq(f->cpu_packages, 2);
    ck_assert_int_eq(f->numa_nodes, 2);
    ck_assert_int_eq(f->cores, 112);
    ck_assert_int_eq(f->processing_units, 224);
    ck_assert_int_eq(f->cpu_memory_bytes, 2 * INT64_C(1082331758592));
    for (int32_t i = HBP__MACHINE_hbm_bytes; i < HBP__MACHINE_FIELD_COUNT; i++)
        ck_assert_double_eq(hbp__machine_field_value(machine, i), hbp__machine_field_value(preset, i));
    ck_assert_str_eq(hbp_machine_get_name(machine), "hwloc");
    ck_assert_str_eq(hbp_machine_get_source(machine, "gpus_per_node"), "hwloc");
    ck_assert_str_eq(hbp_machine_get_source(machine, "cores"), "hwloc");
    ck_assert_str_eq(hbp_machine_get_source(machine, "domain_gpus"), "preset h100");
    ck_assert_str_eq(hbp_machine_get_source(machine, "flops_per_s"), "preset h100");
    hbp_machine_free(preset);
    hbp_machine_free(machine);
    machine = probe_file("dgx_a100.hwloc.xml");
    ck_assert_str_eq(hbp_machine_get_source(machine, "flops_per_s"), "preset a100-80");
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(an_unknown_board_is_counted_and_no_more)
{
    hbp_machine *machine = probe_file("pcie_box.hwloc.xml");
    ck_assert_int_eq(machine->fields.gpus_per_node, 4);
    ck_assert_int_eq(machine->fields.domain_gpus, 0);
    ck_assert_int_eq(machine->fields.hbm_bytes, 0);
    ck_assert_str_eq(hbp_machine_get_source(machine, "hbm_bytes"), "unknown");
    hbp_machine_free(machine);
}
END_TEST

START_TEST(pci_devices)
{
    hbp__probe p = {0};
    hbp__probe_add_pci(&p, 0x0302, 0x10de, 0x2330);
    hbp__probe_add_pci(&p, 0x0302, 0x10de, 0x2330);
    hbp__probe_add_pci(&p, 0x0300, 0x10de, 0x1ff2);
    hbp__probe_add_pci(&p, 0x0680, 0x10de, 0x22a3); /* a switch */
    hbp__probe_add_pci(&p, 0x0302, 0x1002, 0x74a1); /* another maker's */
    hbp__probe_add_pci(&p, 0x0403, 0x10de, 0x10f7); /* sound */
    ck_assert_int_eq(p.gpus[HBP__GPU_PLAIN], 2);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0x2330);
    ck_assert_int_eq(p.gpus[HBP__GPU_DISPLAY], 1);
    ck_assert_uint_eq(p.device[HBP__GPU_DISPLAY], 0x1ff2);
    hbp__probe_add_pci(&p, 0x0302, 0x10de, 0x2335);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0);
    hbp__probe_add_pci(&p, 0x0302, 0x10de, 0x2335);
    ck_assert_int_eq(p.gpus[HBP__GPU_PLAIN], 4);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0);
}
END_TEST

START_TEST(this_machine)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_probe(context, HBP_PROBE_THIS_MACHINE, NULL, &machine));
    ck_assert_int_eq(machine->fields.nodes, 1);
    ck_assert_int_ge(machine->fields.processing_units, 1);
    ck_assert_int_ge(machine->fields.gpus_per_node, 0);
    ck_assert_str_eq(hbp_machine_get_source(machine, "gpus_per_node"), "hwloc");
    hwloc_topology_t topology;
    ck_assert_int_eq(hwloc_topology_init(&topology), 0);
    ck_assert_int_eq(hwloc_topology_load(topology), 0);
    ck_assert_int_eq(machine->fields.processing_units, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
    hwloc_topology_destroy(topology);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(another_machine_does_not_take_its_place)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    setenv("HWLOC_SYNTHETIC", "pu:7", 1);
    FAILS(context, HBP_E_SYSTEM, "hwloc describes another machine",
          hbp_machine_probe(context, HBP_PROBE_THIS_MACHINE, NULL, &machine));
    ck_assert_ptr_null(machine);
    /* What is asked for goes before the environment. */
    OK(context, hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, "pu:3", &machine));
    ck_assert_int_eq(machine->fields.processing_units, 3);
    hbp_machine_free(machine);
    unsetenv("HWLOC_SYNTHETIC");
    char path[512];
    snprintf(path, sizeof path, "%s/machines/pcie_box.hwloc.xml", HBP_TESTS_DIR);
    setenv("HWLOC_XMLFILE", path, 1);
    FAILS(context, HBP_E_SYSTEM, "hwloc describes another machine",
          hbp_machine_probe(context, HBP_PROBE_THIS_MACHINE, NULL, &machine));
    unsetenv("HWLOC_XMLFILE");
    hbp_context_free(context);
}
END_TEST

START_TEST(synthetic_machines)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    char path[512];
    size_t bytes;
    snprintf(path, sizeof path, "%s/machines/no_gpu.hwloc.txt", HBP_TESTS_DIR);
    char *text = file_read(path, &bytes);
    OK(context, hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, text, &machine));
    free(text);
    ck_assert_int_eq(machine->fields.cpu_packages, 2);
    ck_assert_int_eq(machine->fields.numa_nodes, 2);
    ck_assert_int_eq(machine->fields.cores, 32);
    ck_assert_int_eq(machine->fields.processing_units, 64);
    ck_assert_int_eq(machine->fields.cpu_memory_bytes, INT64_C(2) << 35);
    ck_assert_int_eq(machine->fields.gpus_per_node, 0);
    ck_assert_str_eq(hbp_machine_get_source(machine, "gpus_per_node"), "hwloc");
    hbp_machine_free(machine);
    static const struct {
        const char *text;
        int units;
    } good[] = {{"2 3 4", 24},
                {"pack:1 core:2 pu:1", 2},
                {"Package:3(indexes=2,0,1) PU:2", 6},
                {"pack:2 l2:1(size=4096 indexes=7,7) pu:2(indexes=0,0,0,0)", 4},
                {"numa:2 pu:2", 4}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        OK(context, hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, good[i].text, &machine));
        ck_assert_int_eq(machine->fields.processing_units, good[i].units);
        hbp_machine_free(machine);
    }
    hbp_context_free(context);
}
END_TEST

/* More memory than any number of bytes is not less of it. */
START_TEST(memory_past_all_numbers_is_an_overflow)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    FAILS(context, HBP_E_OVERFLOW, "cpu_memory_bytes is 9.2233720368547758e+18; it must be at most",
          hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, "pack:2 [numa(memory=9223372036854775807)] pu:2",
                            &machine));
    ck_assert_ptr_null(machine);
    /* hwloc's own numbers go further still. */
    FAILS(context, HBP_E_OVERFLOW, "cpu_memory_bytes is 9.2233720368547758e+18; it must be at most",
          hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, "pack:2 [numa(memory=18446744073709551615)] pu:2",
                            &machine));
    ck_assert_ptr_null(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_synthetic_machines)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
#define WRONG(message, text)                                                                                 \
    FAILS(context, HBP_E_INVALID, message, hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, text, &machine)); \
    ck_assert_ptr_null(machine)
    WRONG("more than 4096 processing units", "pack:64 core:64 pu:2");
    WRONG("more than 4096 processing units", "pu:99999999999999999999999999999");
    WRONG("no arity in 'pu:0'", "pu:0");
    WRONG("no arity in 'pu:0x1000'", "pu:0x1000");
    WRONG("no arity in 'pu:-4'", "pu:-4");
    WRONG("no arity in 'core: pu:2'", "core: pu:2");
    WRONG("no arity in 'pack pu:2'", "pack pu:2");
    WRONG("lacks the end of '(size=1'", "pack:2(size=1");
    WRONG("lacks the end of '[numa'", "pack:2 [numa");
    WRONG("hwloc cannot read the synthetic topology", "");
    WRONG("hwloc cannot read the synthetic topology 'nothing:2'", "nothing:2");
    WRONG("levels", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
    char text[1100];
    memset(text, ' ', sizeof text);
    text[sizeof text - 1] = '\0';
    WRONG("1099 characters; it may have 1024", text);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_arguments)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    FAILS(context, HBP_E_INVALID, "type is 3", hbp_machine_probe(context, 3, "pu:1", &machine));
    FAILS(context, HBP_E_INVALID, "text is NULL",
          hbp_machine_probe(context, HBP_PROBE_XML_FILE, NULL, &machine));
    FAILS(context, HBP_E_INVALID, "text is NULL",
          hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, NULL, &machine));
    FAILS(context, HBP_E_INVALID, "out is NULL",
          hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, "pu:1", NULL));
    FAILS(context, HBP_E_SYSTEM, "No such file",
          hbp_machine_probe(context, HBP_PROBE_XML_FILE, "/no", &machine));
    ck_assert_ptr_null(machine);
    hbp_context_free(context);
}
END_TEST

static hbp_status probe_small(hbp_context *context, void *user)
{
    hbp_machine *machine = NULL;
    hbp_status status = hbp_machine_probe(context, HBP_PROBE_SYNTHETIC, user, &machine);
    hbp_machine_free(machine);
    return status;
}

START_TEST(failing_allocations)
{
    char text[] = "core:2 pu:2";
    failing_sweep(probe_small, text);
}
END_TEST

TEST_MAIN("probe_hwloc", a_known_board_gets_its_numbers, an_unknown_board_is_counted_and_no_more, pci_devices,
          this_machine, another_machine_does_not_take_its_place, synthetic_machines,
          memory_past_all_numbers_is_an_overflow, bad_synthetic_machines, bad_arguments, failing_allocations)
