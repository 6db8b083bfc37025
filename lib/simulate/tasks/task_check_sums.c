/* What a schedule of tasks comes to: bytes of ranks, groups of weights, and the summary. */
#include <math.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/tasks/flow.h"
#include "data/tasks/task_flows.h"
#include "simulate/tasks/task_check.h"

#define TICK_RANKS (1 << 18)

/* Memory, gathered weights by weights, where building goes rank by rank. */
typedef struct memory_sums {
    int32_t *slice_of;  /* [operators] of the graph */
    int64_t *first;     /* [weights + 1] */
    int32_t *operators; /* operators[first[p]] .. share weights p */
    int64_t *bytes;     /* [ranks] in all */
    int64_t *largest;   /* [ranks] of the states of some weights; -1: the rank does not run them */
    int32_t *runner;    /* [runners] ranks that do */
    int32_t runners;
} memory_sums;

static hbp_status take_sums(const hbp__task_checking *c, memory_sums *m)
{
    const hbp_graph *graph = c->graph;
    const hbp_task_schedule *s = c->schedule;
    int32_t weights = graph->parameters.count;
    uint64_t operators = (uint64_t)graph->operator_count, ranks = (uint64_t)c->gpus;
    m->slice_of = hbp__take(c->context, operators, sizeof *m->slice_of);
    m->first = hbp__take_zero(c->context, (uint64_t)weights + 2, sizeof *m->first);
    m->operators = hbp__take(c->context, operators, sizeof *m->operators);
    m->bytes = hbp__take_zero(c->context, ranks, sizeof *m->bytes);
    m->largest = hbp__take(c->context, ranks, sizeof *m->largest);
    m->runner = hbp__take(c->context, ranks, sizeof *m->runner);
    HBP__TRY(hbp__scratch_check(c->context, "the check of memory"));
    for (uint64_t r = 0; r < ranks; r++)
        m->largest[r] = -1;
    for (int64_t i = 0; i < s->slices; i++)
        for (int32_t k = 0; k < s->slice_operators[i]; k++) {
            int64_t place = s->meta_op_offsets[s->slice_meta_ops[i]] + s->slice_firsts[i] + k;
            m->slice_of[s->operators[place]] = (int32_t)i;
        }
    for (int32_t o = 0; o < graph->operator_count; o++)
        m->first[graph->operators[o].parameters + 2]++;
    for (int32_t p = 0; p < weights; p++)
        m->first[p + 2] += m->first[p + 1];
    for (int32_t o = 0; o < graph->operator_count; o++)
        m->operators[m->first[graph->operators[o].parameters + 1]++] = o;
    return HBP_OK;
}

/* The ranks that run weights p, which m->runner lists, are those of its group. */
static hbp_status check_union(const hbp__task_checking *c, const memory_sums *m, int32_t p)
{
    const hbp_task_schedule *s = c->schedule;
    int32_t group = s->parameter_groups[p];
    int64_t at = group < 0 ? 0 : s->group_offsets[group], end = group < 0 ? 0 : s->group_offsets[group + 1];
    int64_t common = 0;
    for (int64_t i = at; i < end; i++)
        common += m->largest[s->group_ranks[i]] >= 0;
    if (common == end - at && common == m->runners)
        return HBP_OK;
    int32_t r = 0; /* the first that makes the difference */
    for (; r < c->gpus; r++) {
        int in_group = at < end && s->group_ranks[at] == r;
        at += in_group;
        if (in_group != (m->largest[r] >= 0))
            break;
    }
    int runs = m->largest[r] >= 0;
    return hbp__fail(c->context, HBP_E_INVALID, "weights '%.100s': rank %d %s, and its group %d %s it",
                     c->graph->parameters.name[p], (int)r, runs ? "runs them" : "does not run them",
                     (int)group, runs ? "lacks" : "has");
}

/* Adds what the operators of weights p take on each rank. */
static hbp_status add_weights(const hbp__task_checking *c, memory_sums *m, int32_t p, int64_t *visited)
{
    const hbp_task_schedule *s = c->schedule;
    m->runners = 0;
    for (int64_t i = m->first[p]; i < m->first[p + 1]; i++) {
        const hbp__operator *o = &c->graph->operators[m->operators[i]];
        int32_t slice = m->slice_of[m->operators[i]], gpus = s->slice_gpus[slice];
        int32_t group = s->slice_groups[slice];
        int64_t states = hbp__operator_states(o, gpus), kept = hbp__operator_activation(o, gpus);
        for (int64_t j = s->group_offsets[group]; j < s->group_offsets[group + 1]; j++) {
            int32_t r = s->group_ranks[j];
            if (m->largest[r] < 0)
                m->runner[m->runners++] = r;
            m->largest[r] = hbp__max_i64(m->largest[r], states);
            m->bytes[r] = hbp__add_saturating(m->bytes[r], kept);
        }
        *visited += gpus;
    }
    HBP__TRY(check_union(c, m, p));
    for (int32_t i = 0; i < m->runners; i++) {
        int32_t r = m->runner[i];
        m->bytes[r] = hbp__add_saturating(m->bytes[r], m->largest[r]);
        m->largest[r] = -1;
    }
    return HBP_OK;
}

