/* A schedule of tasks replayed with its transfers and gradients, and a run held against such a replay. */
#include "simulate/tasks/tasks.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/tasks/flow.h"
#include "data/tasks/task_flows.h"
#include "data/tasks/task_run.h"
#include "simulate/tasks/task_check.h"

#define TICK_RANKS (1 << 18)

typedef struct replay {
    hbp_context *context;
    const hbp_task_schedule *schedule;
    const hbp_graph *graph;
    const hbp_machine_fields *machine;
    hbp_task_run_options options;
    int32_t domain_gpus;
    hbp__task_flows flows;
    int64_t *flow_ns; /* [flows] there and back */
    int64_t *send_ns; /* [slices] the longest of those that a slice sends */
    int64_t *free_ns; /* [ranks] */
    hbp_task_run *run;
} replay;

/* The links that this schedule's ranks use must have a speed, where time on them is asked for. */
static hbp_status check_links(const replay *r, const hbp_machine *machine)
{
    int32_t gpus = r->schedule->summary.gpus;
    if (r->options.free_transfers && r->options.free_gradients)
        return HBP_OK;
    uint32_t missing = 0;
    if (gpus > 1 && r->domain_gpus > 1 && r->machine->nvlink_bytes_per_s <= 0)
        missing |= UINT32_C(1) << HBP__MACHINE_nvlink_bytes_per_s;
    if (gpus > r->domain_gpus && r->machine->network_bytes_per_s <= 0)
        missing |= UINT32_C(1) << HBP__MACHINE_network_bytes_per_s;
    if (missing)
        return hbp__machine_fail_missing(r->context, machine, missing);
    return HBP_OK;
}

static int32_t group_size(const hbp_task_schedule *s, int32_t group)
{
    return (int32_t)(s->group_offsets[group + 1] - s->group_offsets[group]);
}

static const int32_t *group_ranks(const hbp_task_schedule *s, int32_t group)
{
    return &s->group_ranks[s->group_offsets[group]];
}

/* Time of `bytes` over a link of `gpus` GPUs; a link without a speed carries none. */
static double link_ns(int64_t bytes, double bytes_per_s, int32_t gpus)
{
    return bytes > 0 ? (double)bytes / (bytes_per_s * gpus) * 1e9 : 0;
}

/* Outputs forward and their gradients backward. */
static int64_t transfer_ns(const replay *r, const hbp__flow *flow, int32_t gpus)
{
    const hbp_machine_fields *machine = r->machine;
    if (r->options.free_transfers || flow->moved == 0)
        return 0;
    double latency = flow->crossing > 0 ? machine->network_latency_ns : machine->nvlink_latency_ns;
    return hbp__round_i64(2 * (link_ns(flow->moved - flow->crossing, machine->nvlink_bytes_per_s, gpus) +
                               link_ns(flow->crossing, machine->network_bytes_per_s, gpus) + latency));
}

static void measure_flows(replay *r)
{
    const hbp_task_schedule *s = r->schedule;
    hbp_task_run_summary *summary = &r->run->summary;
    for (int64_t i = 0; i < r->flows.count; i++) {
        const hbp__task_flow *flow = &r->flows.flow[i];
        int32_t from = s->slice_groups[flow->from], to = s->slice_groups[flow->to];
        int32_t froms = group_size(s, from), tos = group_size(s, to);
        hbp__flow moves = hbp__flow_between(group_ranks(s, from), froms, group_ranks(s, to), tos,
                                            r->domain_gpus, flow->bytes);
        r->flow_ns[i] = transfer_ns(r, &moves, froms < tos ? froms : tos);
        r->send_ns[flow->from] = hbp__max_i64(r->send_ns[flow->from], r->flow_ns[i]);
        summary->flow_bytes = hbp__add_saturating(summary->flow_bytes, flow->bytes);
        summary->moved_bytes = hbp__add_saturating(summary->moved_bytes, moves.moved);
        summary->crossing_bytes = hbp__add_saturating(summary->crossing_bytes, moves.crossing);
    }
}

