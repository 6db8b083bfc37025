/* Sequences put into given groups. */
#include "assigned.h"
#include "boards.h"

#define GROUNDS 330

/* Random groups that fit the ranks; at least one. Returns how many. */
static int64_t draw_groups(ground *g, int64_t most, int32_t *count, int32_t *degree)
{
    const hbp__step *step = &g->step;
    int64_t groups = 0;
    int32_t ranks = step->ranks;
    for (int32_t j = 0; j < step->degrees; j++)
        count[j] = 0;
    while (groups < most) {
        int32_t j = (int32_t)hbp__rng_below(&g->rng, (uint64_t)step->degrees);
        degree[groups] = j;
        if (step->degree[j].degree > ranks || !hbp__step_place(step, degree, groups + 1, NULL)) {
            if (groups)
                break;
            continue;
        }
        ranks -= step->degree[j].degree;
        count[j]++;
        groups++;
    }
    groups = 0;
    for (int32_t j = step->degrees - 1; j >= 0; j--)
        for (int32_t i = 0; i < count[j]; i++)
            degree[groups++] = j;
    return groups;
}

/* Micro-batch 0 of the trial board has just these groups, the pool's sequences and no others. */
static void check_groups(const ground *g, const int32_t *degree, int64_t groups)
{
    const hbp__step_builder *b = &g->builder;
    int64_t *times = calloc((size_t)g->step.count, sizeof *times);
    ck_assert_int_eq(b->trial.groups[0], groups);
    for (int64_t i = 0; i < groups; i++)
        ck_assert_int_eq(b->trial.group[i].degree, degree[i]);
    board_check_one(&g->step, &b->trial, 0, times);
    for (int64_t i = 0; i < b->pool.count; i++)
        times[b->pool.member[i]]--;
    for (int64_t k = 0; k < g->step.count; k++)
        ck_assert_int_eq(times[k], 0);
    free(times);
}

START_TEST(groups_are_as_given)
{
    int64_t met = 0, failed = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        int32_t count[HBP__STEP_DEGREES], degree[64];
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        hbp__step_builder *b = &g.builder;
        ground_pool_all(&g);
        int64_t *before = malloc((size_t)g.step.count * sizeof *before);
        for (int draw = 0; draw < 10; draw++) {
            /* The pool's shorter ones: mostly there is a way. */
            int64_t from = hbp__rng_below(&g.rng, (uint64_t)g.step.count), groups;
            b->pool.count = g.step.count - from;
            for (int64_t k = from; k < g.step.count; k++)
                before[k - from] = b->pool.member[k - from] = k;
            hbp__step_pool_sum(&g.step, &b->pool);
            groups = draw_groups(&g, 64, count, degree);
            double estimate = hbp__step_estimate(&g.step, &b->pool, 0, b->pool.count, 1);
            double goal = (estimate < (double)INFINITY ? estimate : ground_alone(&g.step, from)) *
                          small_between(&g.rng, .9, 1.6);
            int level = (int)hbp__rng_below(&g.rng, 2);
            if (hbp__step_configure(b, count, goal, level, 50)) {
                check_groups(&g, degree, groups);
                ck_assert_double_le(b->trial.makespan[0], goal);
                met++;
            } else
                failed++;
            ck_assert_int_eq(b->pool.count, g.step.count - from);
            ck_assert_mem_eq(b->pool.member, before, (size_t)b->pool.count * sizeof *before);
        }
        free(before);
        ground_close(&g);
    }
    ck_assert_int_gt(met, GROUNDS);
    ck_assert_int_gt(failed, GROUNDS);
}
END_TEST

START_TEST(most_best_assignments_are_found)
{
    int64_t tried = 0, found = 0;
    for (uint64_t i = 0; i < 600; i++) {
        ground g;
        int32_t count[HBP__STEP_DEGREES], degree[64];
        ground_open(&g, i, (int)(i % GROUND_KINDS), 8);
        hbp__step_builder *b = &g.builder;
        ground_pool_all(&g);
        b->pool.count = hbp__min_i64(b->pool.count, 8);
        hbp__step_pool_sum(&g.step, &b->pool);
        int64_t groups = draw_groups(&g, 5, count, degree);
        double best = assigned_best(&g.step, degree, groups, b->pool.member, b->pool.count);
        if (best < (double)INFINITY) {
            int hit = 0;
            for (int level = 0; level < 2; level++) {
                hit |= hbp__step_configure(b, count, best * (1 + 1e-9), level, 300);
                if (best > b->fixed)
                    ck_assert(!hbp__step_configure(b, count, best * (1 - 1e-9), level, 300));
            }
            tried++;
            found += hit;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(tried, 100);
    ck_assert_msg(found >= tried * 19 / 20, "%d of %d", (int)found, (int)tried);
}
END_TEST

TEST_MAIN("configure", groups_are_as_given, most_best_assignments_are_found)
