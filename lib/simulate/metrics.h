/* What the report says of a plan's steps by what they hold: how alike they are. */
#ifndef HBP_SIMULATE_METRICS_H
#define HBP_SIMULATE_METRICS_H

#include "base/context.h"
#include "data/plan.h"
#include "hbp/simulate.h"

/* Fills samples_cv and mixture_distance of a checked plan whose tokens sum to less than 2^63. O(samples), 20
 * bytes a step and 32 more while sorting. */
hbp_status hbp__measure_steps(hbp_context *context, const hbp_plan *plan, hbp_report *report);

#endif
