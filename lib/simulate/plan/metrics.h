/* What the report says of a plan's steps by what they hold: how large they are, and how like the epoch. */
#ifndef HBP_SIMULATE_METRICS_H
#define HBP_SIMULATE_METRICS_H

#include "base/context.h"
#include "data/plan/plan.h"
#include "hbp/plan.h"

/* Fills samples_cv, mixture_distance and the quantiles of samples and tokens per step, of a checked plan: its
 * columns of both are then the sums over its samples. O(samples), 4 bytes a step and 32 more while sorting.
 */
hbp_status hbp__measure_steps(hbp_context *context, const hbp_plan *plan, hbp_report *report);

/* The same but for mixture_distance, from both columns [steps]. */
hbp_status hbp__measure_sizes(hbp_context *context, const int64_t *samples, const int64_t *tokens,
                              int64_t steps, hbp_report *report);

#endif
