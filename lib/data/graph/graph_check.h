/* Whether a graph can be planned, and in what order its operators can run. */
#ifndef HBP_DATA_GRAPH_CHECK_H
#define HBP_DATA_GRAPH_CHECK_H

#include <stdint.h>

#include "data/graph/graph.h"

/* Whether `o`, whose times `profile` are, may run on n GPUs: from its least profiled to its largest, a
 * multiple of least_gpus, and profiled itself or p q with p dividing batch and q dividing split, as degrees
 * asks. O(log). */
int hbp__operator_suits(const hbp__operator *o, const hbp__profile *profile, int32_t n);

/* Edges by operator, and the operators in an order where each comes after all that it needs. */
typedef struct hbp__graph_order {
    hbp__memory memory;
    int64_t *out_first; /* [operators + 1] out_edge[out_first[i] ..] leave operator i */
    int64_t *out_edge;  /* [edges] numbers of edges, by (from, number) */
    int32_t *needs;     /* [operators] how many edges enter each */
    int32_t *order;     /* [operators] */
} hbp__graph_order;

/* HBP_E_INVALID names the operators of a cycle. O(V + E). */
hbp_status hbp__graph_order_open(hbp_context *context, const hbp_graph *graph, hbp__graph_order *order);
void hbp__graph_order_close(hbp__graph_order *order);

/* hbp_graph_validate within a call. */
hbp_status hbp__graph_check(hbp_context *context, const hbp_graph *graph);

#endif
