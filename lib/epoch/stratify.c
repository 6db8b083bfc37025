/* Whether steps that are planned one by one replace those of the best layout. */
#include "base/checked.h"
#include "data/plan.h"
#include "epoch/epoch.h"

/* Tried also without slack up to so many samples, and so many in a step. */
#define FEW_SAMPLES  32768
#define STEP_SAMPLES 1024

/* Steps planned for an estimate of all, and the share of it that may be its error. */
#define FEW_STEPS  8
#define MANY_STEPS 24
#define DOUBT      32

/* With slack, samples past the longest of all x (CUT / 100)^k keep their steps in the hierarchy, k = 0, 1,
 * ... */
#define CUT  70
#define CUTS 6

/* They know no groups, no cap on samples and no curriculum. */
static int may_stratify(const hbp__stratify *s)
{
    const hbp_epoch_options *o = &s->epoch->options;
    return !o->groups && !o->max_samples && !o->curriculum_steps && !o->window_samples && !o->drop_last &&
           (o->mixed_slack || s->epoch->lengths->count <= FEW_SAMPLES);
}

/* Longest that the epoch may take. */
static int64_t most_ns(const hbp__stratify *s)
{
    return hbp__add_saturating(s->ns, hbp__mul_saturating(s->ns / 1000, s->epoch->options.mixed_slack));
}

/* The number of steps that seems best for the samples of `part`, among those that fill the tokens of a step,
 * and those whose micro-batches are about as full as the best layout's; 0 when they seem to take longer than
 * they may beside `others_ns`. */
static hbp_status guess_steps(const hbp__stratify *s, const hbp__epoch *part, int64_t micro_batches,
                              int64_t others_ns, int64_t *steps)
{
    static const int64_t stretch[] = {1000, 1020, 1050};
    int64_t tokens_per_step = s->groups->tokens_per_step, best_ns = INT64_MAX;
    int64_t least = hbp__ceil_div(part->lengths->tokens, tokens_per_step);
    int64_t full = hbp__ceil_div(micro_batches, hbp__max_i64(1, micro_batches / least));
    int has_slack = s->epoch->options.mixed_slack > 0;
    *steps = 0;
    for (int i = 0; i < 6; i++) {
        int64_t ns, count = hbp__ceil_div((i % 2 ? full : least) * stretch[i / 2], 1000);
        if (count > part->lengths->count || (!has_slack && part->lengths->count / count > STEP_SAMPLES))
            continue;
        HBP__TRY(hbp__strata_estimate(part, count, tokens_per_step, has_slack ? MANY_STEPS : FEW_STEPS, &ns));
        if (ns < best_ns) {
            best_ns = ns;
            *steps = count;
        }
    }
    if (best_ns == INT64_MAX || hbp__add_saturating(best_ns - best_ns / DOUBT, others_ns) > most_ns(s))
        *steps = 0;
    return HBP_OK;
}

static int64_t time_of(const hbp_plan *plan)
{
    int64_t ns = 0;
    for (int64_t i = 0; plan && i < plan->steps; i++)
        ns = hbp__add_saturating(ns, plan->step_ns[i]);
    return ns;
}

/* Keeps the better of *plan and *other in *plan, which becomes NULL in *other when it is that. */
static hbp_status keep_better(const hbp__stratify *s, hbp_plan **plan, hbp_plan **other)
{
    double here = 0, there = 0;
    int64_t ns = time_of(*other), max_length = s->epoch->options.max_length;
    HBP__TRY(hbp__plan_mixture(s->epoch->context, *plan, &here));
    HBP__TRY(hbp__plan_mixture(s->epoch->context, *other, &there));
    int is_better = ns < s->ns || (ns <= most_ns(s) && there < here);
    for (int64_t p = 0; max_length && p < (*other)->packs; p++)
        is_better = is_better && (*other)->pack_padded_tokens[p] <= max_length;
    if (is_better) {
        hbp_plan_free(*plan);
        *plan = *other;
        *other = NULL;
    }
    return HBP_OK;
}

/* Plans all samples step by step, or the one step there is; *is_done when that replaced *plan. */
static hbp_status try_whole(const hbp__stratify *s, hbp_plan **plan, int *is_done)
{
    hbp__epoch part = *s->epoch;
    hbp_plan *other = NULL;
    int64_t steps = 1;
    part.lengths = s->lengths;
    if (!s->one_step)
        HBP__TRY(guess_steps(s, &part, s->micro_batches, 0, &steps));
    hbp_status status = steps ? hbp__strata_plan(&part, steps, &other) : HBP_OK;
    if (status >= 0 && steps)
        status = keep_better(s, plan, &other);
    *is_done = status >= 0 && steps && !other;
    hbp_plan_free(other);
    return status;
}

/* The same for the samples that those longer than `longest` leave. */
static hbp_status try_cut(const hbp__stratify *s, int64_t longest, hbp_plan **plan, int *is_done)
{
    hbp__parted parted;
    hbp__epoch part = *s->epoch;
    hbp_plan *rest = NULL, *whole = NULL;
    int64_t steps = 0;
    HBP__TRY(hbp__parted_open(s->epoch, s->groups, s->fill, s->balance, longest, &parted));
    hbp_status status = HBP_OK;
    if (parted.rest) {
        int64_t left = hbp__max_i64(1, s->micro_batches - parted.longs->micro_batches);
        part.lengths = parted.rest;
        status = guess_steps(s, &part, left, time_of(parted.longs), &steps);
    }
    if (status >= 0 && steps)
        status = hbp__strata_plan(&part, steps, &rest);
    if (status >= 0 && steps)
        status = hbp__parted_join(s->epoch, &parted, rest, &whole);
    if (status >= 0 && steps)
        status = keep_better(s, plan, &whole);
    *is_done = status >= 0 && steps && !whole;
    hbp_plan_free(whole);
    hbp_plan_free(rest);
    hbp__parted_close(&parted);
    return status;
}

hbp_status hbp__epoch_stratify(const hbp__stratify *s, hbp_plan **plan)
{
    int is_done = 0;
    if (!may_stratify(s))
        return HBP_OK;
    HBP__TRY(try_whole(s, plan, &is_done));
    int64_t longest = s->lengths->bin_length[s->lengths->bins - 1];
    int cuts = s->one_step || !s->epoch->options.mixed_slack ? 0 : CUTS;
    for (int i = 0; i < cuts && !is_done && longest > 1; i++) {
        longest = longest * CUT / 100;
        HBP__TRY(try_cut(s, longest, plan, &is_done));
    }
    return HBP_OK;
}
