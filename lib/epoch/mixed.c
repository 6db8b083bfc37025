/* The hierarchy against steps that are small copies of the epoch (docs: contract, mixed). */
#include "base/checked.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/bound.h"
#include "epoch/choose.h"
#include "epoch/mend.h"
#include "epoch/price.h"
#include "epoch/stratify.h"
#include "epoch/tuning.h"
#include "epoch/weigh.h"
#include "pack/groups/hierarchy.h"
#include "schedule/balance.h"
#include "schedule/mix.h"

/* Packs and the best way to run them. */
typedef struct candidate {
    hbp_groups *owned_groups; /* NULL: the caller's */
    hbp_packs *owned_packs;
    const hbp_groups *groups;
    const hbp_packs *packs;
    hbp__layout layout;
    int is_there;
} candidate;

typedef struct search {
    const hbp__epoch *epoch; /* of the lengths to plan */
    const hbp_fill_options *fill;
    hbp_balance_options balance; /* checked */
    candidate pure;              /* the hierarchy */
    candidate mixed;             /* the best layout of mixed steps */
} search;

static void candidate_close(candidate *c)
{
    hbp__layout_close(&c->layout);
    hbp_packs_free(c->owned_packs);
    hbp_groups_free(c->owned_groups);
    *c = (candidate){.is_there = 0};
}

/* Keeps the faster of `other` and the best mixed layout so far, which wins when they are equal; closes the
 * slower. */
static void keep_faster_layout(search *s, candidate *other)
{
    if (!s->mixed.is_there || hbp__layout_is_faster(&other->layout, &s->mixed.layout)) {
        candidate slower = s->mixed;
        s->mixed = *other;
        *other = slower;
    }
    candidate_close(other);
}

/* Lays a candidate's packs out in mixed steps and keeps it if it is the fastest. One that drop_last leaves no
 * step is no failure while there is another. Takes what the candidate owns. */
static hbp_status consider_packs(search *s, candidate *c)
{
    hbp_context *context = s->epoch->context;
    hbp_status status =
        hbp__layout_open_mixed(context, c->packs, c->groups, s->epoch->cost, &s->balance, 0, &c->layout);
    c->is_there = status >= 0;
    if (status >= 0) {
        keep_faster_layout(s, c);
        return HBP_OK;
    }
    candidate_close(c);
    if (status == HBP_E_INFEASIBLE && s->mixed.is_there)
        return hbp__forgive(context);
    return status;
}

/* Packs filled without a thought for whole micro-batches of one group: the places that one group leaves in
 * its last micro-batch are another's. */
static hbp_status consider_fill(search *s, const hbp_groups *groups, hbp_groups *owned_groups)
{
    candidate c = {.owned_groups = owned_groups, .groups = groups};
    hbp_groups narrow = *groups; /* borrows its table */
    for (int64_t g = 0; g < groups->count; g++)
        narrow.packs[g] = 1;
    hbp_status status = hbp__epoch_fill(s->epoch, s->epoch->lengths, &narrow, s->fill, &c.owned_packs);
    if (status < 0) {
        candidate_close(&c);
        /* There is a hierarchy already. */
        return status == HBP_E_INFEASIBLE ? hbp__forgive(s->epoch->context) : status;
    }
    c.packs = c.owned_packs;
    return consider_packs(s, &c);
}

static int are_groups_equal(const hbp_groups *a, const hbp_groups *b)
{
    int equal = a->count == b->count;
    for (int64_t g = 0; equal && g < a->count; g++)
        equal = a->threshold[g] == b->threshold[g] && a->pack_length[g] == b->pack_length[g] &&
                a->sp[g] == b->sp[g] && a->recompute[g] == b->recompute[g];
    return equal;
}

/* At most `most` levels; *levels gets how many there are, 0 when there is no such hierarchy. `known` have
 * been considered. */
static hbp_status consider_groups(search *s, int32_t most, int64_t max_pack_length, const hbp_groups *known,
                                  int64_t *levels)
{
    hbp_groups *groups = NULL;
    hbp_groups_options options;
    hbp__epoch_groups_options(&s->epoch->options, &options);
    options.max_groups = most;
    options.max_pack_length = max_pack_length;
    options.tokens_per_step = known->tokens_per_step;
    *levels = 0;
    hbp_status status = hbp__epoch_plan_groups(s->epoch, &options, &groups);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(s->epoch->context);
    HBP__TRY(status);
    *levels = groups->count;
    if (!are_groups_equal(groups, known))
        return consider_fill(s, groups, groups);
    hbp_groups_free(groups);
    return HBP_OK;
}

