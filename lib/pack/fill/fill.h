/* The ways of filling packs, one file each; hbp_greedy_fill chooses. All keep ties together, pad each sample
 * to `sequence_multiple` and each pack to `pack_multiple` (0: 1), and lose no sample. */
#ifndef HBP_PACK_FILL_H
#define HBP_PACK_FILL_H

#include "base/context.h"
#include "data/lengths/lengths.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"

/* hbp_greedy_fill, within a call. *out is set on success alone. */
hbp_status hbp__greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            const hbp_fill_options *options, hbp_packs **out);

/* A fill, and an estimate of what a search for fewer packs could save, in ns, by the packs of the last try; 0
 * where none is to come. */
typedef struct hbp__filling {
    hbp_packs *packs;
    int64_t ns; /* what the packs take; unset without a search to come */
    double saving;
    hbp_fill_options options; /* without zeros but in max_samples */
} hbp__filling;

/* Another fill, which takes `ns` with so much for each step: where fewer packs seem not to come below it, by
 * what hbp__packs_score estimates, they are not looked for. */
typedef struct hbp__rival {
    int64_t ns;
    double step_ns;
} hbp__rival;

/* The parts of hbp__greedy_fill, for whoever compares several fills: everything but the brief search for
 * fewer packs (`rival` NULL: there is no other), and that, whose packs have the padding of those before.
 * filling->packs is the caller's to free, also when the search fails; finish searches and hands them over,
 * *out is set on success alone. */
hbp_status hbp__fill_begin(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, const hbp__rival *rival, hbp__filling *filling);
hbp_status hbp__fill_search(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            hbp__filling *filling);
hbp_status hbp__fill_finish(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            hbp__filling *filling, hbp_packs **out);

/* The fewest packs: each group packed tightly, its gaps filled best fit from the shorter groups. */
hbp_status hbp__fill_tight(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out);

/* As published (HBP, Algorithms 2, 5 and 6): iterative fill, then first-fit greedy fill of the gaps. */
hbp_status hbp__fill_paper(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out);

/* The library's own: packs of a micro-batch alike, every step a mix of the data. Measures no packs but
 * those of the last group, where nothing is linked or padded. */
hbp_status hbp__fill_balanced(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                              const hbp_fill_options *options, hbp_packs **out);

/* What a pack of each group may hold with these options: capacity[g], its tokens rounded down to the pack
 * multiple, and largest[g], the largest padded item that belongs to group g or a shorter one. `options` has
 * no zeros left. */
void hbp__fill_limits(const hbp_groups *groups, const hbp_fill_options *options, int64_t *capacity,
                      int64_t *largest);

/* Completes filled packs: what each holds, and a lower bound on the packs of each group, the tokens of its
 * samples, each padded, over what a pack holds, or their number over what it may hold (or the bound that is
 * there, if it is better). HBP_OK or HBP_E_CANCELLED. */
hbp_status hbp__packs_finish(hbp_context *context, const hbp_groups *groups, const hbp_fill_options *options,
                             hbp_packs *packs);

/* The second half of it, for packs that are measured without their own padding: pads them and bounds their
 * number. */
void hbp__packs_bound(const hbp_groups *groups, const hbp_fill_options *options, hbp_packs *packs);

#endif
