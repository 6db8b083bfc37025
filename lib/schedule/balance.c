/* hbp_balance_attention: checks the options and what belongs together, then micro-batches, steps, plan. */
#include "schedule/balance.h"

#include "base/options.h"
#include "base/scratch.h"

static void fill_defaults(hbp_balance_options *options)
{
    if (!options->micro_batch_multiple)
        options->micro_batch_multiple = 1;
}

/* Packs and cost must belong to the groups. */
static hbp_status check_match(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                              const hbp_cost *cost)
{
    if (groups->ranks != cost->terms.ranks)
        return hbp__fail(context, HBP_E_INVALID, "the groups are for %d ranks, the cost for %d",
                         (int)groups->ranks, (int)cost->terms.ranks);
    for (int64_t g = 0; g < groups->count; g++)
        if (hbp__cost_row(cost, groups->sp[g]) < 0 || groups->recompute[g] > cost->terms.layers)
            return hbp__fail(context, HBP_E_INVALID,
                             "group %lld runs at SP %d with %d layers recomputed, "
                             "which the cost does not allow",
                             (long long)g, (int)groups->sp[g], (int)groups->recompute[g]);
    for (int64_t p = 0; p < packs->count; p++)
        if (packs->group[p] >= groups->count || packs->padded[p] > groups->pack_length[packs->group[p]])
            return hbp__fail(context, HBP_E_INVALID,
                             "pack %lld of group %d with %lld tokens is not of these "
                             "groups",
                             (long long)p, (int)packs->group[p], (long long)packs->padded[p]);
    return HBP_OK;
}

hbp_status hbp__balance_check(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                              const hbp_cost *cost, hbp_balance_options *options)
{
    fill_defaults(options);
    return check_match(context, packs, groups, cost);
}

hbp_status hbp__balance(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                        const hbp_cost *cost, const hbp_balance_options *options, int one_step,
                        hbp_plan **out)
{
    hbp_balance_options all = *options;
    HBP__TRY(hbp__balance_check(context, packs, groups, cost, &all));
    hbp__micro_batches batches;
    hbp__steps steps = {0};
    hbp_status status = hbp__micro_batches_open(context, packs, groups, cost, &all, &batches);
    if (status >= 0)
        status = hbp__steps_open(context, &batches, groups, &all, one_step, &steps);
    if (status >= 0)
        status = hbp__assemble(context, packs, groups, cost, &all, &batches, &steps, out);
    hbp__steps_close(&steps);
    hbp__micro_batches_close(&batches);
    return status;
}

hbp_status hbp_balance_attention(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                                 const hbp_cost *cost, const hbp_balance_options *options, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, packs, "packs"));
    HBP__TRY(hbp__require(context, groups, "groups"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    hbp_balance_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_balance_options"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__balance(context, packs, groups, cost, &all, 0, out));
}
