/* Ways to plan steps one by one, estimated from a few steps of each: built, or searched for where options do
 * not let them be built. */
#include "epoch/guess.h"
#include "base/checked.h"
#include "base/scratch.h"
#include "epoch/choose.h"
#include "epoch/price.h"
#include "epoch/tuning.h"

enum { WAYS = 7, SEEN = 48 };

/* The estimate of a way from so many of its steps. */
typedef struct seen {
    int64_t way;
    int64_t sample;
    int64_t ns;
} seen;

typedef struct guessing {
    const hbp__stratify *s;
    const hbp__epoch *part;
    int64_t micro_batches;
    int64_t others_ns;
    int64_t limit_ns; /* the most that all may take */
    hbp__guess *guess;
    hbp__ways ways;
    seen seen[SEEN];
    int32_t count; /* of `seen` */
} guessing;

/* The most that the plan of some samples may leave. */
static int64_t most_ns(const hbp__stratify *s, const hbp__epoch *part)
{
    int64_t cost = hbp__price_of_steps(part, s->tokens_per_step);
    cost = cost > HBP__STEPS_FREE_NS ? cost : 0;
    return s->saves_from_ns
               ? hbp__min_i64(s->most_ns, s->saves_from_ns - hbp__min_i64(cost, s->saves_from_ns))
               : s->most_ns;
}

/* Ways for the samples: as many steps as fill the tokens of a step, and as many as have micro-batches about
 * as full as the best layout's, a few more, and a shuffled sampler's. Returns how many. */
static int list_ways(const guessing *g, int64_t *ways)
{
    static const int64_t stretch[] = {HBP__DEAL_STRETCHES};
    const hbp__epoch *part = g->part;
    int64_t least = hbp__ceil_div(part->lengths->tokens, g->s->tokens_per_step);
    int64_t full = hbp__ceil_div(g->micro_batches, hbp__max_i64(1, g->micro_batches / least));
    int is_large = part->lengths->count / hbp__max_i64(1, least) > HBP__DEAL_LARGE_STEP;
    int count = 0, most = is_large || hbp__price_is_dear(part, g->s->tokens_per_step) ? 2 : 6;
    for (int i = 0; i < most; i++) {
        int64_t steps = hbp__ceil_div((i % 2 ? full : least) * stretch[i / 2], 1000);
        int is_new = steps >= 1 && steps <= part->lengths->count;
        for (int k = 0; k < count; k++)
            is_new = is_new && ways[k] != steps;
        if (is_new)
            ways[count++] = steps;
    }
    if (g->s->epoch->options.composition == HBP_COMPOSITION_AUTO)
        ways[count++] = HBP__WAY_DRAWN;
    return count;
}

void hbp__ways_open(const hbp__stratify *s, const hbp__epoch *part, hbp__ways *ways)
{
    *ways = (hbp__ways){.part = *part, .mark = hbp__scratch_mark(part->context)};
    ways->part.options.samples_per_step = 0;
    ways->part.options.tokens_per_step = s->tokens_per_step;
}

void hbp__ways_close(hbp__ways *ways)
{
    hbp__deal_close(&ways->deal);
    hbp__scratch_release(ways->part.context, ways->mark);
}

/* Finds what all ways share, once. */
static hbp_status prepare(hbp__ways *ways, int64_t way)
{
    const hbp__epoch *part = &ways->part;
    if (part->options.curriculum_steps && !ways->shortest)
        HBP__TRY(hbp__epoch_shortest(part, &ways->shortest));
    ways->shortest = ways->shortest ? ways->shortest : INT64_MAX;
    if (way == HBP__WAY_DRAWN || ways->is_dealt)
        return HBP_OK;
    hbp__deal_close(&ways->deal); /* of a failure */
    HBP__TRY(hbp__deal_open(part, ways->shortest, 0, &ways->deal));
    ways->is_dealt = 1;
    return HBP_OK;
}

