/* Estimates against a plain computation and exact optima. */
#include "boards.h"
#include "exact_micro_batch.h"

#define GROUNDS 220

/* A stretch [first, end) of the pool in numbers of its own. */
typedef struct stretch {
    const ground *g;
    int64_t first, end;
    double density;
    double tokens;
} stretch;

/* What degree j makes of it: the way that tokens evenly spread over the ranks ask for; NULL where these do
 * not fit. */
static const hbp__point *way_of(const stretch *s, int32_t j)
{
    const hbp__step *step = &s->g->step;
    const hbp__step_degree *d = &step->degree[j];
    double fill = s->tokens / step->ranks * d->degree;
    return fill <= (double)d->capacity * s->density ? hbp__step_find_way(d, (int64_t)fill) : NULL;
}

/* Rank-time over ranks, each sequence on the least degree that runs it alone within `makespan`. */
static double needed(const stretch *s, double makespan)
{
    const hbp__step *step = &s->g->step;
    double sum = 0;
    for (int64_t i = s->first; i < s->end; i++) {
        int64_t k = s->g->builder.pool.member[i];
        int32_t j = 0;
        for (; j < step->degrees; j++) {
            const hbp__point *way = way_of(s, j);
            double tokens = (double)step->tokens[k];
            if (way && step->tokens[k] <= step->degree[j].capacity &&
                way->constant + way->linear * tokens + way->square * tokens * tokens <= makespan)
                break;
        }
        if (j == step->degrees)
            return (double)INFINITY;
        const hbp__point *way = way_of(s, j);
        sum +=
            step->degree[j].degree * (way->linear * (double)step->tokens[k] + way->square * step->squares[k]);
    }
    return sum / step->ranks + s->g->builder.fixed;
}

/* The least makespan that is no shorter than what it needs, by bisection. */
static double plain_estimate(const stretch *s)
{
    const hbp__step *step = &s->g->step;
    double low = s->g->builder.fixed, high = low, alone = (double)INFINITY;
    int64_t longest = s->g->builder.pool.member[s->first];
    for (int32_t j = 0; j < step->degrees; j++)
        if (way_of(s, j) && step->tokens[longest] <= step->degree[j].capacity) {
            double time = hbp__step_group_time(
                step, j, (hbp__load){.tokens = step->tokens[longest], .squares = step->squares[longest]});
            alone = time < alone ? time : alone;
        }
    low = alone > low ? alone : low;
    if (!(needed(s, 1e300) < (double)INFINITY) || !(alone < (double)INFINITY))
        return (double)INFINITY;
    if (needed(s, low) <= low)
        return low;
    for (high = low + 1; needed(s, high) > high;)
        high *= 1.5;
    for (int i = 0; i < 60; i++) {
        double middle = low + (high - low) / 2;
        if (needed(s, middle) <= middle)
            high = middle;
        else
            low = middle;
    }
    return high;
}

START_TEST(estimates_are_what_they_say)
{
    int64_t finite = 0, none = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        int kind = (int)(i % GROUND_KINDS);
        ground_open(&g, i, kind, 24);
        ground_pool_all(&g);
        const hbp__step_pool *pool = &g.builder.pool;
        for (int draw = 0; draw < 20; draw++) {
            stretch s = {.g = &g, .first = (int64_t)hbp__rng_below(&g.rng, (uint64_t)pool->count)};
            s.end = s.first + 1 + (int64_t)hbp__rng_below(&g.rng, (uint64_t)(pool->count - s.first));
            s.density = hbp__rng_below(&g.rng, 2) ? 1 : small_between(&g.rng, .3, 1.5);
            for (int64_t k = s.first; k < s.end; k++)
                s.tokens += (double)g.step.tokens[pool->member[k]];
            double plain = plain_estimate(&s),
                   got = hbp__step_estimate(&g.step, pool, s.first, s.end, s.density);
            ck_assert_int_eq(got < (double)INFINITY, plain < (double)INFINITY);
            finite += plain < (double)INFINITY;
            none += !(plain < (double)INFINITY);
            /* Tied, a sum of squares is no square; uneven, a longer makespan may need more. */
            if (plain < (double)INFINITY && kind != SMALL_TIED && kind != SMALL_SLOPE)
                ck_assert_msg(got >= plain * (1 - 1e-9) && got <= plain * 1.01 + 2,
                              "step %d of kind %d: %.9g, plainly %.9g", (int)i, kind, got, plain);
        }
        ck_assert_double_eq(hbp__step_estimate(&g.step, pool, 1, 1, 1), g.builder.fixed);
        ground_close(&g);
    }
    ck_assert_int_gt(finite, 2000);
    ck_assert_int_gt(none, 150);
}
END_TEST

/* Where rank-time rises with the degree and all hold the same, no micro-batch is shorter. */
START_TEST(no_micro_batch_is_shorter_than_its_estimate)
{
    int64_t compared = 0;
    for (uint64_t i = 0; i < 120; i++) {
        static const int kinds[] = {SMALL_TIME, SMALL_LATENCY, SMALL_LONG, SMALL_FREE};
        ground g;
        ground_open(&g, i, kinds[i % 4], 9);
        ground_pool_all(&g);
        g.small.options.max_micro_batches = 1;
        exact_step e = small_exact(&g.small);
        int64_t best = exact_micro_batch_ns(&e);
        double estimate = hbp__step_estimate(&g.step, &g.builder.pool, 0, g.step.count, 1);
        if (best != EXACT_NEVER) {
            ck_assert_msg(estimate <= (double)best * 1.0025 + 2, "step %d: estimate %.9g, optimum %.9g",
                          (int)i, estimate, (double)best);
            ck_assert_double_ge(estimate, .2 * (double)best);
            compared++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(compared, 60);
}
END_TEST

/* Below the limit the estimate itself, else that or minus what it is no less than. */
START_TEST(limited_estimates_are_sooner_known)
{
    int64_t soon = 0, whole = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 12);
        ground_pool_all(&g);
        const hbp__step_pool *pool = &g.builder.pool;
        const double exact = hbp__step_estimate(&g.step, pool, 0, pool->count, 1);
        for (int try = 0; try < 12; try++) {
            const double limit = (exact < (double)INFINITY ? exact : 1e9) * small_between(&g.rng, .3, 1.3);
            const double got = hbp__step_estimate_below(&g.step, pool, 0, pool->count, 1, limit);
            soon += got < 0;
            whole += got >= 0;
            if (got < 0)
                ck_assert(-got >= limit && -got <= exact);
            else
                ck_assert_double_eq(got, exact);
        }
        ground_close(&g);
    }
    ck_assert_int_gt(soon, GROUNDS);
    ck_assert_int_gt(whole, GROUNDS);
}
END_TEST

TEST_MAIN("relax", estimates_are_what_they_say, no_micro_batch_is_shorter_than_its_estimate,
          limited_estimates_are_sooner_known)
