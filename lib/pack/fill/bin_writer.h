/* Writes the packs of a group that is dealt, one after the other. */
#ifndef HBP_PACK_BIN_WRITER_H
#define HBP_PACK_BIN_WRITER_H

#include <stdint.h>

#include "pack/fill/bin_dealer.h"

/* An item put into a pack outside of any run. */
typedef struct hbp__stray {
    uint32_t pack;
    uint32_t item;
    uint32_t size; /* of the item */
} hbp__stray;

/* Appends the packs of `fills` that hold something to `packs`, which has room for them, as group `group`:
 * what was dealt to each and, behind it, its strays as they come. Packs past those that were dealt to hold
 * strays alone. Packs are measured, but for their own padding, where packs->brief is kept. The strays are
 * sorted by pack. Reads no sizes: they may stand where the samples go. O(samples). */
hbp_status hbp__write_bins(hbp_context *context, const hbp__dealing *dealing, const hbp__dealt *dealt,
                           const hbp__fills *fills, hbp__stray *stray, int64_t strays, int32_t group,
                           hbp_packs *packs);

#endif
