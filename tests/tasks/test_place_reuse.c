#include "base/methods.h"
#include "tasks/place/place_methods.h"

#include "failing.h"
#include "keep.h"
#include "place.h"
#include "simulate/tasks/task_bound.h"

/* The schedule that these ranks make. */
static hbp_task_schedule *build(place_case *c, const int32_t *ranks)
{
    hbp_task_summary summary = {.struct_size = sizeof summary};
    hbp__task_bounds bounds;
    int64_t *level_ns = calloc((size_t)c->meta.levels + 1, sizeof *level_ns);
    OK(c->context, hbp__task_bound(c->context, &c->meta, &c->scaling, &bounds, level_ns));
    summary.gpus = c->problem.gpus;
    summary.domain_gpus = c->problem.domain_gpus;
    summary.bound_ns = bounds.bound_ns;
    hbp_task_schedule *schedule = NULL;
    OK(c->context, hbp__task_schedule_build(c->context, c->graph, &c->meta, &c->slices, ranks, level_ns,
                                            &summary, &schedule));
    free(level_ns);
    return schedule;
}

/* Bytes of states on ranks that had these weights before, and all, by weights' groups. */
static void count_kept(const hbp_task_schedule *before, const hbp_task_schedule *after,
                       const hbp_graph *graph, int64_t *kept, int64_t *all)
{
    *kept = *all = 0;
    for (int64_t p = 0; p < after->parameters; p++) {
        int64_t bytes = 0;
        for (int32_t o = 0; o < graph->operator_count; o++)
            if (graph->operators[o].parameters == p && graph->operators[o].state_bytes > bytes)
                bytes = graph->operators[o].state_bytes;
        int32_t mine = after->parameter_groups[p], theirs = -1;
        for (int64_t q = 0; q < before->parameters; q++)
            if (!strcmp(before->parameters_names[q], after->parameters_names[p]))
                theirs = before->parameter_groups[q];
        if (mine < 0 || theirs < 0)
            continue;
        for (int64_t i = after->group_offsets[mine]; i < after->group_offsets[mine + 1]; i++) {
            *all += bytes;
            for (int64_t j = before->group_offsets[theirs]; j < before->group_offsets[theirs + 1]; j++)
                *kept += before->group_ranks[j] == after->group_ranks[i] ? bytes : 0;
        }
    }
}

/* However the schedule before was numbered, renumbering finds it again; flows and memory stay as they are. */
START_TEST_IN_CONTEXT(numbers_are_found_again)
{
    hbp__rng rng = hbp__rng_make(81, 0, 0);
    int64_t kept_sum = 0, all_sum = 0, old_sum = 0, placed_sum = 0, placed_all = 0;
    for (int32_t i = 0; i < 200; i++) {
        place_case c;
        hbp__board board;
        int32_t gpus = (int32_t)random_between(&rng, 2, 20), domain = (int32_t)random_between(&rng, 1, gpus);
        graph_sizes sizes = {.tasks = 4, .most_gpus = gpus < 8 ? gpus : 8};
        open_random_case(context, &rng, &sizes, gpus, domain, INT64_MAX, &c);
        /* Before: the same placement with domains rotated, and ranks reversed within. */
        OK(context, hbp__board_open(context, &c.problem, &c.slices, NULL, &board));
        OK(context, hbp__board_greedy(&board, HBP__GREEDY_FLOWS));
        int32_t whole = gpus / domain;
        for (int32_t s = 0; s < board.count; s++) {
            int32_t ranks[32], count = 0;
            for (int32_t r = 0; r < gpus; r++)
                if (hbp__has_rank(hbp__board_set(&board, s), r))
                    ranks[count++] =
                        r >= whole * domain ? r : (r / domain + 1) % whole * domain + domain - 1 - r % domain;
            hbp__board_put(&board, s, ranks);
        }
        hbp__board_measure(&board);
        check_board(&c, &board);
        hbp_task_schedule *before = build(&c, c.ranks);
        OK(context, hbp__board_open(context, &c.problem, &c.slices, before, &board));
        OK(context, hbp__board_greedy(&board, HBP__GREEDY_FIRST));
        check_board(&c, &board);
        int64_t flow = weigh(flows_of(&c, c.ranks)), peak = peak_of(&c, c.ranks, NULL), cost = board.cost;
        int64_t kept, all, old;
        hbp_task_schedule *plain = build(&c, c.ranks);
        count_kept(before, plain, c.graph, &old, &all);
        hbp_task_schedule_free(plain);
        OK(context, hbp__board_reuse(&board));
        check_board(&c, &board);
        ck_assert_int_eq(weigh(flows_of(&c, c.ranks)), flow);
        ck_assert_int_eq(peak_of(&c, c.ranks, NULL), peak);
        ck_assert_int_le(board.cost, cost);
        hbp_task_schedule *after = build(&c, c.ranks);
        count_kept(before, after, c.graph, &kept, &all);
        hbp_task_schedule_free(after);
        kept_sum += kept >> 10;
        old_sum += old >> 10;
        all_sum += all >> 10;

        OK(context, place_slices(context, &c.problem, &c.slices, HBP__PLACEMENT_FLOWS, before, c.ranks));
        check_ranks(&c, c.ranks);
        after = build(&c, c.ranks);
        count_kept(before, after, c.graph, &kept, &all);
        hbp_task_schedule_free(after);
        placed_sum += kept >> 10;
        placed_all += all >> 10;
        hbp_task_schedule_free(before);
        close_case(&c);
    }
    printf("states kept: %.3f, renumbered %.3f, placed again %.3f\n", (double)old_sum / (double)all_sum,
           (double)kept_sum / (double)all_sum, (double)placed_sum / (double)placed_all);
    ck_assert_int_gt(kept_sum, old_sum);
    ck_assert_int_gt(placed_sum, placed_all * 8 / 10);
}
END_TEST

