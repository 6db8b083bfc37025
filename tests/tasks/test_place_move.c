#include "failing.h"
#include "keep.h"
#include "place.h"
#include "tasks/place/place_methods.h"

static int32_t draw_pairs(hbp__rng *rng, int32_t gpus, int32_t *first, int32_t *second)
{
    uint32_t order[64];
    for (int32_t r = 0; r < gpus; r++)
        order[r] = (uint32_t)r;
    hbp__rng_shuffle_u32(rng, order, (uint64_t)gpus);
    int32_t pairs = (int32_t)random_between(rng, 1, gpus / 2);
    for (int32_t i = 0; i < pairs; i++) {
        first[i] = (int32_t)order[2 * i];
        second[i] = (int32_t)order[2 * i + 1];
    }
    return pairs;
}

/* Whatever is exchanged, slices keep their GPUs, ranks run one at a time, and costs and bytes stay those that
 * measuring anew finds; what is refused leaves no trace; what is kept was worth it. */
START_TEST_IN_CONTEXT(exchanges_keep_placements_valid)
{
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    int32_t kept = 0, refused = 0, forced = 0;
    for (int32_t i = 0; i < TEST_FEW(300, 40); i++) {
        place_case c;
        hbp__board board;
        int32_t gpus = (int32_t)random_between(&rng, 2, 40), first[64], second[64];
        graph_sizes sizes = {.tasks = 4, .most_gpus = gpus < 8 ? gpus : 8};
        open_random_case(context, &rng, &sizes, gpus, (int32_t)random_between(&rng, 1, gpus),
                         random_between(&rng, 0, 1) ? INT64_MAX : random_between(&rng, 1 << 28, 1 << 30), &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_greedy(&board, (int32_t)hbp__rng_below(&rng, 5)));
        int32_t *before = malloc((size_t)c.first[c.slices.count] * sizeof *before);
        for (int32_t j = 0; j < 40; j++) {
            int32_t s = (int32_t)hbp__rng_below(&rng, (uint64_t)board.count);
            hbp__exchange x = {first, second, draw_pairs(&rng, gpus, first, second)};
            int32_t reach = (int32_t)hbp__rng_below(&rng, HBP__REACHES);
            int64_t cost = board.cost, over = board.over_bytes;
            hbp__board_write(&board, before);
            if (j % 8 == 0) {
                forced += hbp__board_force(&board, &x, s, reach);
                ck_assert_int_le(board.over_bytes, over);
            } else if (hbp__board_try(&board, &x, s, reach)) {
                ck_assert(board.over_bytes < over || (board.over_bytes == over && board.cost < cost));
                kept++;
            } else {
                hbp__board_write(&board, c.ranks);
                ck_assert_mem_eq(c.ranks, before, (size_t)c.first[c.slices.count] * sizeof *before);
                ck_assert_int_eq(board.cost, cost);
                ck_assert_int_eq(board.over_bytes, over);
                refused++;
            }
            check_board(&c, &board);
        }
        free(before);
        close_case(&c);
    }
    ck_assert_int_gt(kept, 100);
    ck_assert_int_gt(refused, 100);
    ck_assert_int_gt(forced, 100);
}
END_TEST

/* Slices a to d, one GPU each: a and c on rank 0, b and d on rank 1; b overlaps a and c, d comes later. */
START_TEST_IN_CONTEXT(slices_in_the_way_follow)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 1);
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int32_t i = 0; i < 4; i++)
        add_chain(context, graph, &o, names[i], "lm", names[i], 1);
    place_case c;
    hbp__board board;
    open_case(context, graph, 2, 2, INT64_MAX, &c);
    static const int64_t starts[] = {0, 500, 1000, 1500};
    for (int32_t i = 0; i < 4; i++)
        OK(context, hbp__task_slices_add(context, &c.slices,
                                         &(hbp__task_slice){i, 0, 1, 1, i, starts[i], starts[i] + 1000}));
    c.slices.slice[3].start_ns = 2000;
    c.slices.slice[3].end_ns = 3000;
    ready_case(&c);
    OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
    static const int32_t places[] = {0, 1, 0, 1};
    static const int32_t zero = 0, one = 1;
    static const struct {
        int32_t seed, reach, ranks[4];
    } steps[] = {{0, HBP__REACH_ONE, {1, 0, 1, 1}},
                 {3, HBP__REACH_ONE, {1, 0, 1, 0}},
                 {3, HBP__REACH_BEFORE, {0, 1, 0, 1}},
                 {3, HBP__REACH_AFTER, {0, 1, 0, 0}},
                 {2, HBP__REACH_AFTER, {1, 0, 1, 1}}};
    for (int32_t s = 0; s < 4; s++)
        hbp__board_put(&board, s, &places[s]);
    hbp__board_measure(&board);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ck_assert(hbp__board_force(&board, &(hbp__exchange){&zero, &one, 1}, steps[i].seed, steps[i].reach));
        hbp__board_write(&board, c.ranks);
        ck_assert_mem_eq(c.ranks, steps[i].ranks, sizeof steps[i].ranks);
    }
    close_case(&c);
}
END_TEST

TEST_MAIN("place_move", exchanges_keep_placements_valid, slices_in_the_way_follow)
