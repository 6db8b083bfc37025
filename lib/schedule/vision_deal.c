/* Steps that each hold their share of every kind of micro-batch. */
#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/vision.h"

/* Fractions of the sorted things are compared in units of 1 / 2^40. */
#define WHOLE (INT64_C(1) << 40)

hbp_status hbp__vision_deal(hbp_context *context, int64_t first, int64_t count, int64_t size, hbp__rng *rng,
                            uint32_t *rows)
{
    int64_t mark = hbp__scratch_mark(context);
    uint32_t *slot = hbp__take(context, (uint64_t)count, sizeof *slot);
    int64_t *due = hbp__take(context, (uint64_t)count, sizeof *due);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    /* Slot j of a step of c slots wants the thing at the fraction (j + 1/2) / c. Full steps want the same,
     * and a draw says which comes first. */
    for (int64_t i = 0; i < count; i++) {
        int64_t step = i / size, mine = hbp__min_i64(size, count - step * size);
        slot[i] = (uint32_t)i;
        due[i] = (int64_t)((double)(2 * (i % size) + 1) / (double)(2 * mine) * (double)WHOLE);
    }
    HBP__TRY(hbp__shuffle(context, rng, slot, count));
    HBP__TRY(hbp__order_by_i64(context, due, slot, count, "the steps"));
    for (int64_t i = 0; i < count; i++)
        rows[slot[i]] = (uint32_t)(first + i);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
