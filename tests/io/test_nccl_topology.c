#include "failing.h"
#include "files.h"
#include "hbp/io.h"

#include "data/machine/machine.h"

static char *machine_file(const char *name, size_t *bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/machines/%s", HBP_TESTS_DIR, name);
    return file_read(path, bytes);
}

static hbp_machine *empty(hbp_context *context)
{
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &fields, &machine));
    return machine;
}

static hbp_status apply(hbp_context *context, hbp_machine *machine, const char *xml)
{
    return hbp_machine_apply_nccl_topology(context, machine, xml, (int64_t)strlen(xml));
}

static void applied(const char *name, int32_t gpus, int32_t domain, double nvlink, double network)
{
    hbp_context *context = test_context();
    hbp_machine *machine = empty(context);
    size_t bytes;
    char *xml = machine_file(name, &bytes);
    OK(context, hbp_machine_apply_nccl_topology(context, machine, xml, (int64_t)bytes));
    free(xml);
    hbp_machine_fields f = {.struct_size = sizeof f};
    OK(context, hbp_machine_get_fields(context, machine, &f));
    ck_assert_int_eq(f.gpus_per_node, gpus);
    ck_assert_int_eq(f.domain_gpus, domain);
    ck_assert_double_eq_tol(f.nvlink_bytes_per_s, nvlink, 1);
    ck_assert_double_eq_tol(f.network_bytes_per_s, network, 1);
    ck_assert_str_eq(hbp_machine_get_source(machine, "gpus_per_node"), "NCCL topology");
    ck_assert_str_eq(hbp_machine_get_source(machine, "network_bytes_per_s"), "NCCL topology");
    ck_assert_str_eq(hbp_machine_get_source(machine, "nodes"), "unknown");
    ck_assert_int_eq(f.nodes, 0);
    ck_assert_int_eq(f.hbm_bytes, 0);
    hbp_machine_free(machine);
    hbp_context_free(context);
}

START_TEST(machines_as_files)
{
    /* 6 switches with 2 links of 20.0 GB/s to each; one net of 200 Gb/s a GPU. */
    applied("dgx_a100.nccl.xml", 8, 8, 240e9, 25e9);
    /* 4 switches with 4 or 5 links of 20.6 GB/s; one net of 400 Gb/s a GPU. */
    applied("dgx_h100.nccl.xml", 8, 8, 370.8e9, 50e9);
    /* Pairs of GPUs under a bridge of 12 links; one net of 100 Gb/s for all four. */
    applied("pcie_box.nccl.xml", 4, 2, 240e9, 3.125e9);
}
END_TEST

START_TEST(without_nvlink)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create_preset(context, "h100:2", &machine));
    OK(context, apply(context, machine,
                      "<system version='1'><cpu numaid='0'><pci busid='a'><gpu dev='0' sm='90'/></pci>"
                      "<pci busid='b'><gpu dev='1' sm='90'/></pci></cpu></system>"));
    ck_assert_int_eq(machine->fields.gpus_per_node, 2);
    ck_assert_int_eq(machine->fields.domain_gpus, 1);
    ck_assert_double_eq(machine->fields.nvlink_bytes_per_s, 0);
    /* No net in the file: what was known stays. */
    ck_assert_double_eq(machine->fields.network_bytes_per_s, 50e9);
    ck_assert_str_eq(hbp_machine_get_source(machine, "network_bytes_per_s"), "preset h100");
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

#define GPU(bus, links) "<pci busid='" bus "'><gpu dev='0' sm='100' rank='0'>" links "</gpu></pci>"
#define SWITCHED        "<nvlink target='fffffffff:ffff:ff' count='18' tclass='0x068000'/>"

