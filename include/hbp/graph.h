/* A model of many tasks as a graph of operators with their profiled times: the input of hbp_plan_tasks
 * (Spindle, arXiv 2409.03365, sections 3.1 and 3.2). Built by calls or read from a file; once built, nothing
 * changes it and threads may share it. */
#ifndef HBP_GRAPH_H
#define HBP_GRAPH_H

#include <stdint.h>

#include "hbp/context.h"

/* Which numbers of GPUs an operator may run on: of the multiples of least_gpus from its least profiled to its
 * largest. */
enum {
    HBP_DEGREES_DIVISORS = 0, /* n = p q where p divides batch (data parallel) and q divides split (tensor or
                                 sequence parallel) */
    HBP_DEGREES_PROFILED = 1  /* the profiled ones alone */
};

/* Files of graphs. */
enum { HBP_GRAPH_JSON = 0, HBP_GRAPH_MSGPACK = 1 };

HBP_BEGIN_DECLS

typedef struct hbp_graph hbp_graph;

/* Makes an empty graph. Thread: one per context, as for every function here that takes one. */
HBP_API hbp_status hbp_graph_create(hbp_context *context, hbp_graph **out);
HBP_API void hbp_graph_free(hbp_graph *graph);

/* Adds a profile: an operator's measured time on gpus[i] GPUs is ns[i], forward and backward together; i <
 * points. Times that grow with GPUs are taken for the least before them. *profile gets its number, from 0;
 * may be NULL. Copies. HBP_E_INVALID names the point: none, gpus not rising within 1..2^20, ns < 1 or above
 * 2^53. */
HBP_API hbp_status hbp_graph_add_profile(hbp_context *context, hbp_graph *graph, const int32_t *gpus,
                                         const int64_t *ns, int64_t points, int32_t *profile);

/* One operator: a layer of one task. Sizes are of the whole batch; zeros and NULL are none but where said.
 * Where batch and split are both left out (0), nothing is known of what divides it, and the profiled numbers
 * of GPUs count, as with HBP_DEGREES_PROFILED. Of operators that share weights the largest state, sharded and
 * gradient bytes count.
 * Names are UTF-8 without control characters. */
typedef struct hbp_operator {
    uint32_t struct_size;
    int32_t profile;        /* its times; -1: none, which planning refuses */
    const char *name;       /* unique; NULL: "operator K" */
    const char *type;       /* operators of one type, task and shape in a row are planned as one; needed */
    const char *task;       /* needed */
    const char *parameters; /* name of its weights; operators that name the same share them. NULL: the
                               operator's name */
    int64_t batch;          /* shape of its input: batch, sequence, width; at least 1 each, 0: 1 */
    int64_t sequence;
    int64_t width;
    int32_t degrees;          /* HBP_DEGREES_* */
    int32_t least_gpus;       /* 0: 1 */
    int64_t split;            /* heads, say; 0: 1 */
    int64_t state_bytes;      /* weights, gradients, optimiser states in full on every GPU that runs it */
    int64_t sharded_bytes;    /* those that its GPUs share out evenly */
    int64_t activation_bytes; /* kept from forward to backward; its GPUs share them out evenly */
    int64_t output_bytes;     /* goes on along each edge, and comes back as a gradient */
    int64_t gradient_bytes;   /* summed over all GPUs that hold these weights, once a step */
} hbp_operator;

HBP_API void hbp_operator_init(hbp_operator *fields, uint32_t struct_size);

/* Adds `count` (>= 1) operators with these fields, each with an edge from the one before; those of a count >
 * 1 are named name[0], name[1], ... and so are their weights. *first gets the number of the first, from 0;
 * may be NULL. Copies. HBP_E_INVALID names the operator, field and value: an unknown profile, a missing type
 * or task, a name that is taken, negative sizes. HBP_E_OVERFLOW above 2^31 - 1 operators or 2^62 bytes in
 * all; after any failure the graph is as it was. */
HBP_API hbp_status hbp_graph_add_operators(hbp_context *context, hbp_graph *graph, const hbp_operator *fields,
                                           int64_t count, int32_t *first);

/* `to` needs the output of `from`; bytes -1: its output_bytes. HBP_E_INVALID for an operator that is not
 * there (yet), for an edge to itself, for one that is there; HBP_E_OVERFLOW above 2^62 bytes in all. */
HBP_API hbp_status hbp_graph_add_edge(hbp_context *context, hbp_graph *graph, int32_t from, int32_t to,
                                      int64_t bytes);

/* Whether the graph can be planned: HBP_E_INVALID names a cycle's operators, an operator without a profile,
 * or one that no profiled number of GPUs suits; or says that there are no operators. The planner asks, too.
 * O(V + E). */
HBP_API hbp_status hbp_graph_check(hbp_context *context, const hbp_graph *graph);

/* Reads a graph from JSON or msgpack, told apart by content (docs/explanation/tasks-file.md has the format).
 * HBP_E_FORMAT with the place, also for what the calls above refuse; HBP_E_VERSION. Saved atomically, and
 * read back the same; HBP_E_OVERFLOW for more than a file may hold. */
HBP_API hbp_status hbp_graph_read(hbp_context *context, const char *path, hbp_graph **out);
HBP_API hbp_status hbp_graph_save(hbp_context *context, const hbp_graph *graph, const char *path,
                                  int32_t format);

/* The columns of a graph (docs: views), valid until something is added to it. */
typedef struct hbp_graph_view {
    uint32_t struct_size;
    int64_t operators;
    int64_t edges;
    int64_t profiles;
    int64_t tasks;                      /* numbered as they came */
    int64_t parameters;                 /* distinct sets of weights */
    const int32_t *operator_tasks;      /* [operators] number of each one's task */
    const int32_t *operator_parameters; /* [operators] and of its weights */
} hbp_graph_view;

HBP_API hbp_status hbp_graph_get_view(const hbp_graph *graph, hbp_graph_view *view);

/* Operator `index` as it was added; strings are owned by the graph. HBP_E_INVALID for no such operator. */
HBP_API hbp_status hbp_graph_get_operator(hbp_context *context, const hbp_graph *graph, int64_t index,
                                          hbp_operator *fields);
HBP_API hbp_status hbp_graph_get_edge(hbp_context *context, const hbp_graph *graph, int64_t index,
                                      int32_t *from, int32_t *to, int64_t *bytes);
/* Points of a profile, owned by the graph; *count of them. NULL columns are not wanted. */
HBP_API hbp_status hbp_graph_get_profile(hbp_context *context, const hbp_graph *graph, int64_t index,
                                         const int32_t **gpus, const int64_t **ns, int64_t *count);

/* Names by number, owned by the graph; NULL for none such. Shareable. */
HBP_API const char *hbp_graph_get_task_name(const hbp_graph *graph, int64_t task);
HBP_API const char *hbp_graph_get_parameters_name(const hbp_graph *graph, int64_t parameters);

HBP_END_DECLS

#endif
