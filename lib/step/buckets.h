/* Bucketing: few lengths in the place of many, for the published planner. */
#ifndef HBP_STEP_BUCKETS_H
#define HBP_STEP_BUCKETS_H

#include <stdint.h>

#include "base/context.h"

/* Cuts lengths [count], descending, into at most `buckets` >= 1 runs and writes the longest of its run to
 * rounded[i], so that the sum of what is added is least (FlexSP). Among equal sums the
 * earliest cuts win. O(count buckets log count) time, 4 count buckets bytes of scratch. */
hbp_status hbp__step_bucket(hbp_context *context, const int64_t *length, int64_t count, int64_t buckets,
                            int64_t *rounded);

#endif
