/* Which slices hand outputs to which. */
#ifndef HBP_DATA_TASK_FLOWS_H
#define HBP_DATA_TASK_FLOWS_H

#include <stdint.h>

#include "data/tasks/task_schedule.h"

/* `bytes` of outputs that go from a slice to a later one, one way; as many come back as gradients. */
typedef struct hbp__task_flow {
    int32_t from;
    int32_t to;
    int64_t bytes;
} hbp__task_flow;

/* An edge of the graph is a flow where its operators run in different slices: from the slice with the last
 * operator of a MetaOp to the one with the first of the next, and between consecutive slices of a MetaOp. */
typedef struct hbp__task_flows {
    hbp__memory memory;
    int64_t count;
    hbp__task_flow *flow; /* [count] by slice that they go to, then as the edges came */
    int64_t *in_first;    /* [slices + 1] flow[in_first[s]] .. flow[in_first[s + 1] - 1] go to slice s */
} hbp__task_flows;

/* Flows between `slices`, which run every operator of the graph once. O(operators + edges + slices). */
hbp_status hbp__task_flows_open(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                                const hbp__task_slices *slices, hbp__task_flows *flows);
void hbp__task_flows_close(hbp__task_flows *flows);

#endif
