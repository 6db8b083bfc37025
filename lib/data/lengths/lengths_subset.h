/* Part of a data set, as one of its own. */
#ifndef HBP_DATA_LENGTHS_SUBSET_H
#define HBP_DATA_LENGTHS_SUBSET_H

#include "data/lengths/lengths.h"

/* The pieces `index` [count] of `lengths`, in that order; ids still name the original samples, ties are kept
 * among the pieces that are there, nothing counts as dropped. O(count log count + distinct lengths). */
hbp_status hbp__lengths_subset(hbp_context *context, const hbp_lengths *lengths, const uint32_t *index,
                               int64_t count, hbp_lengths **out);

#endif
