/* Writes the packs of a group that is dealt, one after the other. */
#ifndef HBP_PACK_BIN_WRITER_H
#define HBP_PACK_BIN_WRITER_H

#include <stdint.h>

#include "data/packs/packs.h"
#include "pack/fill/bin_dealer.h"

/* An item put into a pack outside of any run. */
typedef struct hbp__stray {
    uint32_t pack;
    uint32_t item;
} hbp__stray;

/* Appends the packs of `fills` that hold something to `packs`, which has room for them, as group `group`:
 * what was dealt to each and, behind it, its strays as they come. Packs past those that were dealt to hold
 * strays alone. Packs are measured, but for their own padding, where packs->brief is kept. O(samples). */
hbp_status hbp__write_bins(hbp_context *context, const hbp__dealing *dealing, const hbp__dealt *dealt,
                           const hbp__fills *fills, const hbp__stray *stray, int64_t strays, int32_t group,
                           hbp_packs *packs);

/* Writes an item's samples at `at`, and their length; returns how many. */
static inline int64_t hbp__write_item(const hbp__items *items, int64_t item, uint32_t *sample,
                                      uint16_t *brief, int64_t at)
{
    if (brief)
        brief[at] = items->size[item] <= UINT16_MAX ? (uint16_t)items->size[item] : 0;
    return hbp__items_write(items, item, sample + at);
}

#endif