hbp_status hbp__ways_take(hbp__ways *ways, int64_t way, hbp__batches *b)
{
    const hbp__epoch *part = &ways->part;
    int64_t most;
    *b = (hbp__batches){.steps = 0};
    HBP__TRY(prepare(ways, way));
    if (way == HBP__WAY_DRAWN)
        return hbp__batches_draw(part, ways->shortest, b);
    HBP__TRY(hbp__deal_cut(&ways->deal, way, b));
    HBP__TRY(hbp__batches_most_tokens(part->context, b, part->lengths, &most));
    return most <= part->options.tokens_per_step ? HBP_OK : HBP_E_INFEASIBLE;
}

static hbp_status build_some(guessing *g, int64_t way, int64_t sample, int64_t *ns)
{
    hbp__epoch quick = *g->part;
    hbp__batches b;
    *ns = INT64_MAX;
    quick.options.effort = quick.options.effort > 1 ? 1 : quick.options.effort;
    hbp_status status = hbp__ways_take(&g->ways, way, &b);
    b.how = HBP__BATCHES_BUILT;
    if (status >= 0)
        status = hbp__batches_estimate(&quick, &b, sample, ns);
    hbp__batches_close(&b);
    if (status != HBP_E_INFEASIBLE && status != HBP_E_INVALID)
        return status;
    *ns = INT64_MAX;
    return hbp__forgive(g->s->epoch->context);
}

/* About what a way takes, from at least `sample` of its steps, or 0 (batches.h); INT64_MAX where it keeps not
 * to the tokens or the options. */
static hbp_status estimate_way(guessing *g, int64_t way, int64_t sample, int64_t *ns)
{
    for (int32_t i = 0; i < g->count; i++)
        if (g->seen[i].way == way && g->seen[i].sample >= sample) {
            *ns = g->seen[i].ns;
            return HBP_OK;
        }
    HBP__TRY(build_some(g, way, sample, ns));
    if (g->count < SEEN)
        g->seen[g->count++] = (seen){way, sample, *ns};
    return HBP_OK;
}

static void open_guess(hbp__guess *guess)
{
    *guess = (hbp__guess){.dealt_ns = INT64_MAX, .drawn_ns = INT64_MAX};
}

/* Whether what a way takes is as little as it may be. */
static int is_near(const guessing *g, int64_t ns)
{
    return ns < INT64_MAX && hbp__add_saturating(ns, g->others_ns) <= g->limit_ns;
}

/* Tells the least that a way to plan the whole epoch seems to take. */
static void note_least(const guessing *g, int64_t ns)
{
    int64_t *least = g->part == g->s->epoch ? g->s->guess_ns : NULL;
    if (least && (!*least || ns < *least))
        *least = ns;
}

/* Estimates a way, and keeps it where it is the best. */
static hbp_status look_at(guessing *g, int64_t way, int64_t sample, int64_t *ns)
{
    hbp__guess *guess = g->guess;
    HBP__TRY(estimate_way(g, way, sample, ns));
    note_least(g, *ns);
    if (way == HBP__WAY_DRAWN) {
        guess->drawn_ns = *ns;
        guess->is_drawn_near = is_near(g, *ns);
    } else if (*ns < guess->dealt_ns) {
        guess->dealt_ns = *ns;
        guess->dealt = way;
    }
    guess->is_near |= is_near(g, *ns);
    return HBP_OK;
}

/* Of the steps of a way, `asked` or as many as estimates of so many ways have room for. */
static int64_t sample_of(const guessing *g, int64_t way, int ways, int64_t asked)
{
    int64_t steps = way ? way : hbp__ceil_div(g->part->lengths->tokens, g->s->tokens_per_step);
    const int64_t count = g->part->lengths->count;
    int64_t room = hbp__max_i64(HBP__GUESS_SAMPLES, count / HBP__GUESS_PART) / ways;
    room /= hbp__max_i64(1, count / steps);
    return hbp__max_i64(1, hbp__min_i64(asked, room));
}

/* Whether a few steps of a shuffled sampler, where it may be asked, or of the first even ones listed seem to
 * take as little as they may, but for a doubt: else it is not worth looking closer. *least gets what they
 * seem to take. */