static hbp_status search_layouts(search *s, const hbp_groups *groups, const hbp_packs *packs)
{
    candidate mixed = {.groups = groups, .packs = packs};
    s->pure = mixed;
    HBP__TRY(hbp__layout_open_pure(s->epoch->context, packs, groups, s->epoch->cost, &s->balance, 0,
                                   &s->pure.layout));
    s->pure.is_there = 1;
    HBP__TRY(consider_packs(s, &mixed));
    HBP__TRY(consider_fill(s, groups, NULL));
    if (s->epoch->groups)
        return HBP_OK;
    if (s->epoch->lengths->count > HBP__TRY_SAMPLES)
        return HBP_OK;
    int64_t levels = s->epoch->options.max_groups, length = s->epoch->options.max_pack_length;
    HBP__TRY(consider_groups(s, (int32_t)levels, length, groups, &levels));
    while (levels > 1)
        HBP__TRY(consider_groups(s, (int32_t)levels - 1, length, groups, &levels));
    return HBP_OK;
}

/* Plans that are weighed against each other. */
typedef struct weighing {
    const hbp__epoch *epoch;
    int64_t tokens_per_step;
    int64_t micro_batches; /* of the faster layout */
    hbp_plan *hierarchy;   /* or what is no better than it in mixture; NULL: none */
    hbp_plan *mixture;     /* NULL: none */
    int64_t guess_ns;      /* what a mixture would take that was not planned; 0, INT64_MAX: not known */
    int64_t least_tokens; /* of the largest step of a plan that passed tokens_per_step; INT64_MAX: none did */
} weighing;

/* What a plan takes; with drop_last, for plans then train different samples, what all would take at its rate.
 */
static int64_t time_of(const hbp__epoch *epoch, const hbp_plan *plan)
{
    int64_t tokens = 0;
    if (!plan || !epoch->options.drop_last)
        return plan ? hbp__plan_ns(plan) : INT64_MAX;
    for (int64_t i = 0; i < plan->steps; i++)
        tokens += plan->step_tokens[i];
    return tokens
               ? hbp__round_i64((double)hbp__plan_ns(plan) / (double)tokens * (double)epoch->lengths->tokens)
               : INT64_MAX;
}

static hbp_status assemble_candidate(const search *s, const candidate *c, hbp_plan **out)
{
    return c->is_there ? hbp__assemble(s->epoch->context, c->packs, c->groups, s->epoch->cost, &s->balance,
                                       &c->layout.batches, &c->layout.steps, out)
                       : HBP_OK;
}

/* Whether a plan keeps to the tokens that were asked for; a chosen number is no promise. */
static int keeps_tokens(weighing *w, const hbp_plan *plan)
{
    int64_t limit = w->epoch->options.tokens_per_step, most = 0;
    for (int64_t i = 0; limit && i < plan->steps; i++)
        most = hbp__max_i64(most, plan->step_tokens[i]);
    if (most > limit)
        w->least_tokens = hbp__min_i64(w->least_tokens, most);
    return most <= limit;
}

static void discard_plan(hbp_plan **plan)
{
    hbp_plan_free(*plan);
    *plan = NULL;
}

/* A mixed layout that is not much nearer to the mixture than the hierarchy (steps of one micro-batch cannot
 * be) stands in for it where it is faster, and says what it is where steps cannot be planned one by one
 * instead. */
static hbp_status tell_layouts(weighing *w, const search *s, int may_plan_steps)
{
    double far, near;
    HBP__TRY(hbp__plan_mixture(w->epoch->context, w->hierarchy, &far));
    HBP__TRY(hbp__plan_mixture(w->epoch->context, w->mixture, &near));
    if (near <= HBP__MIXTURE_NEAR || near <= far * HBP__MIXTURE_SHARE)
        return HBP_OK;
    if (!may_plan_steps) {
        w->mixture->composition = HBP_COMPOSITION_HIERARCHY;
        return HBP_OK;
    }
    hbp_plan *slower = w->hierarchy;
    if (hbp__layout_is_faster(&s->mixed.layout, &s->pure.layout)) {
        w->hierarchy = w->mixture;
        w->mixture = slower;
    }
    discard_plan(&w->mixture);
    return HBP_OK;
}

