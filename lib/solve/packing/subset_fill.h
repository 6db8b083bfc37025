/* Packing by exact filling: each pack gets the largest item left and the subset of the others that leaves the
 * least room (minimum bin slack, Gupta and Ho 1999), found by a subset-sum over bit sets. */
#ifndef HBP_SOLVE_SUBSET_FILL_H
#define HBP_SOLVE_SUBSET_FILL_H

#include "solve/packing/patterns.h"

/* Packs number[c] items of every class, which it counts down to 0, and appends the patterns. Among equal
 * fills it prefers large items, which leaves the small ones for later packs. Weights must be absent. At most
 * `work` word operations are spent on subset sums (*work counts down); once they are spent, the rest is
 * packed best fit decreasing. capacity / 8 bytes x classes of scratch. */
hbp_status hbp__subset_fill(hbp_context *context, const hbp__classes *classes, int64_t capacity,
                            int64_t *number, int64_t *work, hbp__patterns *patterns);

#endif
