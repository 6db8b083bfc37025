#include "tasks/place/place_methods.h"

#include "failing.h"
#include "keep.h"
#include "place.h"

START_TEST_IN_CONTEXT(random_slices)
{
    hbp__rng rng = hbp__rng_make(41, 0, 0);
    int64_t flows[5] = {0}, peaks[5] = {0};
    for (int32_t i = 0; i < 300; i++) {
        place_case c;
        hbp__board board;
        int32_t gpus = (int32_t)random_between(&rng, 1, 100);
        graph_sizes sizes = {.tasks = 6, .most_gpus = gpus < 16 ? gpus : 16};
        open_random_case(context, &rng, &sizes, gpus, (int32_t)random_between(&rng, 1, gpus), INT64_MAX, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        for (int32_t how = 0; how < 5; how++) {
            OK(context, hbp__board_greedy(&board, how));
            check_board(&c, &board);
            flows[how] += weigh(flows_of(&c, c.ranks)) >> 10;
            peaks[how] += peak_of(&c, c.ranks, NULL) >> 10;
        }
        close_case(&c);
    }
    ck_assert_int_lt(flows[HBP__GREEDY_FLOWS], flows[HBP__GREEDY_FIRST] * 8 / 10);
    ck_assert_int_lt(flows[HBP__GREEDY_BACKWARD], flows[HBP__GREEDY_FIRST]);
    ck_assert_int_lt(peaks[HBP__GREEDY_SPREAD], peaks[HBP__GREEDY_FIRST] * 8 / 10);
    ck_assert_int_lt(peaks[HBP__GREEDY_THRIFT], peaks[HBP__GREEDY_FIRST]);
}
END_TEST

/* The lowest free ranks, slice after slice in order of start. */
START_TEST_IN_CONTEXT(first_takes_the_lowest)
{
    hbp__rng rng = hbp__rng_make(42, 0, 0);
    for (int32_t i = 0; i < 200; i++) {
        place_case c;
        hbp__board board;
        uint64_t used;
        open_random_case(context, &rng, NULL, 12, 4, INT64_MAX, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_greedy(&board, HBP__GREEDY_FIRST));
        for (int32_t s = 0; s < board.count; s++) {
            used = 0;
            for (int32_t j = 0; j < board.at[s]; j++) {
                int32_t t = (int32_t)board.order[j];
                used |= board.slice[t].end_ns > board.slice[s].start_ns ? *hbp__board_set(&board, t) : 0;
            }
            int32_t left = board.slice[s].gpus;
            for (int32_t r = 0; r < 12; r++) {
                int32_t wanted = left > 0 && !hbp__has_rank(&used, r);
                ck_assert_int_eq(hbp__has_rank(hbp__board_set(&board, s), r), wanted);
                left -= wanted;
            }
        }
        close_case(&c);
    }
}
END_TEST

/* Two producers of 2 GPUs each and their consumers, which start in the other order: each consumer finds the
 * ranks of its producer; and a slice of 4 GPUs goes into one domain. */
START_TEST_IN_CONTEXT(flows_find_their_ranks)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 4);
    o.batch = 4;
    o.output_bytes = 1 << 20;
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int32_t i = 0; i < 5; i++)
        add_chain(context, graph, &o, names[i], names[i], "task", 1);
    OK(context, hbp_graph_add_edge(context, graph, 0, 2, -1));
    OK(context, hbp_graph_add_edge(context, graph, 1, 3, 1 << 19));
    place_case c;
    hbp__board board;
    open_case(context, graph, 8, 4, INT64_MAX, &c);
    int32_t of[5]; /* MetaOps are numbered by level */
    for (int32_t i = 0; i < 5; i++)
        of[i] = c.meta.meta_of[i];
    const hbp__task_slice slices[] = {{of[0], 0, 1, 2, 0, 0, 500},
                                      {of[1], 0, 1, 2, 0, 0, 500},
                                      {of[4], 0, 1, 4, 0, 0, 250},
                                      {of[3], 0, 1, 2, 1, 500, 1000},
                                      {of[2], 0, 1, 2, 1, 500, 1000}};
    for (int32_t s = 0; s < 5; s++)
        OK(context, hbp__task_slices_add(context, &c.slices, &slices[s]));
    ready_case(&c);
    OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
    for (int32_t how = HBP__GREEDY_FLOWS; how <= HBP__GREEDY_BACKWARD; how++) {
        OK(context, hbp__board_greedy(&board, how));
        check_board(&c, &board);
        ck_assert_int_eq(weigh(flows_of(&c, c.ranks)), 0);
        for (int32_t s = 0; s < 5; s++)
            ck_assert_int_eq(c.ranks[c.first[s]] / 4, c.ranks[c.first[s + 1] - 1] / 4);
    }
    close_case(&c);
}
END_TEST

TEST_MAIN("place_greedy", random_slices, first_takes_the_lowest, flows_find_their_ranks)
