/* Making packs alike in both sizes by exchanges between pairs of packs. */
#ifndef HBP_SOLVE_VECTOR_EVEN_H
#define HBP_SOLVE_VECTOR_EVEN_H

#include "solve/vector/vectors.h"

/* Exchanges items between packs, or moves them, in at most `rounds` rounds: packs are sorted by one size, or
 * the other, or their sum or difference; the first meets the last, the second the last but one, ...; and each
 * pair makes the one exchange that leaves the two most alike. What a pack holds past a capacity counts more
 * than any likeness, so that packs given past their capacities come within them where exchanges can bring
 * that about; no exchange makes it worse, or takes a pack past max_weight. Ends early when a few rounds bring
 * nothing. *over gets the number of packs that are left past a capacity or max_weight. O(rounds packs k^2)
 * for k items in a pack, at most 12 of which are looked at. */
hbp_status hbp__vector_even(hbp_context *context, const hbp__vectors *vectors, hbp__vector_packing *packing,
                            int64_t rounds, int64_t *over);

#endif
