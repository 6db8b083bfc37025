/* Steps that are planned one by one, in the place of a layout of packs. */
#include "epoch/stratify.h"
#include "base/checked.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/guess.h"
#include "epoch/price.h"
#include "epoch/tuning.h"

/* Frees a plan that takes longer than it may; what it takes is known better then than by an estimate. */
static void drop_slow(const hbp__stratify *s, hbp_plan **plan)
{
    if (*plan && hbp__plan_ns(*plan) > s->most_ns) {
        if (s->guess_ns)
            *s->guess_ns = hbp__plan_ns(*plan);
        hbp_plan_free(*plan);
        *plan = NULL;
    }
}

/* What planning `part` comes to at least, about: its share of the bound by tokens. */
static int64_t bound_of(const hbp__stratify *s, const hbp__epoch *part)
{
    return hbp__round_i64((double)s->bound_ns * (double)part->lengths->tokens /
                          (double)s->epoch->lengths->tokens);
}

/* Plans batches as they ask for it. Those to be searched for are built first, and no more where a search
 * would not come below `most_ns`; else each step is the shorter of both. */
static hbp_status plan_batches(const hbp__stratify *s, const hbp__epoch *epoch, hbp__batches *b,
                               int64_t most_ns, hbp_plan **out)
{
    const int may_end = most_ns < INT64_MAX && s->micro_batches <= b->steps * HBP__BUILD_LARGEST;
    if (may_end && b->how == HBP__BATCHES_SEARCHED && hbp__batches_may_build(epoch)) {
        b->how = HBP__BATCHES_BUILT;
        HBP__TRY(hbp__batches_plan(epoch, b, out));
        const int64_t ns = hbp__plan_ns(*out);
        if (ns - ns / HBP__GUESS_DOUBT > most_ns)
            return HBP_OK;
        hbp_plan_free(*out);
        *out = NULL;
        b->how = HBP__BATCHES_BOTH;
    }
    return hbp__batches_plan(epoch, b, out);
}

/* A plan of a way; one that would seem to take more than `most_ns` is not looked for long. */
static hbp_status plan_way(const hbp__stratify *s, const hbp__epoch *part, int64_t way, int64_t most_ns,
                           hbp_plan **out)
{
    hbp__batches b;
    hbp__ways ways;
    hbp__epoch own = *part;
    hbp__ways_open(s, part, &ways);
    hbp_status status = hbp__ways_take(&ways, way, &b);
    hbp__ways_close(&ways);
    if (status >= 0)
        b.how = hbp__price_choose(&own, b.steps, part->lengths->count, bound_of(s, part));
    if (status >= 0)
        status = plan_batches(s, &own, &b, most_ns, out);
    hbp__batches_close(&b);
    if (status >= 0)
        (*out)->composition = way == HBP__WAY_DRAWN ? HBP_COMPOSITION_RANDOM : HBP_COMPOSITION_STRATIFIED;
    return status;
}

/* A plan, whatever it takes: more and more steps, `steps` at least, until they keep to the options; a
 * shuffled sampler's keep to any number of tokens that holds the longest sample. */
static hbp_status plan_at_any_price(const hbp__stratify *s, int64_t steps, hbp_plan **out)
{
    hbp_context *context = s->epoch->context;
    const int64_t count = s->epoch->lengths->count;
    steps = hbp__max_i64(steps, hbp__ceil_div(s->epoch->lengths->tokens, s->tokens_per_step));
    hbp_status status = plan_way(s, s->epoch, steps, INT64_MAX, out);
    for (int i = 1; status == HBP_E_INFEASIBLE && steps < count; i++) {
        const int64_t part = i < HBP__OWED_TRIES ? HBP__OWED_MORE_PART : HBP__OWED_MOST_PART;
        hbp__forgive(context);
        steps = hbp__min_i64(steps + steps / part + 1, count);
        status = plan_way(s, s->epoch, steps, INT64_MAX, out);
    }
    if (status != HBP_E_INFEASIBLE || hbp_context_message(context)[0])
        return status;
    /* What was asked for by name is not given another. */
    if (s->epoch->options.composition == HBP_COMPOSITION_STRATIFIED)
        return hbp__fail(
            context, HBP_E_INFEASIBLE,
            "no steps of at most %lld tokens were found that are each a small copy of the epoch; "
            "composition random, or more tokens_per_step, would do",
            (long long)s->tokens_per_step);
    return plan_way(s, s->epoch, HBP__WAY_DRAWN, INT64_MAX, out);
}

/* A way as well, if its steps keep to the options. */
static hbp_status try_way(const hbp__stratify *s, int64_t way, hbp_plan **plan)
{
    hbp_plan *other = NULL;
    const int64_t most_ns = *plan ? hbp__min_i64(s->most_ns, hbp__plan_ns(*plan)) : s->most_ns;
    hbp_status status = plan_way(s, s->epoch, way, most_ns, &other);
    if (status == HBP_E_INFEASIBLE || status == HBP_E_INVALID)
        return hbp__forgive(s->epoch->context);
    HBP__TRY(status);
    hbp__plan_keep_faster(plan, &other);
    return HBP_OK;
}

