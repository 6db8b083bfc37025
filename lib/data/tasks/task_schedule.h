/* The inside of a task schedule, and the piece that builds one. */
#ifndef HBP_DATA_TASK_SCHEDULE_H
#define HBP_DATA_TASK_SCHEDULE_H

#include <stdint.h>

#include "data/graph/meta_graph.h"
#include "data/table/table.h"
#include "hbp/tasks.h"

/* Every column: X(name, type, table, extra rows). */
#define HBP__TASK_COLUMNS(X)                                                                                 \
    X(meta_op_offsets, int64_t, meta_ops, 1)                                                                 \
    X(operators, int32_t, operators_total, 0)                                                                \
    X(meta_op_levels, int32_t, meta_ops, 0)                                                                  \
    X(meta_op_tasks, int32_t, meta_ops, 0)                                                                   \
    X(level_ns, int64_t, levels, 0)                                                                          \
    X(wave_offsets, int64_t, waves, 1)                                                                       \
    X(slice_meta_ops, int32_t, slices, 0)                                                                    \
    X(slice_firsts, int32_t, slices, 0)                                                                      \
    X(slice_operators, int32_t, slices, 0)                                                                   \
    X(slice_gpus, int32_t, slices, 0)                                                                        \
    X(slice_groups, int32_t, slices, 0)                                                                      \
    X(slice_starts, int64_t, slices, 0)                                                                      \
    X(slice_ends, int64_t, slices, 0)                                                                        \
    X(group_offsets, int64_t, groups, 1)                                                                     \
    X(group_ranks, int32_t, group_ranks_total, 0)                                                            \
    X(parameter_groups, int32_t, parameters, 0)                                                              \
    X(rank_busy_ns, int64_t, ranks, 0)                                                                       \
    X(rank_bytes, int64_t, ranks, 0)

/* The numbers of a file, each a field of hbp_task_summary, before and behind the methods: X(name). */
#define HBP__TASK_SIZES(X)                                                                                   \
    X(operators)                                                                                             \
    X(meta_ops)                                                                                              \
    X(levels)                                                                                                \
    X(waves)                                                                                                 \
    X(slices)                                                                                                \
    X(groups)                                                                                                \
    X(tasks)                                                                                                 \
    X(parameters)                                                                                            \
    X(gpus)                                                                                                  \
    X(domain_gpus)

#define HBP__TASK_NUMBERS(X)                                                                                 \
    X(proven)                                                                                                \
    X(makespan_ns)                                                                                           \
    X(bound_ns)                                                                                              \
    X(critical_path_ns)                                                                                      \
    X(area_ns)                                                                                               \
    X(relaxed_ns)                                                                                            \
    X(flow_bytes)                                                                                            \
    X(moved_bytes)                                                                                           \
    X(crossing_bytes)                                                                                        \
    X(limit_bytes)                                                                                           \
    X(peak_bytes)                                                                                            \
    X(kept_bytes)                                                                                            \
    X(fetched_bytes)

/* Lists of names: X(name, table). */
#define HBP__TASK_NAMES(X)                                                                                   \
    X(meta_op_names, meta_ops)                                                                               \
    X(task_names, tasks)                                                                                     \
    X(parameters_names, parameters)

struct hbp_task_schedule {
    hbp__memory memory;
    hbp_task_summary summary; /* struct_size and the methods' names are not kept up */
    int32_t method;           /* HBP__TASKS_* */
    int32_t placement;        /* HBP__PLACEMENT_* */
    int64_t meta_ops;
    int64_t operators_total;
    int64_t levels;
    int64_t waves;
    int64_t slices;
    int64_t groups;
    int64_t group_ranks_total;
    int64_t parameters;
    int64_t ranks;
    int64_t tasks;
    uint64_t graph_digest;
    uint64_t digest; /* over columns, names, the method and the summary's gpus, domain_gpus, makespan_ns; set
                        by seal */
    char **meta_op_names;    /* [meta_ops] */
    char **task_names;       /* [tasks] */
    char **parameters_names; /* [parameters] */
#define HBP__TASK_FIELD(name, type, table, extra) type *name;
    HBP__TASK_COLUMNS(HBP__TASK_FIELD)
#undef HBP__TASK_FIELD
};

