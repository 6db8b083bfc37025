/* Contraction (Spindle, section 3.1): chains of like operators become MetaOps, and MetaOps get levels. */
#ifndef HBP_DATA_META_GRAPH_H
#define HBP_DATA_META_GRAPH_H

#include <stdint.h>

#include "data/graph/graph.h"

typedef struct hbp__meta_op {
    int64_t first; /* in `operators` */
    int32_t count; /* L */
    int32_t level; /* edges of the longest path to it */
    int32_t task;
} hbp__meta_op;

/* MetaOps are numbered by (level, least operator), so edges go from lower to higher numbers. */
typedef struct hbp__meta_graph {
    hbp__memory memory;
    int32_t count; /* M */
    int32_t levels;
    int32_t operator_count;
    hbp__meta_op *meta_op; /* [count] */
    int32_t *operators;    /* [operator_count] numbers of the graph, by MetaOp, in the order of the chain */
    int32_t *meta_of;      /* [operator_count] by operator: its MetaOp */
    int32_t *place_of;     /* [operator_count] by operator: its place in the chain */
    int32_t *level_first;  /* [levels + 1] MetaOps of a level are level_first[l] .. level_first[l + 1] - 1 */
    int64_t edge_count;    /* E: edges of the graph between different MetaOps; two have one at most */
    hbp__edge *edges;      /* [E] between MetaOps, by (from, to): from the last operator of one to the first
                              of the other */
    int64_t *out_first;    /* [count + 1] edges[out_first[m] ..] leave m */
    int64_t *in_first;     /* [count + 1] in_edges[in_first[m] ..] enter m */
    int64_t *in_edges;     /* [E] numbers of edges, by (to, from) */
} hbp__meta_graph;

/* Merges i -> j while i has one edge out, j one in, and both have the same type, task, shape, profile,
 * degrees, least_gpus and split (sizes in bytes and weights may differ), until none is left; a unique result.
 * HBP_E_INVALID names the operators of a cycle. O(V + E). */
hbp_status hbp__meta_graph_open(hbp_context *context, const hbp_graph *graph, hbp__meta_graph *meta);
void hbp__meta_graph_close(hbp__meta_graph *meta);

/* Any operator that stands for a MetaOp: its first. */
static inline const hbp__operator *hbp__meta_operator(const hbp_graph *graph, const hbp__meta_graph *meta,
                                                      int32_t m)
{
    return &graph->operators[meta->operators[meta->meta_op[m].first]];
}

#endif
