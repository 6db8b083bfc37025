/* What a schedule keeps of the one before. */
#include "base/checked.h"
#include "data/tasks/rank_states.h"

/* The schedule as a list of slices with their ranks, and who held its weights before. */
typedef struct comparison {
    hbp_context *context;
    const hbp_task_schedule *previous;
    hbp__meta_graph meta;
    hbp__task_slices slices;
    int32_t *ranks; /* as in hbp__task_schedule_build */
    int32_t *group; /* [parameters] of `previous`, that ran the weights of this name; -1: none */
} comparison;

static void close_comparison(comparison *c)
{
    hbp__meta_graph_close(&c->meta);
    hbp__task_slices_close(&c->slices);
    hbp__delete(&c->context->memory, c->ranks);
    hbp__delete(&c->context->memory, c->group);
}

static int64_t group_size(const hbp_task_schedule *schedule, int32_t group)
{
    return schedule->group_offsets[group + 1] - schedule->group_offsets[group];
}

static hbp_status list_ranks(comparison *c, const hbp_task_schedule *schedule)
{
    int64_t total = 0;
    for (int64_t s = 0; s < schedule->slices; s++)
        total += group_size(schedule, schedule->slice_groups[s]);
    int32_t *to = hbp__new(&c->context->memory, (uint64_t)total, sizeof *to);
    if (!to)
        return hbp__fail_memory(c->context, "the ranks of slices");
    c->ranks = to;
    for (int64_t s = 0; s < schedule->slices; s++) {
        int32_t group = schedule->slice_groups[s];
        for (int64_t i = schedule->group_offsets[group]; i < schedule->group_offsets[group + 1]; i++)
            *to++ = schedule->group_ranks[i];
    }
    return HBP_OK;
}

/* Matches weights by name; of several that have the same, the first counts. */
static hbp_status match_names(comparison *c, const hbp_graph *graph)
{
    const hbp_task_schedule *previous = c->previous;
    int32_t parameters = graph->parameters.count;
    c->group = hbp__new(&c->context->memory, (uint64_t)parameters, sizeof *c->group);
    if (!c->group)
        return hbp__fail_memory(c->context, "the weights' former ranks");
    for (int32_t p = 0; p < parameters; p++)
        c->group[p] = -1;
    for (int64_t p = previous->parameters; p-- > 0;) {
        const char *name = previous->parameters_names[p];
        int32_t now = name ? hbp__names_find(&graph->parameters, name) : -1;
        if (now >= 0)
            c->group[now] = previous->parameter_groups[p];
    }
    return HBP_OK;
}

/* Whether `rank` is in the group; -1 is empty. O(log ranks). */
static int has_rank(const hbp_task_schedule *schedule, int32_t group, int32_t rank)
{
    if (group < 0)
        return 0;
    int64_t low = schedule->group_offsets[group], high = schedule->group_offsets[group + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (schedule->group_ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < schedule->group_offsets[group + 1] && schedule->group_ranks[low] == rank;
}

static hbp_status add_up(const comparison *c, const hbp_graph *graph, hbp_task_schedule *schedule)
{
    hbp__rank_states states;
    hbp_task_summary *summary = &schedule->summary;
    int32_t gpus = (int32_t)schedule->ranks;
    HBP__TRY(hbp__rank_states_open(c->context, graph, &c->meta, &c->slices, c->ranks, gpus, &states));
    for (int32_t r = 0; r < gpus; r++) {
        hbp__rank_states_read(&states, r);
        for (int32_t i = 0; i < states.held_count; i++) {
            int32_t p = states.held[i], group = c->group[p];
            if (has_rank(c->previous, group, r))
                summary->kept_bytes = hbp__add_saturating(summary->kept_bytes, states.bytes[p]);
            else if (group >= 0)
                summary->fetched_bytes = hbp__add_saturating(summary->fetched_bytes, states.bytes[p]);
        }
    }
    hbp__rank_states_close(&states);
    return HBP_OK;
}

static hbp_status compare_states(comparison *c, hbp_task_schedule *schedule, const hbp_graph *graph)
{
    HBP__TRY(hbp__meta_graph_open(c->context, graph, &c->meta));
    HBP__TRY(hbp__task_schedule_slices(c->context, schedule, &c->slices));
    HBP__TRY(list_ranks(c, schedule));
    HBP__TRY(match_names(c, graph));
    return add_up(c, graph, schedule);
}

hbp_status hbp__task_schedule_compare(hbp_context *context, hbp_task_schedule *schedule,
                                      const hbp_graph *graph, const hbp_task_schedule *previous)
{
    schedule->summary.kept_bytes = schedule->summary.fetched_bytes = 0;
    if (!previous)
        return HBP_OK;
    comparison c = {.context = context, .previous = previous, .meta = {.memory = context->memory}};
    hbp_status status = compare_states(&c, schedule, graph);
    close_comparison(&c);
    return status;
}
