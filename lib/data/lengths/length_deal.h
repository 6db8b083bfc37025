/* Samples by length: a counting sort in one pass, since the histogram says where each length begins. As many
 * streams of writes as there are lengths; most data have few lengths that are frequent. */
#ifndef HBP_DATA_LENGTH_DEAL_H
#define HBP_DATA_LENGTH_DEAL_H

#include <stdint.h>

#include "base/context.h"
#include "data/lengths/lengths.h"

typedef struct hbp__length_deal {
    hbp__memory memory;
    const hbp_lengths *histogram; /* its bins alone are read */
    int64_t table_max; /* lengths up to this are slots; a longer one has the slot table_max + 1 + its bin, or
                        the last where it does not occur */
    uint32_t *slot_next; /* [slots] where the next sample of the length goes */
    int64_t dealt;       /* samples so far */
} hbp__length_deal;

/* Close in any case. */
hbp_status hbp__length_deal_open(hbp_context *context, const hbp_lengths *histogram, hbp__length_deal *deal);
void hbp__length_deal_close(hbp__length_deal *deal);

/* Deals the next `count` samples to order [samples of the histogram]; 0 when one of them has no place there:
 * what was dealt of them is then no use. Any length is in range. O(count) and a tick. */
hbp_status hbp__length_deal_take(hbp_context *context, hbp__length_deal *deal, const uint32_t *length,
                                 int64_t count, uint32_t *order, int *has_place);

/* The first bin that did not get just its own samples; -1 when every one did: no place was then taken twice.
 */
int64_t hbp__length_deal_missing(const hbp__length_deal *deal);

/* All samples of an array in ascending order of length and, within one, of index, on the context's threads:
 * each has a part of the array, counts it, and deals it behind the parts before. HBP_E_INVALID where the
 * array is not what its histogram says. O(count), with several threads read twice, and 8 bytes a slot for
 * each. */
hbp_status hbp__lengths_deal(hbp_context *context, const hbp_lengths *lengths, uint32_t *order);

#endif
