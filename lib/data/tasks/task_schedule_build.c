/* Puts a schedule together from slices and their ranks. */
#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "data/tasks/flow.h"
#include "data/tasks/rank_sets.h"
#include "data/tasks/rank_states.h"
#include "data/tasks/task_flows.h"

/* What a schedule is built from, and what is needed on the way. */
typedef struct building {
    hbp_context *context;
    const hbp_graph *graph;
    const hbp__meta_graph *meta;
    const hbp__task_slices *slices;
    const int32_t *ranks;
    int32_t gpus;
    hbp__rank_sets sets;
    int32_t *slice_group;     /* [slices] */
    int32_t *parameter_group; /* [parameters] */
    int32_t *runner;          /* [operators run] groups that run weights p: runner[first[p]] .. */
    int64_t *first;           /* [parameters + 1] */
    int32_t *mark;            /* [ranks] 1 + the weights whose union it was last in */
    int32_t *joined;          /* [ranks] a union */
} building;

static void close_building(building *b)
{
    const hbp__memory *memory = &b->context->memory;
    hbp__rank_sets_close(&b->sets);
    hbp__delete(memory, b->slice_group);
    hbp__delete(memory, b->parameter_group);
    hbp__delete(memory, b->runner);
    hbp__delete(memory, b->first);
    hbp__delete(memory, b->mark);
    hbp__delete(memory, b->joined);
}

static hbp_status open_building(building *b)
{
    const hbp__memory *memory = &b->context->memory;
    uint64_t parameters = (uint64_t)b->graph->parameters.count, gpus = (uint64_t)b->gpus, runs = 0;
    for (int64_t s = 0; s < b->slices->count; s++)
        runs += (uint64_t)b->slices->slice[s].count; /* the graph's operators, but for a planner's mistake */
    b->slice_group = hbp__new(memory, (uint64_t)b->slices->count, sizeof *b->slice_group);
    b->parameter_group = hbp__new(memory, parameters, sizeof *b->parameter_group);
    b->runner = hbp__new(memory, runs, sizeof *b->runner);
    b->first = hbp__new_zero(memory, parameters + 1, sizeof *b->first);
    b->mark = hbp__new_zero(memory, gpus, sizeof *b->mark);
    b->joined = hbp__new(memory, gpus, sizeof *b->joined);
    int ready = b->slice_group && b->parameter_group && b->runner && b->first && b->mark && b->joined;
    return ready ? HBP_OK : hbp__fail_memory(b->context, "a schedule's groups");
}

static const int32_t *operators_of(const building *b, int64_t s)
{
    const hbp__task_slice *slice = &b->slices->slice[s];
    return &b->meta->operators[b->meta->meta_op[slice->meta_op].first + slice->first];
}

/* Sorts the groups that run each set of weights, by weights, in order of slices. */
static void sort_runners(building *b)
{
    const hbp_graph *graph = b->graph;
    int64_t *first = b->first;
    int32_t parameters = graph->parameters.count;
    for (int64_t s = 0; s < b->slices->count; s++)
        for (int32_t i = 0; i < b->slices->slice[s].count; i++)
            first[graph->operators[operators_of(b, s)[i]].parameters + 1]++;
    for (int32_t p = 0; p < parameters; p++)
        first[p + 1] += first[p];
    for (int64_t s = 0; s < b->slices->count; s++)
        for (int32_t i = 0; i < b->slices->slice[s].count; i++)
            b->runner[first[graph->operators[operators_of(b, s)[i]].parameters]++] = b->slice_group[s];
    memmove(first + 1, first, (size_t)parameters * sizeof *first);
    first[0] = 0;
}

