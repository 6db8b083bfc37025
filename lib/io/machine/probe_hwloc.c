/* Fills a machine from a topology. hwloc discovers this machine and expands synthetic descriptions; with its
 * default settings it prints a warning of its own when a kernel describes a topology that cannot be. Built
 * without HBP_HAS_HWLOC, as in wheels, only files of XML are read. */
#ifdef HBP_HAS_HWLOC
#include <hwloc.h>
#endif
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "data/machine/machine.h"
#include "hbp/io.h"
#include "io/machine/probe.h"

#define MOST_UNITS  4096
#define MOST_TEXT   1024
#define MOST_LEVELS 32
#define SOURCE      "hwloc"

/* The boards whose numbers the presets give; the PCIe boards of the same chips are slower. */
static const struct board {
    uint32_t device;
    const char *preset;
} boards[] = {
    {0x20b0, "a100-40"}, /* A100 SXM4 40 GB */
    {0x20b2, "a100-80"}, /* A100 SXM4 80 GB */
    {0x2330, "h100"},    /* H100 SXM5 80 GB */
    {0x2335, "h200"},    /* H200 SXM 141 GB */
    {0x2901, "b200"},    /* B200 */
    {0x2941, "gb200-nvl72"},
};

#ifdef HBP_HAS_HWLOC

static int64_t count_type(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);
    return count > 0 ? count : 0;
}

static void count_objects(hwloc_topology_t topology, hbp__probe *probe)
{
    probe->packages = count_type(topology, HWLOC_OBJ_PACKAGE);
    probe->cores = count_type(topology, HWLOC_OBJ_CORE);
    probe->units = count_type(topology, HWLOC_OBJ_PU);
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
        /* The memory of a GPU that the kernel shows as a NUMA node (Grace) is not the processors'. */
        if (node->subtype && strcmp(node->subtype, "GPUMemory") == 0)
            continue;
        probe->numa_nodes++;
        int64_t bytes = (int64_t)(node->attr->numanode.local_memory & INT64_MAX);
        if (!hbp__add_i64(probe->memory_bytes, bytes, &probe->memory_bytes))
            probe->memory_bytes = INT64_MAX;
    }
    for (hwloc_obj_t device = NULL; (device = hwloc_get_next_pcidev(topology, device));)
        hbp__probe_add_pci(probe, device->attr->pcidev.class_id, device->attr->pcidev.vendor_id,
                           device->attr->pcidev.device_id);
}

/* hwloc's time grows faster than the product of the arities, so that the product is taken before hwloc sees
 * the text: numbers that stand alone or after a type's colon, attributes in (...) and memory in [...] left
 * out. */
static hbp_status check_synthetic(hbp_context *context, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes > MOST_TEXT)
        return hbp__fail(context, HBP_E_INVALID, "the synthetic topology has %lld characters; it may have %d",
                         (long long)bytes, MOST_TEXT);
    int64_t product = 1;
    int levels = 0;
    const char *at = text;
    while (*at) {
        if (*at == ' ' || *at == '\n') {
            at++;
            continue;
        }
        if (*at == '(' || *at == '[') {
            const char *end = strchr(at, *at == '(' ? ')' : ']');
            if (!end)
                return hbp__fail(context, HBP_E_INVALID, "the synthetic topology lacks the end of '%.16s'",
                                 at);
            at = end + 1;
            continue;
        }
        size_t word = strcspn(at, " \n([");
        const char *number = memchr(at, ':', word);
        number = number ? number + 1 : at;
        int64_t arity = 0;
        if (number == at + word || *number == '0')
            return hbp__fail(context, HBP_E_INVALID, "no arity in '%.16s' of the synthetic topology", at);
        for (; number < at + word; number++) {
            if (*number < '0' || *number > '9')
                return hbp__fail(context, HBP_E_INVALID, "no arity in '%.16s' of the synthetic topology", at);
            arity = hbp__min_i64(arity * 10 + (*number - '0'), MOST_UNITS + 1);
        }
        product *= arity;
        if (product > MOST_UNITS || ++levels > MOST_LEVELS)
            return hbp__fail(context, HBP_E_INVALID,
                             "the synthetic topology has more than %d processing units or %d levels",
                             MOST_UNITS, MOST_LEVELS);
        at += word;
    }
    return HBP_OK;
}

static void cut_text(char *from, const char *to)
{
    memmove(from, to, strlen(to) + 1);
}

/* Takes indexes=... out of the attributes: only counts are wanted, and indexes that contradict one another
 * make hwloc print. hwloc wants one blank between attributes and none in empty parentheses. */
static void drop_indexes(char *text)
{
    for (char *at = text; (at = strstr(at, "indexes="));) {
        char *end = at + strcspn(at, " )");
        if (at > text && at[-1] == ' ')
            at--;
        else if (*end == ' ')
            end++;
        cut_text(at, end);
        if (at > text && at[-1] == '(' && at[0] == ')') {
            at--;
            cut_text(at, at + 2);
        }
    }
}

