/* A lower bound on the number of packs under two capacities. */
#ifndef HBP_SOLVE_VECTOR_BOUND_H
#define HBP_SOLVE_VECTOR_BOUND_H

#include "solve/vector/vectors.h"

/* The best of: hbp__pack_bound of each size alone; total weight over max_weight; and, for either size and
 * every threshold x above half of its capacity C, the number of items of at least x, of which no two share a
 * pack, plus the packs that the items of more than C - x and less than x need, none of which shares a pack
 * with one of the former: their other size over its capacity, and the number of them with more than half of
 * it (docs: vision). No packing has fewer packs. O(count) but for the sort. */
hbp_status hbp__vector_bound(hbp_context *context, const hbp__vectors *vectors, int64_t *bound);

#endif
