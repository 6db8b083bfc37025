#include "data/tasks/rank_states.h"

#include <string.h>

#include "base/checked.h"
#include "data/tasks/flow.h"

/* Counting sort of (rank, slice). */
static void sort_slices(const hbp__task_slices *slices, const int32_t *ranks, int32_t gpus,
                        hbp__rank_states *states)
{
    int64_t *first = states->first, at = 0;
    memset(first, 0, ((size_t)gpus + 1) * sizeof *first);
    for (int64_t s = 0; s < slices->count; s++)
        for (int32_t i = 0; i < slices->slice[s].gpus; i++)
            first[ranks[at++] + 1]++;
    for (int32_t r = 0; r < gpus; r++)
        first[r + 1] += first[r];
    at = 0;
    for (int64_t s = 0; s < slices->count; s++)
        for (int32_t i = 0; i < slices->slice[s].gpus; i++)
            states->slice[first[ranks[at++]]++] = (int32_t)s;
    memmove(first + 1, first, (size_t)gpus * sizeof *first);
    first[0] = 0;
}

hbp_status hbp__rank_states_open(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                                 const hbp__task_slices *slices, const int32_t *ranks, int32_t gpus,
                                 hbp__rank_states *states)
{
    const hbp__memory *memory = &context->memory;
    *states =
        (hbp__rank_states){.memory = *memory, .graph = graph, .meta = meta, .slices = slices, .last = -1};
    uint64_t parameters = (uint64_t)graph->parameters.count, entries = 0;
    for (int64_t s = 0; s < slices->count; s++)
        entries += (uint64_t)slices->slice[s].gpus;
    states->first = hbp__new(memory, (uint64_t)gpus + 1, sizeof *states->first);
    states->slice = hbp__new(memory, entries, sizeof *states->slice);
    states->bytes = hbp__new(memory, parameters, sizeof *states->bytes);
    states->held = hbp__new(memory, parameters, sizeof *states->held);
    if (!states->first || !states->slice || !states->bytes || !states->held) {
        hbp__rank_states_close(states);
        return hbp__fail_memory(context, "what ranks hold");
    }
    for (uint64_t p = 0; p < parameters; p++)
        states->bytes[p] = -1;
    sort_slices(slices, ranks, gpus, states);
    return HBP_OK;
}

void hbp__rank_states_close(hbp__rank_states *states)
{
    hbp__delete(&states->memory, states->first);
    hbp__delete(&states->memory, states->slice);
    hbp__delete(&states->memory, states->bytes);
    hbp__delete(&states->memory, states->held);
    *states = (hbp__rank_states){.memory = states->memory, .last = -1};
}

static int runs_the_same(const hbp__rank_states *states, int32_t a, int32_t b)
{
    int64_t count = states->first[a + 1] - states->first[a];
    return count == states->first[b + 1] - states->first[b] &&
           memcmp(&states->slice[states->first[a]], &states->slice[states->first[b]],
                  (size_t)count * sizeof *states->slice) == 0;
}

static void add_slice(hbp__rank_states *states, const hbp__task_slice *slice)
{
    const hbp__meta_graph *meta = states->meta;
    const int32_t *run = &meta->operators[meta->meta_op[slice->meta_op].first + slice->first];
    for (int32_t i = 0; i < slice->count; i++) {
        const hbp__operator *o = &states->graph->operators[run[i]];
        int64_t *bytes = &states->bytes[o->parameters];
        if (*bytes < 0)
            states->held[states->held_count++] = o->parameters;
        *bytes = hbp__max_i64(*bytes, hbp__operator_states(o, slice->gpus));
        states->activation_bytes =
            hbp__add_saturating(states->activation_bytes, hbp__operator_activation(o, slice->gpus));
    }
}

void hbp__rank_states_read(hbp__rank_states *states, int32_t rank)
{
    int32_t before = states->last;
    states->last = rank;
    if (before >= 0 && runs_the_same(states, before, rank))
        return;
    for (int32_t i = 0; i < states->held_count; i++)
        states->bytes[states->held[i]] = -1;
    states->held_count = 0;
    states->activation_bytes = 0;
    for (int64_t i = states->first[rank]; i < states->first[rank + 1]; i++)
        add_slice(states, &states->slices->slice[states->slice[i]]);
}
