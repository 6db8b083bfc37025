/* Mode mixed: micro-batches that mix SP degrees, steps that are each a small copy of the epoch. The
 * hierarchy itself is one of the candidates, so the plan is never longer than the hierarchy's. */
#include "base/checked.h"
#include "data/plan.h"
#include "epoch/epoch.h"
#include "hbp/simulate.h"
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
    const hbp__epoch *epoch;
    const hbp_lengths *lengths;
    const hbp_fill_options *fill;
    hbp_balance_options balance; /* checked */
    int one_step;
    candidate best;
} search;

static void candidate_close(candidate *c)
{
    hbp__layout_close(&c->layout);
    hbp_packs_free(c->owned_packs);
    hbp_groups_free(c->owned_groups);
    *c = (candidate){.is_there = 0};
}

/* Keeps the faster of `other` and the best so far, which wins when they are equal; closes the slower. */
static void keep_faster(search *s, candidate *other)
{
    if (!s->best.is_there || hbp__layout_is_faster(&other->layout, &s->best.layout)) {
        candidate slower = s->best;
        s->best = *other;
        *other = slower;
    }
    candidate_close(other);
}

typedef hbp_status (*layout_function)(hbp_context *, const hbp_packs *, const hbp_groups *, const hbp_cost *,
                                      const hbp_balance_options *, int, hbp__layout *);

/* Lays a candidate's packs out and keeps it if it is the fastest. One that drop_last leaves no step is no
 * failure while there is another. Takes what the candidate owns. */
static hbp_status consider(search *s, layout_function open, candidate *c)
{
    hbp_context *context = s->epoch->context;
    hbp_status status =
        open(context, c->packs, c->groups, s->epoch->cost, &s->balance, s->one_step, &c->layout);
    c->is_there = status >= 0;
    if (status >= 0) {
        keep_faster(s, c);
        return HBP_OK;
    }
    candidate_close(c);
    if (status == HBP_E_INFEASIBLE && s->best.is_there)
        return hbp__enter(context); /* clears its message */
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
    hbp_status status = hbp_greedy_fill(s->epoch->context, s->lengths, &narrow, s->fill, &c.owned_packs);
    if (status < 0) {
        candidate_close(&c);
        return status;
    }
    c.packs = c.owned_packs;
    return consider(s, hbp__layout_open_mixed, &c);
}

static int are_equal(const hbp_groups *a, const hbp_groups *b)
{
    int equal = a->count == b->count;
    for (int64_t g = 0; equal && g < a->count; g++)
        equal = a->threshold[g] == b->threshold[g] && a->pack_length[g] == b->pack_length[g] &&
                a->sp[g] == b->sp[g] && a->recompute[g] == b->recompute[g];
    return equal;
}

/* At most `most` levels; *levels gets how many there are, 0 when there is no such hierarchy. `known` have
 * been considered. */
static hbp_status consider_groups(search *s, int32_t most, int64_t max_length, const hbp_groups *known,
                                  int64_t *levels)
{
    hbp_groups *groups = NULL;
    hbp_groups_options options;
    hbp__epoch_groups_options(&s->epoch->options, &options);
    options.max_groups = most;
    options.max_length = max_length;
    options.tokens_per_step = known->tokens_per_step;
    *levels = 0;
    hbp_status status = hbp_plan_groups(s->epoch->context, s->lengths, s->epoch->cost, &options, &groups);
    if (status == HBP_E_INFEASIBLE)
        return hbp__enter(s->epoch->context); /* clears its message */
    HBP__TRY(status);
    *levels = groups->count;
    if (!are_equal(groups, known))
        return consider_fill(s, groups, groups);
    hbp_groups_free(groups);
    return HBP_OK;
}

/* The bound for a plan with every sample in it; a limit on the tokens of a step is one on their number,
 * unless a single unit of micro-batches may pass it. */
