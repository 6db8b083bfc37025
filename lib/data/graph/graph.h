/* The inside of a graph of operators. */
#ifndef HBP_DATA_GRAPH_H
#define HBP_DATA_GRAPH_H

#include <stdint.h>

#include "base/context.h"
#include "data/table/names.h"
#include "hbp/tasks.h"

/* GPUs of a profile's point are at most so many. */
#define HBP__PROFILE_GPUS (INT32_C(1) << 20)

/* Every number of hbp_operator that is kept as it is: X(name, type). */
#define HBP__OPERATOR_NUMBERS(X)                                                                             \
    X(profile, int32_t)                                                                                      \
    X(degrees, int32_t)                                                                                      \
    X(least_gpus, int32_t)                                                                                   \
    X(batch, int64_t)                                                                                        \
    X(sequence, int64_t)                                                                                     \
    X(width, int64_t)                                                                                        \
    X(split, int64_t)                                                                                        \
    X(state_bytes, int64_t)                                                                                  \
    X(sharded_bytes, int64_t)                                                                                \
    X(activation_bytes, int64_t)                                                                             \
    X(output_bytes, int64_t)                                                                                 \
    X(gradient_bytes, int64_t)

/* Defaults are filled in; names are numbers into the graph's lists. */
typedef struct hbp__operator {
    char *name;   /* the graph's list has it */
    int32_t type; /* equal for equal types */
    int32_t task;
    int32_t parameters;
#define HBP__OPERATOR_FIELD(name, type) type name;
    HBP__OPERATOR_NUMBERS(HBP__OPERATOR_FIELD)
#undef HBP__OPERATOR_FIELD
} hbp__operator;

typedef struct hbp__edge {
    int32_t from;
    int32_t to;
    int64_t bytes;
} hbp__edge;

typedef struct hbp__profile {
    const int32_t *gpus; /* [points], rising */
    const int64_t *ns;   /* [points], as given */
    int64_t points;
} hbp__profile;

struct hbp_graph {
    hbp__memory memory;
    hbp__operator *operators; /* [operator_count] */
    int32_t operator_count;
    int32_t operator_room;
    int32_t *edge_from; /* [edge_count], as they came */
    int32_t *edge_to;
    int64_t *edge_bytes;
    int64_t edge_count;
    int64_t edge_room;
    int64_t *edge_slot;     /* [edge_slots] number + 1, 0: free; by hash of (from, to) */
    int64_t edge_slots;     /* a power of two, or 0 */
    int64_t bytes;          /* of all operators and edges, to keep sums below 2^62 */
    int64_t *profile_first; /* [profile_count + 1] into the points */
    int32_t profile_count;
    int32_t profile_room;
    int32_t *point_gpus; /* [profile_first[profile_count]] */
    int64_t *point_ns;
    int64_t point_room;
    int32_t *task_of;       /* [operator_count] the operators' columns that getters hand out */
    int32_t *parameters_of; /* [operator_count] */
    hbp__names types;
    hbp__names tasks;
    hbp__names parameters;
    hbp__names operator_names; /* number = operator */
};

/* Profile `index`, until another is added. */
static inline hbp__profile hbp__graph_profile(const hbp_graph *graph, int32_t index)
{
    int64_t first = graph->profile_first[index];
    return (hbp__profile){graph->point_gpus + first, graph->point_ns + first,
                          graph->profile_first[index + 1] - first};
}

/* The functions of the same names within a call. */
hbp_status hbp__graph_create(hbp_context *context, hbp_graph **out);
hbp_status hbp__graph_add_profile(hbp_context *context, hbp_graph *graph, const int32_t *gpus,
                                  const int64_t *ns, int64_t points, int32_t *profile);
hbp_status hbp__graph_add_operators(hbp_context *context, hbp_graph *graph, const hbp_operator *fields,
                                    int64_t count, int32_t *first);
hbp_status hbp__graph_add_edge(hbp_context *context, hbp_graph *graph, int32_t from, int32_t to,
                               int64_t bytes);

/* 64 bits over everything in the graph. */
uint64_t hbp__graph_digest(const hbp_graph *graph);

#endif
