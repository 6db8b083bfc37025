/* Files of task schedules and of their runs (docs: files of one object). */
#ifndef HBP_IO_TASK_FILE_H
#define HBP_IO_TASK_FILE_H

#include "io/table/table_file.h"

#define HBP__TASK_FORMAT "hbp-tasks"

/* Of an hbp_task_schedule and an hbp_task_run. */
extern const hbp__table_format hbp__task_format;
extern const hbp__table_format hbp__task_run_format;

#endif
