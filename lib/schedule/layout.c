/* Ways to run given packs, and what each takes. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "schedule/mix.h"

void hbp__layout_close(hbp__layout *layout)
{
    hbp__steps_close(&layout->steps);
    if (layout->batches.memory.release)
        hbp__micro_batches_close(&layout->batches);
}

static int64_t slowest_of(const hbp__micro_batches *batches, int64_t m, const int64_t *ns, int64_t padding_ns)
{
    int64_t slowest = padding_ns;
    for (int64_t i = batches->first[m]; i < batches->first[m + 1]; i++)
        if (batches->place[i] != HBP__PADDING_PACK)
            slowest = hbp__max_i64(slowest, ns[batches->place[i]]);
    return slowest;
}

static hbp_status sum_slowest(hbp_context *context, const hbp__micro_batches *batches, const int64_t *ns,
                              int64_t padding_ns, int64_t *sum)
{
    *sum = 0;
    for (int64_t m = 0; m < batches->count; m++) {
        HBP__TRY(hbp__tick_row(context, "layout", m, batches->count));
        *sum = hbp__add_saturating(*sum, slowest_of(batches, m, ns, padding_ns));
    }
    return HBP_OK;
}

/* Prices the steps, in the integers that plans record. */
static hbp_status price_layout(hbp_context *context, const hbp_packs *packs, const hbp_cost *cost,
                               const int64_t *ns, hbp__layout *layout)
{
    const hbp__steps *steps = &layout->steps;
    const hbp__micro_batches *batches = &layout->batches;
    int64_t padding_ns = hbp__round_i64(cost->terms.pack_ns);
    layout->ns = hbp__mul_saturating(steps->count, hbp__round_i64(cost->terms.step_ns));
    layout->tokens = 0;
    HBP__TRY(sum_slowest(context, batches, ns, padding_ns, &layout->before_ns));
    for (int64_t i = 0; i < steps->first[steps->count]; i++) {
        HBP__TRY(hbp__tick_row(context, "layout", i, steps->first[steps->count]));
        uint32_t m = steps->micro_batch[i];
        int64_t here = m == HBP__PADDING_PACK ? padding_ns : slowest_of(batches, m, ns, padding_ns);
        layout->ns = hbp__add_saturating(layout->ns, here);
        for (int64_t j = m == HBP__PADDING_PACK ? 0 : batches->first[m];
             m != HBP__PADDING_PACK && j < batches->first[m + 1]; j++)
            if (batches->place[j] != HBP__PADDING_PACK)
                layout->tokens += packs->tokens[batches->place[j]];
    }
    return HBP_OK;
}

hbp_status hbp__layout_open_pure(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                 const hbp_cost *cost, const hbp_balance_options *options, int one_step,
                                 hbp__layout *layout)
{
    memset(layout, 0, sizeof *layout);
    int64_t mark = hbp__scratch_mark(context);
    int64_t *ns = hbp__take(context, (uint64_t)packs->count, sizeof *ns);
    HBP__TRY(hbp__scratch_check(context, "the times of packs"));
    HBP__TRY(hbp__micro_batches_open(context, packs, groups, cost, options, &layout->batches));
    HBP__TRY(hbp__steps_open(context, &layout->batches, groups, options, one_step, &layout->steps));
    HBP__TRY(hbp__mix_times(context, packs, groups, cost, ns));
    HBP__TRY(price_layout(context, packs, cost, ns, layout));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Replaces the cut into groups by the mixed one, unless that takes longer. */
static hbp_status cut_mixed(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                            const hbp_cost *cost, const int64_t *ns, hbp__micro_batches *batches)
{
    int64_t padding_ns = hbp__round_i64(cost->terms.pack_ns);
    if (groups->count == 1 || !hbp__mix_is_possible(groups))
        return HBP_OK;
    hbp__micro_batches other;
    int64_t other_ns = 0, own_ns = 0;
    hbp_status status = hbp__mix_open(context, packs, groups, ns, batches, &other);
    if (status >= 0)
        status = sum_slowest(context, &other, ns, padding_ns, &other_ns);
    if (status >= 0)
        status = sum_slowest(context, batches, ns, padding_ns, &own_ns);
    if (status >= 0 && other_ns <= own_ns) {
        hbp__micro_batches slower = *batches;
        *batches = other;
        other = slower;
    }
    hbp__micro_batches_close(&other);
    return status;
}

hbp_status hbp__layout_open_mixed(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                  const hbp_cost *cost, const hbp_balance_options *options, int one_step,
                                  hbp__layout *layout)
{
    memset(layout, 0, sizeof *layout);
    int64_t tokens_per_step = options->tokens_per_step ? options->tokens_per_step : groups->tokens_per_step;
    int64_t mark = hbp__scratch_mark(context);
    int64_t *ns = hbp__take(context, (uint64_t)packs->count, sizeof *ns);
    HBP__TRY(hbp__scratch_check(context, "the times of packs"));
    HBP__TRY(hbp__mix_times(context, packs, groups, cost, ns));
    HBP__TRY(hbp__micro_batches_open(context, packs, groups, cost, options, &layout->batches));
    HBP__TRY(cut_mixed(context, packs, groups, cost, ns, &layout->batches));
    HBP__TRY(hbp__mix_steps_open(context, packs, &layout->batches, tokens_per_step, options, one_step,
                                 &layout->steps));
    HBP__TRY(price_layout(context, packs, cost, ns, layout));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

int hbp__layout_is_faster(const hbp__layout *a, const hbp__layout *b)
{
    return a->tokens == b->tokens ? a->ns < b->ns : a->before_ns < b->before_ns;
}
