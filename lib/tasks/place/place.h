/* Which ranks each slice runs on (Spindle, section 3.5). */
#ifndef HBP_TASKS_PLACE_H
#define HBP_TASKS_PLACE_H

#include "tasks/problem.h"

/* Writes ranks [sum of gpus], ascending within each slice, slices as in hbp__task_schedule_build: no rank
 * runs two slices at a time, and none passes limit_bytes. `placement` is HBP_PLACE_*; `previous` as in
 * hbp_tasks_options. HBP_E_INFEASIBLE when no placement that was tried fits; the message names the slice that
 * did not, what it needs and what its ranks have left. */
hbp_status hbp__place_slices(hbp_context *context, const hbp__task_problem *problem,
                             const hbp__task_slices *slices, int32_t placement,
                             const hbp_task_schedule *previous, int32_t *ranks);

#endif
