#include "probe/probe.h"
#include "hbp/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/call.h"
#include "probe/probing.h"

#define MIB (INT64_C(1) << 20)

/* Text of at most 63 characters without control characters; `tail` is kept whole. */
static void make_text(char out[64], const char *head, const char *tail)
{
    int room = 63 - (int)strlen(tail);
    snprintf(out, 64, "%.*s%s", room > 0 ? room : 0, head, tail);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = ' ';
}

static void make_source(ex_probing *p, const char *date)
{
    char tail[32];
    time_t now = time(NULL);
    struct tm day;
    if (date)
        snprintf(tail, sizeof tail, ", %s", date);
    else if (!gmtime_r(&now, &day) || !strftime(tail, sizeof tail, ", %Y-%m-%d", &day))
        snprintf(tail, sizeof tail, ", no date");
    make_text(p->source, p->device->name[0] ? p->device->name : "device", tail);
}

double ex_probe_known_peak(hbp_context *context, const char *device)
{
    static const struct {
        const char *device, *preset;
        int sxm; /* boards on PCI Express have another clock */
    } known[] = {{"GB200", "gb200-nvl72", 0}, {"B200", "b200", 0},    {"H200", "h200", 1},
                 {"H100", "h100", 1},         {"A800", "a800-80", 0}, {"A100", "a100-80", 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strstr(device, known[i].device))
            continue;
        if (known[i].sxm && (strstr(device, "PCIe") || strstr(device, "NVL")))
            return 0;
        hbp_machine *machine = NULL;
        hbp_machine_fields fields = {.struct_size = sizeof fields};
        if (hbp_machine_create_preset(context, known[i].preset, &machine) < 0 ||
            hbp_machine_get_fields(context, machine, &fields) < 0)
            fields.flops_per_s = 0;
        hbp_machine_free(machine);
        return fields.flops_per_s;
    }
    return 0;
}

static int set(ex_probing *p, const char *field, double value, const char *source)
{
    return ex_probe_check(p, hbp_machine_set_field(p->context, p->machine, field, value, source));
}

/* Links inside a node and between nodes, from the all-to-alls over a node and over all. */
static int set_links(ex_probing *p)
{
    const ex_comm *comm = p->comm;
    hbp_machine_collective near = {.struct_size = sizeof near}, far = {.struct_size = sizeof far};
    int32_t node = comm->node_ranks;
    if (node > 1 && hbp_machine_get_collective(p->machine, HBP_COLLECTIVE_ALL_TO_ALL, node, &near) &&
        (set(p, "nvlink_bytes_per_s", near.bytes_per_s, p->source) ||
         set(p, "nvlink_latency_ns", near.latency_ns, p->source)))
        return -1;
    if (comm->ranks == node ||
        !hbp_machine_get_collective(p->machine, HBP_COLLECTIVE_ALL_TO_ALL, comm->ranks, &far))
        return ex_probe_check(p, HBP_OK);
    /* (N - 1) / N / bandwidth = share inside / near + share outside / network. */
    double all = comm->ranks, inside = node > 1 ? (node - 1) / all / near.bytes_per_s : 0;
    double outside = (all - 1) / all / far.bytes_per_s - inside;
    double network = outside > 0 ? (all - node) / all / outside : far.bytes_per_s;
    return set(p, "network_bytes_per_s", network, p->source) ||
           set(p, "network_latency_ns", far.latency_ns, p->source);
}

