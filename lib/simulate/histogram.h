/* A plan's samples as a histogram. */
#ifndef HBP_SIMULATE_HISTOGRAM_H
#define HBP_SIMULATE_HISTOGRAM_H

#include "base/context.h"
#include "data/plan/plan.h"

/* Distinct lengths of a plan's rows of samples, ascending, and how many have each: *bins of both. The caller
 * releases *length and *count, also after a failure. Every row has at least 1 token. O(samples); 8 MiB of
 * scratch, and 60 bytes for each sample over 2^20 tokens. */
hbp_status hbp__count_lengths(hbp_context *context, const hbp_plan *plan, int64_t *bins, int64_t **length,
                              int64_t **count);

#endif
