/* The bound that no plan beats, over a histogram. */
#ifndef HBP_SIMULATE_BOUND_H
#define HBP_SIMULATE_BOUND_H

#include <stdint.h>

#include "base/context.h"
#include "cost/cost.h"

/* hbp_bound_epoch for count[i] samples of length[i] tokens, lengths ascending and distinct, bins >= 1, with
 * `vision` vision units between them, steps >= 0. HBP_E_INFEASIBLE when the longest fits on no degree;
 * nothing is written then. */
hbp_status hbp__bound(hbp_context *context, const hbp_cost *cost, int64_t bins, const int64_t *length,
                      const int64_t *count, int64_t vision, int64_t steps, int64_t *bound_ns);

#endif
