/* Bin packing on integer sizes in pattern form: items of one size are a class, packs that hold the same items
 * are a pattern, so that a packing of 1e9 items takes no more room than the variety in it. */
#ifndef HBP_SOLVE_PATTERNS_H
#define HBP_SOLVE_PATTERNS_H

#include <stdint.h>

#include "base/context.h"

/* What is to be packed. An item takes `size` of a pack's capacity and `weight` of its cap on weight. */
typedef struct hbp__classes {
    int64_t count;
    const int64_t *size;   /* [count] ascending, > 0; equal sizes differ in weight */
    const int64_t *number; /* [count] items of the class, >= 0 */
    const int64_t *weight; /* [count] > 0; NULL: 1 */
} hbp__classes;

/* Room of a pack. */
typedef struct hbp__room {
    int64_t capacity;   /* <= INT32_MAX */
    int64_t max_weight; /* INT64_MAX: no cap */
} hbp__room;

/* A run of equal items in a pattern. */
typedef struct hbp__run {
    int32_t class_index;
    int32_t number; /* > 0 */
} hbp__run;

typedef struct hbp__patterns {
    hbp__memory memory;
    int64_t count;
    int64_t packs;    /* sum of times */
    int64_t *times;   /* [count] packs that hold the pattern, > 0 */
    int64_t *offsets; /* [count + 1] into run */
    hbp__run *run;    /* classes descending within a pattern */
    int64_t pattern_room;
    int64_t run_room;
} hbp__patterns;

/* Empty patterns; nothing is allocated before the first add. */
void hbp__patterns_open(hbp_context *context, hbp__patterns *patterns);
void hbp__patterns_close(hbp__patterns *patterns);

/* Forgets all patterns, keeps the room. */
void hbp__patterns_clear(hbp__patterns *patterns);

/* Appends a pattern of `runs` runs that `times` packs hold. Amortised O(runs). */
hbp_status hbp__patterns_add(hbp_context *context, hbp__patterns *patterns, int64_t times,
                             const hbp__run *run, int64_t runs);

/* The weight of an item of class c. */
static inline int64_t hbp__class_weight(const hbp__classes *classes, int64_t c)
{
    return classes->weight ? classes->weight[c] : 1;
}

/* The first class whose size is at least `size`; count when none is. O(log count). */
int64_t hbp__classes_from(const hbp__classes *classes, int64_t size);

/* HBP_E_INTERNAL unless the patterns hold `number[c]` items of every class c within the room of a pack.
 * O(runs). */
hbp_status hbp__patterns_check(hbp_context *context, const hbp__patterns *patterns,
                               const hbp__classes *classes, hbp__room room);

#endif