/* What plans are made with, out of what was measured. */
static int set_fields(ex_probing *p)
{
    const ex_comm *comm = p->comm;
    /* The most that was met stands for the peak of what has no published one. Efficiencies are those of the
     * largest sizes: where ranks share cores, small ones now and then have a core to themselves. */
    double fastest = fmax(p->best_gemm, p->best_attention);
    double peak = p->device->type == EX_BF16 && !p->device->host_memory
                      ? ex_probe_known_peak(p->context, p->device->name)
                      : 0;
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"nodes", comm->ranks / comm->node_ranks},
        {"gpus_per_node", comm->node_ranks},
        {"domain_gpus", comm->node_ranks},
        {"hbm_bytes", (double)p->memory},
        {"hbm_bytes_per_s", p->last_copy},
        {"flops_per_s", fmax(fastest, peak)},
        {"gemm_efficiency", p->last_gemm / fmax(fastest, peak)},
        {"attention_efficiency", p->last_attention / fmax(fastest, peak)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (set(p, fields[i].name, fields[i].value, p->source))
            return -1;
    char name[64], tail[32];
    snprintf(tail, sizeof tail, " x %d", (int)comm->ranks);
    make_text(name, p->device->name[0] ? p->device->name : "device", tail);
    if (ex_probe_check(p, hbp_machine_set_name(p->context, p->machine, name)))
        return -1;
    return set_links(p);
}

/* Nodes must be alike, and a rank's memory is the least of all. */
static int look_around(ex_probing *p, int32_t sharers)
{
    ex_comm *comm = p->comm;
    double most = ex_probe_agree(p, comm->node_ranks), least = -ex_probe_agree(p, -comm->node_ranks);
    if (ex_probe_check(p, HBP_OK))
        return -1;
    if (least < most || comm->node_ranks < 1 || comm->ranks % comm->node_ranks)
        return ex_fail(p->fault,
                       "a node has %d ranks and another %d; a machine has the same number on every node",
                       (int)least, (int)most);
    int64_t free_bytes = 0, total_bytes = 0;
    p->device->ops->memory(p->device, &free_bytes, &total_bytes);
    if (sharers < 1)
        sharers = p->device->host_memory ? comm->node_ranks : 1;
    p->memory = (int64_t)-ex_probe_agree(p, -(double)(total_bytes / sharers));
    p->room = (int64_t)-ex_probe_agree(p, -(double)(free_bytes / sharers / 2));
    if (ex_probe_check(p, HBP_OK))
        return -1;
    while (p->largest > MIB && 2 * p->largest > p->room)
        p->largest /= 2;
    return 0;
}

static int measure(ex_probing *p, double budget_s)
{
    double rest = p->comm->ranks > 1 ? .5 : 0; /* for collectives */
    if (ex_probe_gemm(p, budget_s * (1 - rest) * .45) || ex_probe_attention(p, budget_s * (1 - rest) * .4) ||
        ex_probe_copy(p, budget_s * (1 - rest) * .15))
        return -1;
    return ex_probe_collectives(p, budget_s * rest);
}

int ex_probe(ex_device *device, ex_comm *comm, const ex_probe_options *options, hbp_context *context,
             hbp_machine **out, ex_fault *fault)
{
    int host = device->host_memory;
    *out = NULL;
    ex_probing p = {.device = device, .comm = comm, .fault = fault, .context = context};
    p.heads = options->heads.heads > 0 ? options->heads
              : host                   ? (ex_heads){8, 8, 64}
                                       : (ex_heads){32, 32, 128};
    p.largest = options->largest > 0 ? options->largest : host ? 64 * MIB : 1024 * MIB;
    p.now = options->now ? options->now : ex_call_now;
    p.all = malloc((size_t)comm->ranks * EX_PROBE_REPEATS * sizeof *p.all);
    if (!p.all)
        return ex_fail(fault, "no memory for the times of %d ranks", (int)comm->ranks);
    make_source(&p, options->date);
    ex_comm_bind(comm, device);
    int status = ex_probe_check(&p, HBP_OK);
    if (status == 0 && comm->rank == 0)
        status = ex_probe_check(&p, hbp_machine_probe(context, HBP_PROBE_THIS_MACHINE, NULL, &p.machine));
    if (status == 0)
        status = look_around(&p, options->sharers);
    if (status == 0)
        status = measure(&p, options->budget_s > 0 ? options->budget_s : 20);
    if (status == 0 && p.machine)
        status = set_fields(&p);
    free(p.all);
    if (status) {
        hbp_machine_free(p.machine);
        return -1;
    }
    *out = p.machine;
    return 0;
}
