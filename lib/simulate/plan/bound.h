/* The bound that no plan beats, over a histogram. */
#ifndef HBP_SIMULATE_BOUND_H
#define HBP_SIMULATE_BOUND_H

#include <stdint.h>

#include "base/context.h"
#include "cost/cost.h"
#include "data/plan/plan.h"

/* hbp_bound_epoch for count[i] samples of length[i] tokens, lengths ascending and distinct, bins >= 1, each
 * padded to a multiple of `multiple` or to more, with `vision` vision units between them, steps >= 0.
 * HBP_E_INFEASIBLE when the longest fits on no degree; nothing is written then. */
hbp_status hbp__bound(hbp_context *context, const hbp_cost *cost, int64_t bins, const int64_t *length,
                      const int64_t *count, int64_t multiple, int64_t vision, int64_t steps,
                      int64_t *bound_ns);

/* Distinct lengths of a plan's rows of samples, ascending, and how many have each: *bins of both. The caller
 * releases *length and *count, also after a failure. Every row has at least 1 token. O(samples); 8 MiB of
 * scratch, and 60 bytes for each sample over 2^20 tokens. */
hbp_status hbp__count_lengths(hbp_context *context, const hbp_plan *plan, int64_t *bins, int64_t **length,
                              int64_t **count);

#endif
