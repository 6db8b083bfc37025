/* Slices that start as soon as they can, over the borders of levels, and the search for shorter schedules. */
#ifndef HBP_TASKS_OVERLAP_H
#define HBP_TASKS_OVERLAP_H

#include "tasks/problem.h"

/* Makes slices whose makespan is at most that of each of `given` [givens], schedules of the same problem
 * (published waves among them), and as near to bound_ns as `effort` (1..9) gets. Waves are numbered by
 * hbp__task_waves without ranks. Deterministic. */
hbp_status hbp__plan_overlap(hbp_context *context, const hbp__task_problem *problem,
                             const hbp__task_slices *const *given, int32_t givens, int64_t bound_ns,
                             int32_t effort, hbp__task_slices *slices);

#endif