extern const hbp__table hbp__task_table;

/* One slice, as planners make it. */
typedef struct hbp__task_slice {
    int32_t meta_op;
    int32_t first; /* operator within the MetaOp */
    int32_t count; /* operators, >= 1 */
    int32_t gpus;
    int32_t wave;
    int64_t start_ns;
    int64_t end_ns; /* start + count x time of one operator on `gpus` */
} hbp__task_slice;

/* A list of slices by (wave, order of choice within it). */
typedef struct hbp__task_slices {
    hbp__memory memory;
    hbp__task_slice *slice; /* [count] */
    int64_t count;
    int64_t room;
    int32_t waves;
    int64_t makespan_ns;
} hbp__task_slices;

/* Appends; grows by doubling; keeps `waves` and `makespan_ns` up. A list starts out zeroed. */
hbp_status hbp__task_slices_add(hbp_context *context, hbp__task_slices *slices, const hbp__task_slice *slice);
void hbp__task_slices_close(hbp__task_slices *slices);

/* Makes a schedule with columns of the given sizes (the counts set in `shape`, all else of it ignored),
 * zeroed, names NULL. For the builder below and the reader of files. */
hbp_status hbp__task_schedule_new(hbp_context *context, const hbp_task_schedule *shape,
                                  hbp_task_schedule **out);

/* Builds the schedule: tables from the graph, MetaOps, slices and their ranks (`ranks`: slice s has
 * slice[s].gpus of them, ascending, one slice after the other), groups made distinct and numbered as they
 * come, weights' groups, busy times and bytes of ranks, flows, idle, digest. `summary` gives both methods,
 * gpus, domain_gpus, bounds and limit_bytes; the rest is computed. */
hbp_status hbp__task_schedule_build(hbp_context *context, const hbp_graph *graph, const hbp__meta_graph *meta,
                                    const hbp__task_slices *slices, const int32_t *ranks,
                                    const int64_t *level_ns, const hbp_task_summary *summary,
                                    hbp_task_schedule **out);

/* The slices of a schedule whose columns are sound, as a list; the inverse of building. */
hbp_status hbp__task_schedule_slices(hbp_context *context, const hbp_task_schedule *schedule,
                                     hbp__task_slices *slices);

/* Writes the summary's kept_bytes and fetched_bytes, of a schedule of `graph`: states that a rank holds and
 * held under `previous`, whose weights have the same name; those that it did not, though another rank had
 * them. `previous` NULL: both are 0. O(ranks x operators) at worst. */
hbp_status hbp__task_schedule_compare(hbp_context *context, hbp_task_schedule *schedule,
                                      const hbp_graph *graph, const hbp_task_schedule *previous);

/* The GPUs that tasks are planned on, and those of one NVLink domain, at most all. HBP_E_INVALID names a
 * field that is 0 or unknown, HBP_E_OVERFLOW above 2^31 - 1 GPUs. */
hbp_status hbp__task_machine(hbp_context *context, const hbp_machine *machine, int32_t *gpus,
                             int32_t *domain_gpus);

/* The digest of what is there. */
uint64_t hbp__task_schedule_digest(const hbp_task_schedule *schedule);

/* Whether the tables agree with the summary and with each other: offsets rise from 0 to their table's end,
 * numbers are of rows that are there, slices lie inside their MetaOps and have as many GPUs as their groups,
 * ranks of a group ascend, no time or size is negative. What the schedule promises about a graph is another
 * question (hbp_task_schedule_validate). HBP_E_INVALID names the first breach. O(rows). */
hbp_status hbp__task_columns_check(hbp_context *context, const hbp_task_schedule *schedule);

#endif
