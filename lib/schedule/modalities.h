/* Kinds of sample (modalities) in packs, and fewer padding packs under an order of modalities. */
#ifndef HBP_SCHEDULE_MODALITIES_H
#define HBP_SCHEDULE_MODALITIES_H

#include <stdint.h>

#include "base/context.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"

/* The set of modalities in each pack into `modalities` [packs->count], bit k for kind k. HBP_OK or
 * HBP_E_CANCELLED. O(samples). */
hbp_status hbp__packs_modalities(hbp_context *context, const hbp_packs *packs, uint64_t *modalities);

/* Exchanges samples between packs of a group so that the packs of each set of modalities fill whole
 * micro-batches, as far as samples of like size can be found: each set of modalities else costs padding packs
 * for its last one. No pack grows past its capacity, linked samples stay, and every pack keeps its number of
 * samples. O(samples), and for each pack that should change its set at most as many tries as there are sets
 * that lack packs. */
hbp_status hbp__packs_even_modalities(hbp_context *context, const hbp_groups *groups, uint64_t seed,
                                      uint64_t epoch, hbp_packs *packs);

#endif
