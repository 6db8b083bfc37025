/* Steps that each hold their share of what an epoch has: of its groups, of things in a row, of things of
 * unlike weight. */
#ifndef HBP_SCHEDULE_DEAL_H
#define HBP_SCHEDULE_DEAL_H

#include <stdint.h>

#include "base/context.h"
#include "base/rng.h"

/* The order of steps: `count[g]` steps of each of `groups` groups; writes the group of each step to `order`,
 * as many as there are steps. The first `curriculum` come from group 0 while it lasts. After that, at every
 * place the group that is furthest behind its share of what remains: no prefix strays from the mixture by as
 * much as one step a group. */
void hbp__interleave(const int64_t *count, int64_t groups, int64_t curriculum, int32_t *order);

/* Deals `count` things, like ones side by side, to steps of `size` things each, the last of fewer (or left
 * out, if the caller leaves it out): every step gets its share of each stretch, as evenly as whole things
 * allow, and which of neighbours is a draw. Writes the rows [first, first + count) to `rows` step by step,
 * each step's in ascending order. O(count). */
hbp_status hbp__deal_stretches(hbp_context *context, int64_t first, int64_t count, int64_t size,
                               hbp__rng *rng, uint32_t *rows);

/* The things [count] in descending order of weight, those alike as drawn from `rng`. O(count). */
hbp_status hbp__deal_order(hbp_context *context, const int64_t *weight, int64_t count, hbp__rng *rng,
                           uint32_t *order);

/* Deals things in such an order as hbp__deal_strata does. O(count log bins). */
hbp_status hbp__deal_rows(hbp_context *context, const int64_t *weight, const int64_t *tokens,
                          const uint32_t *order, int64_t count, int64_t bins, uint32_t *bin);

/* Deals `count` things over `bins`: the heaviest `bins` first, one for each, then the next, each row's
 * heaviest to the bin that weighs least so far; the things of the last, shorter row go to the bins of fewest
 * tokens. So every bin has one of each stratum, and bins differ by at most one thing. bin[i] gets the bin of
 * thing i. Things alike are drawn from `rng`. O(count log bins). */
hbp_status hbp__deal_strata(hbp_context *context, const int64_t *weight, const int64_t *tokens, int64_t count,
                            int64_t bins, hbp__rng *rng, uint32_t *bin);

#endif
