/* Micro-batches built again at random. */
#include "boards.h"

#define GROUNDS 220

static void shuffle_some(ground *g, hbp__step_board *board, int64_t most, double slack, int64_t *changed,
                         int64_t *kept)
{
    hbp__step_board before;
    double old = hbp__step_board_time(board);
    board_remember(&g->step, board, &before);
    if (hbp__step_shuffle(&g->builder, board, most, slack, &g->rng)) {
        const hbp_step_options *o = &g->step.options;
        board_check(&g->step, board, NULL, 0);
        ck_assert_double_le(hbp__step_board_time(board), (old + slack) * (1 + 1e-12));
        ck_assert_int_ge(board->micro_batches,
                         hbp__min_i64(before.micro_batches, hbp__max_i64(o->min_micro_batches, 1)));
        ck_assert_int_le(board->micro_batches, hbp__max_i64(before.micro_batches, most));
        if (o->micro_batch_multiple > 1)
            ck_assert_int_eq(board->micro_batches, before.micro_batches);
        ++*changed;
    } else {
        board_same(board, &before);
        ++*kept;
    }
}

START_TEST(shuffling_lengthens_by_the_slack_at_most)
{
    int64_t changed = 0, kept = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        hbp_step_options *o = &g.step.options;
        o->min_micro_batches = i % 3 ? 0 : 3;
        o->micro_batch_multiple = i % 4 ? 1 : 2;
        int64_t most = board.micro_batches + (int64_t)(i % 3);
        for (int turn = 0; turn < 30; turn++) {
            double slack = turn % 3 ? 0 : hbp__step_board_time(&board) * small_between(&g.rng, 0, .02);
            shuffle_some(&g, &board, most, slack, &changed, &kept);
        }
        ground_close(&g);
    }
    ck_assert_int_gt(changed, 3 * GROUNDS);
    ck_assert_int_gt(kept, GROUNDS);
}
END_TEST

/* Without slack a board gets shorter and shorter; the same draws give the same board. */
START_TEST(shuffling_shortens_in_the_end)
{
    int64_t shorter = 0;
    for (uint64_t i = 0; i < 40; i++) {
        ground g;
        hbp__step_board board, again;
        ground_open(&g, i, i % 2 ? GROUND_LONG : GROUND_UNEVEN, 24);
        ground_board(&g, &board);
        board_remember(&g.step, &board, &again);
        double old = hbp__step_board_time(&board);
        hbp__rng one = hbp__rng_make(i, 1, 2), two = one;
        for (int turn = 0; turn < 60; turn++)
            hbp__step_shuffle(&g.builder, &board, board.micro_batches, 0, &one);
        for (int turn = 0; turn < 60; turn++)
            hbp__step_shuffle(&g.builder, &again, again.micro_batches, 0, &two);
        board_same(&board, &again);
        shorter += hbp__step_board_time(&board) < .99 * old;
        ground_close(&g);
    }
    ck_assert_int_gt(shorter, 25);
}
END_TEST

TEST_MAIN("shuffle", shuffling_lengthens_by_the_slack_at_most, shuffling_shortens_in_the_end)
