#include "pack/score.h"

#include "base/checked.h"
#include "base/sort.h"

hbp_status hbp__packs_score(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                            double step_ns, int64_t *ns)
{
    const hbp__memory *memory = &context->memory;
    uint64_t rows = (uint64_t)packs->count;
    int64_t *time = hbp__new(memory, rows, sizeof *time);
    uint32_t *order = hbp__new(memory, rows, sizeof *order);
    hbp_status status = time && order ? HBP_OK : hbp__fail_memory(context, "the score of packs");
    *ns = 0;
    for (int64_t g = 0; g < groups->count && status == HBP_OK; g++) {
        int64_t count = 0;
        status = hbp__tick(context, "score", g, groups->count);
        for (int64_t p = 0; p < packs->count; p++) {
            if (packs->group[p] != g)
                continue;
            order[count++] = (uint32_t)p;
            time[p] = hbp__round_i64(groups->token_ns[g] * (double)packs->padded[p] +
                                     groups->square_ns[g] * (double)packs->squares[p] + groups->fixed_ns[g]);
        }
        if (status == HBP_OK && !hbp__sort_by_i64(memory, time, order, count))
            status = hbp__fail_memory(context, "the score of packs");
        for (int64_t i = count - 1; i >= 0 && status == HBP_OK; i -= groups->packs[g])
            *ns = hbp__add_saturating(*ns, time[order[i]]);
        int64_t micro_batches = hbp__ceil_div(count, groups->packs[g]);
        int64_t steps = hbp__ceil_div(micro_batches, groups->micro_batches[g]);
        *ns = hbp__add_saturating(*ns, hbp__mul_saturating(steps, hbp__round_i64(step_ns)));
    }
    hbp__delete(memory, time);
    hbp__delete(memory, order);
    return status;
}
