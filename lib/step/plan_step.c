#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "data/lengths.h"
#include "step/lanes.h"
#include "step/sets.h"
#include "step/step.h"

void hbp_step_options_init(hbp_step_options *options, uint32_t struct_size)
{
    hbp__struct_init(options, struct_size);
}

const char *hbp_step_mode_name(int32_t mode)
{
    static const char *const names[HBP_STEP_MODE_COUNT] = {"default",        "paper",     "static-sp",
                                                           "homogeneous-sp", "hybrid-cp", "dynamic-cp"};
    return mode >= 0 && mode < HBP_STEP_MODE_COUNT ? names[mode] : NULL;
}

/* This library's way: planned as if all ranks were one lockstep set, then anew for the sets there are. */
static hbp_status solve_default(const hbp__step *step, hbp__step_solution *solution)
{
    if (step->options.equal_samples)
        return hbp__step_equal(step, solution);
    HBP__TRY(hbp__step_search(step, solution));
    if (step->cost->terms.lockstep_ranks == 1)
        return hbp__step_lanes(step, solution);
    if (!step->cost->terms.lockstep_ranks)
        return HBP_OK;
    HBP__TRY(hbp__step_spread(step, solution));
    return hbp__step_sets(step, solution);
}

static hbp_status solve(const hbp__step *step, hbp__step_solution *solution)
{
    switch (step->options.mode) {
    case HBP_STEP_PAPER:
        return hbp__step_paper(step, solution);
    case HBP_STEP_STATIC_SP:
        return hbp__step_static_sp(step, solution);
    case HBP_STEP_HOMOGENEOUS_SP:
        return hbp__step_homogeneous_sp(step, solution);
    case HBP_STEP_HYBRID_CP:
        return hbp__step_hybrid_cp(step, solution);
    case HBP_STEP_DYNAMIC_CP:
        return hbp__step_dynamic_cp(step, solution);
    default:
        return solve_default(step, solution);
    }
}

/* Whether a plan of at most `most` micro-batches is found, *status saying what else went wrong. */
static int fits(const hbp__step *step, int64_t most, hbp_status *status)
{
    hbp__step trial = *step;
    hbp__step_solution solution = {.ns = 0};
    trial.options.min_micro_batches = 0;
    trial.options.max_micro_batches = (int32_t)most;
    trial.options.effort = 1;
    *status = solve(&trial, &solution);
    hbp__step_solution_close(&solution);
    int found = *status >= 0;
    if (found || *status == HBP_E_INFEASIBLE)
        *status = hbp__enter(step->context); /* clears its message */
    return found;
}

/* Says in how many micro-batches a step fits that does not fit the number asked for; where none is found,
 * what stands in the way. */
static hbp_status refuse_number(const hbp__step *step, hbp__step_solution *solution)
{
    int64_t multiple = step->options.micro_batch_multiple, asked = step->options.max_micro_batches;
    int64_t low = asked / multiple, most = hbp__max_i64(hbp__ceil_div(step->count, multiple), low + 1);
    int64_t high = most;
    hbp_status status = HBP_OK;
    if (!fits(step, most * multiple, &status))
        return status < 0 ? status : solve(step, solution);
    for (int64_t stride = 1; status >= 0 && low + stride < high; stride *= 2) {
        if (fits(step, (low + stride) * multiple, &status))
            high = low + stride;
        else
            low += stride;
    }
    while (status >= 0 && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (fits(step, middle * multiple, &status))
            high = middle;
        else
            low = middle;
    }
    HBP__TRY(status);
    return hbp__fail(step->context, HBP_E_INFEASIBLE,
                     "the step does not fit the %lld micro-batches that are asked for; the least number in "
                     "which a plan was found is %lld",
                     (long long)asked, (long long)(high * multiple));
}

static hbp_status plan(const hbp__step *step, int bounds, hbp_plan **out)
{
    hbp__step_solution solution = {.ns = 0};
    hbp_status status = solve(step, &solution), remark = status;
    const hbp_step_options *o = &step->options;
    if (status == HBP_E_INFEASIBLE && o->mode == HBP_STEP_DEFAULT && o->max_micro_batches &&
        o->min_micro_batches == o->max_micro_batches)
        status = refuse_number(step, &solution);
    int64_t bound_ns = 0;
    if (status >= 0 && !solution.bound_ns && (bounds || o->mode == HBP_STEP_DEFAULT))
        status = hbp__step_bound(step, solution.ns, &bound_ns);
    if (status >= 0 && bound_ns > solution.bound_ns)
        solution.bound_ns = bound_ns;
    if (status >= 0 && step->options.solver == HBP_STEP_EXACT && step->options.mode == HBP_STEP_DEFAULT)
        status = remark = hbp__step_exact(step, &solution);
    if (status >= 0 && step->options.mode == HBP_STEP_DEFAULT && !step->options.equal_samples &&
        !step->cost->terms.lockstep_ranks)
        status = hbp__step_spread(step, &solution);
    if (status >= 0)
        status = hbp__step_finish(step, &solution, out);
    hbp__step_solution_close(&solution);
    return status < 0 ? status : remark;
}

static hbp_status check_equal(const hbp__step *step)
{
    const hbp_step_options *o = &step->options;
    if (!o->equal_samples || (o->mode == HBP_STEP_DEFAULT && o->solver == HBP_STEP_SEARCH))
        return HBP_OK;
    if (o->mode != HBP_STEP_DEFAULT)
        return hbp__fail(step->context, HBP_E_INVALID,
                         "hbp_step_options.equal_samples is set; mode %s does not plan for it, default does",
                         hbp_step_mode_name(o->mode));
    return hbp__fail(step->context, HBP_E_INVALID,
                     "hbp_step_options.equal_samples is set; the exact solver does not plan for it");
}

hbp_status hbp__step_plan(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                          const hbp_step_options *options, int bounds, hbp_plan **out)
{
    if (hbp__cost_charges_vision(cost) && batch_lengths->vision_sum > 0)
        return hbp__fail(context, HBP_E_INVALID,
                         "hbp_plan_step does not plan for vision units: the cost charges them and the "
                         "lengths have %lld; plan an epoch with max_vision (hbp_plan_epoch)",
                         (long long)batch_lengths->vision_sum);
    hbp__step step;
    hbp_status status = hbp__step_open(context, batch_lengths, cost, options, &step);
    if (status >= 0 && step.options.solver == HBP_STEP_EXACT && !context->solver)
        status = hbp__fail(context, HBP_E_SOLVER,
                           "hbp_step_options.solver is exact and the context has no solver; give it one by "
                           "hbp_context_set_solver");
    if (status >= 0)
        status = check_equal(&step);
    if (status >= 0 && step.options.solver == HBP_STEP_EXACT && cost->terms.lockstep_ranks)
        status =
            hbp__fail(context, HBP_E_INVALID,
                      "hbp_step_options.solver is exact, which plans for ranks that are one lockstep set; "
                      "the cost has sets of %d of %d",
                      (int)cost->terms.lockstep_ranks, (int)cost->terms.ranks);
    if (status >= 0 && step.options.mode == HBP_STEP_DEFAULT)
        hbp__step_trim(&step);
    if (status >= 0)
        status = plan(&step, bounds, out);
    hbp__step_close(&step);
    return status;
}

hbp_status hbp_plan_step(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                         const hbp_step_options *options, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, batch_lengths, "batch_lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__step_plan(context, batch_lengths, cost, options, 1, out));
}