START_TEST(several_hosts_in_one_file)
{
    hbp_context *context = test_context();
    hbp_machine *machine = empty(context);
    OK(context, apply(context, machine,
                      "<system version='1'><cpu numaid='0' host_hash='0x1'>" GPU("a", SWITCHED)
                          GPU("b", SWITCHED) "</cpu><cpu numaid='0' host_hash='0x2'>" GPU(
                              "a", SWITCHED) "</cpu>"
                                             "<cpu numaid='1' host_hash='0x2'>" GPU(
                                                 "b", SWITCHED) "</cpu><cpu numaid='9' host_hash='0x3'/>"
                                                                "</system>"));
    ck_assert_int_eq(machine->fields.gpus_per_node, 2);
    ck_assert_int_eq(machine->fields.domain_gpus, 4);
    ck_assert_double_eq_tol(machine->fields.nvlink_bytes_per_s, 18 * 40.1e9, 1);
    FAILS(context, HBP_E_FORMAT, "hosts of 1 and of 2 GPUs",
          apply(context, machine,
                "<system version='1'><cpu host_hash='0x1'>" GPU("a", "") "</cpu><cpu host_hash='0x2'>" GPU(
                    "a", "") GPU("b", "") "</cpu></system>"));
    /* A link leads to a GPU of its own host: here the two hosts stay two domains. */
#define PAIR GPU("a", "<nvlink target='b' count='1' tclass='0x030200'/>") GPU("b", "")
    OK(context, apply(context, machine,
                      "<system version='1'><cpu host_hash='0x1'>" PAIR "</cpu><cpu host_hash='0x2'>" PAIR
                      "</cpu></system>"));
    ck_assert_int_eq(machine->fields.domain_gpus, 2);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_domain_past_the_node_stays)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create_preset(context, "gb200-nvl72:18", &machine));
    const char *tray = "<system version='1'><cpu>" GPU("a", SWITCHED) GPU("b", SWITCHED) GPU("c", SWITCHED)
        GPU("d", SWITCHED) "</cpu></system>";
    OK(context, apply(context, machine, tray));
    ck_assert_int_eq(machine->fields.gpus_per_node, 4);
    ck_assert_int_eq(machine->fields.domain_gpus, 72);
    ck_assert_str_eq(hbp_machine_get_source(machine, "domain_gpus"), "preset gb200-nvl72");
    hbp_machine_free(machine);
    /* A domain within the node is what the file says, also where more was thought. */
    OK(context, hbp_machine_create_preset(context, "b200:4", &machine));
    OK(context, apply(context, machine, tray));
    ck_assert_int_eq(machine->fields.domain_gpus, 4);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

