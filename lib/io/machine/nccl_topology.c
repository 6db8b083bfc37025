/* What NCCL found out about a machine: the XML that NCCL_TOPO_DUMP_FILE makes it write. A system holds cpus
 * (NUMA nodes), these hold PCI devices, these GPUs with their NVLinks and network cards with their nets. */
#include <string.h>

#include "base/number.h"
#include "data/machine/machine.h"
#include "hbp/io.h"
#include "io/text/xml_reader.h"

#define SOURCE "NCCL topology"

/* NVL72 has 72 GPUs with 18 links; the bounds keep the search for a link's other end short. */
#define MOST_GPUS     1024
#define MOST_LINKS    16384
#define MOST_LANES    1000
#define MOST_MEGABITS 100000000
#define NAME_BYTES    32

typedef struct gpu {
    char bus[NAME_BYTES];
    int32_t host;
    int32_t
        part; /* the GPU, never a later one, through which it is joined to its domain; own index: the first */
    int32_t switched;
    double bytes_per_s; /* over all its links, one way */
    double per_link;
} gpu;

typedef struct link {
    char bus[NAME_BYTES]; /* the other end */
    int32_t gpu;
} link;

/* What has been read so far. */
typedef struct topology {
    gpu *gpus;
    link *links; /* between two GPUs; those to a switch are counted at once */
    int32_t gpu_count;
    int32_t link_count;
    int32_t inside; /* a gpu element is open */
    int32_t hosts;
    int32_t host;                   /* of the open cpu */
    char (*host_names)[NAME_BYTES]; /* [MOST_GPUS] */
    char bus[NAME_BYTES];           /* of the last PCI device */
    int64_t net_megabits;
} topology;

/* GB/s of one link one way as NCCL counts on them, by compute capability. */
static double link_bytes_per_s(int64_t capability)
{
    if (capability >= 100)
        return 40.1e9;
    if (capability >= 90)
        return 20.6e9;
    if (capability == 86)
        return 12e9;
    return capability >= 70 ? 20e9 : 18e9;
}

static hbp_status get_whole(const hbp__xml *xml, const char *element, const char **attributes,
                            const char *name, int64_t most, int64_t *out)
{
    const char *text = hbp__xml_get(attributes, name);
    if (!text)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "%s has no attribute '%s'", element, name);
    if (!hbp__read_whole(text, (int64_t)strlen(text), out) || *out > most)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "%s of %s is '%.32s'; it must be in 0..%lld", name, element,
                             text, (long long)most);
    return HBP_OK;
}

/* Copies an attribute, "" when there is none. */
static hbp_status get_name(const hbp__xml *xml, const char **attributes, const char *name, char *to)
{
    const char *text = hbp__xml_get(attributes, name);
    size_t bytes = text ? strlen(text) : 0;
    if (bytes >= NAME_BYTES)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "%s has %lld characters; it may have %d", name,
                             (long long)bytes, NAME_BYTES - 1);
    memcpy(to, text ? text : "", bytes + 1);
    return HBP_OK;
}

static hbp_status open_system(const hbp__xml *xml, const char **attributes)
{
    int64_t version;
    HBP__TRY(get_whole(xml, "system", attributes, "version", INT32_MAX, &version));
    if (version != 1)
        return hbp__xml_fail(xml, HBP_E_VERSION, "version %lld of the format; 1 is known",
                             (long long)version);
    return HBP_OK;
}

/* Several hosts stand in one file where NVLink joins them; each cpu then names its host by a hash. */
static hbp_status open_cpu(const hbp__xml *xml, topology *t, const char **attributes)
{
    char name[NAME_BYTES];
    HBP__TRY(get_name(xml, attributes, "host_hash", name));
    t->host = 0;
    while (t->host < t->hosts && strcmp(t->host_names[t->host], name) != 0)
        t->host++;
    if (t->host == MOST_GPUS)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "there are more than %d hosts", MOST_GPUS);
    if (t->host == t->hosts)
        memcpy(t->host_names[t->hosts++], name, sizeof name);
    return HBP_OK;
}

