/* Exact optima of small steps, independent of lib/step: of the library only hbp_cost_predict_* is asked.
 *
 * A step is a multiset of sequences; those of equal tokens and squares are one type, and a set of sequences
 * is a vector of counts. Degrees nest, so groups fit a machine exactly when their ranks do. Three ways, from
 * the plainest to the one for many different lengths:
 *
 * exact_step_plain_ns  tries every assignment to groups to micro-batches, for up to 6 sequences.
 * exact_step_ns        dynamic programming over vectors. Let g_d(w) be the time of w on one group of d ranks,
 *                      infinite where it does not fit, and h(r, x) the least makespan of x on groups of r
 * ranks together. In a best one, let w be the group that holds a sequence of the first type present in x, and
 * d its degree: h(r, x) = max(g_d(w), h(r - d, x - w)), and no choice of w and d falls below h(r, x), each
 * being a way to run x. The micro-batch that holds a sequence of the first type splits a step in the same
 * manner: best(m, x) = min over u of h(N, u) + best(m - 1, x - u). Every w and u is tried, so both are exact.
 * exact_micro_batch_ns one micro-batch of up to 24 different lengths by bin completion (see there). */
#ifndef HBP_TESTS_EXACT_STEP_H
#define HBP_TESTS_EXACT_STEP_H

#include "base/methods.h"
#include "test.h"

#define EXACT_SEQUENCES 24
#define EXACT_DEGREES   8
#define EXACT_NEVER     INT64_MAX

typedef struct exact_step {
    const hbp_cost *cost;
    hbp_step_options options;
    int32_t ranks;
    int32_t layers;
    int64_t dummy_ns;
    int whole_padding; /* micro-batches of dummies alone may complete a number, as in the published modes */
    int no_idle;       /* no rank of a micro-batch is without sequences */
    int32_t degrees;
    int32_t degree[EXACT_DEGREES];   /* ascending */
    int64_t count;                   /* sequences: a sample, or samples linked together */
    int64_t tokens[EXACT_SEQUENCES]; /* [count] descending, padded to the sequence multiple */
    double squares[EXACT_SEQUENCES];
    int64_t padded[EXACT_SEQUENCES][EXACT_DEGREES]; /* tokens in a group of each degree */
    int64_t samples[EXACT_SEQUENCES];
    int64_t vision[EXACT_SEQUENCES];
    int32_t types;
    int32_t type_count[EXACT_SEQUENCES]; /* [types] */
    int64_t type_first[EXACT_SEQUENCES]; /* a sequence of the type */
} exact_step;

static inline int64_t exact_round_up(int64_t a, int64_t b)
{
    return b > 1 ? (a + b - 1) / b * b : a;
}

static inline int64_t exact_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t exact_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What a pack of `d` ranks is padded to: `per_sp` for each rank, where there are several. */
static inline int64_t exact_multiple(int64_t plain, int64_t per_sp, int32_t d)
{
    int64_t all = plain ? plain : 1, step = all;
    while (d > 1 && per_sp && all % (per_sp * d))
        all += step;
    return all;
}

/* Below zero when sequence i comes before j: more tokens, then more squares. Zero when they are alike. */
static inline int exact_compare(const exact_step *e, int64_t i, int64_t j)
{
    if (e->tokens[i] != e->tokens[j])
        return e->tokens[i] > e->tokens[j] ? -1 : 1;
    if (e->squares[i] > e->squares[j] || e->squares[i] < e->squares[j])
        return e->squares[i] > e->squares[j] ? -1 : 1;
    if (e->samples[i] != e->samples[j])
        return e->samples[i] > e->samples[j] ? -1 : 1;
    if (e->vision[i] != e->vision[j])
        return e->vision[i] > e->vision[j] ? -1 : 1;
    return memcmp(e->padded[i], e->padded[j], sizeof e->padded[i]);
}

static inline void exact_swap(exact_step *e, int64_t i, int64_t j)
{
    exact_step old = *e;
    e->tokens[i] = old.tokens[j], e->tokens[j] = old.tokens[i];
    e->squares[i] = old.squares[j], e->squares[j] = old.squares[i];
    e->samples[i] = old.samples[j], e->samples[j] = old.samples[i];
    e->vision[i] = old.vision[j], e->vision[j] = old.vision[i];
    memcpy(e->padded[i], old.padded[j], sizeof old.padded[j]);
    memcpy(e->padded[j], old.padded[i], sizeof old.padded[i]);
}