static int64_t group_free(const replay *r, int32_t group)
{
    const int32_t *ranks = group_ranks(r->schedule, group);
    int64_t free_ns = 0;
    for (int32_t j = 0; j < group_size(r->schedule, group); j++)
        free_ns = hbp__max_i64(free_ns, r->free_ns[ranks[j]]);
    return free_ns;
}

static void occupy_group(replay *r, int32_t group, int64_t end_ns)
{
    const int32_t *ranks = group_ranks(r->schedule, group);
    for (int32_t j = 0; j < group_size(r->schedule, group); j++)
        r->free_ns[ranks[j]] = end_ns;
}

/* Runs slice i not before `barrier_ns`, which would be `calm_ns` if transfers took no time. Returns how long
 * it waited for inputs on their way. What it needs is in earlier waves, so it has run. */
static int64_t run_slice(replay *r, int64_t i, int64_t barrier_ns, int64_t calm_ns)
{
    const hbp_task_schedule *s = r->schedule;
    hbp_task_run *run = r->run;
    int64_t ready_ns = hbp__max_i64(group_free(r, s->slice_groups[i]), calm_ns), start_ns;
    start_ns = hbp__max_i64(ready_ns, barrier_ns);
    for (int64_t k = r->flows.in_first[i]; k < r->flows.in_first[i + 1]; k++) {
        int64_t end_ns = run->slice_ends[r->flows.flow[k].from];
        ready_ns = hbp__max_i64(ready_ns, end_ns);
        start_ns = hbp__max_i64(start_ns, hbp__add_saturating(end_ns, r->flow_ns[k]));
    }
    start_ns = hbp__max_i64(start_ns, ready_ns);
    run->slice_starts[i] = start_ns;
    run->slice_ends[i] = hbp__add_saturating(start_ns, s->slice_ends[i] - s->slice_starts[i]);
    occupy_group(r, s->slice_groups[i], run->slice_ends[i]);
    return start_ns - ready_ns;
}

static hbp_status run_slices(replay *r)
{
    const hbp_task_schedule *s = r->schedule;
    hbp_task_run_summary *summary = &r->run->summary;
    int64_t calm_ns = 0, sent_ns = 0, waited_ns = 0, visited = 0;
    double busy_ns = 0;
    for (int64_t w = 0; w < s->waves; w++) {
        int64_t barrier_ns = r->options.barriers ? sent_ns : 0, quiet_ns = r->options.barriers ? calm_ns : 0;
        for (int64_t i = s->wave_offsets[w]; i < s->wave_offsets[w + 1]; i++) {
            int64_t waited = run_slice(r, i, barrier_ns, quiet_ns);
            int64_t end_ns = r->run->slice_ends[i], gpus = s->slice_gpus[i];
            waited_ns = hbp__add_saturating(waited_ns, hbp__mul_saturating(waited, gpus));
            busy_ns += (double)gpus * (double)(end_ns - r->run->slice_starts[i]);
            calm_ns = hbp__max_i64(calm_ns, end_ns);
            sent_ns = hbp__max_i64(sent_ns, hbp__add_saturating(end_ns, r->send_ns[i]));
            visited += gpus;
        }
        if (visited >= TICK_RANKS) {
            visited = 0;
            HBP__TRY(hbp__tick(r->context, "simulate", w, s->waves));
        }
    }
    summary->slices_ns = calm_ns;
    summary->transfer_ns = hbp__ceil_div(waited_ns, summary->gpus);
    summary->idle = calm_ns > 0 ? 1 - busy_ns / ((double)summary->gpus * (double)calm_ns) : 0;
    return HBP_OK;
}

