/* Many tasks on one machine: which operators run on how many GPUs, on which, when (Spindle, arXiv
 * 2409.03365).
 *
 * Stability: advanced; it may change until 1.0. */
#ifndef HBP_TASKS_H
#define HBP_TASKS_H

#include <stdint.h>

#include "hbp/base.h"
#include "hbp/cost.h"

HBP_BEGIN_DECLS

/* ---- Graph of operators ---- */

/* A model of many tasks as a graph of operators with their profiled times: the input of hbp_plan_tasks
 * (Spindle, arXiv 2409.03365, sections 3.1 and 3.2). Built by calls or read from a file; once built, nothing
 * changes it and threads may share it. */

/* Which numbers of GPUs an operator may run on: of the multiples of least_gpus from its least profiled to its
 * largest. */
enum {
    HBP_DEGREES_DIVISORS = 0, /* n = p q where p divides batch (data parallel) and q divides split (tensor or
                                 sequence parallel) */
    HBP_DEGREES_PROFILED = 1  /* the profiled ones alone */
};

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
    int32_t degrees;          /* [HBP_DEGREES_*] */
    int32_t least_gpus;       /* 0: 1 */
    int64_t split;            /* heads, say; 0: 1 */
    int64_t state_bytes;      /* weights, gradients, optimiser states in full on every GPU that runs it */
    int64_t sharded_bytes;    /* those that its GPUs share out evenly */
    int64_t activation_bytes; /* kept from forward to backward; its GPUs share them out evenly */
    int64_t output_bytes;     /* goes on along each edge, and comes back as a gradient */
    int64_t gradient_bytes;   /* summed over all GPUs that hold these weights, once a step */
} hbp_operator;

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
HBP_API hbp_status hbp_graph_validate(hbp_context *context, const hbp_graph *graph);

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
    const char *const *task_names;      /* [tasks] */
    const char *const *parameter_names; /* [parameters] */
    const int32_t *edge_from;           /* [edges] operators, in the order in which edges were added */
    const int32_t *edge_to;             /* [edges] */
    const int64_t *edge_bytes;          /* [edges] */
    const int64_t *profile_offsets;     /* [profiles + 1] into the points */
    const int32_t *point_gpus;          /* [profile_offsets[profiles]] */
    const int64_t *point_ns;            /* [profile_offsets[profiles]] as given */
} hbp_graph_view;

/* Fills *view, whose columns are owned by the graph. Thread: shareable. */
HBP_API hbp_status hbp_graph_get_view(const hbp_graph *graph, hbp_graph_view *view);

/* Operator `index` as it was added; strings are owned by the graph. HBP_E_INVALID for no such operator. */
HBP_API hbp_status hbp_graph_get_operator(hbp_context *context, const hbp_graph *graph, int64_t index,
                                          hbp_operator *fields);

/* ---- Task schedule ---- */

/* When and where the operators of many tasks run: slices in waves, on sets of GPUs, as columns. Immutable;
 * shareable by threads. */

/* A schedule is these tables:
 *
 *   MetaOp -> a chain of L like operators of one task (section 3.1); its level: the longest path to it
 *   wave   -> first slice. Slices of one wave are of different MetaOps, need nothing of one another and
 *             run on disjoint GPUs
 *   slice  -> MetaOp; its first operator there; operators; GPUs; set of ranks; start, end
 *   group  -> a set of ranks, ascending: every communicator that a run needs, each once
 *   rank   -> busy time; peak bytes
 *
 * Times hold for one step, forward and backward of an operator taken together: a trainer runs the slices in
 * order for the forward pass, each with its share of the time, and in reverse for the backward pass. They
 * leave out transfers between slices, which hbp_simulate_tasks adds. */
typedef struct hbp_task_schedule hbp_task_schedule;

/* Frees the schedule; NULL is allowed. Thread: any. */
HBP_API void hbp_task_schedule_free(hbp_task_schedule *schedule);

