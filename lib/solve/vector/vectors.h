/* Two-dimensional vector packing: items of two sizes into the fewest packs of two capacities, all of them
 * balanced. */
#ifndef HBP_SOLVE_VECTORS_H
#define HBP_SOLVE_VECTORS_H

#include <stdint.h>

#include "base/context.h"
#include "base/rng.h"

/* What is to be packed. No item is larger than a pack, in either size or in weight. */
typedef struct hbp__vectors {
    int64_t count;          /* < 2^32 - 1 */
    const uint32_t *a;      /* [count] first size */
    const uint32_t *b;      /* [count] second size */
    const uint32_t *weight; /* [count] what an item takes of max_weight, > 0; NULL: 1 */
    int64_t capacity_a;     /* of a pack, in 1..INT32_MAX */
    int64_t capacity_b;
    int64_t max_weight; /* INT64_MAX: no cap */
} hbp__vectors;

/* What a pack holds. */
typedef struct hbp__vector_load {
    int64_t a, b, weight;
} hbp__vector_load;

/* Which pack holds which item. */
typedef struct hbp__vector_packing {
    int64_t packs;
    uint32_t *pack_of; /* [count] */
} hbp__vector_packing;

static inline int64_t hbp__vector_weight(const hbp__vectors *vectors, int64_t item)
{
    return vectors->weight ? vectors->weight[item] : 1;
}

/* Both sizes in one unit, so that they can be compared and added: size times the factor, then without the
 * last `shift` bits; a capacity becomes about 2^20. */
typedef struct hbp__vector_scale {
    int64_t a, b;
    int32_t shift;
} hbp__vector_scale;

#define HBP__VECTOR_FULL (INT64_C(1) << 20)

static inline hbp__vector_scale hbp__vector_scale_of(const hbp__vectors *vectors)
{
    int64_t most = vectors->capacity_a > vectors->capacity_b ? vectors->capacity_a : vectors->capacity_b;
    hbp__vector_scale scale = {0, 0, 0};
    if (most < HBP__VECTOR_FULL)
        most = HBP__VECTOR_FULL;
    while (most >> scale.shift > HBP__VECTOR_FULL)
        scale.shift++;
    scale.a = most / vectors->capacity_a;
    scale.b = most / vectors->capacity_b;
    return scale;
}

/* Packs all items. `rng` draws which of equal items go where. Effort 1..9 spends growing,
 * counted work; packing->pack_of [count] is written, *bound gets a lower bound on the packs. O(n log n) for n
 * items at effort 1. */
hbp_status hbp__vector_pack(hbp_context *context, const hbp__vectors *vectors, int32_t effort, hbp__rng *rng,
                            hbp__vector_packing *packing, int64_t *bound);

/* An item that no pack holds. */
#define HBP__NO_PACK UINT32_MAX

/* Puts items into the room that packs of these loads have left, largest first; pack_of [count] gets the pack
 * of each, or HBP__NO_PACK. An item may miss the last pack that would just hold it. O(count (64 + log
 * count)). */
hbp_status hbp__vector_fill_gaps(hbp_context *context, const hbp__vectors *vectors,
                                 const hbp__vector_load *load, int64_t packs, uint32_t *pack_of);

/* The best of: hbp__pack_bound of each size alone; total weight over max_weight; and, for either size and
 * every threshold x above half of its capacity C, the number of items of at least x, of which no two share a
 * pack, plus the packs that the items of more than C - x and less than x need, none of which shares a pack
 * with one of the former: their other size over its capacity, and the number of them with more than half of
 * it (docs: vision). No packing has fewer packs. O(count) but for the sort. */
hbp_status hbp__vector_bound(hbp_context *context, const hbp__vectors *vectors, int64_t *bound);

/* Exchanges items between packs, or moves them, in at most `rounds` rounds: packs are sorted by one size, or
 * the other, or their sum or difference; the first meets the last, the second the last but one, ...; and each
 * pair makes the one exchange that leaves the two best balanced. What a pack holds past a capacity counts
 * more than any balance, so that packs given past their capacities come within them where exchanges can bring
 * that about; no exchange makes it worse, or takes a pack past max_weight. Ends early when a few rounds bring
 * nothing. *over gets the number of packs that are left past a capacity or max_weight. O(rounds packs k^2)
 * for k items in a pack, at most 12 of which are looked at. */
hbp_status hbp__vector_balance(hbp_context *context, const hbp__vectors *vectors,
                               hbp__vector_packing *packing, int64_t rounds, int64_t *over);

#endif
