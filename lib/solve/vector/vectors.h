/* Items of two sizes and packs of two capacities: what the two-dimensional packers share. */
#ifndef HBP_SOLVE_VECTORS_H
#define HBP_SOLVE_VECTORS_H

#include <stdint.h>

#include "base/context.h"

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

#endif