static hbp_status set_bound(const search *s, int64_t limit, hbp_plan *plan)
{
    int64_t steps = 1, tokens = 0, bound_ns = 0;
    int is_limited = !s->one_step;
    for (int64_t i = 0; i < plan->steps; i++) {
        tokens += plan->step_tokens[i];
        is_limited = is_limited && plan->step_tokens[i] <= limit;
    }
    if (tokens != s->lengths->tokens)
        return HBP_OK; /* some were left over */
    if (is_limited)
        steps = hbp__ceil_div(tokens, limit);
    hbp_status status = hbp_bound_epoch(s->epoch->context, s->lengths, s->epoch->cost, steps, &bound_ns);
    if (status == HBP_E_INFEASIBLE || status == HBP_E_OVERFLOW)
        return hbp__enter(s->epoch->context); /* clears its message */
    plan->bound_ns = bound_ns;
    return status;
}

/* Packs longer than the longest sample, where no limit is given and a step has tokens for them: what each
 * micro-batch pays once is then shared by more of them. */
static hbp_status consider_longer_packs(search *s, const hbp_groups *known)
{
    const hbp_epoch_options *o = &s->epoch->options;
    int64_t longest = known->pack_length[known->count - 1], length = longest, levels;
    while (length <= known->tokens_per_step / known->ranks / 2)
        length *= 2;
    if (o->max_length || length == longest)
        return HBP_OK;
    return consider_groups(s, o->max_groups, length, known, &levels);
}

static hbp_status search_best(search *s, const hbp_groups *groups, const hbp_packs *packs)
{
    candidate pure = {.groups = groups, .packs = packs}, mixed = pure;
    HBP__TRY(consider(s, hbp__layout_open_mixed, &mixed));
    HBP__TRY(consider(s, hbp__layout_open_pure, &pure));
    HBP__TRY(consider_fill(s, groups, NULL));
    if (s->epoch->groups)
        return HBP_OK;
    HBP__TRY(consider_longer_packs(s, groups));
    if (s->lengths->count > HBP__TRY_SAMPLES)
        return HBP_OK;
    int64_t levels = s->epoch->options.max_groups, max_length = s->epoch->options.max_length;
    HBP__TRY(consider_groups(s, (int32_t)levels, max_length, groups, &levels));
    while (levels > 1)
        HBP__TRY(consider_groups(s, (int32_t)levels - 1, max_length, groups, &levels));
    return HBP_OK;
}

hbp_status hbp__epoch_mix(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                          const hbp_packs *packs, const hbp_fill_options *fill,
                          const hbp_balance_options *balance, int one_step, hbp_plan **out)
{
    search s = {epoch, lengths, fill, *balance, one_step, {.is_there = 0}};
    HBP__TRY(hbp__balance_check(epoch->context, packs, groups, epoch->cost, &s.balance));
    hbp_plan *plan = NULL;
    hbp_status status = search_best(&s, groups, packs);
    if (status >= 0)
        status = hbp__assemble(epoch->context, s.best.packs, s.best.groups, epoch->cost, &s.balance,
                               &s.best.layout.batches, &s.best.layout.steps, &plan);
    if (status >= 0) {
        hbp__stratify stratify = {epoch,
                                  lengths,
                                  s.best.groups,
                                  fill,
                                  &s.balance,
                                  s.best.layout.ns,
                                  s.best.layout.batches.count,
                                  s.one_step};
        status = hbp__epoch_stratify(&stratify, &plan);
    }
    if (status >= 0)
        status = set_bound(&s, s.best.groups->tokens_per_step, plan);
    candidate_close(&s.best);
    if (status >= 0)
        *out = plan;
    else
        hbp_plan_free(plan);
    return status;
}

hbp_status hbp__epoch_mixed(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp__trial hierarchy = {NULL, NULL, 0};
    hbp_fill_options fill;
    hbp_balance_options balance;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp__epoch_balance_options(&epoch->options, &balance);
    hbp_status status = hbp__epoch_choose(epoch, &hierarchy);
    if (status >= 0)
        status = hbp__epoch_mix(epoch, epoch->lengths, epoch->groups ? epoch->groups : hierarchy.groups,
                                hierarchy.packs, &fill, &balance, 0, out);
    hbp__trial_close(&hierarchy);
    return status;
}
