/* One micro-batch made shorter. */
#include "boards.h"
#include "exact_micro_batch.h"

/* Work for one shortening. */
#define WORK 300000

START_TEST(shortening_never_lengthens)
{
    int64_t shorter = 0;
    for (uint64_t i = 0; i < 220; i++) {
        ground g;
        hbp__step_board board, before;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        board_remember(&g.step, &board, &before);
        int64_t m = hbp__rng_below(&g.rng, (uint64_t)board.micro_batches);
        g.builder.work_limit = g.builder.work + g.builder.squeezer.work + WORK;
        hbp__step_shorten(&g.builder, &board, m, (int32_t)(i % 3));
        board_check(&g.step, &board, NULL, 0);
        ck_assert_double_le(board.makespan[m], before.makespan[m]);
        shorter += board.makespan[m] < before.makespan[m];
        for (int64_t a = 0; a < board.micro_batches; a++)
            if (a != m)
                board_same_one(&board, a, &before, a);
        ground_close(&g);
    }
    ck_assert_int_gt(shorter, 50);
}
END_TEST

/* From the plain filling down to the optimum, mostly. */
START_TEST(one_micro_batch_gets_near_the_optimum)
{
    int64_t count = 0, met = 0;
    for (uint64_t i = 0; i < 180; i++) {
        ground g;
        ground_open(&g, i, (int)(i % SMALL_KINDS), 9);
        hbp__step_builder *b = &g.builder;
        hbp__step_board board;
        OK(g.small.context, hbp__step_board_open(&g.step, 1, &board));
        ground_pool_all(&g);
        g.small.options.max_micro_batches = 1;
        exact_step e = small_exact(&g.small);
        int64_t best = exact_step_ns(&e);
        int filled = hbp__step_fill_all(b, &board, 0, (double)INFINITY, (hbp__step_style){.grain = 0});
        ck_assert(!filled || best != EXACT_NEVER);
        if (filled) {
            board.micro_batches = 1;
            b->work_limit = b->work + b->squeezer.work + 10 * WORK;
            hbp__step_shorten(b, &board, 0, 1);
            board_check(&g.step, &board, NULL, 0);
            ck_assert_msg(board.makespan[0] >= (double)best - 1, "step %d: %.9g, optimum %lld", (int)i,
                          board.makespan[0], (long long)best);
            count++;
            met += board.makespan[0] <= 1.005 * (double)best;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(count, 50);
    ck_assert_msg(met >= count * 9 / 10, "%d of %d", (int)met, (int)count);
}
END_TEST

/* Without work left, and where nothing is to be done. */
START_TEST(it_stops_at_once)
{
    ground g;
    hbp__step_board board, before;
    ground_open(&g, 1, GROUND_LONG, 24);
    ground_board(&g, &board);
    board_remember(&g.step, &board, &before);
    g.builder.work_limit = 0;
    hbp__step_shorten(&g.builder, &board, 0, 0);
    board_same(&board, &before);
    g.builder.work_limit = INT64_MAX / 2;
    board.groups[board.micro_batches] = 0;
    board.makespan[board.micro_batches++] = g.builder.fixed;
    hbp__step_shorten(&g.builder, &board, board.micro_batches - 1, 0);
    board_check(&g.step, &board, NULL, 0);
    ground_close(&g);
}
END_TEST

TEST_MAIN("single", shortening_never_lengthens, one_micro_batch_gets_near_the_optimum, it_stops_at_once)
