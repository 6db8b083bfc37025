#include "tasks/place/place_methods.h"

#include "failing.h"
#include "keep.h"
#include "place.h"

/* Never worse, first in bytes above the limit, then in cost; and valid. */
START_TEST_IN_CONTEXT(never_worse)
{
    hbp__rng rng = hbp__rng_make(51, 0, 0);
    int64_t before = 0, after = 0, wandered = 0;
    for (int32_t i = 0; i < 400; i++) {
        place_case c;
        hbp__board board;
        int32_t gpus = (int32_t)random_between(&rng, 1, 24);
        graph_sizes sizes = {.tasks = 4, .most_gpus = gpus < 8 ? gpus : 8};
        open_random_case(context, &rng, &sizes, gpus, (int32_t)random_between(&rng, 1, gpus),
                         random_between(&rng, 0, 1) ? INT64_MAX : random_between(&rng, 1 << 28, 1 << 30), &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_greedy(&board, (int32_t)hbp__rng_below(&rng, 5)));
        int64_t cost = board.cost, over = board.over_bytes;
        before += cost >> 10;
        OK(context, hbp__board_improve(&board, 1 << 18));
        check_board(&c, &board);
        ck_assert(board.over_bytes < over || (board.over_bytes == over && board.cost <= cost));
        cost = board.cost;
        over = board.over_bytes;
        after += cost >> 10;
        OK(context, hbp__board_perturb(&board, 1, 1 << 17));
        check_board(&c, &board);
        ck_assert(board.over_bytes < over || (board.over_bytes == over && board.cost <= cost));
        wandered += board.cost >> 10;
        close_case(&c);
    }
    printf("improved to %.3f, wandering to %.3f\n", (double)after / (double)before,
           (double)wandered / (double)before);
    ck_assert_int_lt(after, before * 9 / 10);
    ck_assert_int_lt(wandered, after);
}
END_TEST

/* No work, no change. */
START_TEST_IN_CONTEXT(work_is_bounded)
{
    hbp__rng rng = hbp__rng_make(52, 0, 0);
    place_case c;
    hbp__board board;
    open_random_case(context, &rng, &(graph_sizes){.tasks = 6, .all_tasks = 1}, 32, 8, INT64_MAX, &c);
    OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
    OK(context, hbp__board_greedy(&board, HBP__GREEDY_FIRST));
    int64_t cost = board.cost;
    OK(context, hbp__board_improve(&board, 0));
    OK(context, hbp__board_perturb(&board, 1, 0));
    ck_assert_int_eq(board.cost, cost);
    int64_t work = board.work;
    OK(context, hbp__board_improve(&board, 1 << 14));
    ck_assert_int_lt(board.cost, cost);
    ck_assert_int_lt(board.work, work + (1 << 15));
    close_case(&c);
}
END_TEST

TEST_MAIN("place_improve", never_worse, work_is_bounded)