static hbp_status add_all(const hbp__task_checking *c, memory_sums *m)
{
    int64_t visited = 0;
    HBP__TRY(take_sums(c, m));
    for (int32_t p = 0; p < c->graph->parameters.count; p++) {
        HBP__TRY(add_weights(c, m, p, &visited));
        if (visited >= TICK_RANKS) {
            visited = 0;
            HBP__TRY(hbp__tick(c->context, "validate", p, c->graph->parameters.count));
        }
    }
    return HBP_OK;
}

static hbp_status check_bytes(const hbp__task_checking *c, const int64_t *bytes)
{
    const hbp_task_schedule *s = c->schedule;
    int64_t limit = s->summary.limit_bytes, peak = 0;
    if (limit < 0)
        return hbp__fail(c->context, HBP_E_INVALID, "limit_bytes is %lld", (long long)limit);
    for (int32_t r = 0; r < c->gpus; r++) {
        if (s->rank_bytes[r] != bytes[r])
            return hbp__fail(c->context, HBP_E_INVALID,
                             "rank %d: %lld bytes in the schedule; its slices need %lld", (int)r,
                             (long long)s->rank_bytes[r], (long long)bytes[r]);
        if (limit && bytes[r] > limit)
            return hbp__fail(c->context, HBP_E_INVALID, "rank %d needs %lld bytes; the limit is %lld", (int)r,
                             (long long)bytes[r], (long long)limit);
        peak = hbp__max_i64(peak, bytes[r]);
    }
    if (s->summary.peak_bytes != peak)
        return hbp__fail(c->context, HBP_E_INVALID, "peak_bytes is %lld; the fullest rank has %lld",
                         (long long)s->summary.peak_bytes, (long long)peak);
    return HBP_OK;
}

static hbp_status check_memory(const hbp__task_checking *c)
{
    memory_sums m = {0};
    int64_t mark = hbp__scratch_mark(c->context);
    HBP__TRY(add_all(c, &m));
    HBP__TRY(check_bytes(c, m.bytes));
    hbp__scratch_release(c->context, mark);
    return HBP_OK;
}

static hbp_status differs(const hbp__task_checking *c, const char *what, int64_t value, int64_t right)
{
    if (value == right)
        return HBP_OK;
    return hbp__fail(c->context, HBP_E_INVALID, "the summary's %s is %lld; it must be %lld", what,
                     (long long)value, (long long)right);
}

static hbp_status add_flows(const hbp__task_checking *c, int64_t *bytes, hbp__flow *sum)
{
    const hbp_task_schedule *s = c->schedule;
    hbp__task_slices slices;
    hbp__task_flows flows;
    HBP__TRY(hbp__task_schedule_slices(c->context, s, &slices));
    hbp_status status = hbp__task_flows_open(c->context, c->graph, &c->meta, &slices, &flows);
    hbp__task_slices_close(&slices);
    HBP__TRY(status);
    for (int64_t i = 0; i < flows.count; i++) {
        int32_t a = s->slice_groups[flows.flow[i].from], b = s->slice_groups[flows.flow[i].to];
        const int32_t *from = &s->group_ranks[s->group_offsets[a]],
                      *to = &s->group_ranks[s->group_offsets[b]];
        hbp__flow flow =
            hbp__flow_between(from, s->slice_gpus[flows.flow[i].from], to, s->slice_gpus[flows.flow[i].to],
                              c->domain_gpus, flows.flow[i].bytes);
        *bytes = hbp__add_saturating(*bytes, flows.flow[i].bytes);
        sum->moved = hbp__add_saturating(sum->moved, flow.moved);
        sum->crossing = hbp__add_saturating(sum->crossing, flow.crossing);
    }
    hbp__task_flows_close(&flows);
    return HBP_OK;
}

static hbp_status check_flows(const hbp__task_checking *c)
{
    const hbp_task_summary *summary = &c->schedule->summary;
    int64_t bytes = 0;
    hbp__flow sum = {0, 0};
    HBP__TRY(add_flows(c, &bytes, &sum));
    HBP__TRY(differs(c, "flow_bytes", summary->flow_bytes, bytes));
    HBP__TRY(differs(c, "moved_bytes", summary->moved_bytes, sum.moved));
    return differs(c, "crossing_bytes", summary->crossing_bytes, sum.crossing);
}

/* The path that takes longest when every operator runs on its fastest size, and the GPU time of all on those
 * that waste least. MetaOps are numbered so that edges go up. */
