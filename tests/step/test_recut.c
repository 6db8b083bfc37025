/* Two micro-batches divided anew. */
#include "boards.h"

#define GROUNDS 330

START_TEST(recutting_never_lengthens)
{
    int64_t shorter = 0, kept = 0;
    for (uint64_t i = 0; i < GROUNDS; i++) {
        ground g;
        hbp__step_board board, before;
        ground_open(&g, i, (int)(i % GROUND_KINDS), 24);
        ground_board(&g, &board);
        for (int32_t round = 0; round < 6 && board.micro_batches > 1; round++) {
            int64_t a = hbp__rng_below(&g.rng, (uint64_t)board.micro_batches);
            int64_t c = (a + 1 + (int64_t)hbp__rng_below(&g.rng, (uint64_t)board.micro_batches - 1)) %
                        board.micro_batches;
            board_remember(&g.step, &board, &before);
            double old = board.makespan[a] + board.makespan[c];
            if (hbp__step_recut(&g.builder, &board, a, c, round)) {
                board_check(&g.step, &board, NULL, 0);
                ck_assert_double_lt(board.makespan[a] + board.makespan[c], old * (1 - 1e-7));
                ck_assert_int_eq(board.micro_batches, before.micro_batches);
                for (int64_t m = 0; m < board.micro_batches; m++)
                    if (m != a && m != c)
                        board_same_one(&board, m, &before, m);
                shorter++;
            } else {
                board_same(&board, &before);
                kept++;
            }
        }
        ground_close(&g);
    }
    ck_assert_int_gt(shorter, GROUNDS / 2);
    ck_assert_int_gt(kept, GROUNDS / 2);
}
END_TEST

/* Least time of two sequences in one group. */
static double beside(const ground *g, int64_t a, int64_t b)
{
    const hbp__step *step = &g->step;
    int64_t tokens = step->tokens[a] + step->tokens[b];
    double least = (double)INFINITY, squares = step->squares[a] + step->squares[b];
    for (int32_t j = 0; j < step->degrees; j++)
        if (tokens <= step->degree[j].capacity) {
            double time = hbp__step_group_time(step, j, (hbp__load){.tokens = tokens, .squares = squares});
            least = time < least ? time : least;
        }
    return least;
}

/* Each sequence in a micro-batch of its own, and memory for all: a crumb goes with the longest, where that is
 * shorter. */
START_TEST(a_crumb_is_put_with_the_longest)
{
    int64_t tried = 0;
    for (uint64_t i = 0; i < 80; i++) {
        ground g;
        hbp__step_board board;
        ground_open(&g, i, SMALL_TIME, 24);
        hbp__step_builder *b = &g.builder;
        if (g.step.count < 2 || g.step.tokens[g.step.count - 1] > g.step.tokens[0] / 8) {
            ground_close(&g);
            continue;
        }
        OK(g.small.context, hbp__step_board_open(&g.step, g.step.count, &board));
        for (int64_t k = 0; k < g.step.count; k++) {
            b->pool.count = 1;
            b->pool.member[0] = k;
            hbp__step_pool_sum(&g.step, &b->pool);
            ck_assert(hbp__step_fill_all(b, &board, k, (double)INFINITY, (hbp__step_style){.grain = 0}));
            board.micro_batches++;
        }
        board_check(&g.step, &board, NULL, 0);
        double apart = board.makespan[0] + board.makespan[g.step.count - 1];
        if (beside(&g, 0, g.step.count - 1) < apart * (1 - 1e-5)) {
            ck_assert(hbp__step_recut(b, &board, 0, g.step.count - 1, 0));
            board_check(&g.step, &board, NULL, 0);
            tried++;
        }
        ground_close(&g);
    }
    ck_assert_int_gt(tried, 30);
}
END_TEST

/* Micro-batches of no sequences have nothing to divide. */
START_TEST(nothing_is_divided)
{
    ground g;
    hbp__step_board board;
    ground_open(&g, 1, GROUND_LONG, 24);
    ground_board(&g, &board);
    for (int64_t a = 0; a < 2; a++) {
        board.groups[board.micro_batches] = 0;
        board.makespan[board.micro_batches++] = g.builder.fixed;
    }
    ck_assert(!hbp__step_recut(&g.builder, &board, board.micro_batches - 2, board.micro_batches - 1, 0));
    board_check(&g.step, &board, NULL, 0);
    ground_close(&g);
}
END_TEST

TEST_MAIN("recut", recutting_never_lengthens, a_crumb_is_put_with_the_longest, nothing_is_divided)