/* `padded` [degrees] may be NULL: `tokens` on every degree. */
static inline void exact_add_padded(exact_step *e, int64_t tokens, double squares, int64_t samples,
                                    int64_t vision, const int64_t *padded)
{
    ck_assert_int_lt(e->count, EXACT_SEQUENCES);
    int64_t at = e->count++;
    e->tokens[at] = tokens;
    e->squares[at] = squares;
    e->samples[at] = samples;
    e->vision[at] = vision;
    for (int32_t j = 0; j < e->degrees; j++)
        e->padded[at][j] = padded ? padded[j] : tokens;
    for (; at > 0 && exact_compare(e, at, at - 1) < 0; at--)
        exact_swap(e, at, at - 1);
}

static inline void exact_add(exact_step *e, int64_t tokens, double squares)
{
    exact_add_padded(e, tokens, squares, 1, 0, NULL);
}

static inline void exact_list_types(exact_step *e)
{
    for (int64_t i = 0; i < e->count; i++) {
        if (!i || exact_compare(e, i, i - 1)) {
            e->type_first[e->types] = i;
            e->type_count[e->types++] = 0;
        }
        e->type_count[e->types - 1]++;
    }
}

/* `length` [count]; samples of one value >= 0 in `link` [count], which may be NULL, are one sequence;
 * `vision` [count] may be NULL. */
static inline exact_step exact_step_make_vision(hbp_context *context, const hbp_cost *cost,
                                                const uint32_t *length, const uint32_t *vision,
                                                const int64_t *link, int64_t count,
                                                const hbp_step_options *options)
{
    exact_step e = {.cost = cost, .options = *options};
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    e.ranks = terms.ranks;
    e.layers = terms.layers;
    e.dummy_ns = hbp_cost_predict_pack_ns(cost, 1, 0, 0, 0, 0);
    e.whole_padding = hbp__step_method(options->method) != HBP__STEP_SEARCH;
    for (int32_t i = 0; i < terms.degrees; i++) {
        int32_t d = terms.degree[i];
        if (d < options->min_sp || (options->max_sp && d > options->max_sp) ||
            (!options->any_degree && (d & (d - 1))))
            continue;
        ck_assert(!e.degrees || d % e.degree[e.degrees - 1] == 0);
        ck_assert_int_lt(e.degrees, EXACT_DEGREES);
        e.degree[e.degrees++] = d;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t tokens = 0, first = i, samples = 0, units = 0, padded[EXACT_DEGREES] = {0};
        double squares = 0;
        for (int64_t j = 0; link && link[i] >= 0 && j < i && first == i; j++)
            first = link[j] == link[i] ? j : i;
        if (first < i)
            continue;
        for (int64_t j = i; j < count; j++)
            if (j == i || (link && link[i] >= 0 && link[j] == link[i])) {
                tokens += exact_round_up(length[j], options->sequence_multiple);
                squares += (double)length[j] * (double)length[j];
                samples++;
                units += vision ? vision[j] : 0;
                for (int32_t d = 0; d < e.degrees; d++)
                    padded[d] += exact_round_up(length[j], exact_multiple(options->sequence_multiple,
                                                                          options->sequence_multiple_per_sp,
                                                                          e.degree[d]));
            }
        exact_add_padded(&e, tokens, squares, samples, units, padded);
    }
    exact_list_types(&e);
    return e;
}

static inline exact_step exact_step_make(hbp_context *context, const hbp_cost *cost, const uint32_t *length,
                                         const int64_t *link, int64_t count, const hbp_step_options *options)
{
    return exact_step_make_vision(context, cost, length, NULL, link, count, options);
}

static inline int exact_holds(const exact_step *e, int64_t samples, int64_t vision)
{
    return (!e->options.max_samples || samples <= e->options.max_samples) &&
           (!e->options.max_vision || vision <= e->options.max_vision);
}