/* The plans of both layouts. */
static hbp_status take_layouts(weighing *w, const search *s, int may_plan_steps)
{
    int64_t asked = w->epoch->options.tokens_per_step; /* given groups may have more */
    w->tokens_per_step = asked ? asked : s->pure.groups->tokens_per_step;
    w->micro_batches = s->pure.layout.batches.count;
    if (s->mixed.is_there)
        w->micro_batches = hbp__min_i64(w->micro_batches, s->mixed.layout.batches.count);
    HBP__TRY(assemble_candidate(s, &s->pure, &w->hierarchy));
    HBP__TRY(assemble_candidate(s, &s->mixed, &w->mixture));
    if (w->hierarchy && !keeps_tokens(w, w->hierarchy))
        discard_plan(&w->hierarchy);
    if (w->mixture && !keeps_tokens(w, w->mixture))
        discard_plan(&w->mixture);
    return w->hierarchy && w->mixture ? tell_layouts(w, s, may_plan_steps) : HBP_OK;
}

/* The most that a plan of no hierarchy may take to be preferred to the hierarchy. */
static int64_t most_ns(const weighing *w)
{
    int32_t slack = w->epoch->options.mixture_slack;
    int64_t ns = time_of(w->epoch, w->hierarchy);
    if (w->epoch->options.composition == HBP_COMPOSITION_STRATIFIED || !w->hierarchy)
        return INT64_MAX;
    return hbp__add_saturating(ns, ns / 1000 * (slack ? hbp__max_i64(slack, 0) : HBP__MIXTURE_SLACK));
}

/* Whether planning steps one by one takes too long for the sake of their mixture alone, which no slack was
 * given for. */
static int is_dear(const weighing *w)
{
    const hbp_epoch_options *o = &w->epoch->options;
    return w->hierarchy && o->composition == HBP_COMPOSITION_AUTO && o->mixture_slack <= 0 &&
           hbp__price_of_search(w->epoch, w->tokens_per_step) >
               time_of(w->epoch, w->hierarchy) / HBP__STEPS_MIXTURE_PART;
}

/* Steps planned one by one in the place of the mixture, where they are worth it. */
static hbp_status try_steps(weighing *w, const hbp_groups *groups, const hbp_fill_options *fill,
                            const hbp_balance_options *balance, int64_t bound_ns)
{
    int64_t ns = time_of(w->epoch, w->mixture), limit = most_ns(w);
    hbp_plan *better = NULL;
    hbp__stratify s = {.epoch = w->epoch,
                       .groups = groups,
                       .fill = fill,
                       .balance = balance,
                       .tokens_per_step = w->tokens_per_step,
                       .micro_batches = w->micro_batches,
                       .bound_ns = bound_ns,
                       .most_ns = limit,
                       .saves_from_ns = w->mixture ? ns : 0,
                       .guess_ns = &w->guess_ns};
    if (w->mixture && ns <= limit) {
        int64_t won = bound_ns ? ns - bound_ns : INT64_MAX;
        if (won <= hbp__max_i64(bound_ns / 1000 * HBP__STEPS_WORTH,
                                hbp__price_of_steps(w->epoch, w->tokens_per_step)))
            return HBP_OK;
        s.most_ns = ns - 1;
    }
    if (!w->mixture && is_dear(w)) {
        /* Only to be faster than the hierarchy; else a guess to tell will do. */
        int64_t price = hbp__price_of_steps(w->epoch, w->tokens_per_step);
        ns = time_of(w->epoch, w->hierarchy);
        if (price > HBP__STEPS_FREE_NS)
            ns -= hbp__min_i64(ns - 1, hbp__mul_saturating(price, HBP__STEPS_CLEARLY - 1));
        s.saves_from_ns = ns;
        s.most_ns = bound_ns && ns - bound_ns <= bound_ns / 1000 * HBP__STEPS_WORTH_DEAR ? 0 : ns - 1;
    }
    HBP__TRY(hbp__epoch_stratify(&s, &better));
    if (better) {
        discard_plan(&w->mixture);
        w->mixture = better;
    }
    return HBP_OK;
}

/* Mends the plans that may be taken. Where they are weighed against each other both are: the hierarchy may be
 * faster then, or either slower. */
