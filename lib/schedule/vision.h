/* Micro-batches whose packs are alike in vision units, in tokens and in time at once, and steps that are each
 * a small copy of the epoch (OmniBal, section 3.2). */
#ifndef HBP_SCHEDULE_VISION_H
#define HBP_SCHEDULE_VISION_H

#include <stdint.h>

#include "base/context.h"
#include "base/rng.h"
#include "solve/imbalance.h"

/* What packs of a micro-batch should be alike in. */
enum { HBP__VISION, HBP__TOKENS, HBP__TIME, HBP__SIZES };

/* A pack and its sizes: vision units, padded tokens, predicted ns. */
typedef struct hbp__sized {
    int64_t size[HBP__SIZES];
    uint32_t pack;
} hbp__sized;

/* The whole of a micro-batch's time, in the unit of hbp__waste. */
#define HBP__WASTE_WHOLE (INT64_C(1) << 30)

/* hbp__imbalance of a micro-batch of `width` packs in one size; a padding pack has 0. An integer: the
 * quotient is exact to the last bit everywhere, and the product by a power of two changes no bit. */
static inline int64_t hbp__waste(int64_t most, int64_t sum, int64_t width)
{
    return (int64_t)(hbp__imbalance((double)most, (double)sum, (double)width) * (double)HBP__WASTE_WHOLE);
}

/* hbp__waste of all sizes together, over the micro-batches of `width` packs that follow each other in
 * `packs` [count]; the last may be incomplete. DistRatio of vision plus that of tokens is this /
 * HBP__WASTE_WHOLE / micro-batches. O(count). */
int64_t hbp__vision_waste(const hbp__sized *packs, int64_t count, int64_t width);

/* Puts `packs` [count] in an order in which every `width` neighbours are alike in all sizes; the last
 * micro-batch may be incomplete. Two parts: the best of many ways to cut the packs into strips by one size,
 * those by another, and to sort by the third; then exchanges. Which of equal packs goes where is a draw of
 * `rng`. O(count log(count)) and at most 64 exchanges tried a pack and round. */
hbp_status hbp__vision_order(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width,
                             hbp__rng *rng);

/* The first part. */
hbp_status hbp__vision_strips(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width);

/* The second: packs of two micro-batches alike in a sum change places while that lowers the waste of both
 * together; never raises it. */
hbp_status hbp__vision_exchange(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width);

#endif
