/* Part of a data set, as one of its own. */
#ifndef HBP_DATA_LENGTHS_SUBSET_H
#define HBP_DATA_LENGTHS_SUBSET_H

#include "data/lengths/lengths.h"

/* The pieces `index` [count] of `lengths`, in that order; ids still name the original samples, links are kept
 * among the pieces that are there, nothing counts as dropped. O(count log count + distinct lengths). */
hbp_status hbp__lengths_subset(hbp_context *context, const hbp_lengths *lengths, const uint32_t *index,
                               int64_t count, hbp_lengths **out);

/* The data without the samples that have more than `max_vision` vision units and those linked to one, which
 * are listed as dropped (HBP_DROPPED_OVERVISION); NULL in *out: there are none. What is left keeps ids,
 * digest and what a limit cut: plans of it are plans of `lengths`. HBP_E_INVALID where nothing is left, or
 * the data are split. O(count log count). */
hbp_status hbp__lengths_drop_vision(hbp_context *context, const hbp_lengths *lengths, int64_t max_vision,
                                    hbp_lengths **out);

#endif
