/* hbp_simulate: the replay of a whole plan, its steps and its bound. */
#include "hbp/plan.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "simulate/plan/bound.h"
#include "simulate/plan/metrics.h"
#include "simulate/plan/replay.h"

/* The bound for the plan's own rows of samples; 0 when one of them fits on no degree. */
static hbp_status bound_plan(hbp_context *context, const hbp__replay *r, int64_t tokens_per_step,
                             int64_t *bound_ns)
{
    int64_t steps = tokens_per_step ? hbp__ceil_div(r->tokens, tokens_per_step) : r->plan->steps;
    int64_t bins = 0, *length = NULL, *count = NULL;
    hbp_status status = hbp__count_lengths(context, r->plan, &bins, &length, &count);
    if (status >= 0 && bins)
        status = hbp__bound(context, r->cost, bins, length, count,
                            hbp__max_i64(1, r->plan->sequence_multiple), r->vision, steps, bound_ns);
    hbp__delete(&context->memory, length);
    hbp__delete(&context->memory, count);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(context);
    return status;
}

static hbp_status check_arguments(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost,
                                  const hbp_simulate_options *options)
{
    HBP__TRY(hbp__plan_check(context, plan));
    if (plan->ranks != cost->terms.ranks)
        return hbp__fail(context, HBP_E_INVALID, "the plan is for %d ranks, the cost for %d",
                         (int)plan->ranks, (int)cost->terms.ranks);
    if (options->tokens_per_step < 0)
        return hbp__fail(context, HBP_E_INVALID, "tokens_per_step is %lld; it must not be negative",
                         (long long)options->tokens_per_step);
    return HBP_OK;
}

static hbp_status simulate_plan(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost,
                                const hbp_simulate_options *options, hbp_report *report)
{
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__require(context, report, "report"));
    hbp_simulate_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_simulate_options"));
    HBP__TRY(check_arguments(context, plan, cost, &all));

    int64_t largest = 1, mark = hbp__scratch_mark(context);
    for (int64_t p = 0; p < plan->packs; p++)
        largest = hbp__max_i64(largest, plan->pack_sp[p]);
    hbp__replay r;
    hbp_report result = {.struct_size = sizeof result};
    HBP__TRY(hbp__replay_open(context, cost, largest, &r));
    HBP__TRY(hbp__replay_add(context, &r, plan));
    HBP__TRY(hbp__replay_report(context, &r, &result));
    hbp__scratch_release(context, mark);
    HBP__TRY(hbp__measure_steps(context, plan, &result));
    if (!all.no_bound)
        HBP__TRY(bound_plan(context, &r, all.tokens_per_step, &result.bound_ns));
    result.gap = hbp__plan_gap(result.epoch_ns, result.bound_ns);
    return hbp__struct_write(context, report, &result, sizeof result, "hbp_report");
}

hbp_status hbp_simulate(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost,
                        const hbp_simulate_options *options, hbp_report *report)
{
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, simulate_plan(context, plan, cost, options, report));
}
