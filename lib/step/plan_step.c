/* A step planned: the ways to plan one, the refusal of a number of micro-batches that it does not fit, and
 * the public call. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "cost/straight.h"
#include "data/lengths/lengths.h"
#include "simulate/plan/bound.h"
#include "step/bound.h"
#include "step/lanes.h"
#include "step/scarce.h"
#include "step/sets.h"
#include "step/step.h"
#include "step/tuning.h"

/* Planned as if all ranks were one lockstep set, then anew for the sets there are. */
static hbp_status solve_sets(const hbp__step *step, hbp__step_solution *solution)
{
    HBP__TRY(hbp__step_search(step, solution));
    if (!step->cost->terms.lockstep_ranks || solution->ns == INT64_MAX) /* which is refused in the end */
        return HBP_OK;
    if (step->cost->terms.lockstep_ranks == 1)
        return hbp__step_lanes(step, solution);
    HBP__TRY(hbp__step_spread(step, solution));
    return hbp__step_sets(step, solution);
}

/* Takes the plan of a step that asks for more than this one does, where it is the faster. */
static hbp_status try_stricter(const hbp__step *step, const hbp__step *stricter, hbp__step_solution *solution)
{
    hbp__step_solution own = {.ns = 0};
    hbp_status status = solve_sets(stricter, &own);
    if (status >= 0)
        status = hbp__step_solution_price(step, &own);
    if (status >= 0 && own.ns < solution->ns) {
        hbp__step_solution faster = own;
        own = *solution;
        *solution = faster;
    }
    hbp__step_solution_close(&own);
    return status == HBP_E_INFEASIBLE ? hbp__forgive(step->context) : status;
}

/* A step like another, but for what a stricter one asks for; on the heap, for it is large. */
typedef struct strict_step {
    hbp__step step;
    hbp_cost cost;
} strict_step;

/* Whether a lockstep set of degree index j can be, and the degrees up to it hold each sequence. */
static int may_be_set(const hbp__step *step, int32_t j)
{
    int32_t ranks = step->degree[j].degree;
    if (ranks == 1 || ranks == step->ranks || step->ranks % ranks)
        return 0;
    for (int64_t k = 0; k < step->count; k++) {
        int32_t i = j;
        while (i >= 0 && !hbp__step_holds_alone(step, i, k))
            i--;
        if (i < 0)
            return 0;
    }
    return 1;
}

/* The same of each step that asks for more in one thing: ranks that wait for more others, and that do not
 * skip micro-batches. */
static hbp_status try_all_stricter(const hbp__step *step, strict_step *s, hbp__step_solution *solution)
{
    const hbp_cost_terms *asked = &step->cost->terms;
    s->cost = *step->cost;
    s->step.cost = &s->cost;
    s->cost.terms.uneven_micro_batches = 0;
    if (asked->uneven_micro_batches)
        HBP__TRY(try_stricter(step, &s->step, solution));
    if (step->options.micro_batch_multiple > 1) {
        /* Micro-batches that complete a multiple are then planned from the start, not spread to in the end.
         */
        s->step.options.min_micro_batches = (int32_t)hbp__step_whole(step, 1);
        HBP__TRY(try_stricter(step, &s->step, solution));
        s->step.options.min_micro_batches = step->options.min_micro_batches;
    }
    if (asked->lockstep_ranks > 1 || (s->step.options.effort == 1 && step->count > HBP__STEP_FEW))
        return HBP_OK;
    int64_t bound_ns;
    HBP__TRY(hbp__bound_lanes(step, solution->ns, &bound_ns));
    for (int32_t j = 0; j < step->degrees && solution->ns - bound_ns > bound_ns / HBP__STEP_NEAR; j++)
        if (may_be_set(step, j)) {
            s->cost.terms.lockstep_ranks = step->degree[j].degree;
            s->step.degrees = j + 1; /* a set holds them all */
            HBP__TRY(try_stricter(step, &s->step, solution));
        }
    return HBP_OK;
}

/* This library's way. Ranks that wait for fewer others, that may skip micro-batches, and more effort are
 * never slower: what is a plan without is one with them. */
