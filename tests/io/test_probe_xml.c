#include <hwloc.h>

#include "failing.h"
#include "files.h"

#include "base/rng.h"
#include "io/machine/probe.h"

static hbp_status read_text(hbp_context *context, const char *xml, hbp__probe *probe)
{
    *probe = (hbp__probe){0};
    return hbp__probe_xml_data(context, xml, (int64_t)strlen(xml), probe);
}

static hbp__probe probe_file(const char *name)
{
    hbp_context *context = test_context();
    char path[512];
    snprintf(path, sizeof path, "%s/machines/%s", HBP_TESTS_DIR, name);
    hbp__probe probe = {0};
    OK(context, hbp__probe_xml_file(context, path, &probe));
    hbp_context_free(context);
    return probe;
}

START_TEST(machines_as_files)
{
    hbp__probe p = probe_file("dgx_a100.hwloc.xml");
    ck_assert_int_eq(p.packages, 2);
    ck_assert_int_eq(p.numa_nodes, 2);
    ck_assert_int_eq(p.cores, 128);
    ck_assert_int_eq(p.units, 256);
    ck_assert_int_eq(p.memory_bytes, 2 * INT64_C(540163727360));
    /* Eight GPUs; the six NVSwitches and the board's own display are none. */
    ck_assert_int_eq(p.gpus[HBP__GPU_PLAIN], 8);
    ck_assert_int_eq(p.gpus[HBP__GPU_DISPLAY], 0);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0x20b2);
    p = probe_file("dgx_h100.hwloc.xml");
    ck_assert_int_eq(p.cores, 112);
    ck_assert_int_eq(p.gpus[HBP__GPU_PLAIN], 8);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0x2330);
    p = probe_file("pcie_box.hwloc.xml");
    ck_assert_int_eq(p.units, 32);
    ck_assert_int_eq(p.gpus[HBP__GPU_PLAIN], 4);
    ck_assert_int_eq(p.gpus[HBP__GPU_DISPLAY], 1);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0x20b5);
    ck_assert_uint_eq(p.device[HBP__GPU_DISPLAY], 0x1ff2);
}
END_TEST

/* hwloc's own counts of a topology against ours of the XML it writes, in both versions of the format. */
static void compare(hwloc_topology_t topology)
{
    hbp_context *context = test_context();
    static const unsigned long flags[] = {0, HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V1};
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
        char *xml;
        int bytes;
        ck_assert_int_eq(hwloc_topology_export_xmlbuffer(topology, &xml, &bytes, flags[f]), 0);
        hbp__probe p = {0};
        OK(context, hbp__probe_xml_data(context, xml, bytes - 1, &p)); /* hwloc counts the 0 at the end */
        int64_t memory = 0;
        for (hwloc_obj_t node = NULL;
             (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));)
            memory += (int64_t)node->attr->numanode.local_memory;
        ck_assert_int_eq(p.packages, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
        ck_assert_int_eq(p.numa_nodes, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
        ck_assert_int_eq(p.cores, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
        ck_assert_int_eq(p.units, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
        ck_assert_int_eq(p.memory_bytes, memory);
        hwloc_free_xmlbuffer(topology, xml);
    }
    hbp_context_free(context);
}

START_TEST(it_agrees_with_hwloc)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int round = 0; round < 60; round++) {
        char text[256];
        snprintf(text, sizeof text, "Package:%u [NUMANode(memory=%u)] L3Cache:%u Core:%u PU:%u",
                 1 + hbp__rng_below(&rng, 4), 1 + hbp__rng_below(&rng, 2000000000),
                 1 + hbp__rng_below(&rng, 3), 1 + hbp__rng_below(&rng, 5), 1 + hbp__rng_below(&rng, 3));
        hwloc_topology_t topology;
        ck_assert_int_eq(hwloc_topology_init(&topology), 0);
        ck_assert_int_eq(hwloc_topology_set_synthetic(topology, text), 0);
        ck_assert_int_eq(hwloc_topology_load(topology), 0);
        compare(topology);
        hwloc_topology_destroy(topology);
    }
    hwloc_topology_t here;
    ck_assert_int_eq(hwloc_topology_init(&here), 0);
    ck_assert_int_eq(hwloc_topology_load(here), 0);
    compare(here);
    hwloc_topology_destroy(here);
}
END_TEST

