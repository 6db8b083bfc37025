/* What every planner of this layer starts from. */
#ifndef HBP_TASKS_PROBLEM_H
#define HBP_TASKS_PROBLEM_H

#include <stdint.h>

#include "cost/scaling.h"
#include "data/tasks/flow.h"
#include "data/tasks/task_schedule.h"

typedef struct hbp__task_problem {
    const hbp_graph *graph;
    const hbp__meta_graph *meta;
    const hbp__scaling *scaling;
    int32_t gpus; /* N */
    int32_t domain_gpus;
    int64_t limit_bytes; /* INT64_MAX: none */
    uint64_t seed;
    int32_t gradient_part; /* placing: a byte of gradients weighs as much as this part of a byte that flows;
                              0: as usual */
    int32_t hasty;         /* placing: nonzero: a first look, without the long search */
} hbp__task_problem;

/* Numbers slices' waves so that a wave is one more than the latest among the slices that a slice waits for:
 * the one before of its MetaOp, the last ones of the MetaOps that its first operator needs, and those before
 * on its ranks (`ranks` as in hbp__task_schedule_build; NULL: leave these out). Sorts slices, and ranks with
 * them, by (wave, start, MetaOp). */
hbp_status hbp__task_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices,
                           int32_t *ranks);

/* Starts every slice as early as its ranks are free and what it needs has ended, in the order of their
 * starts: none starts later than before. */
hbp_status hbp__task_compact(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices,
                             const int32_t *ranks);

#endif