static hbp_status look_first(guessing *g, const int64_t *ways, int count, int64_t *least, int *is_worth)
{
    *is_worth = 0;
    *least = INT64_MAX;
    for (int k = 0; k < count && k < HBP__GUESS_FIRST_WAYS && !*is_worth; k++) {
        const int64_t way = ways[k ? k - 1 : count - 1];
        int64_t ns;
        HBP__TRY(estimate_way(g, way, sample_of(g, way, count, HBP__GUESS_FIRST_STEPS), &ns));
        *least = hbp__min_i64(*least, ns);
        *is_worth = ns < INT64_MAX && is_near(g, ns - ns / HBP__GUESS_DOUBT);
    }
    return HBP_OK;
}

/* The same of ways between; of one step the longest's is left out until a way is the best of them. */
static int64_t sample_between(const guessing *g, int64_t way, int is_best)
{
    const int64_t sample = sample_of(g, way, HBP__GUESS_BETWEEN, HBP__GUESS_STEPS);
    return sample > 1 || is_best ? sample : 0;
}

/* Estimates a number of steps; where it takes less than *ns, *steps and *ns become its own. */
static hbp_status look_for_less(guessing *g, int64_t way, int64_t *steps, int64_t *ns)
{
    int64_t way_ns;
    HBP__TRY(estimate_way(g, way, sample_between(g, way, 0), &way_ns));
    if (way_ns < *ns) {
        *steps = way;
        *ns = way_ns;
    }
    return HBP_OK;
}

/* Steps that are copies of the epoch may not fill their micro-batches as well as the layout that *steps is
 * of, or not keep to the options: more steps, as long as that is far off the bound and none of them has taken
 * less. (A few more may take longer still, with as many micro-batches each.) */
static hbp_status look_beyond(guessing *g, int64_t *steps, int64_t *ns)
{
    const int64_t from = *steps, most = g->part->lengths->count;
    for (int64_t k = 1; k <= HBP__DEAL_BEYOND && *steps == from &&
                        hbp__stratify_is_far_off(g->s, *ns, HBP__DEAL_VERY_FAR_OFF);
         k++) {
        const int64_t more = from + hbp__ceil_div(from * k, HBP__DEAL_BEYOND_PART);
        HBP__TRY(more <= most ? look_for_less(g, more, steps, ns) : HBP_OK);
    }
    return HBP_OK;
}

/* Where a step has few micro-batches, a number of steps between those that are listed may have fewer in all:
 * fewer steps than the best layout, each of as many micro-batches as its own, with more layers recomputed.
 * The best that is known takes `best_ns`. Halves between the fewest steps and as many as that layout's
 * micro-batches fill, or a few more. */
static hbp_status look_between(guessing *g, int64_t best_ns)
{
    const hbp__epoch *part = g->part;
    const int64_t least = hbp__ceil_div(part->lengths->tokens, g->s->tokens_per_step);
    /* Of very many steps some say less of a number than near ones differ by. */
    const int64_t worth = least > HBP__DEAL_MOST ? HBP__DEAL_VERY_FAR_OFF : HBP__DEAL_FAR_OFF;
    if (part != g->s->epoch || !hbp__stratify_is_far_off(g->s, best_ns, worth))
        return HBP_OK;
    for (int64_t each = 1; each <= HBP__DEAL_MICRO_BATCHES && each * least < g->micro_batches; each++) {
        int64_t low = least, high = hbp__ceil_div(g->micro_batches, each), high_ns = INT64_MAX, ns;
        if (high > 2 * least || high > part->lengths->count)
            continue;
        HBP__TRY(look_for_less(g, high, &high, &high_ns));
        HBP__TRY(look_beyond(g, &high, &high_ns));
        while (high - low > hbp__max_i64(1, high / HBP__DEAL_PRECISE)) {
            const int64_t middle = low + (high - low) / 2, before = high;
            HBP__TRY(look_for_less(g, middle, &high, &high_ns));
            low = high == before ? middle : low;
        }
        HBP__TRY(look_at(g, high, sample_between(g, high, 1), &ns));
    }
    return HBP_OK;
}

