#include "tasks/place/place_methods.h"

#include "failing.h"
#include "keep.h"
#include "place.h"

static int64_t least_peak(place_case *c, int32_t s)
{
    if (s == (int32_t)c->slices.count)
        return peak_of(c, c->ranks, NULL);
    const hbp__task_slice *slice = &c->slices.slice[s];
    uint32_t used = 0;
    for (int32_t t = 0; t < s; t++) {
        const hbp__task_slice *other = &c->slices.slice[t];
        if (other->end_ns > slice->start_ns && slice->end_ns > other->start_ns)
            for (int64_t i = c->first[t]; i < c->first[t + 1]; i++)
                used |= UINT32_C(1) << c->ranks[i];
    }
    int64_t least = INT64_MAX;
    for (uint32_t set = 0; set < UINT32_C(1) << c->problem.gpus; set++) {
        if ((set & used) || hbp__count_bits(set) != slice->gpus)
            continue;
        int64_t at = c->first[s];
        for (int32_t r = 0; r < c->problem.gpus; r++)
            if (set >> r & 1)
                c->ranks[at++] = r;
        int64_t peak = least_peak(c, s + 1);
        least = peak < least ? peak : least;
    }
    return least;
}

/* Finds a placement if and only if there is one. */
START_TEST_IN_CONTEXT(complete_on_tiny_cases)
{
    hbp__rng rng = hbp__rng_make(61, 0, 0);
    for (int32_t i = 0, done = 0; done < 300; i++) {
        place_case c;
        hbp__board board;
        int32_t gpus = (int32_t)random_between(&rng, 1, 4), found;
        graph_sizes sizes = {.tasks = 3, .encoders = 2, .heads = 1, .chain = 3, .most_gpus = gpus};
        open_random_case(context, &rng, &sizes, gpus, 2, INT64_MAX, &c);
        if (c.slices.count > 5) {
            close_case(&c);
            continue;
        }
        done++;
        hbp__tight_slice tight;
        int64_t peak = least_peak(&c, 0);
        c.problem.limit_bytes = peak;
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_backtrack(&board, 1 << 20, &found, &tight));
        ck_assert_int_eq(found, 1);
        check_board(&c, &board);
        ck_assert_int_eq(board.over_bytes, 0);
        c.problem.limit_bytes = peak - 1;
        OK(context, hbp__board_backtrack(&board, 1 << 20, &found, &tight));
        ck_assert_int_eq(found, 0);
        ck_assert_int_lt(tight.slice, board.count);
        if (tight.slice >= 0)
            ck_assert_int_lt(tight.fitting, board.slice[tight.slice].gpus);
        for (int32_t s = 0; s < board.count; s++)
            ck_assert(*hbp__board_set(&board, s) == 0);
        close_case(&c);
    }
}
END_TEST

/* Without nodes nothing is found, and nothing is claimed. */
START_TEST_IN_CONTEXT(nodes_are_counted)
{
    hbp__rng rng = hbp__rng_make(62, 0, 0);
    place_case c;
    hbp__board board;
    int32_t found;
    hbp__tight_slice tight;
    open_random_case(context, &rng, NULL, 8, 4, INT64_C(1) << 50, &c);
    OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
    OK(context, hbp__board_backtrack(&board, board.count, &found, &tight));
    ck_assert_int_eq(found, 0);
    ck_assert_int_eq(tight.slice, -1);
    OK(context, hbp__board_backtrack(&board, board.count + 1, &found, &tight));
    ck_assert_int_eq(found, 1);
    close_case(&c);
}
END_TEST

static hbp_status search_again(hbp_context *context, void *user)
{
    place_case *c = user;
    hbp__board board;
    int32_t found;
    hbp__tight_slice tight;
    HBP__TRY(hbp__board_open(context, &c->problem, &c->slices, NULL, &board));
    hbp_status status = hbp__board_backtrack(&board, 4096, &found, &tight);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_and_cancel)
{
    hbp__rng rng = hbp__rng_make(63, 0, 0);
    place_case c;
    open_random_case(context, &rng, &(graph_sizes){.tasks = 3, .all_tasks = 1}, 8, 4, INT64_C(1) << 50, &c);
    failing_sweep(search_again, &c);
    ck_assert_int_gt(cancel_sweep(search_again, &c), 0);
    close_case(&c);
}
END_TEST

TEST_MAIN("place_memory", complete_on_tiny_cases, nodes_are_counted, failing_allocations_and_cancel)
