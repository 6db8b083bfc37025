/* Filling packs from the histogram: items of one size are a class, groups are packed as patterns of classes,
 * and only at the end are items drawn for the patterns. */
#ifndef HBP_PACK_CLASS_FILL_H
#define HBP_PACK_CLASS_FILL_H

#include "data/packs/groups.h"
#include "data/packs/items.h"
#include "data/packs/packs.h"
#include "solve/packing/patterns.h"

/* Where a class's items are drawn from next. */
typedef struct hbp__class_draw {
    uint32_t next; /* item to name, an index into the order */
    uint32_t bin;  /* of the lengths that it is in, where nothing is linked */
} hbp__class_draw;

typedef struct hbp__class_fill {
    hbp_context *context;
    const hbp_groups *groups;
    hbp__items items; /* without `size` where nothing is linked: classes are bins of the lengths then */
    uint32_t *order;  /* [items] items by class; NULL: they are in that order already */
    hbp__classes classes;
    int64_t *size, *number, *weight; /* [classes]; number: items not packed yet */
    hbp__class_draw *draw;           /* [classes] */
    int64_t max_samples;
    int64_t capacity[HBP_MAX_GROUPS];       /* of a pack */
    int64_t largest[HBP_MAX_GROUPS];        /* item that belongs to the group */
    int64_t from[HBP_MAX_GROUPS + 1];       /* first class of a group */
    int64_t bound[HBP_MAX_GROUPS];          /* on the packs that a group's own items need */
    hbp__patterns patterns[HBP_MAX_GROUPS]; /* of a group's packs, over all classes */
} hbp__class_fill;

/* Classes of all items, none packed. `options` has no zeros left but in max_samples. HBP_E_INFEASIBLE names a
 * sample that fits no pack. O(samples). The columns are scratch; close releases the items
 * and the patterns, also after a failed open. */
hbp_status hbp__class_fill_open(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                                const hbp_fill_options *options, hbp__class_fill *fill);
void hbp__class_fill_close(hbp__class_fill *fill);

/* The classes of group `g`'s own, numbered from 0, and the room of its packs. */
hbp__classes hbp__class_fill_own(const hbp__class_fill *fill, int64_t g);
hbp__room hbp__class_fill_room(const hbp__class_fill *fill, int64_t g);

/* Counts the classes of group g's patterns from the first of all, not from the group's first. */
void hbp__class_fill_shift(hbp__class_fill *fill, int64_t g);

/* Packs with samples drawn for the patterns, longest group first; measured but for their own padding where
 * nothing is linked and there is no second size. O(samples). */
hbp_status hbp__class_fill_name(hbp__class_fill *fill, hbp_packs **out);

#endif
