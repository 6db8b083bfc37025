/* The sum of slowest packs, each group sorted by time. */
#include "pack/fill/score.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

/* The packs of group `g`, listed in `order` [*count] by their time [packs]. */
static hbp_status sort_group(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                             int64_t g, const double *vision_ns, int64_t *time, uint32_t *order,
                             int64_t *count)
{
    *count = 0;
    for (int64_t p = 0; p < packs->count; p++) {
        HBP__TRY(hbp__tick_row(context, "score", p, packs->count));
        if (packs->group[p] != g)
            continue;
        order[(*count)++] = (uint32_t)p;
        double pack_ns = groups->token_ns[g] * (double)packs->padded[p] +
                         groups->square_ns[g] * (double)packs->squares[p] + groups->fixed_ns[g];
        if (vision_ns && packs->vision)
            pack_ns += vision_ns[g] * (double)packs->vision[p];
        time[p] = hbp__round_i64(pack_ns);
    }
    /* else no pack waits for another */
    return groups->packs[g] > 1 ? hbp__order_by_i64(context, time, order, *count, "the score of packs")
                                : HBP_OK;
}

hbp_status hbp__packs_score(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                            const double *vision_ns, double step_ns, int64_t *ns, int64_t *least_ns)
{
    uint64_t rows = (uint64_t)packs->count;
    int64_t mark = hbp__scratch_mark(context), least = 0;
    int64_t *time = hbp__take(context, rows, sizeof *time);
    uint32_t *order = hbp__take(context, rows, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the score of packs"));
    *ns = 0;
    for (int64_t g = 0; g < groups->count; g++) {
        int64_t count, group_ns = 0;
        HBP__TRY(hbp__tick(context, "score", g, groups->count));
        HBP__TRY(sort_group(context, packs, groups, g, vision_ns, time, order, &count));
        for (int64_t i = count - 1; i >= 0; i -= groups->packs[g]) {
            HBP__TRY(hbp__tick_row(context, "score", i, count));
            group_ns = hbp__add_saturating(group_ns, time[order[i]]);
        }
        const int64_t micro_batches = hbp__ceil_div(count, groups->packs[g]);
        const int64_t fewest = hbp__min_i64(micro_batches, hbp__ceil_div(packs->bound[g], groups->packs[g]));
        const int64_t steps = hbp__ceil_div(micro_batches, groups->micro_batches[g]);
        const int64_t fewer_steps = steps - hbp__ceil_div(fewest, groups->micro_batches[g]);
        double saving =
            (double)(micro_batches - fewest) * groups->fixed_ns[g] + (double)fewer_steps * step_ns;
        if (fewest < micro_batches)
            saving += (double)group_ns / (double)micro_batches - groups->fixed_ns[g];
        group_ns = hbp__add_saturating(group_ns, hbp__mul_saturating(steps, hbp__round_i64(step_ns)));
        *ns = hbp__add_saturating(*ns, group_ns);
        least = hbp__add_saturating(least, group_ns - hbp__round_i64(saving));
    }
    if (least_ns)
        *least_ns = least;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