/* The fewest layers with which memory holds a pack, one number after the other; -1: none do. */
static inline int32_t exact_layers(const exact_step *e, int32_t d, int64_t tokens, int64_t vision)
{
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_context *context = test_context();
    OK(context, hbp_cost_get_terms(context, e->cost, &terms));
    hbp_context_free(context);
    int32_t first = e->options.recompute == HBP_STEP_RECOMPUTE_ALL ? e->layers : 0;
    int32_t last = e->options.recompute == HBP_STEP_RECOMPUTE_NONE ? 0 : e->layers;
    for (int32_t c = first; c <= last; c++)
        if (hbp_cost_predict_pack_bytes(e->cost, d, c, tokens, vision) <= terms.limit_bytes)
            return c;
    return -1;
}

/* Time of a group of degree e->degree[j]; EXACT_NEVER when it does not fit. */
static inline int64_t exact_load_ns(const exact_step *e, int32_t j, int64_t tokens, double squares,
                                    int64_t vision)
{
    int32_t d = e->degree[j], recompute = 0;
    if (!tokens)
        return e->dummy_ns;
    tokens =
        exact_round_up(tokens, exact_multiple(e->options.pack_multiple, e->options.pack_multiple_per_sp, d));
    if ((e->options.tokens_per_rank && tokens > e->options.tokens_per_rank * d) ||
        (e->options.max_pack_length && tokens > e->options.max_pack_length))
        return EXACT_NEVER;
    if (vision) {
        recompute = exact_layers(e, d, tokens, vision);
        return recompute < 0 ? EXACT_NEVER
                             : hbp_cost_predict_pack_ns(e->cost, d, recompute, tokens, squares, vision);
    }
    if (e->options.recompute == HBP_STEP_RECOMPUTE_AUTO)
        recompute = hbp_cost_predict_recompute(e->cost, d, tokens);
    else {
        recompute = e->options.recompute == HBP_STEP_RECOMPUTE_ALL ? e->layers : 0;
        if (hbp_cost_predict_capacity(e->cost, d, recompute) < tokens)
            return EXACT_NEVER;
    }
    return recompute < 0 ? EXACT_NEVER : hbp_cost_predict_pack_ns(e->cost, d, recompute, tokens, squares, 0);
}

static inline int64_t exact_group_ns(const exact_step *e, int32_t j, int64_t tokens, double squares)
{
    return exact_load_ns(e, j, tokens, squares, 0);
}

/* The step's time when `used` micro-batches that hold something take `ns`; EXACT_NEVER when the options allow
 * no such number, or when there are sequences for one of dummies and these may not be. */
static inline int64_t exact_whole_ns(const exact_step *e, int64_t used, int64_t ns)
{
    const hbp_step_options *o = &e->options;
    int64_t all = exact_round_up(exact_max(used, o->min_micro_batches), o->micro_batch_multiple);
    if (ns == EXACT_NEVER || (o->max_micro_batches && all > o->max_micro_batches) ||
        (e->no_idle && used < all) || (!e->whole_padding && used < exact_min(all, e->count)))
        return EXACT_NEVER;
    return ns + (all - used) * e->dummy_ns;
}

/* The dynamic programme's tables. */
typedef struct exact_tables {
    const exact_step *step;
    int64_t states;
    int64_t weight[EXACT_SEQUENCES]; /* [types] of a count in a state */
    int64_t *group;                  /* [states x degrees] g */
    int64_t *spread;                 /* [states x (ranks + 1)] h */
    int64_t *best;                   /* [states] of the micro-batches so far */
} exact_tables;

/* Writes the counts of state x; returns the first type present. */
static inline int32_t exact_counts(const exact_tables *t, int64_t x, int32_t *count)
{
    int32_t first = t->step->types;
    for (int32_t i = t->step->types - 1; i >= 0; i--) {
        count[i] = (int32_t)(x / t->weight[i] % (t->step->type_count[i] + 1));
        first = count[i] ? i : first;
    }
    return first;
}

/* The next part of x that holds the first type; `part` begins at 1 of it alone. Zero after the last. */
static inline int exact_next_part(const exact_tables *t, const int32_t *count, int32_t first, int32_t *part,
                                  int64_t *w)
{
    for (int32_t i = t->step->types - 1; i >= first; i--) {
        if (part[i] < count[i]) {
            part[i]++;
            *w += t->weight[i];
            return 1;
        }
        int32_t least = i == first;
        *w -= (part[i] - least) * t->weight[i];
        part[i] = least;
    }
    return 0;
}

