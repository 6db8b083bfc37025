/* Deals a group's own items bin by bin, before any of them is written: what each pack holds, and which items
 * found no pack. For a group whose packs get nothing from shorter ones. */
#ifndef HBP_PACK_BIN_DEALER_H
#define HBP_PACK_BIN_DEALER_H

#include <stdint.h>

#include "base/context.h"
#include "data/packs/items.h"
#include "data/packs/packs.h"
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
    double token_ns;              /* what a pack takes, as in hbp__fills */
    double square_ns;
} hbp__dealing;

/* How it was dealt. A run is alike when its items are equal, one for every pack. Runs that are alike and
 * follow one another in a bin share their places; a bin of nothing else, in empty packs, has none: its packs
 * come in their order. */
typedef struct hbp__dealt {
    hbp__memory memory;
    uint8_t *is_alike;    /* [runs with a bin]; scratch, as the next */
    int64_t *place_start; /* [bins + 1] into pack_of */
    int64_t places;
    int64_t room;      /* places allocated */
    uint32_t *pack_of; /* [places] the pack of the bin, counted from its first, or HBP__NO_PACK; width of them
                          for every run but those that share */
    uint16_t *brief;   /* [places] the size of the item, where its run is not alike; 0: past 65535 */
    int64_t losses;
    int64_t losses_room;
    uint32_t *lost; /* [losses] places in the listing of items without a pack, ascending */
} hbp__dealt;

/* Deals all runs (deal.h) to the packs of `fills`, bins x width of them and untimed, whose loads and members
 * it sets. Close in any case. O(runs + packs), and for runs that are not alike O(items). HBP_E_NO_MEMORY,
 * HBP_E_CANCELLED. */
hbp_status hbp__deal_bins(hbp_context *context, const hbp__dealing *dealing, hbp__fills *fills,
                          hbp__dealt *dealt);
void hbp__dealt_close(hbp__dealt *dealt);

#endif
