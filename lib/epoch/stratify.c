/* Steps that are planned one by one, in the place of a layout of packs. */
#include "epoch/stratify.h"
#include "base/checked.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/choose.h"
#include "epoch/price.h"
#include "epoch/tuning.h"

/* The most that the plan of some samples may leave. */
static int64_t most_ns(const hbp__stratify *s, const hbp__epoch *part)
{
    int64_t cost = hbp__price_of_steps(part, s->tokens_per_step);
    cost = cost > HBP__STEPS_FREE_NS ? cost : 0;
    return s->saves_from_ns
               ? hbp__min_i64(s->most_ns, s->saves_from_ns - hbp__min_i64(cost, s->saves_from_ns))
               : s->most_ns;
}

/* Steps to be planned one by one: drawn (`steps` 0), or dealt into so many. */
typedef struct way {
    int32_t composition;
    int64_t steps;
} way;

enum { WAYS = 7 };

/* Ways for the samples of `part`: as many steps as fill the tokens of a step, and as many as have
 * micro-batches about as full as the best layout's, a few more, and a shuffled sampler's. Returns how many.
 */
static int list_ways(const hbp__stratify *s, const hbp__epoch *part, int64_t micro_batches, way *ways)
{
    static const int64_t stretch[] = {HBP__DEAL_STRETCHES};
    int64_t least = hbp__ceil_div(part->lengths->tokens, s->tokens_per_step);
    int64_t full = hbp__ceil_div(micro_batches, hbp__max_i64(1, micro_batches / least));
    int is_large = part->lengths->count / hbp__max_i64(1, least) > HBP__DEAL_LARGE_STEP;
    int count = 0, most = is_large || hbp__price_is_dear(part, s->tokens_per_step) ? 2 : 6;
    for (int i = 0; i < most; i++) {
        int64_t steps = hbp__ceil_div((i % 2 ? full : least) * stretch[i / 2], 1000);
        int is_new = steps >= 1 && steps <= part->lengths->count;
        for (int k = 0; k < count; k++)
            is_new = is_new && ways[k].steps != steps;
        if (is_new)
            ways[count++] = (way){HBP_COMPOSITION_STRATIFIED, steps};
    }
    if (s->epoch->options.composition == HBP_COMPOSITION_AUTO)
        ways[count++] = (way){HBP_COMPOSITION_RANDOM, 0};
    return count;
}

/* The batches of a way; HBP_E_INFEASIBLE, without a message, where a step has more tokens than it may. */
static hbp_status open_way(const hbp__stratify *s, const hbp__epoch *part, way w, hbp__batches *b)
{
    hbp__epoch own = *part;
    int64_t shortest = INT64_MAX;
    *b = (hbp__batches){.steps = 0};
    own.options.samples_per_step = 0;
    own.options.tokens_per_step = s->tokens_per_step;
    if (own.options.curriculum_steps)
        HBP__TRY(hbp__epoch_shortest(part, &shortest));
    if (!w.steps)
        return hbp__batches_draw(&own, shortest, b);
    HBP__TRY(hbp__batches_deal(&own, w.steps, shortest, b));
    int64_t most;
    HBP__TRY(hbp__batches_most_tokens(part->context, b, part->lengths, &most));
    return most <= s->tokens_per_step ? HBP_OK : HBP_E_INFEASIBLE;
}

/* About what a way takes, from `sample` of its steps planned without further effort; INT64_MAX where it keeps
 * not to the tokens or the options. */
static hbp_status estimate_way(const hbp__stratify *s, const hbp__epoch *part, way w, int64_t sample,
                               int64_t *ns)
{
    hbp__epoch quick = *part;
    hbp__batches b;
    *ns = INT64_MAX;
    quick.options.effort = quick.options.effort > 1 ? 1 : quick.options.effort;
    hbp_status status = open_way(s, part, w, &b);
    b.how = HBP__BATCHES_BUILT;
    if (status >= 0)
        status = hbp__batches_estimate(&quick, &b, sample, ns);
    hbp__batches_close(&b);
    if (status != HBP_E_INFEASIBLE && status != HBP_E_INVALID)
        return status;
    *ns = INT64_MAX;
    return hbp__forgive(s->epoch->context);
}

