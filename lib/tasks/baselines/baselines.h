/* Methods that Spindle is compared with (section 5.1). Tasks with edges between them count as
 * one. */
#ifndef HBP_TASKS_BASELINES_H
#define HBP_TASKS_BASELINES_H

#include "tasks/problem.h"

/* Task after task in order of their numbers, each operator on its fastest size. */
hbp_status hbp__plan_sequential(hbp_context *context, const hbp__task_problem *problem,
                                hbp__task_slices *slices);

/* ceil(N / tasks) GPUs for each task, its MetaOps one after another on the largest size that fits there; the
 * longest task first where they do not all run at once (LPT). */
hbp_status hbp__plan_uniform(hbp_context *context, const hbp__task_problem *problem,
                             hbp__task_slices *slices);

/* Optimus: every task starts with the least it runs on; the next valid step goes where (T(n) - T(n')) / (n' -
 * n) is largest, until none fits; LPT when the tasks do not all run at once. */
hbp_status hbp__plan_optimus(hbp_context *context, const hbp__task_problem *problem,
                             hbp__task_slices *slices);

/* DistMM: task after task; the MetaOps of a level of a task side by side, by hbp__plan_waves on that task
 * alone. */
hbp_status hbp__plan_distmm(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices);

#endif
