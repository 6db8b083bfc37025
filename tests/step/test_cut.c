/* Cuts against every cut, and what is kept for the next cut against none kept. */
#include "boards.h"

#define GROUNDS 220
#define CUTS    32

/* Least sum of the estimates of `left` runs from row `first` on. */
static double best_cut(const ground *g, int64_t first, int64_t left, double density)
{
    const hbp__step_pool *pool = &g->builder.pool;
    double best = (double)INFINITY;
    if (!left)
        return first == pool->count ? 0 : best;
    for (int64_t end = first + 1; end <= pool->count; end++) {
        double sum =
            hbp__step_estimate(&g->step, pool, first, end, density) + best_cut(g, end, left - 1, density);
        best = sum < best ? sum : best;
    }
    return best;
}

/* What the runs add up to; each has a row. */
static double sum_of(const ground *g, int64_t micro_batches, double density, const int64_t *end)
{
    double sum = 0;
    for (int64_t m = 0; m < micro_batches; m++) {
        int64_t first = m ? end[m - 1] : 0;
        ck_assert_int_gt(end[m], first);
        sum += hbp__step_estimate(&g->step, &g->builder.pool, first, end[m], density);
    }
    ck_assert_int_eq(end[micro_batches - 1], g->builder.pool.count);
    return sum;
}

/* Up to ten rows are cut at every place. */
START_TEST(cuts_are_the_best)
{
    int64_t cut = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        int64_t end[HBP__STEP_AHEAD + 1];
        ground_open(&g, i, (int)(i % GROUND_KINDS), 9);
        ground_pool_all(&g);
        g.builder.pool.count = hbp__min_i64(g.builder.pool.count, 9);
        for (int64_t m = 1; m <= 6; m++) {
            double density = i % 2 ? 1 : 1.15, best = best_cut(&g, 0, m, density);
            double sum = hbp__step_cut(&g.builder.part, &g.builder.pool, m, density, end);
            ck_assert_int_eq(sum < (double)INFINITY, best < (double)INFINITY);
            if (!(best < (double)INFINITY))
                continue;
            ck_assert_double_eq_tol(sum, best, 1e-12 * best);
            ck_assert_double_eq_tol(sum_of(&g, m, density, end), best, 1e-12 * best);
            cut++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(cut, 400);
}
END_TEST

/* More rows than places, and few places. */
START_TEST(long_pools_are_cut_at_some_places)
{
    for (uint64_t i = 0; i < 60; i++) {
        ground g;
        int64_t end[HBP__STEP_AHEAD + 1];
        ground_open(&g, i, i % 2 ? GROUND_LONG : GROUND_UNEVEN, 24);
        ground_pool_all(&g);
        for (int64_t cuts = 6; cuts <= CUTS; cuts += 13)
            for (int64_t m = 1; m <= HBP__STEP_AHEAD; m++) {
                hbp__step_cuts own; /* of no more room than asked for */
                OK(g.small.context, hbp__step_cuts_open(&g.step, cuts, m, &own));
                double sum = hbp__step_cut(&own, &g.builder.pool, m, 99, end);
                ck_assert(sum < (double)INFINITY || m > cuts / 3);
                ck_assert(!(sum < (double)INFINITY) || m <= cuts);
                if (sum < (double)INFINITY)
                    ck_assert_double_eq_tol(sum_of(&g, m, 99, end), sum, 1e-12 * sum);
                if (m == 1)
                    ck_assert_double_eq(
                        sum, hbp__step_estimate(&g.step, &g.builder.pool, 0, g.builder.pool.count, 99));
            }
        ground_close(&g);
    }
}
END_TEST

/* Of pools in turn, at one density or another, with what is kept of the one before. */
START_TEST(cuts_are_the_same_after_others)
{
    int64_t cut = 0;
    for (uint64_t i = 0; i < 60; i++) {
        ground g;
        hbp__step_cuts kept;
        int64_t end[HBP__STEP_AHEAD], own_end[HBP__STEP_AHEAD];
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        hbp__step_pool *pool = &g.builder.pool;
        OK(g.small.context, hbp__step_cuts_open(&g.step, 12, HBP__STEP_AHEAD, &kept));
        for (int try = 0; try < 20; try++) {
            hbp__step_cuts own;
            if (hbp__rng_below(&g.rng, 2)) { /* another pool, of as many sequences as the last or not */
                const int64_t count = pool->count, gone = (int64_t)hbp__rng_below(&g.rng, 4);
                ground_pool_all(&g);
                if (count && gone && count < g.step.count) {
                    const int64_t skipped =
                        (int64_t)hbp__rng_below(&g.rng, (uint64_t)(g.step.count - count) + 1);
                    memmove(pool->member, pool->member + skipped, (size_t)count * sizeof *pool->member);
                    pool->count = count;
                } else {
                    pool->count = hbp__max_i64(1, pool->count - gone);
                }
                hbp__step_pool_sum(&g.step, pool);
            } else if (!pool->count) {
                ground_pool_all(&g);
            }
            const int64_t m = 1 + (int64_t)hbp__rng_below(&g.rng, 5);
            const double density = hbp__rng_below(&g.rng, 4) ? 1.15 : .9;
            OK(g.small.context, hbp__step_cuts_open(&g.step, 12, m, &own));
            const double sum = hbp__step_cut(&kept, pool, m, density, end);
            ck_assert_double_eq(sum, hbp__step_cut(&own, pool, m, density, own_end));
            if (!(sum < (double)INFINITY))
                continue;
            ck_assert_mem_eq(end, own_end, (size_t)m * sizeof *end);
            cut++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(cut, 400);
}
END_TEST

TEST_MAIN("cut", cuts_are_the_best, long_pools_are_cut_at_some_places, cuts_are_the_same_after_others)