/* The group that is the union of those that run weights p. */
static hbp_status join_runners(building *b, int32_t p)
{
    int64_t begin = b->first[p], end = b->first[p + 1];
    int32_t joined = 0;
    b->parameter_group[p] = end > begin ? b->runner[begin] : -1;
    int alike = 1;
    for (int64_t i = begin + 1; i < end; i++)
        alike = alike && b->runner[i] == b->runner[begin];
    if (alike)
        return HBP_OK;
    /* Layers of one tower are run alike: their unions are found once. */
    int64_t before = p ? b->first[p - 1] : 0;
    if (p && begin - before == end - begin &&
        memcmp(&b->runner[before], &b->runner[begin], (size_t)(end - begin) * sizeof *b->runner) == 0) {
        b->parameter_group[p] = b->parameter_group[p - 1];
        return HBP_OK;
    }
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = b->sets.offset[b->runner[i]]; j < b->sets.offset[b->runner[i] + 1]; j++)
            b->mark[b->sets.rank[j]] = p + 1;
    for (int32_t r = 0; r < b->gpus; r++)
        if (b->mark[r] == p + 1)
            b->joined[joined++] = r;
    return hbp__rank_sets_add(b->context, &b->sets, b->joined, joined, &b->parameter_group[p]);
}

static hbp_status find_groups(building *b)
{
    const int32_t *ranks = b->ranks;
    for (int64_t s = 0; s < b->slices->count; s++) {
        int32_t gpus = b->slices->slice[s].gpus;
        HBP__TRY(hbp__rank_sets_add(b->context, &b->sets, ranks, gpus, &b->slice_group[s]));
        ranks += gpus;
    }
    sort_runners(b);
    for (int32_t p = 0; p < b->graph->parameters.count; p++)
        HBP__TRY(join_runners(b, p));
    return HBP_OK;
}

static hbp_status copy_name(const hbp_task_schedule *schedule, hbp_context *context, const char *name,
                            char **copy)
{
    *copy = hbp__new_text(&schedule->memory, name, strlen(name));
    return *copy ? HBP_OK : hbp__fail_memory(context, "the schedule's names");
}

static hbp_status copy_names(const building *b, hbp_task_schedule *schedule)
{
    const hbp_graph *graph = b->graph;
    for (int32_t m = 0; m < b->meta->count; m++)
        HBP__TRY(copy_name(schedule, b->context, hbp__meta_operator(graph, b->meta, m)->name,
                           &schedule->meta_op_names[m]));
    for (int32_t t = 0; t < graph->tasks.count; t++)
        HBP__TRY(copy_name(schedule, b->context, graph->tasks.name[t], &schedule->task_names[t]));
    for (int32_t p = 0; p < graph->parameters.count; p++)
        HBP__TRY(copy_name(schedule, b->context, graph->parameters.name[p], &schedule->parameters_names[p]));
    return HBP_OK;
}

static void fill_meta_ops(const building *b, const int64_t *level_ns, hbp_task_schedule *schedule)
{
    const hbp__meta_graph *meta = b->meta;
    for (int32_t m = 0; m < meta->count; m++) {
        schedule->meta_op_offsets[m] = meta->meta_op[m].first;
        schedule->meta_op_levels[m] = meta->meta_op[m].level;
        schedule->meta_op_tasks[m] = meta->meta_op[m].task;
    }
    schedule->meta_op_offsets[meta->count] = meta->operator_count;
    memcpy(schedule->operators, meta->operators, (size_t)meta->operator_count * sizeof *meta->operators);
    if (level_ns)
        memcpy(schedule->level_ns, level_ns, (size_t)meta->levels * sizeof *level_ns);
}

/* Slices, by wave; 0 when they are not in order of waves. */
static int fill_slices(const building *b, hbp_task_schedule *schedule)
{
    int32_t wave = 0;
    for (int64_t s = 0; s < b->slices->count; s++) {
        const hbp__task_slice *slice = &b->slices->slice[s];
        if (slice->wave < wave)
            return 0;
        while (wave < slice->wave)
            schedule->wave_offsets[++wave] = s;
        schedule->slice_meta_ops[s] = slice->meta_op;
        schedule->slice_firsts[s] = slice->first;
        schedule->slice_operators[s] = slice->count;
        schedule->slice_gpus[s] = slice->gpus;
        schedule->slice_groups[s] = b->slice_group[s];
        schedule->slice_starts[s] = slice->start_ns;
        schedule->slice_ends[s] = slice->end_ns;
    }
    if (schedule->waves)
        schedule->wave_offsets[schedule->waves] = b->slices->count;
    return 1;
}