static hbp_status mend_plans(weighing *w, int64_t *room)
{
    int64_t left = *room;
    if (w->hierarchy && (!w->mixture || most_ns(w) < INT64_MAX))
        HBP__TRY(hbp__epoch_mend(w->epoch, &left, &w->hierarchy));
    if (w->mixture && time_of(w->epoch, w->mixture) <= most_ns(w))
        HBP__TRY(hbp__epoch_mend(w->epoch, room, &w->mixture));
    *room = hbp__min_i64(*room, left);
    return HBP_OK;
}

/* Whether drawing is the only way to plan steps one by one that the options leave. */
static int may_draw_alone(const hbp_epoch_options *o)
{
    return o->composition == HBP_COMPOSITION_AUTO && o->drop_last && !o->groups && !o->window_samples &&
           !o->modality_order;
}

/* What is left of both plans, as the composition asks for it. */
static hbp_status decide_plan(weighing *w, int64_t bound_ns, int64_t *room, hbp_plan **out)
{
    if (!w->mixture && !w->hierarchy)
        return hbp__epoch_refuse_tokens(w->epoch, w->tokens_per_step, w->least_tokens);
    HBP__TRY(mend_plans(w, room));
    int64_t hierarchy_ns = time_of(w->epoch, w->hierarchy), mixture_ns = time_of(w->epoch, w->mixture);
    hbp_plan *plan = w->mixture && mixture_ns <= most_ns(w) ? w->mixture : w->hierarchy;
    if (!w->mixture && w->guess_ns && w->guess_ns < INT64_MAX)
        mixture_ns = hbp__max_i64(w->guess_ns, bound_ns);
    if (w->mixture && w->mixture->composition == HBP_COMPOSITION_HIERARCHY)
        mixture_ns = INT64_MAX; /* there is none to tell of */
    if (w->hierarchy && mixture_ns < INT64_MAX) {
        plan->hierarchy_ns = hierarchy_ns;
        plan->mixture_ns = mixture_ns;
    } else if (!w->hierarchy && w->epoch->options.composition == HBP_COMPOSITION_AUTO) {
        plan->mixture_ns = mixture_ns; /* no hierarchy keeps to the options */
    }
    if (plan == w->hierarchy)
        plan->composition = HBP_COMPOSITION_HIERARCHY;
    else if (!plan->composition) /* a layout */
        plan->composition = HBP_COMPOSITION_STRATIFIED;
    plan->tokens_per_step = w->tokens_per_step;
    HBP__TRY(hbp__epoch_set_bound(w->epoch, w->tokens_per_step, bound_ns, plan));
    if (plan == w->hierarchy)
        w->hierarchy = NULL;
    else
        w->mixture = NULL;
    *out = plan;
    return HBP_OK;
}

static void weighing_close(weighing *w)
{
    discard_plan(&w->hierarchy);
    discard_plan(&w->mixture);
}

/* With drop_last, steps are not planned one by one but by drawing: they are tried where that is soon done. */
static hbp_status try_drawn(weighing *w)
{
    hbp_plan *drawn = NULL;
    if (hbp__price_of_search(w->epoch, w->tokens_per_step) > HBP__STEPS_FREE_NS)
        return HBP_OK;
    hbp_status status = hbp__epoch_plan_drawn(w->epoch, w->tokens_per_step, &drawn);
    if (status == HBP_E_INFEASIBLE || status == HBP_E_INVALID)
        return hbp__forgive(w->epoch->context);
    HBP__TRY(status);
    if (time_of(w->epoch, drawn) < time_of(w->epoch, w->mixture)) {
        discard_plan(&w->mixture);
        w->mixture = drawn;
    } else {
        hbp_plan_free(drawn);
    }
    return HBP_OK;
}

hbp_status hbp__epoch_mix(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                          const hbp_packs *packs, const hbp_fill_options *fill,
                          const hbp_balance_options *balance, int64_t *room, hbp_plan **out)
{
    hbp__epoch part = *epoch;
    part.lengths = lengths;
    search s = {&part, fill, *balance, {.is_there = 0}, {.is_there = 0}};
    weighing w = {&part, 0, 0, NULL, NULL, 0, INT64_MAX};
    int64_t bound_ns = 0;
    hbp_status status = hbp__balance_check(epoch->context, packs, groups, epoch->cost, &s.balance);
    if (status >= 0)
        status = search_layouts(&s, groups, packs);
    if (status >= 0)
        status = take_layouts(&w, &s, hbp__epoch_may_plan_steps(&part));
    if (status >= 0)
        status = hbp__epoch_bound(w.epoch, w.tokens_per_step, 1, &bound_ns);
    if (status >= 0 && hbp__epoch_may_plan_steps(&part))
        status = try_steps(&w, groups, fill, &s.balance, bound_ns);
    if (status >= 0 && may_draw_alone(&part.options))
        status = try_drawn(&w);
    if (status >= 0)
        status = decide_plan(&w, bound_ns, room, out);
    weighing_close(&w);
    candidate_close(&s.mixed);
    candidate_close(&s.pure);
    return status;
}

