/* Columns of a task schedule that are safe to walk. */
#ifndef HBP_DATA_TASK_COLUMNS_H
#define HBP_DATA_TASK_COLUMNS_H

#include "data/tasks/task_schedule.h"

/* Whether the tables agree with the summary and with each other: offsets rise from 0 to their table's end,
 * numbers are of rows that are there, slices lie inside their MetaOps and have as many GPUs as their groups,
 * ranks of a group ascend, no time or size is negative. What the schedule promises about a graph is another
 * question (hbp_task_schedule_validate). HBP_E_INVALID names the first breach. O(rows). */
hbp_status hbp__task_columns_check(hbp_context *context, const hbp_task_schedule *schedule);

#endif
