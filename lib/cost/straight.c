#include "cost/straight.h"

#include "base/scratch.h"
#include "data/plan/lockstep.h"

static hbp_cost straighten(const hbp_cost *cost, double compute, double traffic)
{
    hbp_cost straight = *cost;
    hbp_cost_terms *t = &straight.terms;
    t->ns_per_token *= compute;
    t->ns_per_token_squared *= compute;
    t->ns_per_vision *= compute;
    if (hbp__cost_hides(t))
        t->pack_ns -= (1 - traffic) * t->traffic_ns;
    t->traffic_ns = t->compute_overlap = t->least_compute_ns = 0;
    return straight;
}

hbp_cost hbp__cost_below(const hbp_cost *cost, int32_t index)
{
    const double share = (double)index / (HBP__STRAIGHT_BOUNDS - 1);
    return straighten(cost, 1 - share * cost->terms.compute_overlap, share);
}

hbp_cost hbp__cost_tried(const hbp_cost *cost, int32_t index)
{
    static const double left[HBP__STRAIGHT_TRIES] = {0, .1, .5, 1};
    return straighten(cost, 1, left[index]);
}

hbp_status hbp__cost_time_plan(hbp_context *context, const hbp_cost *cost, hbp_plan *plan)
{
    hbp__clock clock;
    const int64_t mark = hbp__scratch_mark(context), step_ns = hbp__round_i64(cost->terms.step_ns);
    HBP__TRY(hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &clock));
    for (int64_t p = 0; p < plan->packs; p++) {
        HBP__TRY(hbp__tick_row(context, "plan", p, plan->packs));
        const hbp__load load = {.tokens = plan->pack_padded_tokens[p],
                                .squares = (double)plan->pack_squares[p],
                                .vision = plan->pack_vision ? plan->pack_vision[p] : 0};
        plan->pack_ns[p] =
            hbp__cost_pack_ns(cost, hbp__cost_row(cost, plan->pack_sp[p]), plan->pack_recompute[p], load);
    }
    for (int64_t m = 0; m < plan->micro_batches; m++) {
        plan->micro_batch_ns[m] = 0;
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            plan->micro_batch_ns[m] = hbp__max_i64(plan->micro_batch_ns[m], plan->pack_ns[p]);
    }
    for (int64_t i = 0; i < plan->steps; i++) {
        plan->step_ns[i] = hbp__add_saturating(hbp__clock_step(&clock, plan, i), step_ns);
        if (plan->step_ns[i] == INT64_MAX)
            return hbp__fail(context, HBP_E_OVERFLOW, "step %lld takes over 2^63 - 1 ns", (long long)i);
    }
    hbp__scratch_release(context, mark);
    return hbp__plan_seal_long(context, plan);
}

hbp_status hbp__cost_keep_faster(hbp_context *context, const hbp_cost *cost, hbp_plan *plan, hbp_plan **best)
{
    const hbp_status status = hbp__cost_time_plan(context, cost, plan);
    if (status >= 0 && (!*best || hbp__plan_ns(plan) < hbp__plan_ns(*best))) {
        hbp_plan *slower = *best;
        *best = plan;
        plan = slower;
    }
    hbp_plan_free(plan);
    return status;
}