/* A ring of GPUs, each linked to the next, in a random order, cut at random places: domains are the arcs. */
START_TEST(domains_against_arcs)
{
    hbp_context *context = test_context();
    uint64_t state = 7;
    for (int round = 0; round < 200; round++) {
        char xml[8192];
        int gpus = 2 + (int)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % 20;
        int first_cut = -1, last_cut = -1, least = gpus;
        int at = snprintf(xml, sizeof xml, "<system version='1'><cpu>");
        for (int i = 0; i < gpus; i++) {
            int cut = (state = state * 6364136223846793005u + 1442695040888963407u) >> 33 & 1;
            at += snprintf(xml + at, sizeof xml - (size_t)at,
                           "<pci busid='g%d'><gpu sm='80'><nvlink target='g%d' count='%d' "
                           "tclass='0x030200'/></gpu></pci>",
                           i, (i + 1) % gpus, !cut);
            if (!cut)
                continue;
            if (last_cut >= 0 && i - last_cut < least)
                least = i - last_cut;
            if (first_cut < 0)
                first_cut = i;
            last_cut = i;
        }
        if (first_cut >= 0 && first_cut + gpus - last_cut < least)
            least = first_cut + gpus - last_cut;
        snprintf(xml + at, sizeof xml - (size_t)at, "</cpu></system>");
        hbp_machine *machine = empty(context);
        OK(context, apply(context, machine, xml));
        ck_assert_int_eq(machine->fields.domain_gpus, least);
        hbp_machine_free(machine);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_files_change_nothing)
{
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create_preset(context, "h100:2", &machine));
    hbp_machine before = *machine;
#define WRONG(status, text, xml) FAILS(context, status, text, apply(context, machine, xml))
    WRONG(HBP_E_FORMAT, "NCCL topology, line 1: no element", "");
    WRONG(HBP_E_FORMAT, "the outermost element is 'graphs', not 'system'", "<graphs version='1'/>");
    WRONG(HBP_E_FORMAT, "NCCL topology has no gpu", "<system version='1'/>");
    WRONG(HBP_E_FORMAT, "system has no attribute 'version'", "<system/>");
    WRONG(HBP_E_VERSION, "version 2", "<system version='2'/>");
    WRONG(HBP_E_FORMAT, "line 2: gpu has no attribute 'sm'", "<system version='1'>\n<gpu dev='0'/></system>");
    WRONG(HBP_E_FORMAT, "sm of gpu is '8x'", "<system version='1'><gpu sm='8x'/></system>");
    WRONG(HBP_E_FORMAT, "sm of gpu is '-1'", "<system version='1'><gpu sm='-1'/></system>");
    WRONG(HBP_E_FORMAT, "nvlink stands outside of a gpu",
          "<system version='1'><gpu sm='80'/><nvlink count='1' tclass='0x068000'/></system>");
    WRONG(HBP_E_FORMAT, "nvlink has no attribute 'count'",
          "<system version='1'><gpu sm='80'><nvlink/></gpu></system>");
    WRONG(HBP_E_FORMAT, "count of nvlink is '1001'",
          "<system version='1'><gpu sm='80'><nvlink count='1001'/></gpu></system>");
    WRONG(HBP_E_FORMAT, "nvlink has no attribute 'tclass'",
          "<system version='1'><gpu sm='80'><nvlink count='1'/></gpu></system>");
    WRONG(HBP_E_FORMAT, "net has no attribute 'speed'", "<system version='1'><gpu sm='80'/><net/></system>");
    WRONG(HBP_E_FORMAT, "speed of net is '1e9'",
          "<system version='1'><gpu sm='80'/><net speed='1e9'/></system>");
    WRONG(HBP_E_FORMAT, "busid has 32 characters; it may have 31",
          "<system version='1'><pci busid='01234567890123456789012345678901'/></system>");
    WRONG(HBP_E_FORMAT, "DOCTYPE", "<!DOCTYPE system [<!ENTITY a 'b'>]><system version='1'/>");
    FAILS(context, HBP_E_INVALID, "bytes is -1", hbp_machine_apply_nccl_topology(context, machine, "", -1));
    FAILS(context, HBP_E_INVALID, "xml is NULL", hbp_machine_apply_nccl_topology(context, machine, NULL, 0));
    FAILS(context, HBP_E_INVALID, "machine is NULL", hbp_machine_apply_nccl_topology(context, NULL, "", 0));
    ck_assert_int_eq(hbp_machine_apply_nccl_topology(NULL, machine, "", 0), HBP_E_INVALID);
    ck_assert_mem_eq(machine, &before, sizeof before);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

START_TEST(too_many_of_anything)
{
    hbp_context *context = test_context();
    hbp_machine *machine = empty(context);
    size_t room = 4 << 20;
    char *xml = malloc(room);
    ck_assert_ptr_nonnull(xml);
    static const struct {
        const char *open, *item, *close, *message;
        int count;
    } cases[] = {
        {"", "<gpu sm='80'/>", "", "more than 1024 GPUs", 1025},
        {"<gpu sm='80'>", "<nvlink target='a' count='1' tclass='0x0302'/>", "</gpu>",
         "more than 16384 NVLinks", 16385},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int less = 0; less < 2; less++) {
            int at = snprintf(xml, room, "<system version='1'>%s", cases[c].open);
            for (int i = less; i < cases[c].count; i++)
                at += snprintf(xml + at, room - (size_t)at, "%s", cases[c].item);
            snprintf(xml + at, room - (size_t)at, "%s</system>", cases[c].close);
            if (less)
                OK(context, apply(context, machine, xml));
            else
                FAILS(context, HBP_E_FORMAT, cases[c].message, apply(context, machine, xml));
        }
    int at = snprintf(xml, room, "<system version='1'><gpu sm='80'/>");
    for (int i = 0; i < 1025; i++)
        at += snprintf(xml + at, room - (size_t)at, "<cpu host_hash='%d'/>", i);
    snprintf(xml + at, room - (size_t)at, "</system>");
    FAILS(context, HBP_E_FORMAT, "more than 1024 hosts", apply(context, machine, xml));
    free(xml);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

static hbp_status apply_whole(hbp_context *context, void *user)
{
    hbp_machine *machine = NULL;
    hbp_status status = hbp_machine_create_preset(context, "h100", &machine);
    if (status < 0)
        return status;
    hbp_machine before = *machine;
    status = apply(context, machine, user);
    if (status < 0)
        ck_assert_mem_eq(machine, &before, sizeof before);
    hbp_machine_free(machine);
    return status;
}

START_TEST(failing_allocations)
{
    size_t bytes;
    char *xml = machine_file("dgx_a100.nccl.xml", &bytes);
    failing_sweep(apply_whole, xml);
    free(xml);
}
END_TEST

TEST_MAIN("nccl_topology", machines_as_files, without_nvlink, several_hosts_in_one_file,
          a_domain_past_the_node_stays, domains_against_arcs, bad_files_change_nothing, too_many_of_anything,
          failing_allocations)