static void note_guess(const hbp__stratify *s, const hbp__epoch *part, int64_t ns)
{
    if (s->guess_ns && part == s->epoch && (!*s->guess_ns || ns < *s->guess_ns))
        *s->guess_ns = ns;
}

/* Whether a few steps of a way seem to take at most `limit` beside `others_ns`, but for a doubt; *least gets
 * what they seem to take, where that is less. */
static hbp_status seems_near(const hbp__stratify *s, const hbp__epoch *part, way w, int64_t steps,
                             int64_t others_ns, int64_t limit, int64_t *least, int *is_near)
{
    int64_t ns, first = hbp__price_is_dear(part, s->tokens_per_step) ? HBP__GUESS_BUILT_STEPS
                                                                     : HBP__GUESS_FIRST_STEPS;
    HBP__TRY(estimate_way(s, part, w, hbp__min_i64(first, steps), &ns));
    *least = hbp__min_i64(*least, ns);
    *is_near = ns < INT64_MAX && hbp__add_saturating(ns - ns / HBP__GUESS_DOUBT, others_ns) <= limit;
    return HBP_OK;
}

/* Whether planning all steps is soon done, so that no estimate need tell whether it pays. */
static int is_soon_planned(const hbp__stratify *s, const hbp__epoch *part)
{
    return !hbp__price_is_dear(part, s->tokens_per_step) &&
           hbp__price_of_search(part, s->tokens_per_step) <= HBP__STEPS_FREE_NS / HBP__STEPS_SOON;
}

/* What estimates say of the ways to plan some samples. */
typedef struct guess {
    way best;        /* of least time; without steps where none keeps to the options */
    int64_t best_ns; /* INT64_MAX: none does */
    way dealt;       /* the best of those that are no shuffled sampler's; without steps likewise */
    int64_t dealt_ns;
    int is_near;       /* it seems to take as little as it may */
    int is_drawn_near; /* a shuffled sampler's steps do */
} guess;

/* A way's estimate, kept where it is the best. */
static void take_guess(const hbp__stratify *s, const hbp__epoch *part, way w, int64_t ns, int64_t others_ns,
                       guess *g)
{
    const int is_near = ns < INT64_MAX && hbp__add_saturating(ns, others_ns) <= most_ns(s, part);
    note_guess(s, part, ns);
    if (ns < g->best_ns) {
        g->best_ns = ns;
        g->best = w;
    }
    if (w.steps && ns < g->dealt_ns) {
        g->dealt_ns = ns;
        g->dealt = w;
    }
    g->is_near |= is_near;
    g->is_drawn_near |= is_near && w.composition == HBP_COMPOSITION_RANDOM;
}

/* Where a step has few micro-batches, a number of steps between those that are listed may have fewer in all:
 * fewer steps than the best layout, each of as many micro-batches as its own, with more layers recomputed.
 * The best that is known takes `best_ns`. Halves between the fewest steps and as many as that layout's
 * micro-batches fill. */
static hbp_status guess_between(const hbp__stratify *s, const hbp__epoch *part, int64_t micro_batches,
                                int64_t best_ns, guess *g)
{
    const int64_t least = hbp__ceil_div(part->lengths->tokens, s->tokens_per_step);
    if (part != s->epoch || !s->bound_ns || best_ns - s->bound_ns <= s->bound_ns / 1000 * HBP__DEAL_FAR_OFF)
        return HBP_OK;
    for (int64_t each = 1; each <= HBP__DEAL_MICRO_BATCHES && each * least < micro_batches; each++) {
        int64_t low = least, high = hbp__ceil_div(micro_batches, each), high_ns, ns;
        if (high > 2 * least || high > part->lengths->count)
            continue;
        way w = {HBP_COMPOSITION_STRATIFIED, high};
        HBP__TRY(estimate_way(s, part, w, 1, &high_ns));
        take_guess(s, part, w, high_ns, 0, g);
        while (high - low > 1) {
            w.steps = low + (high - low) / 2;
            HBP__TRY(estimate_way(s, part, w, 1, &ns));
            take_guess(s, part, w, ns, 0, g);
            if (ns < high_ns) {
                high = w.steps;
                high_ns = ns;
            } else {
                low = w.steps;
            }
        }
    }
    return HBP_OK;
}