/* Sizes of tables and what the schedule comes to. */
typedef struct hbp_task_summary {
    uint32_t struct_size;
    int32_t gpus;                 /* N */
    const char *method;           /* of HBP_TASKS_METHODS, that made it; static text, as the next */
    const char *placement_method; /* of HBP_PLACEMENT_METHODS */
    int32_t domain_gpus;
    int32_t operators;
    int32_t meta_ops;
    int32_t levels;
    int32_t waves;
    int32_t slices;
    int32_t groups;
    int32_t tasks;
    int32_t parameters;       /* distinct sets of weights */
    int32_t proven;           /* nonzero: makespan_ns = bound_ns */
    int64_t makespan_ns;      /* without transfers */
    int64_t bound_ns;         /* no schedule of these operators on N GPUs takes less (docs: tasks) */
    int64_t critical_path_ns; /* every operator as fast as it goes, on as many GPUs as it likes */
    int64_t area_ns;          /* every operator where it wastes least, GPUs never idle */
    int64_t relaxed_ns;       /* sum over levels of C*, the continuous optimum (section 3.3) */
    int64_t flow_bytes;       /* outputs handed from slice to slice, in one direction */
    int64_t moved_bytes;      /* of these, what leaves the GPU it is on */
    int64_t crossing_bytes;   /* and what leaves the NVLink domain */
    int64_t limit_bytes;      /* memory of a GPU less the reserve; 0: no limit */
    int64_t peak_bytes;       /* of the fullest GPU */
    int64_t kept_bytes;       /* states that were on the same rank in the schedule planned before */
    int64_t fetched_bytes;    /* states that were not, though some rank had them */
    double gap;               /* makespan_ns / bound_ns - 1 */
    double idle;              /* share of GPU time, 0 to makespan_ns, with nothing to run */
    uint64_t digest; /* over all that says what runs where and when: ranks that plan redundantly compare it */
} hbp_task_summary;

/* Fills *summary. Thread: shareable. */
HBP_API hbp_status hbp_task_schedule_get_summary(hbp_context *context, const hbp_task_schedule *schedule,
                                                 hbp_task_summary *summary);

/* The columns of a schedule (docs: views). */
typedef struct hbp_task_schedule_view {
    uint32_t struct_size;
    int64_t meta_ops;
    int64_t operators_total; /* of all MetaOps: those of the graph */
    int64_t levels;
    int64_t waves;
    int64_t slices;
    int64_t groups;
    int64_t group_ranks_total; /* of all groups */
    int64_t parameters;
    int64_t ranks;
    const int64_t *meta_op_offsets; /* [meta_ops + 1] into operators */
    const int32_t *operators;       /* [operators_total] of the graph, by MetaOp, in the order of the chain */
    const int32_t *meta_op_levels;  /* [meta_ops] */
    const int32_t *meta_op_tasks;   /* [meta_ops] */
    const int64_t *level_ns;        /* [levels] C* */
    const int64_t *wave_offsets;    /* [waves + 1] into slices */
    const int32_t *slice_meta_ops;  /* [slices] */
    const int32_t *slice_firsts;    /* [slices] operator within the MetaOp */
    const int32_t *slice_operators; /* [slices] how many */
    const int32_t *slice_gpus;      /* [slices] on how many */
    const int32_t *slice_groups;    /* [slices] */
    const int64_t *slice_starts;    /* [slices] ns */
    const int64_t *slice_ends;      /* [slices] ns */
    const int64_t *group_offsets;   /* [groups + 1] into group_ranks */
    const int32_t *group_ranks;     /* [group_ranks_total] */
    const int32_t *parameter_groups; /* [parameters] of a set of weights: all ranks that hold it, and sum its
                                        gradient */
    const int64_t *rank_busy_ns;     /* [ranks] */
    const int64_t *rank_bytes;       /* [ranks] peak */
    int64_t tasks;
    const char *const *meta_op_names;   /* [meta_ops] of the first operator of each */
    const char *const *task_names;      /* [tasks] */
    const char *const *parameter_names; /* [parameters] */
} hbp_task_schedule_view;

/* Fills *view, whose columns are owned by the schedule. Thread: shareable. */
HBP_API hbp_status hbp_task_schedule_get_view(const hbp_task_schedule *schedule,
                                              hbp_task_schedule_view *view);