static hbp_status solve_default(const hbp__step *step, hbp__step_solution *solution)
{
    hbp_context *context = step->context;
    if (step->options.equal_samples)
        return hbp__step_equal(step, solution);
    HBP__TRY(solve_sets(step, solution));
    if (!step->cost->terms.lockstep_ranks || solution->ns == INT64_MAX)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(context);
    strict_step *s = hbp__take(context, 1, sizeof *s);
    HBP__TRY(hbp__scratch_check(context, "a step"));
    for (int32_t effort = step->options.effort; effort >= 1; effort--) {
        s->step = *step;
        s->step.options.effort = effort;
        if (effort < step->options.effort)
            HBP__TRY(try_stricter(step, &s->step, solution));
        HBP__TRY(try_all_stricter(step, s, solution));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status solve(const hbp__step *step, hbp__step_solution *solution)
{
    switch (hbp__step_method(step->options.method)) {
    case HBP__STEP_FLEXSP:
        return hbp__step_paper(step, solution);
    case HBP__STEP_STATIC_SP:
        return hbp__step_static_sp(step, solution);
    case HBP__STEP_HOMOGENEOUS_SP:
        return hbp__step_homogeneous_sp(step, solution);
    case HBP__STEP_HYBRID_CP:
        return hbp__step_hybrid_cp(step, solution);
    case HBP__STEP_DYNAMIC_CP:
        return hbp__step_dynamic_cp(step, solution);
    default:
        return solve_default(step, solution);
    }
}

/* Whether a plan of at most `most` micro-batches is found, *status saying what else went wrong. */
static int fits(const hbp__step *step, int64_t most, hbp_status *status)
{
    hbp_context *context = step->context;
    hbp__step_solution solution = {.ns = 0};
    int64_t mark = hbp__scratch_mark(context);
    hbp__step *trial = hbp__take(context, 1, sizeof *trial);
    *status = hbp__scratch_check(context, "a step");
    if (*status < 0)
        return 0;
    *trial = *step;
    trial->options.min_micro_batches = 0;
    trial->options.max_micro_batches = (int32_t)most;
    trial->options.effort = 1;
    trial->by_value = 0;
    *status = solve(trial, &solution);
    hbp__step_solution_close(&solution);
    hbp__scratch_release(context, mark);
    int found = *status >= 0;
    if (found || *status == HBP_E_INFEASIBLE)
        *status = hbp__forgive(context);
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
    int is_search = hbp__step_method(o->method) == HBP__STEP_SEARCH;
    if (status == HBP_E_INFEASIBLE && is_search && o->max_micro_batches &&
        o->min_micro_batches == o->max_micro_batches)
        status = refuse_number(step, &solution);
    int64_t bound_ns = 0;
    if (status >= 0 && !solution.bound_ns && (bounds || (o->exact && is_search)))
        status = hbp__step_bound(step, solution.ns, &bound_ns);
    if (status >= 0 && bound_ns > solution.bound_ns)
        solution.bound_ns = bound_ns;
    if (status >= 0 && o->exact && is_search)
        status = remark = hbp__step_exact(step, &solution);
    if (status >= 0 && is_search && !o->equal_samples && !step->cost->terms.lockstep_ranks) {
        int64_t found = solution.micro_batches, found_ns = solution.ns;
        status = hbp__step_spread(step, &solution);
        if (status >= 0 && !o->exact)
            status = hbp__step_scarce(step, found, found_ns, &solution);
    }
    if (status >= 0)
        status = hbp__step_finish(step, &solution, out);
    hbp__step_solution_close(&solution);
    return status < 0 ? status : remark;
}

static hbp_status check_equal(const hbp__step *step)
{
    const hbp_step_options *o = &step->options;
    int is_search = hbp__step_method(o->method) == HBP__STEP_SEARCH;
    if (!o->equal_samples || (is_search && !o->exact))
        return HBP_OK;
    if (!is_search)
        return hbp__fail(step->context, HBP_E_INVALID,
                         "`equal_samples` is set; method %s does not plan for it, search does", o->method);
    return hbp__fail(step->context, HBP_E_INVALID,
                     "`equal_samples` is set; the exact solver does not plan for it");
}

/* FlexSP's program and its buckets know one size of a sequence. */
static hbp_status check_vision(const hbp__step *step)
{
    const hbp_step_options *o = &step->options;
    int is_flexsp = hbp__step_method(o->method) == HBP__STEP_FLEXSP;
    if (!step->vision || (!o->exact && !is_flexsp))
        return HBP_OK;
    return hbp__fail(step->context, HBP_E_INVALID,
                     "%s does not plan for vision units, which the lengths have %lld of; %s",
                     is_flexsp ? "method flexsp" : "`exact`", (long long)step->lengths->vision_sum,
                     hbp__cost_charges_vision(step->cost) ? "the cost charges them" : "max_vision is set");
}

static hbp_status plan_open(hbp__step *step, int bounds, hbp_plan **out)
{
    hbp_context *context = step->context;
    const hbp_step_options *o = &step->options;
    int32_t set = step->cost->terms.lockstep_ranks;
    if (o->exact && !context->solver)
        return hbp__fail(context, HBP_E_SOLVER,
                         "`exact` is set and the context has no solver; give it one by "
                         "hbp_context_set_solver");
    HBP__TRY(check_equal(step));
    if (o->exact && set)
        return hbp__fail(context, HBP_E_INVALID,
                         "`exact` is set, which plans for ranks that are one lockstep set; "
                         "the cost has sets of %d of %d",
                         (int)set, (int)step->cost->terms.ranks);
    HBP__TRY(check_vision(step));
    if (hbp__step_method(o->method) == HBP__STEP_SEARCH)
        hbp__step_trim(step);
    step->by_value = hbp__step_method(o->method) == HBP__STEP_SEARCH && !set;
    return plan(step, bounds, out);
}

/* Under a cost whose times are linear. */
static hbp_status plan_straight(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                                const hbp_step_options *options, int bounds, hbp_plan **out)
{
    hbp__step step;
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__step_open(context, batch_lengths, cost, options, &step);
    if (status >= 0)
        status = plan_open(&step, bounds, out);
    hbp__step_close(&step);
    return hbp__leave(context, mark, status);
}

/* The linear cost whose bound of all samples as an epoch, which is cheap, is the greatest: its index. */
static hbp_status find_below(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             int32_t *index)
{
    int64_t best = -1;
    for (int32_t i = 0; i < hbp__cost_bounds(cost); i++) {
        const hbp_cost below = hbp__cost_below(cost, i);
        int64_t ns = 0, mark = hbp__scratch_mark(context);
        hbp_status status = hbp__leave(context, mark,
                                       hbp__bound(context, &below, lengths->bins, lengths->bin_length,
                                                  lengths->bin_count, 1, lengths->vision_sum, 1, &ns));
        if (status == HBP_E_INFEASIBLE || status == HBP_E_OVERFLOW)
            status = hbp__forgive(context);
        HBP__TRY(status);
        if (ns > best) {
            best = ns;
            *index = i;
        }
    }
    return HBP_OK;
}

hbp_status hbp__step_bound_below(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                                 const hbp_step_options *options, int64_t upper_ns, int64_t *bound_ns)
{
    hbp__step step;
    int32_t index = 0;
    *bound_ns = 0;
    if (hbp__cost_bounds(cost) > 1)
        HBP__TRY(find_below(context, batch_lengths, cost, &index));
    const hbp_cost below = hbp__cost_below(cost, index);
    int64_t mark = hbp__scratch_mark(context);
    hbp_status status = hbp__step_open(context, batch_lengths, &below, options, &step);
    if (status >= 0)
        status = hbp__step_bound(&step, upper_ns, bound_ns);
    hbp__step_close(&step);
    return hbp__leave(context, mark, status);
}

/* One of the linear costs tried, its plan timed by the cost itself. */
static hbp_status try_straight(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                               const hbp_step_options *options, int32_t index, hbp_plan **best)
{
    hbp_plan *plan = NULL;
    const hbp_cost tried = hbp__cost_tried(cost, index);
    const hbp_status remark = plan_straight(context, batch_lengths, &tried, options, 0, &plan);
    if (remark < 0)
        return remark;
    plan->bound_ns = 0; /* under the linear cost */
    HBP__TRY(hbp__cost_keep_faster(context, cost, plan, best));
    return remark;
}

hbp_status hbp__step_plan(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                          const hbp_step_options *options, int bounds, hbp_plan **out)
{
    if (!hbp__cost_bends(&cost->terms))
        return plan_straight(context, batch_lengths, cost, options, bounds, out);
    hbp_plan *best = NULL;
    hbp_step_options o;
    hbp_status status = hbp__options_read(context, &o, sizeof o, options, "hbp_step_options");
    const hbp_cost_terms *t = &cost->terms;
    for (int32_t i = 0; status >= 0 && i < hbp__cost_tries(cost); i++)
        status = try_straight(context, batch_lengths, cost, options, i, &best);
    if (status >= 0 && bounds) {
        int64_t step_ns = hbp__round_i64(t->step_ns), bound_ns = 0;
        status = hbp__step_bound_below(context, batch_lengths, cost, options, hbp__plan_ns(best) - step_ns,
                                       &bound_ns);
        best->bound_ns = bound_ns ? hbp__add_saturating(bound_ns, step_ns) : 0;
    }
    /* What the exact solver proves of a linear cost is no proof under the cost itself. */
    if (status == HBP_OK && o.exact && best->bound_ns < hbp__plan_ns(best))
        status = HBP_NOT_PROVEN;
    if (status < 0)
        hbp_plan_free(best);
    else
        *out = best;
    return status;
}

hbp_status hbp_plan_step(hbp_context *context, const hbp_lengths *batch_lengths, const hbp_cost *cost,
                         const hbp_step_options *options, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require_samples(context, batch_lengths, "batch_lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__step_plan(context, batch_lengths, cost, options, 1, out));
}
