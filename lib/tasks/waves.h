/* Waves as published (Spindle, section 3.4). */
#ifndef HBP_TASKS_WAVES_H
#define HBP_TASKS_WAVES_H

#include "tasks/allocate.h"

/* Level by level: allocation, then waves until no tuple is left. Slices of a wave start together; the next
 * wave starts when the longest has ended. At most 2 MetaOps waves a level. */
hbp_status hbp__plan_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices);

#endif