static hbp_status open_gpu(const hbp__xml *xml, topology *t, const char **attributes)
{
    int64_t capability;
    HBP__TRY(get_whole(xml, "gpu", attributes, "sm", INT32_MAX, &capability));
    if (t->gpu_count == MOST_GPUS)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "there are more than %d GPUs", MOST_GPUS);
    gpu *g = &t->gpus[t->gpu_count];
    *g = (gpu){.host = t->host, .part = t->gpu_count, .per_link = link_bytes_per_s(capability)};
    memcpy(g->bus, t->bus, sizeof g->bus);
    t->gpu_count++;
    t->inside = 1;
    return HBP_OK;
}

/* tclass is the PCI class of the other end: 0x068000 a switch, 0x03.... a GPU, else a processor. */
static hbp_status open_nvlink(const hbp__xml *xml, topology *t, const char **attributes)
{
    if (!t->inside)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "nvlink stands outside of a gpu");
    gpu *g = &t->gpus[t->gpu_count - 1];
    int64_t count;
    HBP__TRY(get_whole(xml, "nvlink", attributes, "count", MOST_LANES, &count));
    const char *class = hbp__xml_get(attributes, "tclass");
    if (!class)
        return hbp__xml_fail(xml, HBP_E_FORMAT, "nvlink has no attribute 'tclass'");
    if (strncmp(class, "0x068000", 8) == 0) {
        g->switched |= count > 0;
    } else if (strncmp(class, "0x03", 4) == 0 && count > 0) {
        if (t->link_count == MOST_LINKS)
            return hbp__xml_fail(xml, HBP_E_FORMAT, "there are more than %d NVLinks", MOST_LINKS);
        link *l = &t->links[t->link_count];
        l->gpu = t->gpu_count - 1;
        HBP__TRY(get_name(xml, attributes, "target", l->bus));
        t->link_count++;
    } else {
        return HBP_OK;
    }
    g->bytes_per_s += (double)count * g->per_link;
    return HBP_OK;
}

static hbp_status on_open(hbp__xml *xml, const char *name, const char **attributes)
{
    topology *t = xml->user;
    if (xml->depth == 1)
        return open_system(xml, attributes);
    if (strcmp(name, "cpu") == 0)
        return open_cpu(xml, t, attributes);
    if (strcmp(name, "pci") == 0)
        return get_name(xml, attributes, "busid", t->bus);
    if (strcmp(name, "gpu") == 0)
        return open_gpu(xml, t, attributes);
    if (strcmp(name, "nvlink") == 0)
        return open_nvlink(xml, t, attributes);
    if (strcmp(name, "net") == 0) {
        int64_t megabits;
        HBP__TRY(get_whole(xml, "net", attributes, "speed", MOST_MEGABITS, &megabits));
        t->net_megabits += megabits;
    }
    return HBP_OK;
}

static hbp_status on_close(hbp__xml *xml, const char *name)
{
    topology *t = xml->user;
    if (strcmp(name, "gpu") == 0)
        t->inside = 0;
    return HBP_OK;
}

static int32_t first_of(const topology *t, int32_t i)
{
    while (t->gpus[i].part != i)
        i = t->gpus[i].part;
    return i;
}

static void join_islands(topology *t, int32_t a, int32_t b)
{
    a = first_of(t, a);
    b = first_of(t, b);
    if (a < b)
        t->gpus[b].part = a;
    else
        t->gpus[a].part = b;
}

/* The size of the smallest set of GPUs joined by NVLinks. O(links x GPUs), both bounded. */
static int32_t smallest_domain(topology *t)
{
    int32_t size[MOST_GPUS] = {0};
    int32_t switched = -1;
    for (int32_t i = 0; i < t->gpu_count; i++) {
        if (!t->gpus[i].switched)
            continue;
        if (switched >= 0)
            join_islands(t, switched, i);
        switched = i;
    }
    for (int32_t i = 0; i < t->link_count; i++) {
        const link *l = &t->links[i];
        for (int32_t j = 0; j < t->gpu_count; j++)
            if (t->gpus[j].host == t->gpus[l->gpu].host && strcmp(t->gpus[j].bus, l->bus) == 0)
                join_islands(t, l->gpu, j);
    }
    for (int32_t i = 0; i < t->gpu_count; i++)
        size[first_of(t, i)]++;
    int32_t least = t->gpu_count;
    for (int32_t i = 0; i < t->gpu_count; i++)
        if (size[i] && size[i] < least)
            least = size[i];
    return least;
}