static hbp_status find_bounds(const hbp__task_checking *c, int64_t *critical_ns, int64_t *gpu_ns)
{
    int64_t mark = hbp__scratch_mark(c->context);
    int64_t *start = hbp__take_zero(c->context, (uint64_t)c->meta.count, sizeof *start);
    HBP__TRY(hbp__scratch_check(c->context, "the check of bounds"));
    for (int32_t m = 0; m < c->meta.count; m++) {
        const hbp__curve *curve = hbp__meta_curve(&c->scaling, m);
        int64_t least_ns = INT64_MAX, least_area = INT64_MAX, operators = c->meta.meta_op[m].count;
        for (int32_t k = 0; k < curve->sizes; k++) {
            least_ns = hbp__min_i64(least_ns, curve->time_ns[k]);
            least_area = hbp__min_i64(least_area, hbp__mul_saturating(curve->size[k], curve->time_ns[k]));
        }
        int64_t end = hbp__add_saturating(start[m], hbp__mul_saturating(operators, least_ns));
        *critical_ns = hbp__max_i64(*critical_ns, end);
        *gpu_ns = hbp__add_saturating(*gpu_ns, hbp__mul_saturating(operators, least_area));
        for (int64_t e = c->meta.out_first[m]; e < c->meta.out_first[m + 1]; e++)
            start[c->meta.edges[e].to] = hbp__max_i64(start[c->meta.edges[e].to], end);
    }
    hbp__scratch_release(c->context, mark);
    return HBP_OK;
}

/* Bounds are there, or all 0: not looked for. */
static hbp_status check_bounds(const hbp__task_checking *c)
{
    const hbp_task_summary *summary = &c->schedule->summary;
    int64_t critical_ns = 0, gpu_ns = 0;
    if (summary->bound_ns || summary->critical_path_ns || summary->area_ns || summary->relaxed_ns) {
        HBP__TRY(find_bounds(c, &critical_ns, &gpu_ns));
        HBP__TRY(differs(c, "critical_path_ns", summary->critical_path_ns, critical_ns));
        HBP__TRY(differs(c, "area_ns", summary->area_ns, hbp__ceil_div(gpu_ns, c->gpus)));
        if (summary->relaxed_ns < 0)
            return hbp__fail(c->context, HBP_E_INVALID, "the summary's relaxed_ns is %lld",
                             (long long)summary->relaxed_ns);
        int64_t least = hbp__max_i64(critical_ns, hbp__ceil_div(gpu_ns, c->gpus));
        if (summary->bound_ns < least || summary->bound_ns > summary->makespan_ns)
            return hbp__fail(
                c->context, HBP_E_INVALID,
                "the summary's bound_ns is %lld; it must lie between %lld and the makespan, %lld",
                (long long)summary->bound_ns, (long long)least, (long long)summary->makespan_ns);
    }
    return differs(c, "proven", summary->proven, summary->makespan_ns == summary->bound_ns);
}

static hbp_status check_ratio(const hbp__task_checking *c, const char *what, double value, double right)
{
    if (fabs(value - right) <= 1e-9 * (1 + fabs(right)))
        return HBP_OK;
    return hbp__fail(c->context, HBP_E_INVALID, "the summary's %s is %g; it must be %g", what, value, right);
}

static hbp_status check_summary(const hbp__task_checking *c)
{
    const hbp_task_schedule *s = c->schedule;
    const hbp_task_summary *summary = &s->summary;
    int64_t makespan_ns = 0;
    double busy_ns = 0;
    for (int64_t i = 0; i < s->slices; i++) {
        makespan_ns = hbp__max_i64(makespan_ns, s->slice_ends[i]);
        busy_ns += (double)s->slice_gpus[i] * (double)(s->slice_ends[i] - s->slice_starts[i]);
    }
    HBP__TRY(differs(c, "makespan_ns", summary->makespan_ns, makespan_ns));
    HBP__TRY(check_bounds(c));
    double bound_ns = (double)summary->bound_ns, whole_ns = (double)c->gpus * (double)makespan_ns;
    HBP__TRY(check_ratio(c, "gap", summary->gap, bound_ns > 0 ? (double)makespan_ns / bound_ns - 1 : 0));
    HBP__TRY(check_ratio(c, "idle", summary->idle, 1 - busy_ns / whole_ns));
    if (summary->kept_bytes < 0 || summary->fetched_bytes < 0)
        return hbp__fail(c->context, HBP_E_INVALID,
                         "the summary's kept_bytes and fetched_bytes are %lld and %lld",
                         (long long)summary->kept_bytes, (long long)summary->fetched_bytes);
    return HBP_OK;
}

hbp_status hbp__task_check_sums(const hbp__task_checking *c)
{
    HBP__TRY(check_memory(c));
    HBP__TRY(check_flows(c));
    HBP__TRY(check_summary(c));
    uint64_t digest = hbp__task_schedule_digest(c->schedule);
    if (digest != c->schedule->digest)
        return hbp__fail(c->context, HBP_E_INVALID,
                         "the schedule's digest is %016llx; its columns give %016llx",
                         (unsigned long long)c->schedule->digest, (unsigned long long)digest);
    return HBP_OK;
}
