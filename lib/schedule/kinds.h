/* Kinds of sample (modalities) in packs. */
#ifndef HBP_SCHEDULE_KINDS_H
#define HBP_SCHEDULE_KINDS_H

#include <stdint.h>

#include "base/context.h"
#include "data/packs/packs.h"

/* The set of kinds in each pack into `kinds` [packs->count], bit k for kind k. HBP_OK or HBP_E_CANCELLED.
 * O(samples). */
hbp_status hbp__packs_kinds(hbp_context *context, const hbp_packs *packs, uint64_t *kinds);

#endif