/* GPUs of one host; every host must have as many. */
static hbp_status count_per_host(hbp_context *context, const topology *t, int32_t *per_host)
{
    int32_t count[MOST_GPUS] = {0};
    for (int32_t i = 0; i < t->gpu_count; i++)
        count[t->gpus[i].host]++;
    *per_host = 0;
    for (int32_t i = 0; i < t->hosts || i == 0; i++) {
        if (count[i] && *per_host && count[i] != *per_host)
            return hbp__fail(context, HBP_E_FORMAT, "NCCL topology has hosts of %d and of %d GPUs",
                             (int)*per_host, (int)count[i]);
        if (count[i])
            *per_host = count[i];
    }
    return HBP_OK;
}

/* Nothing here can fail once the counts are known to be sound, so that the machine changes as a whole. */
static hbp_status apply_topology(hbp_context *context, hbp_machine *machine, topology *t)
{
    if (!t->gpu_count)
        return hbp__fail(context, HBP_E_FORMAT, "NCCL topology has no gpu");
    int32_t per_host;
    HBP__TRY(count_per_host(context, t, &per_host));
    int32_t domain = smallest_domain(t);
    /* From one host's file the GPUs of other hosts on the same NVLinks do not show: what is known stays. */
    const hbp_machine_fields *known = &machine->fields;
    int beyond = per_host == t->gpu_count && domain == per_host && known->gpus_per_node > 0 &&
                 known->domain_gpus > known->gpus_per_node && known->domain_gpus > domain;
    double nvlink = t->gpus[0].bytes_per_s;
    for (int32_t i = 1; i < t->gpu_count; i++)
        if (t->gpus[i].bytes_per_s < nvlink)
            nvlink = t->gpus[i].bytes_per_s;
    HBP__TRY(hbp__machine_set_field(context, machine, "gpus_per_node", per_host, SOURCE));
    if (!beyond)
        HBP__TRY(hbp__machine_set_field(context, machine, "domain_gpus", domain, SOURCE));
    HBP__TRY(hbp__machine_set_field(context, machine, "nvlink_bytes_per_s", nvlink, SOURCE));
    if (t->net_megabits > 0)
        HBP__TRY(hbp__machine_set_field(context, machine, "network_bytes_per_s",
                                        (double)t->net_megabits * 1e6 / 8 / t->gpu_count, SOURCE));
    return HBP_OK;
}

hbp_status hbp_machine_apply_nccl_topology(hbp_context *context, hbp_machine *machine, const char *xml,
                                           int64_t bytes)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, xml, "xml"));
    if (bytes < 0)
        return hbp__fail(context, HBP_E_INVALID, "bytes is %lld", (long long)bytes);
    const hbp__memory *memory = &context->memory;
    topology t = {.gpus = hbp__new(memory, MOST_GPUS, sizeof *t.gpus),
                  .links = hbp__new(memory, MOST_LINKS, sizeof *t.links),
                  .host_names = hbp__new(memory, MOST_GPUS, sizeof *t.host_names)};
    hbp__xml reader = {
        .context = context, .what = SOURCE, .root = "system", .open = on_open, .close = on_close, .user = &t};
    hbp_status status = t.gpus && t.links && t.host_names ? hbp__xml_read(&reader, xml, bytes)
                                                          : hbp__fail_memory(context, SOURCE);
    if (status >= 0)
        status = apply_topology(context, machine, &t);
    hbp__delete(memory, t.gpus);
    hbp__delete(memory, t.links);
    hbp__delete(memory, t.host_names);
    return status;
}
