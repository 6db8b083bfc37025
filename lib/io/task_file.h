/* Files of task schedules (docs: file of a task schedule). */
#ifndef HBP_IO_TASK_FILE_H
#define HBP_IO_TASK_FILE_H

#include "data/task_schedule.h"
#include "io/table_file.h"

#define HBP__TASK_FORMAT         "hbp-tasks"
#define HBP__TASK_FORMAT_VERSION 1

/* Names of MetaOps, tasks and weights in all: unpacked, each takes some memory before it is known to be one.
 */
#define HBP__TASK_MAX_NAMES (INT64_C(1) << 22)

/* hbp_task_schedule_save with a level of zlib, and load from an open file. */
hbp_status hbp__task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path,
                                   int level);
hbp_status hbp__task_schedule_load(hbp_context *context, const hbp__file_bytes *file,
                                   hbp_task_schedule **out);

#endif
