/* Two-dimensional vector packing: the fewest packs under two capacities, and all of them alike. */
#ifndef HBP_SOLVE_VECTOR_PACK_H
#define HBP_SOLVE_VECTOR_PACK_H

#include "base/rng.h"
#include "solve/vector/vectors.h"

/* Packs all items. `rng` draws which of the items that are alike go where. Effort 1..9 spends growing,
 * counted work; packing->pack_of [count] is written, *bound gets a lower bound on the packs. O(n log n) for n
 * items at effort 1. */
hbp_status hbp__vector_pack(hbp_context *context, const hbp__vectors *vectors, int32_t effort, hbp__rng *rng,
                            hbp__vector_packing *packing, int64_t *bound);

#endif