/* Where few of very many steps were looked at, and seem to take as little as they may, more are. */
static hbp_status make_sure(const hbp__stratify *s, const hbp__epoch *part, int64_t others_ns, guess *g)
{
    const int64_t steps = hbp__ceil_div(part->lengths->tokens, s->tokens_per_step);
    int64_t ns;
    if (!g->is_near || is_soon_planned(s, part) || most_ns(s, part) == INT64_MAX ||
        steps < HBP__GUESS_SURE_PART * HBP__GUESS_SURE_STEPS)
        return HBP_OK;
    const guess seen = *g;
    if (s->guess_ns && part == s->epoch)
        *s->guess_ns = 0;
    *g = (guess){.best = seen.best, .best_ns = INT64_MAX, .dealt_ns = INT64_MAX};
    HBP__TRY(estimate_way(s, part, seen.best, HBP__GUESS_SURE_STEPS, &ns));
    take_guess(s, part, seen.best, ns, others_ns, g);
    const way drawn = {HBP_COMPOSITION_RANDOM, 0};
    if (g->is_near || !seen.is_drawn_near || seen.best.composition == drawn.composition)
        return HBP_OK;
    HBP__TRY(estimate_way(s, part, drawn, HBP__GUESS_SURE_STEPS, &ns));
    take_guess(s, part, drawn, ns, others_ns, g);
    return HBP_OK;
}

static hbp_status guess_way(const hbp__stratify *s, const hbp__epoch *part, int64_t micro_batches,
                            int64_t others_ns, guess *g)
{
    way ways[WAYS];
    int count = list_ways(s, part, micro_batches, ways);
    int64_t limit = most_ns(s, part), ns;
    int64_t sample = s->epoch->options.mixture_slack > 0 ? HBP__GUESS_SLACK_STEPS : HBP__GUESS_STEPS;
    if (hbp__price_is_dear(part, s->tokens_per_step))
        sample = s->epoch->options.mixture_slack > 0 ? HBP__GUESS_BUILT_SLACK_STEPS : HBP__GUESS_BUILT_STEPS;
    *g = (guess){.best = {HBP_COMPOSITION_STRATIFIED, 0}, .best_ns = INT64_MAX, .dealt_ns = INT64_MAX};
    for (int i = 0; i < count; i++) {
        int64_t steps = ways[i].steps ? ways[i].steps : hbp__max_i64(1, ways[0].steps);
        int64_t room = HBP__GUESS_SAMPLES / count / hbp__max_i64(1, part->lengths->count / steps);
        if (!i && limit < INT64_MAX && !is_soon_planned(s, part)) {
            /* Where a shuffled sampler's steps and even ones, the fewest and those of whole micro-batches,
             * are far off, it is not worth looking closer. */
            int is_worth = 0;
            int64_t least = INT64_MAX;
            for (int k = 0; k < count && k < HBP__GUESS_FIRST_WAYS && !is_worth; k++)
                HBP__TRY(seems_near(s, part, ways[k ? k - 1 : count - 1], room + 1, others_ns, limit, &least,
                                    &is_worth));
            if (!is_worth) {
                note_guess(s, part, least);
                HBP__TRY(guess_between(s, part, micro_batches, least, g));
                return make_sure(s, part, others_ns, g);
            }
        }
        HBP__TRY(estimate_way(s, part, ways[i], hbp__max_i64(1, hbp__min_i64(sample, room)), &ns));
        take_guess(s, part, ways[i], ns, others_ns, g);
    }
    HBP__TRY(guess_between(s, part, micro_batches, g->best_ns, g));
    return make_sure(s, part, others_ns, g);
}

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

/* No plan of `part` takes less, about: its share of the bound by tokens. */
static int64_t bound_of(const hbp__stratify *s, const hbp__epoch *part)
{
    return hbp__round_i64((double)s->bound_ns * (double)part->lengths->tokens /
                          (double)s->epoch->lengths->tokens);
}

static hbp_status plan_way(const hbp__stratify *s, const hbp__epoch *part, way w, hbp_plan **out)
{
    hbp__batches b;
    hbp__epoch own = *part;
    hbp_status status = open_way(s, part, w, &b);
    if (status >= 0)
        b.how = hbp__price_choose(&own, b.steps, part->lengths->count, bound_of(s, part));
    if (status >= 0)
        status = hbp__batches_plan(&own, &b, out);
    hbp__batches_close(&b);
    if (status >= 0)
        (*out)->composition = w.composition;
    return status;
}

