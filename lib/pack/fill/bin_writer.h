/* Deals a group's own items bin by bin and writes each bin's packs at once, while what was dealt is in the
 * nearest caches: for a group whose packs get nothing from shorter ones. */
#ifndef HBP_PACK_BIN_WRITER_H
#define HBP_PACK_BIN_WRITER_H

#include <stdint.h>

#include "base/context.h"
#include "data/packs/items.h"
#include "pack/fill/deal.h"
#include "pack/fill/spread.h"

/* What is dealt where. */
typedef struct hbp__dealing {
    const hbp__items *items;
    const hbp__listing *listing;
    int64_t bins;
    int64_t width; /* packs of a bin */
    int64_t runs;
    const uint32_t *bin_of;       /* [runs] HBP__NO_BIN: the run's items are lost */
    const hbp__sized_run *run_at; /* [runs] those with a bin, in the order of their bins */
    const int64_t *bin_start;     /* [bins + 1] into run_at */
    hbp__fills *fills;            /* of bins x width packs, empty; filled afterwards */
    int64_t samples;              /* of all groups: for reports of progress */
} hbp__dealing;

/* An item put into a pack outside of any run. */
typedef struct hbp__stray {
    uint32_t pack;
    uint32_t item;
} hbp__stray;

/* Deals all runs (deal.h), and writes pack after pack to `sample` and, unless it is NULL, lengths
 * to `brief`, both from *done on, which is counted up. start[p] [bins width + 1] gets where pack p begins.
 * Items of runs without a bin, and those that the packs of their bin have no room for, are listed in *lost
 * [*losses], by their places in the listing, ascending: an array that the caller releases with the context's
 * memory, NULL for none. O(items). */
hbp_status hbp__deal_and_write(hbp_context *context, const hbp__dealing *dealing, uint32_t *sample,
                               uint16_t *brief, int64_t *start, int64_t *done, uint32_t **lost,
                               int64_t *losses);

/* Adds strays to written packs, in the order given behind what a pack holds: the packs of fills->count, those
 * past `packs` being new. start [packs + 1] becomes start [fills->count + 1] in `moved`. O(samples). */
hbp_status hbp__write_strays(hbp_context *context, const hbp__dealing *dealing, const hbp__stray *stray,
                             int64_t strays, int64_t packs, uint32_t *sample, uint16_t *brief,
                             const int64_t *start, int64_t *moved);

/* Writes an item's samples at `at`, and their length; returns how many. */
static inline int64_t hbp__write_item(const hbp__items *items, int64_t item, uint32_t *sample,
                                      uint16_t *brief, int64_t at)
{
    if (brief)
        brief[at] = items->size[item] <= UINT16_MAX ? (uint16_t)items->size[item] : 0;
    return hbp__items_write(items, item, sample + at);
}

#endif
