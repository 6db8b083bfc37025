/* What no plan of an epoch can beat. */
#include "epoch/bound.h"
#include "base/checked.h"
#include "base/scratch.h"
#include "data/plan/plan.h"
#include "epoch/tuning.h"
#include "simulate/plan/bound.h"
#include "step/step.h"

static int64_t least_steps(const hbp__epoch *epoch, int64_t tokens_per_step)
{
    return tokens_per_step ? hbp__ceil_div(epoch->lengths->tokens, tokens_per_step) : 1;
}

hbp_status hbp__epoch_bound(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t steps,
                            int64_t *bound_ns)
{
    steps = hbp__max_i64(steps, least_steps(epoch, tokens_per_step));
    const hbp_lengths *lengths = epoch->lengths;
    int64_t mark = hbp__scratch_mark(epoch->context);
    hbp_status status = hbp__leave(
        epoch->context, mark,
        hbp__bound(epoch->context, epoch->bending, lengths->bins, lengths->bin_length, lengths->bin_count,
                   hbp__max_i64(1, epoch->options.sequence_multiple), lengths->vision_sum, steps, bound_ns));
    if (status >= 0)
        status = hbp__epoch_bound_long(epoch, tokens_per_step, bound_ns);
    if (status != HBP_E_INFEASIBLE && status != HBP_E_OVERFLOW)
        return status;
    *bound_ns = 0;
    return hbp__forgive(epoch->context);
}

/* The bound of all samples as one step (docs/explanation/step-bound.md), without what a step pays besides its
 * micro-batches, is one for any number of steps: their micro-batches together are those of a step. `upper_ns`
 * is the time of some plan of `steps` steps. */
static hbp_status bound_as_step(const hbp__epoch *epoch, int64_t steps, int64_t upper_ns, int64_t *bound_ns)
{
    hbp_step_options options;
    int64_t step_ns = hbp__round_i64(epoch->cost->terms.step_ns);
    hbp__epoch_step_options(&epoch->options, &options);
    options.min_micro_batches = options.max_micro_batches = 0; /* of each step, not of all */
    hbp_status status = hbp__step_bound_below(epoch->context, epoch->lengths, epoch->bending, &options,
                                              upper_ns - hbp__mul_saturating(steps, step_ns), bound_ns);
    if (status != HBP_E_INFEASIBLE)
        return status;
    *bound_ns = 0;
    return hbp__forgive(epoch->context);
}

/* The tokens of the plan and the most that a step of it holds. */
static void sum_tokens(const hbp_plan *plan, int64_t *tokens, int64_t *most)
{
    *tokens = *most = 0;
    for (int64_t i = 0; i < plan->steps; i++) {
        *tokens += plan->step_tokens[i];
        *most = hbp__max_i64(*most, plan->step_tokens[i]);
    }
}

hbp_status hbp__epoch_set_bound(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t bound_ns,
                                hbp_plan *plan)
{
    int64_t tokens, most, as_step = 0, step_ns = hbp__round_i64(epoch->cost->terms.step_ns);
    sum_tokens(plan, &tokens, &most);
    plan->bound_ns = plan->free_bound_ns = 0;
    if (tokens != epoch->lengths->tokens || most > tokens_per_step)
        return HBP_OK;
    plan->bound_ns = bound_ns;
    if (epoch->lengths->count > HBP__BOUND_SAMPLES)
        return HBP_OK;
    HBP__TRY(bound_as_step(epoch, plan->steps, hbp__plan_ns(plan), &as_step));
    if (!as_step)
        return HBP_OK;
    plan->free_bound_ns = hbp__add_saturating(as_step, step_ns);
    as_step = hbp__add_saturating(as_step, hbp__mul_saturating(least_steps(epoch, tokens_per_step), step_ns));
    plan->bound_ns = hbp__max_i64(bound_ns, as_step);
    return HBP_OK;
}

/* The bound for as many steps where `plan` holds all samples in steps of at most `tokens_per_step` tokens (0:
 * any); else 0. */
static hbp_status bound_of_all(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t steps,
                               const hbp_plan *plan, int64_t *bound_ns)
{
    int64_t tokens, most;
    *bound_ns = 0;
    sum_tokens(plan, &tokens, &most);
    if (tokens != epoch->lengths->tokens || (tokens_per_step && most > tokens_per_step))
        return HBP_OK;
    return hbp__epoch_bound(epoch, tokens_per_step, steps, bound_ns);
}

hbp_status hbp__epoch_set_free_bound(const hbp__epoch *epoch, hbp_plan *plan)
{
    int64_t bound_ns;
    HBP__TRY(bound_of_all(epoch, 0, 1, plan, &bound_ns));
    plan->free_bound_ns = hbp__max_i64(plan->free_bound_ns, bound_ns);
    if (plan->bound_ns)
        plan->bound_ns = hbp__max_i64(plan->bound_ns, plan->free_bound_ns);
    return HBP_OK;
}

hbp_status hbp__epoch_raise_bound_of_steps(const hbp__epoch *epoch, int64_t tokens_per_step, hbp_plan *plan)
{
    int64_t bound_ns;
    HBP__TRY(bound_of_all(epoch, tokens_per_step, plan->steps, plan, &bound_ns));
    plan->bound_ns = hbp__max_i64(plan->bound_ns, bound_ns);
    return HBP_OK;
}