/* Checks everything the schedule promises against the graph it was made from and the machine: every operator
 * runs exactly once, in its MetaOp's order, on a number of GPUs it may run on, for the time its profile says;
 * nothing starts before what it needs has ended; no rank runs two slices at a time; waves as above; memory of
 * every rank, recomputed, within limit_bytes; the stored bytes and busy times are true. HBP_E_INVALID names
 * the first thing that is wrong. Thread: one per context, as for every function here that takes one. */
HBP_API hbp_status hbp_task_schedule_validate(hbp_context *context, const hbp_task_schedule *schedule,
                                              const hbp_graph *graph, const hbp_machine *machine);

/* ---- Planning ---- */

/* How slices are made. */
#define HBP_TASKS_METHODS(X)                                                                                 \
    X(OVERLAP, "overlap", "", "levels may overlap, gaps are filled; never longer than spindle")              \
    X(SPINDLE, "spindle", "Spindle, arXiv 2409.03365", "level by level in waves (section 3.4)")              \
    X(SEQUENTIAL, "sequential", "Spindle, arXiv 2409.03365",                                                 \
      "task after task, each operator on as many GPUs as make it fastest")                                   \
    X(UNIFORM, "uniform", "Spindle, arXiv 2409.03365", "ceil(N / tasks) GPUs a task")                        \
    X(OPTIMUS, "optimus", "Optimus, EuroSys 2018", "GPUs to tasks one by one, where they save most")         \
    X(DISTMM, "distmm", "DistMM, NSDI 2024", "task after task; operators of a level of one task side by side")

/* How slices get their ranks. */
#define HBP_PLACEMENT_METHODS(X)                                                                             \
    X(FLOWS, "flows", "", "few bytes between GPUs and domains; states are reused where they are")            \
    X(SPINDLE, "spindle", "Spindle, arXiv 2409.03365",                                                       \
      "the released code: orders of slices on consecutive ranks, hill-climbed")                              \
    X(SEQUENTIAL, "sequential", "", "consecutive ranks as slices come")

typedef struct hbp_tasks_options {
    uint32_t struct_size;
    int32_t effort;               /* [0..9] of method overlap; 0: 5 */
    const char *method;           /* [HBP_TASKS_METHODS] (docs: tasks) */
    const char *placement_method; /* [HBP_PLACEMENT_METHODS] */
    int64_t reserve_bytes;        /* [-1..INT64_MAX] of each GPU; 0: HBP_RESERVE_BYTES; -1: none */
    int64_t limit_bytes; /* [-1..INT64_MAX] of each GPU, instead of its memory less the reserve; 0: that; -1:
                            no limit */
    const hbp_task_schedule *previous; /* planned before some task joined or left: states are reused on their
                                          ranks where possible, weights distinguished by name; NULL */
    uint64_t seed;                     /* of the searches' draws */
} hbp_tasks_options;

/* Plans one step of all tasks on all GPUs of the machine (nodes x gpus_per_node, at most 65,536; domain_gpus,
 * hbm_bytes and links are read). Contraction to MetaOps, levels, the continuous optimum of each, bi-point
 * discretisation, waves; then, by default, the search for shorter ones; then placement under each GPU's
 * memory. Where slices do not fit in memory, others are tried on more GPUs, which share out activations and
 * sharded states, and on fewer, which hold fewer copies of the rest. Of the same graph, machine and
 * methods `previous` is the answer as it stands. HBP_E_INVALID for what hbp_graph_validate refuses, an
 * operator that may run on no number of these GPUs, options out of range; HBP_E_INFEASIBLE when nothing that
 * was tried fits in memory (a proof only where the message counts all bytes). The summary's gap says how far
 * the bound is. Deterministic. Thread: one per context. */
HBP_API hbp_status hbp_plan_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                                  const hbp_tasks_options *options, hbp_task_schedule **out);

/* A schedule that was simulated, with transfers. */
typedef struct hbp_task_run hbp_task_run;

typedef struct hbp_task_run_options {
    uint32_t struct_size;
    int32_t barriers; /* [flag] nonzero: a wave starts when the one before has ended, transfers included */
    int32_t free_transfers; /* [flag] nonzero: transfers take no time */
    int32_t free_gradients; /* [flag] nonzero: gradients are not summed at the end */
} hbp_task_run_options;

