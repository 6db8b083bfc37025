/* Which ranks each slice runs on (Spindle, section 3.5). */
#ifndef HBP_TASKS_PLACE_H
#define HBP_TASKS_PLACE_H

#include "tasks/problem.h"

/* Why no placement was found: a slice, or memory over all. */
typedef struct hbp__misfit {
    int32_t slice;              /* that no search got beyond; -1: none stands out */
    int32_t operators;          /* of it, from `first_operator` on */
    const char *first_operator; /* the graph's */
    int32_t gpus;               /* of the slice; of the machine where none stands out */
    int32_t fitting;            /* free GPUs on which it fits */
    int64_t
        needs_bytes; /* on the GPU where it takes fewest; of all slices on all GPUs where none stands out */
    int64_t left_bytes; /* on the freest GPU */
    int64_t limit_bytes;
} hbp__misfit;

/* Writes ranks [sum of gpus], ascending within each slice, slices as in hbp__task_schedule_build: no rank
 * runs two slices at a time, and none passes limit_bytes. `placement` is HBP__PLACEMENT_*; `previous` as in
 * hbp_tasks_options. HBP_E_INFEASIBLE without a message when no placement that was tried fits: *misfit says
 * why. */
hbp_status hbp__place_slices(hbp_context *context, const hbp__task_problem *problem,
                             const hbp__task_slices *slices, int32_t placement,
                             const hbp_task_schedule *previous, int32_t *ranks, hbp__misfit *misfit);

/* The message of that; HBP_E_INFEASIBLE. */
hbp_status hbp__misfit_fail(hbp_context *context, const hbp__misfit *misfit);

#endif
