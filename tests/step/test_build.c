/* Steps built from nothing, and micro-batches filled with all that there is. */
#include "boards.h"
#include "exact_micro_batch.h"

#define GROUNDS 220

START_TEST(built_steps_have_every_sequence)
{
    int64_t built = 0, single = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        int64_t most = hbp__min_i64(g.step.count, 16);
        OK(g.small.context, hbp__step_board_open(&g.step, most, &board));
        for (int64_t m = 1; m <= most; m++) {
            double density = m % 2 ? 1 : small_between(&g.rng, .5, 1);
            g.builder.quick = (int)(m / 2 % 2);
            if (!hbp__step_build(&g.builder, &board, m, density))
                continue;
            ck_assert(board.micro_batches >= 1 && board.micro_batches <= m);
            board_check(&g.step, &board, NULL, 0);
            built++;
            single += m == 1;
        }
        /* Memory for all of it twice over, and few longer than a quarter of the machine. */
        int64_t ample = (int64_t)(2 * (double)g.step.total_tokens / g.builder.room) + 1;
        if (i % GROUND_KINDS == GROUND_LONG && ample <= most)
            ck_assert(hbp__step_build(&g.builder, &board, ample, .95));
        ground_close(&g);
    }
    ck_assert_int_gt(built, 5 * GROUNDS);
    ck_assert_int_gt(single, GROUNDS / 6);
}
END_TEST

/* Every pool that fills one micro-batch: below the limit, not below the optimum, and near it. */
START_TEST(one_micro_batch_is_filled_within_the_limit)
{
    int64_t filled = 0, refused = 0, compared = 0;
    double excess = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        static const hbp__step_style plain = {.grain = 0};
        ground g;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 8);
        hbp__step_builder *b = &g.builder;
        b->quick = (int)(i / GROUND_KINDS % 2);
        int64_t *times = calloc((size_t)g.step.count, sizeof *times);
        ground_pool_all(&g);
        if (hbp__step_fill_all(b, &b->trial, 1, (double)INFINITY, plain)) {
            double first = b->trial.makespan[1];
            ck_assert_int_eq(b->pool.count, g.step.count);
            board_check_one(&g.step, &b->trial, 1, times);
            for (int64_t k = 0; k < g.step.count; k++)
                ck_assert_int_eq(times[k], 1);
            ck_assert(hbp__step_fill_all(b, &b->trial, 2, first * 4, plain));
            ck_assert_double_lt(b->trial.makespan[2], first * 4);
            if (hbp__step_fill_all(b, &b->trial, 2, first, plain))
                ck_assert_double_lt(b->trial.makespan[2], first);
            ck_assert(!hbp__step_fill_all(b, &b->trial, 2, ground_alone(&g.step, 0) * (1 - 1e-9), plain));
            filled++;
            if (i % GROUND_KINDS < SMALL_KINDS) {
                g.small.options.max_micro_batches = 1;
                exact_step e = small_exact(&g.small);
                int64_t best = exact_step_ns(&e);
                ck_assert_double_ge(first, (double)best - 1);
                excess += first / (double)best - 1;
                compared++;
            }
        } else
            refused++;
        ck_assert_int_eq(b->pool.count, g.step.count);
        for (int64_t k = 0; k < g.step.count; k++)
            ck_assert_int_eq(b->pool.member[k], k);
        free(times);
        ground_close(&g);
    }
    ck_assert_int_gt(filled, GROUNDS / 4);
    ck_assert_int_gt(refused, 10);
    ck_assert_msg(excess / (double)compared < .1, "%.3f above the optimum", excess / (double)compared);
}
END_TEST

static int build_twelve(hbp__step_builder *builder, hbp__step_board *board)
{
    return hbp__step_build(builder, board, 12, .9);
}

START_TEST(building_can_be_cancelled)
{
    board_fails_cleanly(build_twelve, 150);
}
END_TEST

/* The work may end between two micro-batches. */
START_TEST(building_ends_with_the_work)
{
    ground g;
    hbp__step_board board;
    ground_open(&g, 1, GROUND_LONG, 24);
    OK(g.small.context, hbp__step_board_open(&g.step, 16, &board));
    ck_assert(hbp__step_build(&g.builder, &board, 16, .9));
    ck_assert_int_gt(board.micro_batches, 2);
    int64_t all = g.builder.work;
    g.builder.work = 0;
    g.builder.work_limit = all / 2;
    ck_assert(!hbp__step_build(&g.builder, &board, 16, .9));
    ground_close(&g);
}
END_TEST

/* By the work of all, and by the estimates of the best cut; without a step at hand, or of many micro-batches,
 * any number may be. */
START_TEST(numbers_are_left_out_by_their_estimates)
{
    int64_t left_out = 0, kept = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        int64_t end[HBP__STEP_AHEAD];
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_pool_all(&g);
        hbp__step_builder *b = &g.builder;
        double work = 0;
        for (int64_t k = 0; k < g.step.count; k++)
            work += b->filler.useful[k] / g.step.ranks;
        ck_assert(hbp__step_may_be_shorter(b, 2, (double)INFINITY));
        ck_assert(hbp__step_may_be_shorter(b, HBP__STEP_AHEAD + 1, 0));
        for (int64_t m = 1; m <= HBP__STEP_AHEAD; m++) {
            double cut = hbp__step_cut(&b->part, &b->pool, m, HBP__BUILD_OVERFULL, end);
            double time = (cut < (double)INFINITY ? cut : 1e9) * small_between(&g.rng, .5, 2);
            int may = hbp__step_may_be_shorter(b, m, time);
            ck_assert_int_eq(may, cut < time && work + (double)m * b->fixed < time);
            left_out += !may;
            kept += may;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(left_out, GROUNDS);
    ck_assert_int_gt(kept, GROUNDS);
}
END_TEST

TEST_MAIN("build", built_steps_have_every_sequence, one_micro_batch_is_filled_within_the_limit,
          numbers_are_left_out_by_their_estimates, building_can_be_cancelled, building_ends_with_the_work)
