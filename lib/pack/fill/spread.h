/* Spreads runs of like items over bins of packs (the micro-batches-to-be), so that every pack of every bin
 * comes out with about the same load. The unit is a run: `width` consecutive items of a descending list, one
 * for each pack of a bin; a list of n items is n / width runs, which is why packing costs little more than
 * sorting. */
#ifndef HBP_PACK_SPREAD_H
#define HBP_PACK_SPREAD_H

#include <stdint.h>

#include "base/context.h"

/* Not placed. */
#define HBP__NO_BIN UINT32_MAX

/* `count` items in descending order of size: those that `item` [count] names, or the ones below `top`. */
typedef struct hbp__listing {
    const uint32_t *size; /* of all items, by index */
    const uint32_t *item; /* NULL: the k-th is top - 1 - k */
    int64_t top;
    int64_t count;
} hbp__listing;

static inline int64_t hbp__listing_item(const hbp__listing *listing, int64_t k)
{
    return listing->item ? listing->item[k] : listing->top - 1 - k;
}

static inline uint32_t hbp__listing_size(const hbp__listing *listing, int64_t k)
{
    return listing->size[hbp__listing_item(listing, k)];
}

typedef struct hbp__bins {
    hbp_context *context;
    int64_t count;
    int64_t width;    /* packs of a bin */
    int64_t capacity; /* tokens of a pack */
    int64_t *gap;     /* [count] free tokens over all packs of the bin */
    int64_t *room;    /* [count] items that each pack may still take */
    /* During a spread bins of the same gap and room that follow one another are a range, and gap and room are
     * its own at its first bin. */
    int64_t ranges;
    uint64_t *heap; /* [count] in one number the gap, 0 where packs are full of items, and below it the first
                       bin, counted from the last: the largest gap first, then the lowest bin */
    int first_bits; /* how many of its bits are the bin's */
    uint32_t *end;  /* [count] of the range, at its first bin */
} hbp__bins;

/* Packs of a bin, of at least `least` in all: the `packs` of a micro-batch, doubled until they are
 * HBP__FILL_MIN_WIDTH while rounding up to whole bins still adds little. Where a micro-batch is one pack, the
 * width from that up to twice it which adds least; a narrower one, which takes longer, only where that adds
 * more than a HBP__FILL_MOST_LOST-th. */
int64_t hbp__bin_width(int64_t packs, int64_t least);

/* `count` bins of `width` packs of `capacity` tokens and at most `max_items` items each; they are scratch.
 * HBP_E_NO_MEMORY. */
hbp_status hbp__bins_open(hbp_context *context, int64_t count, int64_t width, int64_t capacity,
                          int64_t max_items, hbp__bins *bins);

/* Places the runs, longest first; bin_of[run] gets the bin or HBP__NO_BIN, *lost_tokens the tokens of those
 * without one. Worst fit decreasing: each run goes to the bin with the largest gap if its longest item fits
 * a pack there, so that all bins get a share of every length. The last runs, a TAIL-th of the room, go best
 * fit instead, so that bins are full to the token. Ties go to the lower bin. HBP_E_NO_MEMORY.
 * O(items + runs + pieces log pieces): bins of one gap that follow one another, and runs of one length, take
 * each other together, and a piece is as many as do; at most one for each run. */
hbp_status hbp__bins_spread(hbp__bins *bins, const hbp__listing *listing, uint32_t *bin_of,
                            int64_t *lost_tokens);

#endif
