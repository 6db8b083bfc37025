/* Replays a plan by patterns a few steps at a time. */
#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "data/pattern/pattern_plan.h"
#include "simulate/plan/bound.h"
#include "simulate/plan/metrics.h"
#include "simulate/plan/replay.h"

/* Samples that are listed at a time, about. */
#define LISTED (INT64_C(1) << 18)

typedef struct walk {
    hbp_context *context;
    const hbp_pattern_plan *plan;
    hbp__replay replay;
    hbp__mixture mixture; /* of all samples */
    hbp__distances distances;
    int64_t *samples; /* [steps], as the next */
    int64_t *tokens;
} walk;

static hbp_status walk_part(walk *w, int64_t first, int64_t steps)
{
    hbp_plan *part = NULL;
    HBP__TRY(hbp__pattern_plan_expand(w->context, w->plan, NULL, first, steps, 1, &part));
    hbp_status status = hbp__replay_add(w->context, &w->replay, part);
    if (status >= 0)
        status = hbp__mixture_distances(w->context, part, &w->mixture, &w->distances);
    for (int64_t s = 0; s < steps; s++) {
        w->samples[first + s] = part->step_samples[s];
        w->tokens[first + s] = part->step_tokens[s];
    }
    hbp_plan_free(part);
    return status;
}

static hbp_status open_walk(walk *w, const hbp_cost *cost)
{
    const hbp_pattern_plan *plan = w->plan;
    int64_t largest = 1;
    for (int64_t g = 0; g < plan->groups; g++) /* that have packs */
        if (hbp__pattern_packs(plan, g))
            largest = hbp__max_i64(largest, plan->group_sp[g]);
    w->samples = hbp__take(w->context, (uint64_t)plan->steps, sizeof *w->samples);
    w->tokens = hbp__take(w->context, (uint64_t)plan->steps, sizeof *w->tokens);
    HBP__TRY(hbp__scratch_check(w->context, "the simulation"));
    for (int64_t i = 0; i < plan->lengths; i++)
        hbp__mixture_add(&w->mixture, plan->length_tokens[i], (double)plan->length_samples[i]);
    return hbp__replay_open(w->context, cost, largest, &w->replay);
}

static hbp_status simulate(walk *w, const hbp_cost *cost, const hbp_simulate_options *options,
                           hbp_report *report)
{
    const hbp_pattern_plan *plan = w->plan;
    hbp_context *context = w->context;
    const int64_t samples = hbp__pattern_all_samples(plan);
    const int64_t part = hbp__max_i64(1, LISTED / hbp__ceil_div(samples, plan->steps));
    HBP__TRY(open_walk(w, cost));
    for (int64_t first = 0; first < plan->steps; first += part) {
        HBP__TRY(hbp__tick(context, "simulate", first, plan->steps));
        HBP__TRY(walk_part(w, first, hbp__min_i64(part, plan->steps - first)));
    }
    HBP__TRY(hbp__replay_report(context, &w->replay, report));
    HBP__TRY(hbp__measure_sizes(context, w->samples, w->tokens, plan->steps, report));
    report->mixture_distance = hbp__distances_mean(&w->distances);
    if (!options->no_bound) {
        const int64_t least =
            options->tokens_per_step ? hbp__ceil_div(report->tokens, options->tokens_per_step) : plan->steps;
        hbp_status status =
            hbp__bound(context, cost, plan->lengths, plan->length_tokens, plan->length_samples,
                       hbp__max_i64(1, plan->sequence_multiple), 0, least, &report->bound_ns);
        HBP__TRY(status == HBP_E_INFEASIBLE ? hbp__forgive(context) : status);
    }
    report->gap = hbp__plan_gap(report->epoch_ns, report->bound_ns);
    return HBP_OK;
}

static hbp_status check_and_simulate(hbp_context *context, const hbp_pattern_plan *plan, const hbp_cost *cost,
                                     const hbp_simulate_options *options, hbp_report *report)
{
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__require(context, report, "report"));
    hbp_simulate_options all;
    hbp_report result = {.struct_size = sizeof result};
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_simulate_options"));
    if (plan->ranks != cost->terms.ranks)
        return hbp__fail(context, HBP_E_INVALID, "the plan is for %d ranks, the cost for %d",
                         (int)plan->ranks, (int)cost->terms.ranks);
    walk w = {.context = context, .plan = plan};
    HBP__TRY(simulate(&w, cost, &all, &result));
    return hbp__struct_write(context, report, &result, sizeof result, "hbp_report");
}

hbp_status hbp_pattern_plan_simulate(hbp_context *context, const hbp_pattern_plan *plan, const hbp_cost *cost,
                                     const hbp_simulate_options *options, hbp_report *report)
{
    HBP__TRY(hbp__enter(context));
    const int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, check_and_simulate(context, plan, cost, options, report));
}
