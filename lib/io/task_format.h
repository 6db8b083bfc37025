/* What writer and reader of files of task schedules share (docs: file of a task schedule). */
#ifndef HBP_IO_TASK_FORMAT_H
#define HBP_IO_TASK_FORMAT_H

#include <stdint.h>

#include "data/task_schedule.h"
#include "io/file_bytes.h"

#define HBP__TASK_FORMAT         "hbp-tasks"
#define HBP__TASK_FORMAT_VERSION 1

/* Names of MetaOps, tasks and weights in all: unpacked, each takes some memory before it is known to be one.
 */
#define HBP__TASK_MAX_NAMES (INT64_C(1) << 22)

/* The header's whole numbers, each a field of hbp_task_summary; sizes of tables first: X(name). `gap` and
 * `idle` stand there, too, as doubles. */
#define HBP__TASK_HEADER_FIELDS(X)                                                                           \
    X(operators)                                                                                             \
    X(meta_ops)                                                                                              \
    X(levels)                                                                                                \
    X(waves)                                                                                                 \
    X(slices)                                                                                                \
    X(groups)                                                                                                \
    X(tasks)                                                                                                 \
    X(parameters)                                                                                            \
    X(gpus)                                                                                                  \
    X(domain_gpus)                                                                                           \
    X(mode)                                                                                                  \
    X(placement)                                                                                             \
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

/* Lists of names in the header: X(name, table). */
#define HBP__TASK_NAMES(X)                                                                                   \
    X(meta_op_names, meta_ops)                                                                               \
    X(task_names, tasks)                                                                                     \
    X(parameters_names, parameters)

/* Bytes of all columns of a schedule of this shape; -1 when a count is negative, or so large that no file
 * holds it. */
int64_t hbp__task_columns_bytes(const hbp_task_schedule *shape);

/* hbp_task_schedule_save with a level of zlib, and load from an open file. */
hbp_status hbp__task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path,
                                   int level);
hbp_status hbp__task_schedule_load(hbp_context *context, const hbp__file_bytes *file,
                                   hbp_task_schedule **out);

#endif
