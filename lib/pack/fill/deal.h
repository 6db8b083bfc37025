/* Deals the runs of one bin to its packs, longest run first: each pack gets one item of a run, the longest
 * item goes to the pack with the least time so far, and no pack passes its capacity. */
#ifndef HBP_PACK_DEAL_H
#define HBP_PACK_DEAL_H

#include <stdint.h>

#include "base/memory.h"
#include "data/packs/items.h"
#include "pack/fill/spread.h"

/* Not dealt. */
#define HBP__NO_PACK UINT32_MAX

/* Packs being filled, and what they hold so far. */
typedef struct hbp__fills {
    hbp__memory memory;
    int64_t count;
    int64_t room_for;    /* rows allocated */
    int64_t capacity;    /* tokens of a pack */
    int64_t max_members; /* samples of a pack */
    double token_ns;     /* time of a pack: token_ns S + square_ns Q */
    double square_ns;
    int64_t *load;    /* [count] tokens */
    int64_t *time_ns; /* [count]; NULL: not kept */
    int64_t *members; /* [count] samples */
} hbp__fills;

/* `count` empty packs. Close in any case. */
hbp_status hbp__fills_open(hbp_context *context, int64_t count, int64_t capacity, int64_t max_members,
                           double token_ns, double square_ns, hbp__fills *fills);
void hbp__fills_close(hbp__fills *fills);

/* The same without time_ns, and not set to empty: for packs that are dealt elsewhere. */
hbp_status hbp__fills_open_untimed(hbp_context *context, int64_t count, int64_t capacity, int64_t max_members,
                                   hbp__fills *fills);

/* One more empty pack; 0 when memory is short. */
int hbp__fills_grow(hbp__fills *fills);

/* Whether item `item` fits pack `pack`; and puts it there. */
static inline int hbp__fills_fits(const hbp__fills *fills, const hbp__items *items, int64_t pack,
                                  int64_t item)
{
    return fills->load[pack] + items->size[item] <= fills->capacity &&
           fills->members[pack] + hbp__items_members(items, item) <= fills->max_members;
}

void hbp__fills_put(hbp__fills *fills, const hbp__items *items, int64_t pack, int64_t item);

/* A run of a listing, and the sizes of its first and last item: what tells whether it is alike, without a
 * look at the items. */
typedef struct hbp__sized_run {
    uint32_t run;
    uint32_t longest;
    uint32_t shortest;
} hbp__sized_run;

static inline hbp__sized_run hbp__size_run(const hbp__listing *listing, int64_t width, int64_t run)
{
    const int64_t first = run * width, end = first + width;
    return (hbp__sized_run){(uint32_t)run, hbp__listing_size(listing, first),
                            hbp__listing_size(listing, (end < listing->count ? end : listing->count) - 1)};
}

/* The runs of one bin, one after the other. Runs of equal items that all packs have room for are counted, and
 * added to the packs when a run of others comes, or at the end. */
typedef struct hbp__bin_deal {
    hbp__fills *fills;
    const hbp__items *items;
    const hbp__listing *listing;
    int64_t width;
    uint32_t *order;   /* [width] packs, one after the other in number, ascending in time as of the last run
                          that was not alike */
    int64_t most_load; /* of the packs, with what is counted */
    int64_t most_members; /* likewise */
    int64_t load;         /* counted and not yet added to each pack */
    int64_t time_ns;
    int64_t members;
    int64_t since; /* steps since the last look at a request to cancel */
} hbp__bin_deal;

/* `order` [width] holds the bin's packs, ascending in time; it stays the caller's, and is kept so. */
void hbp__bin_deal_begin(hbp__fills *fills, const hbp__items *items, const hbp__listing *listing,
                         int64_t width, uint32_t *order, hbp__bin_deal *deal);

/* Deals a bin of empty packs from first_pack on at once where every run of it is of equal items, one for each
 * pack, and all have room: item k of a run goes to the k-th pack, as one run after the other would; else
 * returns 0 and does nothing. O(runs + width). */
int hbp__bin_deal_alike(hbp__fills *fills, const hbp__items *items, const hbp__listing *listing,
                        int64_t width, int64_t first_pack, const hbp__sized_run *run, int64_t runs);

/* 1 when the next run is of equal items, one for each pack, that all have room for: deal->order then names
 * the packs of its items, and hbp__bin_deal_run leaves it as it is. O(1). */
int hbp__bin_deal_is_alike(const hbp__bin_deal *deal, hbp__sized_run run);

/* Deals a run of the listing: pack_of [width] gets the pack of each of its items, or HBP__NO_PACK; NULL for
 * one that is alike: nothing. *lost is how many items were not dealt. The fills are not up to date before the
 * end. O(width) for a run of equal items that all fit, else O(width^2) at worst. HBP_E_CANCELLED. */
hbp_status hbp__bin_deal_run(hbp_context *context, hbp__bin_deal *deal, hbp__sized_run run, uint32_t *pack_of,
                             int64_t *lost);
void hbp__bin_deal_end(hbp__bin_deal *deal);

#endif
