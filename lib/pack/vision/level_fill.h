/* Packs of several levels under two budgets: what each level is for and holds. */
#ifndef HBP_PACK_LEVEL_FILL_H
#define HBP_PACK_LEVEL_FILL_H

#include "base/context.h"
#include "base/rng.h"
#include "data/packs/groups.h"
#include "solve/vector/vectors.h"

/* Packs of one group. */
typedef struct hbp__vector_level {
    int64_t largest; /* tokens of an item; a longer one is of a level above */
    int64_t tokens;  /* of a pack */
    int64_t vision;  /* of a pack, and so of an item */
    int64_t width;   /* packs of a micro-batch */
} hbp__vector_level;

/* Levels, the shortest packs first; the last holds every item. */
typedef struct hbp__vector_levels {
    int64_t count; /* 1..HBP_MAX_GROUPS */
    hbp__vector_level level[HBP_MAX_GROUPS];
} hbp__vector_levels;

/* What filling gives: packs numbered level by level, the last level first. */
typedef struct hbp__level_packing {
    int64_t packs[HBP_MAX_GROUPS]; /* of each level */
    int64_t bound[HBP_MAX_GROUPS]; /* on the packs that hold a level's own items */
    uint32_t *pack_of;             /* [items] */
} hbp__level_packing;

/* Fills packs of the last level with the items that no other holds (hbp__vector_pack), their gaps, and the
 * places that they leave in a last micro-batch, with items of the levels below, and so on down. The
 * capacities of `items` (a: vision units, b: tokens) are not read; its max_weight is a pack's of any level.
 * packing->pack_of [items] is written. O(levels n log n) for n items at effort 1. */
hbp_status hbp__level_fill(hbp_context *context, const hbp__vectors *items, const hbp__vector_levels *levels,
                           int32_t effort, hbp__rng *rng, hbp__level_packing *packing);

#endif
