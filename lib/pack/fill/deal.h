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
    int64_t *time_ns; /* [count] */
    int64_t *members; /* [count] samples */
} hbp__fills;

/* `count` empty packs. Close in any case. */
hbp_status hbp__fills_open(hbp_context *context, int64_t count, int64_t capacity, int64_t max_members,
                           double token_ns, double square_ns, hbp__fills *fills);
void hbp__fills_close(hbp__fills *fills);

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

/* Deals run `run` of `listing` to the `width` packs from `first_pack`; `order` [width] holds them ascending
 * in time, also for the next run of the bin. pack_of[k] gets the pack of the listing's k-th item, or
 * HBP__NO_PACK. Returns how many items were not dealt. O(width) for a run of equal items that all fit, else
 * O(width^2) at worst. */
int64_t hbp__deal_run(hbp__fills *fills, const hbp__items *items, const hbp__listing *listing, int64_t run,
                      int64_t width, uint32_t *order, uint32_t *pack_of);

#endif
