/* Samples, or linked samples together, in an order drawn from the seed. */
#ifndef HBP_EPOCH_UNITS_H
#define HBP_EPOCH_UNITS_H

#include "data/packs/items.h"
#include "epoch/batches.h"

typedef struct hbp__units {
    const hbp__epoch *epoch;
    hbp__items items; /* with their true tokens */
    int64_t count;
    int64_t drawn;     /* units that stand in a step */
    uint32_t *order;   /* [count] items as drawn */
    uint8_t *is_short; /* [count] by item: no sample is longer than the curriculum's */
    uint8_t *is_taken; /* [count] by item: stands in a step */
} hbp__units;

/* The units of the epoch's samples; those without a sample of more than `shortest` tokens are short. Close in
 * any case; the arrays are scratch. O(samples). */
hbp_status hbp__units_open(const hbp__epoch *epoch, int64_t shortest, hbp__units *units);
void hbp__units_close(hbp__units *units);

/* HBP_E_INVALID names the longest unit where it has more tokens than tokens_per_step. O(1) where nothing is
 * linked and all do, else O(samples). */
hbp_status hbp__units_check_tokens(const hbp__epoch *epoch);

/* Appends steps to the batches, which have room for them: `early` steps of short units, while those fill
 * them, then up to `most` steps of all that are left, in the order drawn. A step holds samples_per_step
 * samples, or fewer where linked samples leave no other way, or at most tokens_per_step tokens. */
hbp_status hbp__units_draw(hbp__units *units, int64_t early, int64_t most, hbp__batches *batches);

/* Appends steps of at most tokens_per_step, longest units first, as long as one of more than `longer_than`
 * tokens is left: a step takes the longest that it has room for, as long as there is one. The units that
 * stand in no step then follow behind all of them. Oracle: the definition (tests/epoch/test_units.c).
 * O(samples log samples). */
hbp_status hbp__units_sort(hbp__units *units, int64_t longer_than, hbp__batches *batches);

#endif
