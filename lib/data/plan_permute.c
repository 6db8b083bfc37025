/* The same steps with their micro-batches in another order. */
#include <string.h>

#include "data/plan.h"

/* Rows of each table as they are copied: micro-batch by micro-batch, its packs and samples with it. */
typedef struct span {
    int64_t from, to, rows;
} span;

static void copy_rows(hbp_plan *to, const hbp_plan *from, span micro_batches, span packs, span samples)
{
    const span steps = {0, 0, 0}, dropped = {0, 0, 0};
#define COPY(name, type, table, extra)                                                                       \
    if (to->name && !(extra) && table.rows)                                                                  \
        memcpy(to->name + table.to, from->name + table.from, (size_t)table.rows * sizeof(type));
    HBP__PLAN_COLUMNS(COPY)
#undef COPY
}

hbp_plan *hbp__plan_permute(const hbp__memory *memory, const hbp_plan *plan, const int32_t *order)
{
    hbp_plan *result = hbp__plan_copy(memory, plan);
    if (!result)
        return NULL;
    int64_t pack = 0, sample = 0;
    for (int64_t m = 0; m < plan->micro_batches; m++) {
        int64_t first = plan->micro_batch_offsets[order[m]];
        span packs = {first, pack, plan->micro_batch_offsets[order[m] + 1] - first};
        span samples = {plan->pack_offsets[first], sample,
                        plan->pack_offsets[first + packs.rows] - plan->pack_offsets[first]};
        copy_rows(result, plan, (span){order[m], m, 1}, packs, samples);
        for (int64_t p = 0; p < packs.rows; p++)
            result->pack_offsets[pack + p] = sample + plan->pack_offsets[first + p] - samples.from;
        result->micro_batch_offsets[m] = pack;
        pack += packs.rows;
        sample += samples.rows;
    }
    hbp__plan_seal(result);
    return result;
}
