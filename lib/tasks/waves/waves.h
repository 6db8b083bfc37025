/* Wavefront scheduling as published (Spindle, section 3.4). */
#ifndef HBP_TASKS_WAVES_H
#define HBP_TASKS_WAVES_H

#include "tasks/problem.h"

/* Level by level, each by the rule of the paper (hbp__fill_waves) or, where that is shorter, with shares of
 * what is left for every wave (hbp__share_waves). Slices of a wave start together; the next wave starts when
 * the longest has ended. At most 2 MetaOps waves a level, and at most one slice of a MetaOp in each. Never
 * longer than the paper's rule alone. */
hbp_status hbp__plan_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices);

#endif