/* Steps planned one by one alone: where no groups keep to the options. With may_sort steps of samples of like
 * length are the hierarchy. */
static hbp_status weigh_steps(const hbp__epoch *epoch, int64_t tokens_per_step, int may_sort, int64_t *room,
                              hbp_plan **out)
{
    weighing w = {epoch, tokens_per_step, 0, NULL, NULL, 0, INT64_MAX};
    int64_t bound_ns = 0;
    HBP__TRY(hbp__epoch_check_caps(epoch));
    hbp_status status = hbp__epoch_bound(w.epoch, w.tokens_per_step, 1, &bound_ns);
    if (status >= 0 && may_sort && epoch->options.composition != HBP_COMPOSITION_STRATIFIED)
        status = hbp__epoch_sort(epoch, tokens_per_step, bound_ns, &w.hierarchy);
    if (w.hierarchy)
        w.micro_batches = w.hierarchy->micro_batches;
    if (status >= 0 && epoch->options.composition != HBP_COMPOSITION_HIERARCHY)
        status = try_steps(&w, NULL, NULL, NULL, bound_ns);
    if (status >= 0)
        status = decide_plan(&w, bound_ns, room, out);
    weighing_close(&w);
    return status;
}

/* The same with drop_last: steps of samples of like length, where tokens were asked for, or drawn ones. */
static hbp_status weigh_drawn(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t *room, hbp_plan **out)
{
    weighing w = {epoch, tokens_per_step, 0, NULL, NULL, 0, INT64_MAX};
    hbp_status status = HBP_OK;
    if (epoch->options.tokens_per_step)
        status = hbp__epoch_sort(epoch, tokens_per_step, 0, &w.hierarchy);
    if (status >= 0)
        status = w.hierarchy ? try_drawn(&w) : hbp__epoch_plan_drawn(epoch, tokens_per_step, &w.mixture);
    if (status >= 0)
        status = decide_plan(&w, 0, room, out);
    weighing_close(&w);
    return status;
}

/* Whether groups cannot keep to the options, so that steps must be planned one by one. */
static int needs_steps(const hbp_epoch_options *o)
{
    return o->micro_batches_per_step || o->equal_samples;
}

hbp_status hbp__epoch_weigh(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp__trial hierarchy = {NULL, NULL, 0};
    hbp_fill_options fill;
    hbp_balance_options balance;
    int64_t tokens = 0, room = HBP__MEND_SAMPLES;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp__epoch_balance_options(epoch, &balance);
    if (needs_steps(&epoch->options)) {
        HBP__TRY(hbp__epoch_choose_tokens(epoch, &tokens));
        return weigh_steps(epoch, tokens, 0, &room, out);
    }
    hbp_status status = hbp__epoch_choose(epoch, &hierarchy);
    if (status == HBP_E_INFEASIBLE && hbp__epoch_may_plan_steps(epoch)) {
        /* No groups keep to the tokens, caps or padding; steps may. */
        hbp__trial_close(&hierarchy);
        hbp__forgive(epoch->context);
        HBP__TRY(hbp__epoch_choose_tokens(epoch, &tokens));
        return weigh_steps(epoch, tokens, epoch->options.tokens_per_step > 0, &room, out);
    }
    if (status >= 0)
        status = hbp__epoch_mix(epoch, epoch->lengths, epoch->groups ? epoch->groups : hierarchy.groups,
                                hierarchy.packs, &fill, &balance, &room, out);
    hbp__trial_close(&hierarchy);
    if (status == HBP_E_INFEASIBLE && may_draw_alone(&epoch->options)) {
        hbp__forgive(epoch->context);
        HBP__TRY(hbp__epoch_choose_tokens(epoch, &tokens));
        return weigh_drawn(epoch, tokens, &room, out);
    }
    return status;
}
