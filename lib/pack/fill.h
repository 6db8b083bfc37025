/* The ways of filling packs, one file each; hbp_greedy_fill chooses. All keep ties together, pad each sample to
 * `sequence_multiple` and each pack to `pack_multiple` (0: 1), and lose no sample. */
#ifndef HBP_PACK_FILL_H
#define HBP_PACK_FILL_H

#include "base/context.h"
#include "data/groups.h"
#include "data/lengths.h"
#include "data/packs.h"

/* The fewest packs: each group packed tightly, its gaps filled best fit from the shorter groups. */
hbp_status hbp__fill_tight(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out);

/* As published (HBP, Algorithms 2, 5 and 6): iterative fill, then first-fit greedy fill of the gaps. */
hbp_status hbp__fill_paper(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out);

#endif