/* Runs one step: every rank works through its slices in order of waves, each as soon as all its ranks are
 * free and its inputs are there. An output of b bytes that goes from ranks A to ranks B leaves b (1 - |A and
 * B| / max(|A|, |B|)) bytes to move, there and back, shared by min(|A|, |B|) GPUs, over NVLink as far as both
 * have ranks in one domain, else over the network; links are not shared with other transfers. Then gradients
 * of each set of weights, in their order, are summed over its ranks by ring all-reduce as soon as these have
 * run their slices: over NVLink inside one domain, else over the network, where a ring leaves a domain
 * through the cards of all its GPUs in the group. The schedule is validated first. With neither transfers,
 * gradients nor barriers, total_ns is makespan_ns or less. Errors as there, and HBP_E_INVALID for a machine
 * whose links' speeds are unknown. O(slices x ranks). Thread: one per context. */
HBP_API hbp_status hbp_simulate_tasks(hbp_context *context, const hbp_graph *graph,
                                      const hbp_machine *machine, const hbp_task_schedule *schedule,
                                      const hbp_task_run_options *options, hbp_task_run **out);
HBP_API void hbp_task_run_free(hbp_task_run *run);

typedef struct hbp_task_run_summary {
    uint32_t struct_size;
    int32_t gpus;
    int64_t total_ns;    /* with transfers and gradients */
    int64_t slices_ns;   /* when the last slice ends */
    int64_t transfer_ns; /* time that slices waited for inputs in transfer while their ranks were free,
                            summed over slices and weighted by GPUs / N */
    int64_t gradient_ns; /* total_ns - slices_ns */
    int64_t flow_bytes;  /* one direction, as in hbp_task_summary */
    int64_t moved_bytes;
    int64_t crossing_bytes;
    int64_t peak_bytes;
    double idle;              /* share of GPU time, 0 to slices_ns, without a slice */
    uint64_t schedule_digest; /* of the schedule that was run */
    uint64_t digest;          /* over columns and all of this but idle */
} hbp_task_run_summary;

/* Fills *summary. Thread: shareable. */
HBP_API hbp_status hbp_task_run_get_summary(hbp_context *context, const hbp_task_run *run,
                                            hbp_task_run_summary *summary);

/* The columns of a run (docs: views). */
typedef struct hbp_task_run_view {
    uint32_t struct_size;
    int64_t slices;              /* of the schedule */
    const int64_t *slice_starts; /* [slices] ns */
    const int64_t *slice_ends;   /* [slices] ns */
} hbp_task_run_view;

/* Fills *view, whose columns are owned by the run. Thread: shareable. */
HBP_API hbp_status hbp_task_run_get_view(const hbp_task_run *run, hbp_task_run_view *view);

/* Whether the numbers are those of the columns. With `schedule`: whether this, its graph and the machine, run
 * with these options, make the same run; without, the last four are not looked at. HBP_E_INVALID names the
 * first breach; errors of hbp_simulate_tasks. Thread: one per context. */
HBP_API hbp_status hbp_task_run_validate(hbp_context *context, const hbp_task_run *run,
                                         const hbp_graph *graph, const hbp_machine *machine,
                                         const hbp_task_schedule *schedule,
                                         const hbp_task_run_options *options);

/* ---- Published models ---- */

/* Graphs in the shape of published models of many tasks, with times by the cost model's curves: for rerunning
 * the comparison of Spindle (section 5) in simulation, and to start from. */

/* Parameters of the whole model of preset `index` (hbp_preset_get_name), shared ones once; -1 for no such
 * preset. */
HBP_API int64_t hbp_workload_get_preset_parameters(int64_t index);

/* Makes a preset's graph: clip-4, clip-7, clip-10, ofasys-4, ofasys-7, qwen-val-3, qwen-val-3-30b, with each
 * operator's time on 1, 2, 4, ... GPUs of `machine` (docs: workloads). HBP_E_INVALID for an unknown name, and
 * for a machine without the fields that this needs. Thread: one per context. */
HBP_API hbp_status hbp_graph_create_workload(hbp_context *context, const char *name,
                                             const hbp_machine *machine, hbp_graph **out);

HBP_END_DECLS

#endif