static void fill_groups(const building *b, hbp_task_schedule *schedule)
{
    if (b->sets.count)
        memcpy(schedule->group_offsets, b->sets.offset, ((size_t)b->sets.count + 1) * sizeof *b->sets.offset);
    if (schedule->group_ranks_total)
        memcpy(schedule->group_ranks, b->sets.rank,
               (size_t)schedule->group_ranks_total * sizeof *b->sets.rank);
    memcpy(schedule->parameter_groups, b->parameter_group,
           (size_t)schedule->parameters * sizeof *b->parameter_group);
}

static hbp_status fill_ranks(const building *b, hbp_task_schedule *schedule)
{
    const int32_t *rank = b->ranks;
    for (int64_t s = 0; s < b->slices->count; s++) {
        const hbp__task_slice *slice = &b->slices->slice[s];
        for (int32_t i = 0; i < slice->gpus; i++, rank++)
            schedule->rank_busy_ns[*rank] =
                hbp__add_saturating(schedule->rank_busy_ns[*rank], slice->end_ns - slice->start_ns);
    }
    hbp__rank_states states;
    HBP__TRY(hbp__rank_states_open(b->context, b->graph, b->meta, b->slices, b->ranks, b->gpus, &states));
    for (int32_t r = 0; r < b->gpus; r++) {
        hbp__rank_states_read(&states, r);
        int64_t bytes = states.activation_bytes;
        for (int32_t i = 0; i < states.held_count; i++)
            bytes = hbp__add_saturating(bytes, states.bytes[states.held[i]]);
        schedule->rank_bytes[r] = bytes;
    }
    hbp__rank_states_close(&states);
    return HBP_OK;
}

static hbp_status add_flows(const building *b, hbp_task_schedule *schedule)
{
    hbp__task_flows flows;
    hbp_task_summary *summary = &schedule->summary;
    summary->flow_bytes = summary->moved_bytes = summary->crossing_bytes = 0;
    HBP__TRY(hbp__task_flows_open(b->context, b->graph, b->meta, b->slices, &flows));
    for (int64_t i = 0; i < flows.count; i++) {
        const hbp__task_flow *flow = &flows.flow[i];
        int32_t from = b->slice_group[flow->from], to = b->slice_group[flow->to];
        const int64_t *offset = b->sets.offset;
        hbp__flow moves =
            hbp__flow_between(&b->sets.rank[offset[from]], (int32_t)(offset[from + 1] - offset[from]),
                              &b->sets.rank[offset[to]], (int32_t)(offset[to + 1] - offset[to]),
                              summary->domain_gpus, flow->bytes);
        summary->flow_bytes = hbp__add_saturating(summary->flow_bytes, flow->bytes);
        summary->moved_bytes = hbp__add_saturating(summary->moved_bytes, moves.moved);
        summary->crossing_bytes = hbp__add_saturating(summary->crossing_bytes, moves.crossing);
    }
    hbp__task_flows_close(&flows);
    return HBP_OK;
}

static void find_ratios(hbp_task_summary *summary, double busy_ns)
{
    double whole = (double)summary->gpus * (double)summary->makespan_ns;
    summary->idle = whole > 0 ? 1 - busy_ns / whole : 0;
    summary->gap = summary->bound_ns > 0 ? (double)summary->makespan_ns / (double)summary->bound_ns - 1 : 0;
    summary->proven = summary->makespan_ns == summary->bound_ns;
}