/* Where few of very many steps were looked at, and seem to take as little as they may, more are. */
static hbp_status look_closer(guessing *g)
{
    const int64_t steps = hbp__ceil_div(g->part->lengths->tokens, g->s->tokens_per_step);
    const hbp__guess before = *g->guess;
    int64_t ns;
    if (!before.is_near || hbp__guess_is_soon(g->s, g->part) || g->limit_ns == INT64_MAX ||
        steps < HBP__GUESS_SURE_PART * HBP__GUESS_SURE_STEPS)
        return HBP_OK;
    if (g->s->guess_ns && g->part == g->s->epoch)
        *g->s->guess_ns = 0;
    open_guess(g->guess);
    if (is_near(g, before.dealt_ns))
        HBP__TRY(look_at(g, before.dealt, HBP__GUESS_SURE_STEPS, &ns));
    if (before.is_drawn_near && (!g->guess->is_near || before.drawn_ns < before.dealt_ns))
        HBP__TRY(look_at(g, HBP__WAY_DRAWN, HBP__GUESS_SURE_STEPS, &ns));
    return HBP_OK;
}

/* Looks at the ways listed and, where none of even steps keeps to the tokens of a step or to the options, at
 * a few with more steps. */
static hbp_status look_at_all(guessing *g, const int64_t *ways, int count)
{
    const int64_t asked = g->s->epoch->options.mixture_slack > 0 ? HBP__GUESS_SLACK_STEPS : HBP__GUESS_STEPS;
    const int64_t samples = g->part->lengths->count;
    int64_t ns;
    for (int i = 0; i < count; i++)
        HBP__TRY(look_at(g, ways[i], sample_of(g, ways[i], count, asked), &ns));
    int64_t way = count ? ways[0] : HBP__WAY_DRAWN;
    for (int i = 0; i < HBP__DEAL_MORE && !g->guess->dealt && way && way < samples; i++) {
        way = hbp__min_i64(way + way / HBP__OWED_MORE_PART + 1, samples);
        HBP__TRY(look_at(g, way, sample_of(g, way, count, asked), &ns));
    }
    return HBP_OK;
}

static hbp_status look(guessing *g)
{
    int64_t ways[WAYS], least = INT64_MAX;
    const int count = list_ways(g, ways);
    int is_worth = 1;
    if (g->limit_ns < INT64_MAX && !hbp__guess_is_soon(g->s, g->part))
        HBP__TRY(look_first(g, ways, count, &least, &is_worth));
    if (is_worth)
        HBP__TRY(look_at_all(g, ways, count));
    else
        note_least(g, least);
    if (is_worth)
        least = hbp__min_i64(g->guess->dealt_ns, g->guess->drawn_ns);
    const hbp__guess listed = *g->guess;
    HBP__TRY(look_between(g, least));
    HBP__TRY(look_closer(g));
    if (g->guess->dealt && g->guess->dealt != listed.dealt) {
        g->guess->listed = listed.dealt;
        g->guess->listed_ns = listed.dealt_ns;
    }
    return HBP_OK;
}

hbp_status hbp__guess_way(const hbp__stratify *s, const hbp__epoch *part, int64_t micro_batches,
                          int64_t others_ns, hbp__guess *guess)
{
    guessing g = {.s = s,
                  .part = part,
                  .micro_batches = micro_batches,
                  .others_ns = others_ns,
                  .limit_ns = most_ns(s, part),
                  .guess = guess};
    open_guess(guess);
    hbp__ways_open(s, part, &g.ways);
    const hbp_status status = look(&g);
    hbp__ways_close(&g.ways);
    return status;
}

int hbp__guess_is_soon(const hbp__stratify *s, const hbp__epoch *part)
{
    return !hbp__price_is_dear(part, s->tokens_per_step) &&
           hbp__price_of_search(part, s->tokens_per_step) <= HBP__STEPS_FREE_NS / HBP__STEPS_SOON;
}
