/* What the samples of a pack, and the pack itself, are padded to: multiples that may grow with the pack's SP
 * degree, since context parallelism cuts each sample into equal parts for the ranks. */
#ifndef HBP_DATA_PADDING_H
#define HBP_DATA_PADDING_H

#include <stdint.h>

#include "base/checked.h"
#include "data/plan/plan.h"

/* Padding as a plan records it. */
typedef struct hbp__padding {
    int64_t sequence_multiple;
    int64_t pack_multiple;
    int64_t sequence_multiple_per_sp; /* 0: none, as the next */
    int64_t pack_multiple_per_sp;
} hbp__padding;

/* Stands for every larger multiple: more than any pack holds, and sums of a few stay far below 2^63. */
#define HBP__MOST_MULTIPLE (INT64_C(1) << 40)

/* The least common multiple of `plain` and, for `sp` > 1 ranks, `per_sp` x `sp` (per_sp 0: none). O(log). */
static inline int64_t hbp__padding_multiple(int64_t plain, int64_t per_sp, int64_t sp)
{
    if (sp <= 1 || per_sp <= 0)
        return plain;
    int64_t all = hbp__min_i64(hbp__mul_saturating(per_sp, sp), HBP__MOST_MULTIPLE), a = plain, b = all;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return hbp__min_i64(hbp__mul_saturating(plain / a, all), HBP__MOST_MULTIPLE);
}

/* What the samples of a pack of `plan` on `sp` ranks are padded to, and then their sum. */
static inline int64_t hbp__plan_sequence_multiple(const hbp_plan *plan, int64_t sp)
{
    return hbp__padding_multiple(plan->sequence_multiple, plan->sequence_multiple_per_sp, sp);
}

static inline int64_t hbp__plan_pack_multiple(const hbp_plan *plan, int64_t sp)
{
    return hbp__padding_multiple(plan->pack_multiple, plan->pack_multiple_per_sp, sp);
}

#endif