/* A plan, whatever it takes: more and more steps, until they keep to the options; a shuffled sampler's keep
 * to any number of tokens that holds the longest sample. */
static hbp_status plan_at_any_price(const hbp__stratify *s, way w, hbp_plan **out)
{
    hbp_context *context = s->epoch->context;
    int64_t count = s->epoch->lengths->count;
    w.steps = hbp__max_i64(w.steps, hbp__ceil_div(s->epoch->lengths->tokens, s->tokens_per_step));
    w.composition = HBP_COMPOSITION_STRATIFIED;
    hbp_status status = plan_way(s, s->epoch, w, out);
    for (int i = 1; status == HBP_E_INFEASIBLE && w.steps < count; i++) {
        hbp__forgive(context);
        w.steps = hbp__min_i64(
            w.steps + w.steps / (i < HBP__OWED_TRIES ? HBP__OWED_MORE_PART : HBP__OWED_MOST_PART) + 1, count);
        status = plan_way(s, s->epoch, w, out);
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
    return plan_way(s, s->epoch, (way){HBP_COMPOSITION_RANDOM, 0}, out);
}

static void keep_faster_plan(hbp_plan **plan, hbp_plan **other)
{
    if (*other && (!*plan || hbp__plan_ns(*other) < hbp__plan_ns(*plan))) {
        hbp_plan *slower = *plan;
        *plan = *other;
        *other = slower;
    }
    hbp_plan_free(*other);
    *other = NULL;
}

/* A way as well, if its steps keep to the options. */
static hbp_status try_way(const hbp__stratify *s, way w, hbp_plan **plan)
{
    hbp_plan *other = NULL;
    hbp_status status = plan_way(s, s->epoch, w, &other);
    if (status == HBP_E_INFEASIBLE || status == HBP_E_INVALID)
        return hbp__forgive(s->epoch->context);
    HBP__TRY(status);
    keep_faster_plan(plan, &other);
    return HBP_OK;
}

/* Plans all samples step by step: the way that seems best, and a shuffled sampler's where it seems to do and
 * the other did not; the best of both kinds where they are soon planned, for estimates may err by more than
 * planning takes. */
static hbp_status try_whole(const hbp__stratify *s, hbp_plan **plan)
{
    guess g;
    int is_soon = is_soon_planned(s, s->epoch);
    int may_draw = s->epoch->options.composition == HBP_COMPOSITION_AUTO;
    HBP__TRY(guess_way(s, s->epoch, s->micro_batches, 0, &g));
    if (!g.is_near && s->most_ns == INT64_MAX && !s->saves_from_ns)
        return plan_at_any_price(s, g.best, plan);
    int is_drawn = g.best.composition == HBP_COMPOSITION_RANDOM;
    if (g.is_near || (is_soon && g.best.steps))
        HBP__TRY(try_way(s, g.best, plan));
    int is_slow = g.is_near && (!*plan || hbp__plan_ns(*plan) > s->most_ns);
    if (may_draw && (is_soon || (is_slow && g.is_drawn_near)) && !(is_drawn && *plan))
        HBP__TRY(try_way(s, (way){HBP_COMPOSITION_RANDOM, 0}, plan));
    if (is_drawn && is_soon && g.dealt.steps)
        HBP__TRY(try_way(s, g.dealt, plan));
    drop_slow(s, plan);
    return HBP_OK;
}

/* The same for the samples that those longer than `longest` leave. */
static hbp_status try_cut(const hbp__stratify *s, int64_t longest, hbp_plan **plan)
{
    hbp__parted parted;
    hbp__epoch part = *s->epoch;
    hbp_plan *rest = NULL;
    guess g = {.is_near = 0};
    HBP__TRY(hbp__parted_open(s->epoch, s->groups, s->fill, s->balance, longest, &parted));
    hbp_status status = HBP_OK;
    if (parted.rest) {
        int64_t left = hbp__max_i64(1, s->micro_batches - parted.longs->micro_batches);
        part.lengths = parted.rest;
        status = guess_way(s, &part, left, hbp__plan_ns(parted.longs), &g);
    }
    if (status >= 0 && g.is_near)
        status = plan_way(s, &part, g.best, &rest);
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