static inline void exact_fill_groups(exact_tables *t)
{
    const exact_step *e = t->step;
    for (int64_t x = 0; x < t->states; x++) {
        int32_t count[EXACT_SEQUENCES];
        int64_t tokens[EXACT_DEGREES] = {0}, samples = 0, vision = 0;
        double squares = 0;
        exact_counts(t, x, count);
        for (int32_t i = 0; i < e->types; i++) {
            int64_t one = e->type_first[i];
            squares += count[i] * e->squares[one];
            samples += count[i] * e->samples[one];
            vision += count[i] * e->vision[one];
            for (int32_t j = 0; j < e->degrees; j++)
                tokens[j] += count[i] * e->padded[one][j];
        }
        for (int32_t j = 0; j < e->degrees; j++)
            t->group[x * e->degrees + j] = exact_holds(e, samples, vision)
                                               ? exact_load_ns(e, j, tokens[j], squares, vision)
                                               : EXACT_NEVER;
    }
}

/* h of state x from those below it. As more ranks never hurt where they may be idle, h falls with r then, and
 * a group of w that takes at least h(d, x) betters nothing. */
static inline void exact_fill_spread(exact_tables *t, int64_t x)
{
    const exact_step *e = t->step;
    int64_t *h = t->spread + x * (e->ranks + 1);
    int32_t count[EXACT_SEQUENCES], part[EXACT_SEQUENCES] = {0}, first = exact_counts(t, x, count);
    for (int32_t r = 0; r <= e->ranks; r++)
        h[r] = EXACT_NEVER;
    int64_t w = t->weight[first];
    part[first] = 1;
    do {
        const int64_t *group = t->group + w * e->degrees, *rest = t->spread + (x - w) * (e->ranks + 1);
        for (int32_t j = 0; j < e->degrees; j++) {
            int32_t d = e->degree[j];
            if (d > e->ranks || (!e->no_idle && group[j] >= h[d]))
                continue;
            for (int32_t r = d; r <= e->ranks; r++)
                h[r] = exact_min(h[r], exact_max(group[j], rest[r - d]));
        }
    } while (exact_next_part(t, count, first, part, &w));
}

/* One micro-batch more than `from` has: to[x] = min over u of h(N, u) + from[x - u]; `from` may be `to`, for
 * any number of them. */
static inline void exact_fill_best(const exact_tables *t, const int64_t *from, int64_t *to)
{
    const exact_step *e = t->step;
    for (int64_t x = 1; x < t->states; x++) {
        int32_t count[EXACT_SEQUENCES], part[EXACT_SEQUENCES] = {0}, first = exact_counts(t, x, count);
        int64_t u = t->weight[first], least = EXACT_NEVER;
        part[first] = 1;
        do {
            int64_t ns = t->spread[u * (e->ranks + 1) + e->ranks];
            if (ns < least && from[x - u] < least - ns)
                least = ns + from[x - u];
        } while (exact_next_part(t, count, first, part, &u));
        to[x] = least;
    }
    to[0] = from == to ? 0 : EXACT_NEVER;
}

static inline int64_t exact_combine(exact_tables *t)
{
    const exact_step *e = t->step;
    const hbp_step_options *o = &e->options;
    int64_t last = t->states - 1, best = EXACT_NEVER;
    for (int64_t x = 0; x < t->states; x++)
        t->best[x] = x ? EXACT_NEVER : 0;
    if (!o->max_micro_batches && o->min_micro_batches <= 1 && o->micro_batch_multiple <= 1) {
        exact_fill_best(t, t->best, t->best);
        return t->best[last];
    }
    int64_t *next = malloc((size_t)t->states * sizeof *next);
    for (int64_t m = 1; m <= e->count && (best == EXACT_NEVER || m * e->dummy_ns < best); m++) {
        exact_fill_best(t, t->best, next);
        int64_t *swap = t->best;
        t->best = next;
        next = swap;
        best = exact_min(best, exact_whole_ns(e, m, t->best[last]));
    }
    free(next);
    return best;
}

/* Pairs of a state and a part of it, which is what the dynamic programme takes. */
static inline double exact_step_work(const exact_step *e)
{
    double pairs = 1;
    for (int32_t i = 0; i < e->types; i++)
        pairs *= (e->type_count[i] + 1) * (e->type_count[i] + 2) / 2.0;
    return pairs;
}