/* States stay on more ranks than where the schedule before is not told. */
START_TEST_IN_CONTEXT(a_task_that_leaves_moves_little)
{
    int64_t with = 0, without = 0, all_bytes = 0;
    for (int32_t i = 0; i < 60; i++) {
        place_case c[2];
        hbp_task_schedule *schedule[2] = {NULL, NULL};
        /* The same draws make the same first tasks. */
        for (int32_t k = 0; k < 2; k++) {
            hbp__rng rng = hbp__rng_make(82, 0, (uint64_t)i);
            graph_sizes sizes = {.tasks = 5 - k, .all_tasks = 1, .most_gpus = 8};
            open_random_case(context, &rng, &sizes, 16, 8, INT64_MAX, &c[k]);
        }
        OK(context,
           place_slices(context, &c[0].problem, &c[0].slices, HBP__PLACEMENT_FLOWS, NULL, c[0].ranks));
        schedule[0] = build(&c[0], c[0].ranks);
        for (int32_t k = 0; k < 2; k++) {
            int64_t kept, all;
            OK(context, place_slices(context, &c[1].problem, &c[1].slices, HBP__PLACEMENT_FLOWS,
                                     k ? schedule[0] : NULL, c[1].ranks));
            check_ranks(&c[1], c[1].ranks);
            schedule[1] = build(&c[1], c[1].ranks);
            count_kept(schedule[0], schedule[1], c[1].graph, &kept, &all);
            hbp_task_schedule_free(schedule[1]);
            *(k ? &with : &without) += kept >> 10;
            all_bytes += k ? all >> 10 : 0;
        }
        hbp_task_schedule_free(schedule[0]);
        close_case(&c[0]);
        close_case(&c[1]);
    }
    printf("a task leaves: states kept %.3f, of a new plan %.3f\n", (double)with / (double)all_bytes,
           (double)without / (double)all_bytes);
    ck_assert_int_gt(with, without);
}
END_TEST

typedef struct failing_keep {
    place_case *c;
    const hbp_task_schedule *before;
} failing_keep;

static hbp_status place_again(hbp_context *context, void *user)
{
    failing_keep *f = user;
    return place_slices(context, &f->c->problem, &f->c->slices, HBP__PLACEMENT_FLOWS, f->before, f->c->ranks);
}

/* A schedule of more GPUs before, some of whose ranks are gone. */
START_TEST_IN_CONTEXT(failing_allocations_and_fewer_gpus)
{
    place_case c[2];
    for (int32_t k = 0; k < 2; k++) {
        hbp__rng rng = hbp__rng_make(83, 0, 0);
        graph_sizes sizes = {.tasks = 3, .all_tasks = 1, .most_gpus = 8};
        open_random_case(context, &rng, &sizes, k ? 8 : 80, 4, INT64_MAX, &c[k]);
    }
    OK(context,
       place_slices(context, &c[0].problem, &c[0].slices, HBP__PLACEMENT_SEQUENTIAL, NULL, c[0].ranks));
    hbp_task_schedule *before = keep(build(&c[0], c[0].ranks));
    failing_keep f = {&c[1], before};
    OK(context, place_again(context, &f));
    check_ranks(&c[1], c[1].ranks);
    failing_sweep(place_again, &f);
    ck_assert_int_gt(cancel_sweep(place_again, &f), 0);
    close_case(&c[0]);
    close_case(&c[1]);
}
END_TEST

TEST_MAIN("place_keep", numbers_are_found_again, a_task_that_leaves_moves_little,
          failing_allocations_and_fewer_gpus)