/* All of the summary that follows from the columns. */
static void sum_up(hbp_task_schedule *schedule)
{
    hbp_task_summary *summary = &schedule->summary;
    summary->operators = (int32_t)schedule->operators_total;
    summary->meta_ops = (int32_t)schedule->meta_ops;
    summary->levels = (int32_t)schedule->levels;
    summary->waves = (int32_t)schedule->waves;
    summary->slices = (int32_t)schedule->slices;
    summary->groups = (int32_t)schedule->groups;
    summary->tasks = (int32_t)schedule->tasks;
    summary->parameters = (int32_t)schedule->parameters;
    summary->kept_bytes = summary->fetched_bytes = 0;
    summary->makespan_ns = summary->peak_bytes = 0;
    for (int64_t s = 0; s < schedule->slices; s++)
        summary->makespan_ns = hbp__max_i64(summary->makespan_ns, schedule->slice_ends[s]);
    double busy = 0;
    for (int64_t r = 0; r < schedule->ranks; r++) {
        busy += (double)schedule->rank_busy_ns[r];
        summary->peak_bytes = hbp__max_i64(summary->peak_bytes, schedule->rank_bytes[r]);
    }
    find_ratios(summary, busy);
}

static hbp_status fill_schedule(const building *b, const int64_t *level_ns, hbp_task_schedule *schedule)
{
    HBP__TRY(copy_names(b, schedule));
    fill_meta_ops(b, level_ns, schedule);
    if (!fill_slices(b, schedule))
        return hbp__fail(b->context, HBP_E_INTERNAL, "slices are not in order of waves");
    fill_groups(b, schedule);
    HBP__TRY(fill_ranks(b, schedule));
    HBP__TRY(add_flows(b, schedule));
    sum_up(schedule);
    schedule->graph_digest = hbp__graph_digest(b->graph);
    schedule->digest = hbp__task_schedule_digest(schedule);
    return HBP_OK;
}

static hbp_status build_schedule(building *b, const int64_t *level_ns, const hbp_task_summary *summary,
                                 hbp_task_schedule **out)
{
    if (b->slices->count > INT32_MAX)
        return hbp__fail(b->context, HBP_E_OVERFLOW, "%lld slices; at most %d", (long long)b->slices->count,
                         INT32_MAX);
    HBP__TRY(open_building(b));
    HBP__TRY(find_groups(b));
    int64_t slices = b->slices->count;
    hbp_task_schedule shape = {
        .meta_ops = b->meta->count,
        .operators_total = b->meta->operator_count,
        .levels = b->meta->levels,
        .waves = slices ? b->slices->slice[slices - 1].wave + 1 : 0,
        .slices = slices,
        .groups = b->sets.count,
        .group_ranks_total = b->sets.count ? b->sets.offset[b->sets.count] : 0,
        .parameters = b->graph->parameters.count,
        .ranks = b->gpus,
        .tasks = b->graph->tasks.count,
    };
    hbp_task_schedule *schedule = NULL;
    HBP__TRY(hbp__task_schedule_new(b->context, &shape, &schedule));
    schedule->summary = *summary;
    schedule->method = hbp__tasks_method(summary->method);
    schedule->placement = hbp__placement_method(summary->placement_method);
    hbp_status status = fill_schedule(b, level_ns, schedule);
    if (status < 0)
        hbp_task_schedule_free(schedule);
    else
        *out = schedule;
    return status;
}

hbp_status hbp__task_schedule_build(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                                    const hbp__task_slices *slices, const int32_t *ranks,
                                    const int64_t *level_ns, const hbp_task_summary *summary,
                                    hbp_task_schedule **out)
{
    building b = {.context = context,
                  .graph = graph,
                  .meta = meta,
                  .slices = slices,
                  .ranks = ranks,
                  .gpus = summary->gpus};
    hbp_status status = build_schedule(&b, level_ns, summary, out);
    close_building(&b);
    return status;
}
