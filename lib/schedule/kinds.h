/* Kinds of sample (modalities) in packs, and fewer dummies under an order of modalities. */
#ifndef HBP_SCHEDULE_KINDS_H
#define HBP_SCHEDULE_KINDS_H

#include <stdint.h>

#include "base/context.h"
#include "data/packs/groups.h"
#include "data/packs/packs.h"

/* The set of kinds in each pack into `kinds` [packs->count], bit k for kind k. HBP_OK or HBP_E_CANCELLED.
 * O(samples). */
hbp_status hbp__packs_kinds(hbp_context *context, const hbp_packs *packs, uint64_t *kinds);

/* Exchanges samples between packs of a group so that the packs of each set of kinds fill whole micro-batches,
 * as far as samples of like size can be found: each set of kinds else costs dummies for its last one. No
 * pack grows past its capacity, linked samples stay, and every pack keeps its number of samples. O(samples),
 * and for each pack that should change its set at most as many tries as there are sets that lack packs. */
hbp_status hbp__packs_even_kinds(hbp_context *context, const hbp_groups *groups, uint64_t seed,
                                 uint64_t epoch, hbp_packs *packs);

#endif