START_TEST(what_counts)
{
    hbp_context *context = test_context();
    hbp__probe p;
    OK(context,
       read_text(
           context,
           "<topology><object type='Machine'><object type='Socket'><object type='NUMANode' local_memory='5'/>"
           "<object type='NUMANode' local_memory='9' subtype='GPUMemory'/><object type='NUMANode'/>"
           "<object type='Core'><object type='PU'/><object type='PU'/></object></object>"
           "<object type='PCIDev' pci_type='0302 [10DE:20b0] [10de:1463] a1'/>"
           "<object type='PCIDev' pci_type='0302 [10de:2330]'/><object type='New'/></object>"
           "<info type='PU'/></topology>",
           &p));
    ck_assert_int_eq(p.packages, 1);
    ck_assert_int_eq(p.numa_nodes, 2);
    ck_assert_int_eq(p.memory_bytes, 5);
    ck_assert_int_eq(p.cores, 1);
    ck_assert_int_eq(p.units, 2);
    ck_assert_int_eq(p.gpus[HBP__GPU_PLAIN], 2);
    ck_assert_uint_eq(p.device[HBP__GPU_PLAIN], 0); /* two kinds */
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_files)
{
    hbp_context *context = test_context();
    hbp__probe p;
#define WRONG(text, xml) FAILS(context, HBP_E_FORMAT, text, read_text(context, xml, &p))
    WRONG("hwloc XML, line 1: no element", "");
    WRONG("the outermost element is 'root', not 'topology'", "<root/>");
    WRONG("hwloc XML: there is no object of type PU", "<topology/>");
    WRONG("object has no attribute 'type'", "<topology><object/></topology>");
    WRONG("object PCIDev has no attribute 'pci_type'", "<topology><object type='PCIDev'/></topology>");
    WRONG("pci_type is '0302'", "<topology><object type='PCIDev' pci_type='0302'/></topology>");
    WRONG("pci_type is '03x2 [10de:20b0]",
          "<topology><object type='PCIDev' pci_type='03x2 [10de:20b0]'/></topology>");
    WRONG("pci_type is '0302 (10de:20b0)",
          "<topology><object type='PCIDev' pci_type='0302 (10de:20b0)'/></topology>");
    WRONG("pci_type is '0302 [10de-20b0]",
          "<topology><object type='PCIDev' pci_type='0302 [10de-20b0]'/></topology>");
    WRONG("line 2: local_memory is '-1'",
          "<topology>\n<object type='NUMANode' local_memory='-1'/></topology>");
    WRONG("local_memory is '9223372036854775807'",
          "<topology><object type='NUMANode' local_memory='9223372036854775807'/></topology>");
    WRONG("DOCTYPE", "<!DOCTYPE topology [<!ENTITY a 'b'>]><topology/>");
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp__probe_xml_file(context, "/no/such.xml", &p));
    hbp_context_free(context);
}
END_TEST

static hbp_status read_whole(hbp_context *context, void *user)
{
    char path[512];
    hbp__probe probe = {0};
    snprintf(path, sizeof path, "%s/machines/%s", HBP_TESTS_DIR, (const char *)user);
    return hbp__probe_xml_file(context, path, &probe);
}

START_TEST(failing_allocations)
{
    char name[] = "pcie_box.hwloc.xml";
    failing_sweep(read_whole, name);
}
END_TEST

TEST_MAIN("probe_xml", machines_as_files, it_agrees_with_hwloc, what_counts, bad_files, failing_allocations)
