#include "failing.h"
#include "keep.h"
#include "place.h"
#include "tasks/place/place_methods.h"

/* What a slice takes on a rank that has none of it, and what bundles say about sharing, by going through all
 * operators. */
START_TEST_IN_CONTEXT(bytes_of_random_slices)
{
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    int32_t bundles = 0;
    for (int32_t i = 0; i < 500; i++) {
        place_case c;
        hbp__board board;
        open_random_case(context, &rng, NULL, 8, 4, INT64_MAX, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        bundles += board.bundles;
        /* Each slice alone, then with each other one, on rank 0. */
        for (int32_t s = 0; s < board.count; s++) {
            hbp__task_slice alone = c.slices.slice[s];
            for (int32_t t = -1; t < board.count; t++) {
                if (t == s)
                    continue;
                int64_t slow = 0, fast;
                for (int32_t p = 0; p < c.graph->parameters.count; p++) {
                    int64_t most = 0;
                    for (int32_t k = 0; k < 2; k++) {
                        const hbp__task_slice *slice = k ? &c.slices.slice[t < 0 ? s : t] : &alone;
                        const int32_t *run =
                            &c.meta.operators[c.meta.meta_op[slice->meta_op].first + slice->first];
                        for (int32_t j = 0; j < slice->count; j++) {
                            const hbp__operator *o = &c.graph->operators[run[j]];
                            int64_t bytes = hbp__operator_states(o, slice->gpus);
                            if (o->parameters == p && bytes > most)
                                most = bytes;
                            if (!p && (!k || t >= 0))
                                slow += hbp__operator_activation(o, slice->gpus);
                        }
                    }
                    slow += most;
                }
                hbp__board_clear(&board);
                static const int32_t ranks[] = {0, 1, 2, 3, 4, 5, 6, 7};
                fast = hbp__board_added(&board, s, 0);
                if (t >= 0) {
                    hbp__board_put(&board, s, ranks);
                    fast += hbp__board_added(&board, t, 0);
                }
                ck_assert_int_eq(fast, slow);
            }
        }
        close_case(&c);
    }
    ck_assert_int_gt(bundles, 100);
}
END_TEST

/* Two towers of the same layers, cut at the same and at different places. */
static void open_towers(hbp_context *context, int32_t cut, place_case *c)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 2);
    o.batch = 2;
    o.state_bytes = 10;
    o.sharded_bytes = 7;
    o.gradient_bytes = 32;
    o.parameters = "tower";
    add_chain(context, graph, &o, "a", "lm", "first", 4);
    add_chain(context, graph, &o, "b", "lm", "second", 4);
    open_case(context, graph, 2, 2, INT64_MAX, c);
    OK(context, hbp__task_slices_add(context, &c->slices, &(hbp__task_slice){0, 0, 2, 1, 0, 0, 2000}));
    OK(context, hbp__task_slices_add(context, &c->slices, &(hbp__task_slice){0, 2, 2, 2, 1, 2000, 3000}));
    OK(context, hbp__task_slices_add(context, &c->slices, &(hbp__task_slice){1, 0, cut, 1, 0, 0, 2000}));
    OK(context,
       hbp__task_slices_add(context, &c->slices, &(hbp__task_slice){1, cut, 4 - cut, 1, 2, 3000, 9000}));
    ready_case(c);
}

START_TEST_IN_CONTEXT(layers_that_run_together_are_one_bundle)
{
    place_case c;
    hbp__board board;
    for (int32_t cut = 1; cut <= 3; cut++) {
        open_towers(context, cut, &c);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        ck_assert_int_eq(board.bundles, cut == 2 ? 2 : 3);
        int64_t gradients = 0;
        for (int32_t k = 0; k < board.bundles; k++) {
            gradients += board.bundle[k].gradient;
            ck_assert_int_eq(board.bundle[k].end - board.bundle[k].first, 2);
        }
        /* Each bundle's sum is divided by itself. */
        ck_assert_int_le(gradients, 4 * 32 / HBP__GRADIENT_PART);
        ck_assert_int_gt(gradients, 4 * 32 / HBP__GRADIENT_PART - board.bundles);
        for (int32_t s = 0; s < 4; s++) {
            ck_assert_int_eq(board.own_bytes[s], 0);
            ck_assert_int_eq(hbp__board_added(&board, s, 0),
                             c.slices.slice[s].count * (c.slices.slice[s].gpus == 1 ? 17 : 14));
        }
        close_case(&c);
    }
}
END_TEST

/* Operators of one name with different sizes are a bundle of their own, whose larger states count. */
START_TEST_IN_CONTEXT(uneven_states_are_not_bundled)
{
    hbp_graph *graph = new_graph(context);
    hbp_operator o = {.struct_size = sizeof o};
    o.profile = add_falling_profile(context, graph, 1000, 0, 2);
    for (int32_t t = 0; t < 2; t++) {
        static const char *const names[2][2] = {{"a0", "a1"}, {"b0", "b1"}};
        static const int64_t states[2][2] = {{100, 1}, {1, 100}};
        for (int32_t i = 0; i < 2; i++) {
            o.parameters = i ? "second" : "first";
            o.state_bytes = states[t][i];
            add_chain(context, graph, &o, names[t][i], "lm", t ? "task b" : "task a", 1);
        }
        OK(context, hbp_graph_add_edge(context, graph, 2 * t, 2 * t + 1, 0));
    }
    place_case c;
    hbp__board board;
    open_case(context, graph, 2, 2, INT64_MAX, &c);
    ck_assert_int_eq(c.meta.count, 2);
    OK(context, hbp__task_slices_add(context, &c.slices, &(hbp__task_slice){0, 0, 2, 1, 0, 0, 2000}));
    OK(context, hbp__task_slices_add(context, &c.slices, &(hbp__task_slice){1, 0, 2, 1, 1, 2000, 4000}));
    ready_case(&c);
    OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
    ck_assert_int_eq(board.bundles, 2);
    OK(context, hbp__board_greedy(&board, HBP__GREEDY_FIRST));
    ck_assert_int_eq(board.rank_bytes[0], 200); /* not 101 */
    close_case(&c);
}
END_TEST

TEST_MAIN("place_weights", bytes_of_random_slices, layers_that_run_together_are_one_bundle,
          uneven_states_are_not_bundled)