/* The least time of the step in ns, step_ns not counted; EXACT_NEVER when nothing fits. */
static inline int64_t exact_step_ns(const exact_step *e)
{
    exact_tables t = {.step = e, .states = 1};
    for (int32_t i = 0; i < e->types; i++) {
        t.weight[i] = t.states;
        t.states *= e->type_count[i] + 1;
    }
    t.group = malloc((size_t)(t.states * e->degrees) * sizeof *t.group);
    t.spread = malloc((size_t)(t.states * (e->ranks + 1)) * sizeof *t.spread);
    t.best = malloc((size_t)t.states * sizeof *t.best);
    ck_assert(t.group && t.spread && t.best);
    exact_fill_groups(&t);
    for (int32_t r = 0; r <= e->ranks; r++)
        t.spread[r] = e->no_idle && r ? EXACT_NEVER : 0;
    for (int64_t x = 1; x < t.states; x++)
        exact_fill_spread(&t, x);
    int64_t ns = exact_combine(&t);
    free(t.best);
    free(t.spread);
    free(t.group);
    return ns;
}

/* Every assignment: sequence i joins a group that is there, or opens one of any degree in a micro-batch that
 * is there or in a new one. */
typedef struct exact_plain {
    const exact_step *step;
    int64_t groups, micro_batches, best, idle; /* the fewest ranks without a group in the least time */
    int32_t degree[EXACT_SEQUENCES];
    int64_t home[EXACT_SEQUENCES]; /* micro-batch of a group */
    int32_t ranks[EXACT_SEQUENCES];
    int64_t tokens[EXACT_SEQUENCES];
    int64_t samples[EXACT_SEQUENCES];
    int64_t vision[EXACT_SEQUENCES];
    double squares[EXACT_SEQUENCES];
} exact_plain;

static inline void exact_plain_price(exact_plain *p)
{
    int64_t slowest[EXACT_SEQUENCES] = {0}, ns = 0;
    for (int64_t g = 0; g < p->groups; g++) {
        int64_t group = exact_load_ns(p->step, p->degree[g], p->tokens[g], p->squares[g], p->vision[g]);
        if (group == EXACT_NEVER || !exact_holds(p->step, p->samples[g], p->vision[g]))
            return;
        slowest[p->home[g]] = exact_max(slowest[p->home[g]], group);
    }
    int64_t idle = p->micro_batches * p->step->ranks;
    for (int64_t m = 0; m < p->micro_batches; m++) {
        ns += slowest[m];
        idle -= p->ranks[m];
    }
    ns = idle && p->step->no_idle ? EXACT_NEVER : exact_whole_ns(p->step, p->micro_batches, ns);
    if (ns < p->best || (ns == p->best && idle < p->idle)) {
        p->best = ns;
        p->idle = idle;
    }
}

static inline void exact_plain_walk(exact_plain *p, int64_t i)
{
    const exact_step *e = p->step;
    if (i == e->count) {
        exact_plain_price(p);
        return;
    }
    for (int64_t g = 0; g < p->groups; g++) {
        double squares = p->squares[g];
        p->tokens[g] += e->padded[i][p->degree[g]];
        p->samples[g] += e->samples[i];
        p->vision[g] += e->vision[i];
        p->squares[g] += e->squares[i];
        exact_plain_walk(p, i + 1);
        p->tokens[g] -= e->padded[i][p->degree[g]];
        p->samples[g] -= e->samples[i];
        p->vision[g] -= e->vision[i];
        p->squares[g] = squares;
    }
    int64_t g = p->groups++, open = p->micro_batches;
    for (int64_t m = 0; m <= open; m++)
        for (int32_t j = 0; j < e->degrees; j++) {
            int32_t used = m < open ? p->ranks[m] : 0;
            if (used + e->degree[j] > e->ranks)
                continue;
            p->ranks[m] = used + e->degree[j];
            p->micro_batches = m == open ? open + 1 : open;
            p->degree[g] = j;
            p->home[g] = m;
            p->tokens[g] = e->padded[i][j];
            p->samples[g] = e->samples[i];
            p->vision[g] = e->vision[i];
            p->squares[g] = e->squares[i];
            exact_plain_walk(p, i + 1);
            p->ranks[m] = used;
            p->micro_batches = open;
        }
    p->groups--;
}

static inline int64_t exact_step_plain_ns(const exact_step *e)
{
    exact_plain p = {.step = e, .best = EXACT_NEVER};
    exact_plain_walk(&p, 0);
    return p.best;
}

#endif
