/* Boards copied, and micro-batches taken off them. */
#include "boards.h"

#define GROUNDS 220

START_TEST(a_copy_is_equal)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, copy;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        board_check(&g.step, &board, NULL, 0);
        board_remember(&g.step, &board, &copy);
        board_same(&board, &copy);
        board_check(&g.step, &copy, NULL, 0);
        board_check(&g.step, &copy, NULL, 0); /* it shares nothing */
        ground_close(&g);
    }
}
END_TEST

START_TEST(a_micro_batch_is_dropped_with_its_sequences)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, before;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        int64_t *absent = malloc((size_t)g.step.count * sizeof *absent), absents = 0;
        while (board.micro_batches) {
            int64_t last = board.micro_batches - 1;
            int64_t m = hbp__rng_below(&g.rng, (uint64_t)board.micro_batches);
            board_remember(&g.step, &board, &before);
            for (int64_t a = 0; a < board.groups[m]; a++)
                for (int64_t k = board.group[m * board.ranks + a].head; k != HBP__NONE; k = board.next[k])
                    absent[absents++] = k;
            hbp__step_board_drop(&board, m);
            ck_assert_int_eq(board.micro_batches, last);
            board_check(&g.step, &board, absent, absents);
            for (int64_t a = 0; a < last; a++)
                board_same_one(&board, a, &before, a == m ? last : a);
        }
        ck_assert_int_eq(absents, g.step.count);
        free(absent);
        ground_close(&g);
    }
}
END_TEST

/* What was read from a solution is written as one of the same groups, members and time. */
START_TEST(a_solution_is_read_and_written)
{
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board;
        hbp__step_solution from, to;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        OK(g.step.context, hbp__step_first_fit(&g.step, &from));
        OK(g.step.context, hbp__step_board_open(&g.step, from.micro_batches, &board));
        hbp__step_board_read(&g.step, &from, &board);
        OK(g.step.context, hbp__step_board_write(&g.step, &board, &to));
        ck_assert_int_eq(to.ns, from.ns);
        ck_assert_int_eq(to.groups, from.groups);
        ck_assert_int_eq(to.micro_batches, from.micro_batches);
        for (int64_t k = 0; k < g.step.count; k++) {
            ck_assert_int_eq(to.group[k], from.group[k]);
            ck_assert_int_eq(to.degree[to.group[k]], from.degree[from.group[k]]);
        }
        hbp__step_solution_close(&from);
        hbp__step_solution_close(&to);
        ground_close(&g);
    }
}
END_TEST

START_TEST(empty_micro_batches_are_trimmed)
{
    int64_t trimmed = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        int64_t full = 0;
        for (int64_t m = 0; m < board.micro_batches; m++)
            full += board.groups[m] > 0;
        trimmed += full < board.micro_batches;
        hbp__step_board_trim(&board);
        ck_assert_int_eq(board.micro_batches, full);
        board_check(&g.step, &board, NULL, 0);
        for (int64_t m = 0; m < board.micro_batches; m++) {
            board.groups[m] = 0;
            board.makespan[m] = g.builder.fixed;
        }
        hbp__step_board_trim(&board);
        ck_assert_int_eq(board.micro_batches, 1);
        ck_assert_double_eq(hbp__step_board_time(&board), g.builder.fixed);
        ground_close(&g);
    }
    ck_assert_int_gt(trimmed, GROUNDS / 4);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    hbp__step step = *(const hbp__step *)user;
    hbp__step_board board;
    step.context = context;
    hbp_status status = hbp__step_board_open(&step, 3, &board);
    return status;
}

START_TEST(nothing_is_left_behind)
{
    ground g;
    ground_open(&g, 3, GROUND_LONG, 24);
    failing_sweep(open_once, &g.step);
    ground_close(&g);
}
END_TEST

TEST_MAIN("board", a_copy_is_equal, a_micro_batch_is_dropped_with_its_sequences,
          a_solution_is_read_and_written, empty_micro_batches_are_trimmed, nothing_is_left_behind)
