#include "data/tasks/task_flows.h"

#include <string.h>

/* By operator of the graph, the slice that runs it. */
static void find_slices(const hbp__meta_graph *meta, const hbp__task_slices *slices, int32_t *slice_of)
{
    for (int64_t s = 0; s < slices->count; s++) {
        const hbp__task_slice *slice = &slices->slice[s];
        const int32_t *run = &meta->operators[meta->meta_op[slice->meta_op].first + slice->first];
        for (int32_t i = 0; i < slice->count; i++)
            slice_of[run[i]] = (int32_t)s;
    }
}

/* Counting sort by the slice that a flow goes to. */
static void sort_flows(const hbp_graph *graph, const int32_t *slice_of, int64_t slices,
                       hbp__task_flows *flows)
{
    int64_t *first = flows->in_first;
    memset(first, 0, ((size_t)slices + 1) * sizeof *first);
    for (int64_t e = 0; e < graph->edge_count; e++) {
        int32_t from = slice_of[graph->edge_from[e]], to = slice_of[graph->edge_to[e]];
        if (from != to)
            first[to + 1]++;
    }
    for (int64_t s = 0; s < slices; s++)
        first[s + 1] += first[s];
    flows->count = first[slices];
    /* first[s] runs to the end of s while flows are placed, and goes back by one slice after. */
    for (int64_t e = 0; e < graph->edge_count; e++) {
        int32_t from = slice_of[graph->edge_from[e]], to = slice_of[graph->edge_to[e]];
        if (from != to)
            flows->flow[first[to]++] = (hbp__task_flow){from, to, graph->edge_bytes[e]};
    }
    memmove(first + 1, first, (size_t)slices * sizeof *first);
    first[0] = 0;
}

hbp_status hbp__task_flows_open(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                                const hbp__task_slices *slices, hbp__task_flows *flows)
{
    const hbp__memory *memory = &context->memory;
    *flows = (hbp__task_flows){.memory = *memory};
    int32_t *slice_of = hbp__new_zero(memory, (uint64_t)graph->operator_count, sizeof *slice_of);
    flows->flow = hbp__new(memory, (uint64_t)graph->edge_count, sizeof *flows->flow);
    flows->in_first = hbp__new(memory, (uint64_t)slices->count + 1, sizeof *flows->in_first);
    if (!slice_of || !flows->flow || !flows->in_first) {
        hbp__delete(memory, slice_of);
        hbp__task_flows_close(flows);
        return hbp__fail_memory(context, "the flows between slices");
    }
    find_slices(meta, slices, slice_of);
    sort_flows(graph, slice_of, slices->count, flows);
    hbp__delete(memory, slice_of);
    return HBP_OK;
}

void hbp__task_flows_close(hbp__task_flows *flows)
{
    hbp__delete(&flows->memory, flows->flow);
    hbp__delete(&flows->memory, flows->in_first);
    flows->flow = NULL;
    flows->in_first = NULL;
}
