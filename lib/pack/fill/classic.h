/* The packers that trainers use today, to compare with. */
#ifndef HBP_PACK_CLASSIC_H
#define HBP_PACK_CLASSIC_H

#include "data/packs/groups.h"
#include "data/packs/packs.h"
#include "hbp/pack.h"

/* Fills packs of the one group by `method`: HBP__EPOCH_NEXT_FIT takes samples as they come,
 * _RANDOM in a random order, in which _FIRST_FIT_SHUFFLED packs them by first fit; _FIRST_FIT_DECREASING,
 * _BEST_FIT_DECREASING and _SPFHP work on the histogram, _ISF repeats next fit over shuffles, _NO_PACKING and
 * _SORTED give every sample a pack, as they come or shortest first. HBP_E_INVALID for others. Method and
 * effort of the options are ignored. The packs are measured. */
hbp_status hbp__fill_classic(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                             int32_t method, const hbp_fill_options *options, hbp_packs **out);

#endif