/* Ranks of a group in the domain where it has fewest; all of them when there is only one. Ranks ascend. */
static int32_t least_in_domain(const replay *r, int32_t group)
{
    const int32_t *ranks = group_ranks(r->schedule, group);
    int32_t size = group_size(r->schedule, group), least = size, first = 0;
    for (int32_t j = 1; j <= size; j++)
        if (j == size || ranks[j] / r->domain_gpus != ranks[first] / r->domain_gpus) {
            least = j - first < least ? j - first : least;
            first = j;
        }
    return least;
}

/* Ring all-reduce: each GPU sends and gets 2 (n - 1) / n of the bytes. Rings leave a domain through the
 * network cards of all its GPUs in the group at once. */
static int64_t gradient_ns(const replay *r, int32_t group, int64_t bytes)
{
    const hbp_machine_fields *machine = r->machine;
    int32_t n = group_size(r->schedule, group), cards = least_in_domain(r, group);
    if (n < 2 || bytes == 0)
        return 0;
    double latency = machine->nvlink_latency_ns, bytes_per_s = machine->nvlink_bytes_per_s;
    if (cards < n) {
        double network = machine->network_bytes_per_s * cards;
        latency = machine->network_latency_ns;
        if (r->domain_gpus == 1 || network < bytes_per_s)
            bytes_per_s = network;
    }
    return hbp__round_i64(2 * (double)bytes * (n - 1) / n / bytes_per_s * 1e9 + latency);
}

/* Weights in their order, each as soon as the ranks that hold it are free. */
static hbp_status sum_gradients(replay *r)
{
    const hbp_task_schedule *s = r->schedule;
    hbp_task_run_summary *summary = &r->run->summary;
    summary->total_ns = summary->slices_ns;
    if (r->options.free_gradients)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(r->context), visited = 0;
    int64_t *bytes = hbp__take_zero(r->context, (uint64_t)s->parameters, sizeof *bytes);
    HBP__TRY(hbp__scratch_check(r->context, "gradients"));
    for (int32_t o = 0; o < r->graph->operator_count; o++) {
        int64_t *most = &bytes[r->graph->operators[o].parameters];
        *most = hbp__max_i64(*most, r->graph->operators[o].gradient_bytes);
    }
    for (int64_t p = 0; p < s->parameters; p++) {
        int32_t group = s->parameter_groups[p];
        int64_t ns = group < 0 ? 0 : gradient_ns(r, group, bytes[p]);
        if (ns == 0)
            continue;
        int64_t end_ns = hbp__add_saturating(group_free(r, group), ns);
        occupy_group(r, group, end_ns);
        summary->total_ns = hbp__max_i64(summary->total_ns, end_ns);
        visited += group_size(s, group);
        if (visited >= TICK_RANKS) {
            visited = 0;
            HBP__TRY(hbp__tick(r->context, "gradients", p, s->parameters));
        }
    }
    summary->gradient_ns = summary->total_ns - summary->slices_ns;
    hbp__scratch_release(r->context, mark);
    return HBP_OK;
}

static hbp_status open_flows(replay *r)
{
    hbp__meta_graph meta;
    hbp__task_slices slices = {0};
    HBP__TRY(hbp__meta_graph_open(r->context, r->graph, &meta));
    hbp_status status = hbp__task_schedule_slices(r->context, r->schedule, &slices);
    if (status >= 0)
        status = hbp__task_flows_open(r->context, r->graph, &meta, &slices, &r->flows);
    hbp__task_slices_close(&slices);
    hbp__meta_graph_close(&meta);
    return status;
}

static hbp_status run_all(replay *r)
{
    const hbp_task_schedule *s = r->schedule;
    HBP__TRY(open_flows(r));
    r->flow_ns = hbp__take(r->context, (uint64_t)r->flows.count, sizeof *r->flow_ns);
    r->send_ns = hbp__take_zero(r->context, (uint64_t)s->slices, sizeof *r->send_ns);
    r->free_ns = hbp__take_zero(r->context, (uint64_t)s->ranks, sizeof *r->free_ns);
    HBP__TRY(hbp__scratch_check(r->context, "running tasks"));
    HBP__TRY(hbp__task_run_new(r->context, s, &r->run));
    measure_flows(r);
    HBP__TRY(run_slices(r));
    HBP__TRY(sum_gradients(r));
    r->run->summary.digest = hbp__task_run_digest(r->run);
    return HBP_OK;
}

