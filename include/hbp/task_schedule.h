/* When and where the operators of many tasks run: slices in waves, on sets of GPUs, as columns. Immutable;
 * shareable by threads. */
#ifndef HBP_TASK_SCHEDULE_H
#define HBP_TASK_SCHEDULE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/graph.h"
#include "hbp/machine.h"

HBP_BEGIN_DECLS

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

HBP_API void hbp_task_schedule_free(hbp_task_schedule *schedule);

/* Sizes of tables and what the schedule comes to. */
typedef struct hbp_task_summary {
    uint32_t struct_size;
    int32_t mode;      /* HBP_TASKS_* that made it */
    int32_t placement; /* HBP_PLACE_* */
    int32_t gpus;      /* N */
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
    int64_t flow_bytes;       /* outputs handed from slice to slice, one way */
    int64_t moved_bytes;      /* of these, what leaves the GPU it is on */
    int64_t crossing_bytes;   /* and what leaves the NVLink domain */
    int64_t limit_bytes;      /* memory of a GPU less the reserve; 0: no limit */
    int64_t peak_bytes;       /* of the fullest GPU */
    int64_t kept_bytes;       /* states that were on the same rank in the schedule planned before */
    int64_t fetched_bytes;    /* states that were not, though some rank had them */
    double gap;               /* makespan_ns / bound_ns - 1 */
    double idle;              /* share of GPU time, 0 to makespan_ns, with nothing to run */
} hbp_task_summary;

HBP_API void hbp_task_summary_init(hbp_task_summary *summary, uint32_t struct_size);
HBP_API hbp_status hbp_task_schedule_get_summary(hbp_context *context, const hbp_task_schedule *schedule,
                                                 hbp_task_summary *summary);

/* 64 bits over all that says what runs where and when: ranks that plan redundantly compare it. */
HBP_API uint64_t hbp_task_schedule_get_digest(const hbp_task_schedule *schedule);

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
} hbp_task_schedule_view;

HBP_API hbp_status hbp_task_schedule_get_view(const hbp_task_schedule *schedule,
                                              hbp_task_schedule_view *view);

/* Names, owned by the schedule; NULL for none such. A MetaOp's is its first operator's. */
HBP_API const char *hbp_task_schedule_get_meta_op_name(const hbp_task_schedule *schedule, int64_t meta_op);
HBP_API const char *hbp_task_schedule_get_task_name(const hbp_task_schedule *schedule, int64_t task);
HBP_API const char *hbp_task_schedule_get_parameters_name(const hbp_task_schedule *schedule,
                                                          int64_t parameters);

/* Checks everything the schedule promises against the graph it was made from and the machine: every operator
 * runs exactly once, in its MetaOp's order, on a number of GPUs it may run on, for the time its profile says;
 * nothing starts before what it needs has ended; no rank runs two slices at a time; waves as above; memory of
 * every rank, recomputed, within limit_bytes; the stored bytes and busy times are true. HBP_E_INVALID names
 * the first thing that is wrong. Thread: one per context, as for every function here that takes one. */
HBP_API hbp_status hbp_task_schedule_validate(hbp_context *context, const hbp_task_schedule *schedule,
                                              const hbp_graph *graph, const hbp_machine *machine);

/* A file of msgpack: a header map, then the columns, with CRC and digest (docs: files of one object).
 * Saved atomically; what is read is not trusted: HBP_E_FORMAT with the offset, HBP_E_VERSION. */
HBP_API hbp_status hbp_task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule,
                                          const char *path);
HBP_API hbp_status hbp_task_schedule_load(hbp_context *context, const char *path, hbp_task_schedule **out);

/* Writes a Chrome trace (Perfetto opens it): a process per NVLink domain, a thread per rank, an event per
 * slice and rank. `starts` and `ends` [slices] in ns are those of a run, both or neither; NULL: the
 * schedule's. HBP_E_INVALID names a slice that ends before it starts. Saved atomically. */
HBP_API hbp_status hbp_task_schedule_trace(hbp_context *context, const hbp_task_schedule *schedule,
                                           const int64_t *starts, const int64_t *ends, const char *path);

/* Writes all of it as JSON, under the keys of its file. Whole or not at all. O(rows). */
HBP_API hbp_status hbp_task_schedule_write_json(hbp_context *context, const hbp_task_schedule *schedule,
                                                const char *path);

HBP_END_DECLS

#endif