/* Whether either kind of steps may be the faster, by something that is worth it: of few steps estimates say
 * little. */
static int may_be_either(const hbp__stratify *s, const hbp__guess *g)
{
    const int64_t steps = hbp__ceil_div(s->epoch->lengths->tokens, s->tokens_per_step);
    const int64_t less = hbp__min_i64(g->dealt_ns, g->drawn_ns);
    const int64_t more = hbp__max_i64(g->dealt_ns, g->drawn_ns);
    return steps <= HBP__GUESS_FEW_STEPS && more - less <= less / HBP__GUESS_FEW_DOUBT &&
           hbp__stratify_is_far_off(s, less, HBP__GUESS_FEW_WORTH);
}

/* Whether the best steps of both kinds are planned, where that or building them is soon done, or they are
 * few: estimates may err by more than planning takes. */
static int takes_both(const hbp__stratify *s, const hbp__guess *g)
{
    return hbp__guess_is_soon(s, s->epoch) ||
           (g->is_near && (may_be_either(s, g) ||
                           hbp__price_of_steps(s->epoch, s->tokens_per_step) <= HBP__STEPS_SOON_BUILT_NS));
}

/* Plans all samples step by step: the way that seems best, the best of those that are always looked at where
 * it is another and that took longer than this seems to, and a shuffled sampler's where that is to be tried
 * as well, or seems to do and the others did not. */
static hbp_status try_whole(const hbp__stratify *s, hbp_plan **plan)
{
    hbp__guess g;
    HBP__TRY(hbp__guess_way(s, s->epoch, s->micro_batches, 0, &g));
    if (!g.is_near && s->most_ns == INT64_MAX && !s->saves_from_ns)
        return plan_at_any_price(s, g.dealt, plan);
    const int is_both = takes_both(s, &g);
    const int is_dealt = g.dealt && (is_both || (g.is_near && hbp__guess_best(&g)));
    if (is_dealt)
        HBP__TRY(try_way(s, g.dealt, plan));
    /* A number of steps whose micro-batches are just full is the easiest to be wrong about. */
    if (is_dealt && g.listed && (!*plan || hbp__plan_ns(*plan) > g.listed_ns))
        HBP__TRY(try_way(s, g.listed, plan));
    const int is_slow = g.is_near && (!*plan || hbp__plan_ns(*plan) > s->most_ns);
    if (s->epoch->options.composition == HBP_COMPOSITION_AUTO && (is_both || (is_slow && g.is_drawn_near)))
        HBP__TRY(try_way(s, HBP__WAY_DRAWN, plan));
    drop_slow(s, plan);
    return HBP_OK;
}

/* The same for the samples that those longer than `longest` leave. */
static hbp_status try_cut(const hbp__stratify *s, int64_t longest, hbp_plan **plan)
{
    hbp__parted parted;
    hbp__epoch part = *s->epoch;
    hbp_plan *rest = NULL;
    hbp__guess g = {.is_near = 0};
    HBP__TRY(hbp__parted_open(s->epoch, s->groups, s->fill, s->balance, longest, &parted));
    hbp_status status = HBP_OK;
    if (parted.rest) {
        int64_t left = hbp__max_i64(1, s->micro_batches - parted.longs->micro_batches);
        part.lengths = parted.rest;
        status = hbp__guess_way(s, &part, left, hbp__plan_ns(parted.longs), &g);
    }
    if (status >= 0 && g.is_near)
        status = plan_way(s, &part, hbp__guess_best(&g), INT64_MAX, &rest);
    if (status >= 0 && g.is_near)
        status = hbp__parted_join(s->epoch, &parted, rest, plan);
    if (status >= 0)
        drop_slow(s, plan);
    hbp_plan_free(rest);
    hbp__parted_close(&parted);
    return status;
}

static hbp_status try_ways(const hbp__stratify *s, hbp_plan **plan)
{
    HBP__TRY(try_whole(s, plan));
    int64_t longest = s->epoch->lengths->bin_length[s->epoch->lengths->bins - 1];
    const hbp_epoch_options *o = &s->epoch->options;
    int cuts = s->groups && o->mixture_slack > 0 && !o->curriculum_steps ? HBP__CUTS : 0;
    for (int i = 0; i < cuts && !*plan && longest > 1; i++) {
        longest = hbp__percent(longest, HBP__CUT_PERCENT);
        HBP__TRY(try_cut(s, longest, plan));
    }
    return HBP_OK;
}

hbp_status hbp__epoch_stratify(const hbp__stratify *s, hbp_plan **plan)
{
    *plan = NULL;
    hbp_status status = try_ways(s, plan);
    if (status < 0) {
        hbp_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}