static hbp_status probe_loaded(hbp_context *context, hwloc_topology_t topology, const char *synthetic,
                               hbp__probe *probe)
{
    if (synthetic && hwloc_topology_set_synthetic(topology, synthetic) != 0)
        return hbp__fail(context, HBP_E_INVALID, "hwloc cannot read the synthetic topology '%.128s'",
                         synthetic);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) != 0)
        return hbp__fail(context, HBP_E_SYSTEM, "hwloc cannot load the topology");
    /* HWLOC_XMLFILE and HWLOC_SYNTHETIC make hwloc describe another machine without a word. */
    if (!synthetic && !hwloc_topology_is_thissystem(topology))
        return hbp__fail(
            context, HBP_E_SYSTEM,
            "hwloc describes another machine: HWLOC_XMLFILE, HWLOC_SYNTHETIC or HWLOC_FSROOT is set");
    count_objects(topology, probe);
    return HBP_OK;
}

/* `synthetic` NULL: this machine. */
static hbp_status probe_hwloc(hbp_context *context, const char *synthetic, hbp__probe *probe)
{
    char text[MOST_TEXT + 1];
    if (synthetic) {
        HBP__TRY(check_synthetic(context, synthetic));
        snprintf(text, sizeof text, "%s", synthetic);
        drop_indexes(text);
    }
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return hbp__fail_memory(context, "hwloc");
    hbp_status status = probe_loaded(context, topology, synthetic ? text : NULL, probe);
    hwloc_topology_destroy(topology);
    return status;
}

#else

static hbp_status probe_hwloc(hbp_context *context, const char *synthetic, hbp__probe *probe)
{
    (void)probe;
    return hbp__fail(
        context, HBP_E_SYSTEM,
        "this libhbp-io was built without hwloc, which %s; it reads the XML that `lstopo --of xml` "
        "writes, and knows presets",
        synthetic ? "reads synthetic topologies" : "looks at this machine");
}

#endif

static const struct board *find_board(uint32_t device)
{
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (boards[i].device == device)
            return &boards[i];
    return NULL;
}

static hbp_status fill_machine(hbp_context *context, hbp_machine *machine, const hbp__probe *probe)
{
    int kind = probe->gpus[HBP__GPU_PLAIN] ? HBP__GPU_PLAIN : HBP__GPU_DISPLAY;
    int64_t gpus = probe->gpus[kind];
    const struct {
        const char *field;
        int64_t value;
    } values[] = {
        {"nodes", 1},
        {"gpus_per_node", gpus},
        {"cpu_packages", probe->packages},
        {"numa_nodes", probe->numa_nodes},
        {"cores", probe->cores},
        {"processing_units", probe->units},
        {"cpu_memory_bytes", probe->memory_bytes},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        HBP__TRY(hbp__machine_set_field(context, machine, values[i].field, (double)values[i].value, SOURCE));
    const struct board *board = gpus ? find_board(probe->device[kind]) : NULL;
    if (!board)
        return HBP_OK;
    /* All of these boards sit on switched NVLink, so that the node is one domain. */
    char source[HBP__SOURCE_BYTES];
    snprintf(source, sizeof source, "preset %s", board->preset);
    HBP__TRY(hbp__machine_set_field(context, machine, "domain_gpus", (double)gpus, source));
    return hbp__machine_set_gpu(context, machine, board->preset);
}

static hbp_status probe_type(hbp_context *context, int32_t type, const char *text, hbp__probe *probe)
{
    switch (type) {
    case HBP_PROBE_THIS_MACHINE:
        return probe_hwloc(context, NULL, probe);
    case HBP_PROBE_XML_FILE:
        HBP__TRY(hbp__require(context, text, "text"));
        return hbp__probe_xml_file(context, text, probe);
    case HBP_PROBE_SYNTHETIC:
        HBP__TRY(hbp__require(context, text, "text"));
        return probe_hwloc(context, text, probe);
    default:
        return hbp__fail(context, HBP_E_INVALID, "type is %d; it must be a HBP_PROBE_* value", (int)type);
    }
}

hbp_status hbp_machine_probe(hbp_context *context, int32_t type, const char *text, hbp_machine **out)
{
    HBP__ENTER_OUT(context, out);
    hbp__probe probe = {0};
    HBP__TRY(probe_type(context, type, text, &probe));
    hbp_machine *machine = hbp__machine_new(context, SOURCE);
    if (!machine)
        return hbp__fail_memory(context, "a machine");
    hbp_status status = fill_machine(context, machine, &probe);
    if (status < 0) {
        hbp_machine_free(machine);
        return status;
    }
    *out = machine;
    return HBP_OK;
}