static hbp_status read_options(hbp_context *context, const hbp_task_run_options *caller,
                               hbp_task_run_options *options)
{
    return hbp__options_read(context, options, sizeof *options, caller, "hbp_task_run_options");
}

static hbp_status simulate_sound(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                                 const hbp_task_schedule *schedule, hbp_task_run_options options,
                                 hbp_task_run **out)
{
    replay r = {.context = context,
                .schedule = schedule,
                .graph = graph,
                .machine = &machine->fields,
                .options = options};
    r.domain_gpus = schedule->summary.domain_gpus;
    HBP__TRY(check_links(&r, machine));
    hbp_status status = run_all(&r);
    if (r.flows.memory.alloc)
        hbp__task_flows_close(&r.flows);
    if (status < 0)
        hbp_task_run_free(r.run);
    else
        *out = r.run;
    return status;
}

static hbp_status simulate_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                                 const hbp_task_schedule *schedule, const hbp_task_run_options *options,
                                 hbp_task_run **out)
{
    hbp_task_run_options o;
    HBP__TRY(hbp__require(context, graph, "graph"));
    HBP__TRY(hbp__require(context, machine, "machine"));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    HBP__TRY(read_options(context, options, &o));
    HBP__TRY(hbp__task_check(context, schedule, graph, machine));
    return simulate_sound(context, graph, machine, schedule, o, out);
}

hbp_status hbp__simulate_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                               const hbp_task_schedule *schedule, hbp_task_run **out)
{
    const hbp_task_run_options defaults = {.struct_size = sizeof defaults};
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, simulate_sound(context, graph, machine, schedule, defaults, out));
}

hbp_status hbp_simulate_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                              const hbp_task_schedule *schedule, const hbp_task_run_options *options,
                              hbp_task_run **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, simulate_tasks(context, graph, machine, schedule, options, out));
}

static hbp_status compare_run(hbp_context *context, const hbp_task_run *run, const hbp_graph *graph,
                              const hbp_machine *machine, const hbp_task_schedule *schedule,
                              const hbp_task_run_options *options)
{
    hbp_task_run *again = NULL;
    if (run->summary.schedule_digest != schedule->digest || run->slices != schedule->slices)
        return hbp__fail(context, HBP_E_INVALID,
                         "the run is of a schedule with digest %016llx and %lld slices; this one has %016llx "
                         "and %lld",
                         (unsigned long long)run->summary.schedule_digest, (long long)run->slices,
                         (unsigned long long)schedule->digest, (long long)schedule->slices);
    HBP__TRY(simulate_tasks(context, graph, machine, schedule, options, &again));
    hbp_status status = hbp__table_compare(context, &hbp__task_run_table, run, again, "the schedule makes");
    hbp_task_run_free(again);
    return status;
}

static hbp_status validate(hbp_context *context, const hbp_task_run *run, const hbp_graph *graph,
                           const hbp_machine *machine, const hbp_task_schedule *schedule,
                           const hbp_task_run_options *options)
{
    HBP__TRY(hbp__task_run_check(context, run));
    if (hbp__task_run_digest(run) != run->summary.digest)
        return hbp__fail(context, HBP_E_INVALID, "the digest is not that of the slices");
    return schedule ? compare_run(context, run, graph, machine, schedule, options) : HBP_OK;
}

hbp_status hbp_task_run_validate(hbp_context *context, const hbp_task_run *run, const hbp_graph *graph,
                                 const hbp_machine *machine, const hbp_task_schedule *schedule,
                                 const hbp_task_run_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, validate(context, run, graph, machine, schedule, options));
}
