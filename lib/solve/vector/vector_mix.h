/* Patterns of classes made alike: where one size takes few values, packs that hold the same numbers of each
 * are treated as one. */
#ifndef HBP_SOLVE_VECTOR_MIX_H
#define HBP_SOLVE_VECTOR_MIX_H

#include "solve/packing/patterns.h"

/* The most classes. */
#define HBP__MIX_CLASSES 64

/* Sizes of a class's items: the first is the same for all, the second on average. */
typedef struct hbp__mix_class {
    int64_t first;
    int64_t second;
} hbp__mix_class;

typedef struct hbp__mix_room {
    int64_t first, second;
} hbp__mix_room;

/* Rewrites `patterns` over these classes by exchanges of up to three items (of any number, where they are all
 * of one class) between two patterns, so that packs become alike in both sizes; no pack is taken past
 * room.first or grows in number. At most *work comparisons are made; it counts down. */
hbp_status hbp__mix_even(hbp_context *context, const hbp__mix_class *classes, int64_t count,
                         hbp__mix_room room, int64_t *work, hbp__patterns *patterns);

#endif
