#include "keep.h"
#include "simulate/tasks/task_bound.h"
#include "tasks/lists.h"
#include "tasks/overlap/overlap_search.h"
#include "tasks_oracle.h"

START_TEST(from_anywhere_to_near_the_bound)
{
    hbp__rng rng = hbp__rng_make(91, 0, 0);
    int32_t trials = 60;
    double before = 0, after = 0;
    for (int trial = 0; trial < trials; trial++) {
        bench b;
        bench_open(&b, &rng, NULL);
        hbp__task_bounds bounds;
        OK(b.context, hbp__task_bound(b.context, &b.planned.meta, &b.planned.scaling, &bounds, NULL));
        random_list(&b.scheduler, &rng, &b.list);
        ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
        hbp__pieces_sort(&b.scheduler, &b.list);
        int64_t first = b.list.makespan_ns;
        OK(b.context, hbp__overlap_improve(b.context, &b.scheduler, bounds.bound_ns, 5, &b.list));
        check_list(b.context, &b.planned, &b.scheduler, &b.list);
        ck_assert_int_le(b.list.makespan_ns, first);
        ck_assert_int_ge(b.list.makespan_ns, bounds.bound_ns);
        before += (double)first / (double)bounds.bound_ns;
        after += (double)b.list.makespan_ns / (double)bounds.bound_ns;
        bench_close(&b);
    }
    ck_assert_double_gt(before / trials, 1.5);
    ck_assert_double_lt(after / trials, 1.04);
}
END_TEST

/* A bad start must not keep the search from the shortest. */
START_TEST(from_anywhere_to_the_shortest)
{
    hbp__rng rng = hbp__rng_make(92, 0, 0);
    graph_sizes sizes = {.tasks = 3, .encoders = 2, .heads = 1, .chain = 2, .most_gpus = 4};
    int32_t optimal = 0, trials = 0;
    for (int trial = 0; trial < 1000; trial++) {
        bench b;
        bench_open(&b, &rng, &sizes);
        if (b.planned.meta.operator_count <= 6 && b.planned.problem.gpus <= 8) {
            oracle o;
            int64_t best = oracle_makespan(&b.planned.meta, &b.planned.scaling, &o);
            random_list(&b.scheduler, &rng, &b.list);
            ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
            hbp__pieces_sort(&b.scheduler, &b.list);
            OK(b.context, hbp__overlap_improve(b.context, &b.scheduler, best, 5, &b.list));
            check_list(b.context, &b.planned, &b.scheduler, &b.list);
            ck_assert_int_ge(b.list.makespan_ns, best);
            ck_assert_int_le(b.list.makespan_ns, best + best / 10);
            optimal += b.list.makespan_ns == best;
            trials++;
        }
        bench_close(&b);
    }
    ck_assert_int_gt(trials, 40);
    ck_assert_int_ge(optimal, trials * 95 / 100);
}
END_TEST

START_TEST_IN_CONTEXT(neighbours_of_one_size_are_joined)
{
    hbp_graph *graph = keep(figure_graph(context));
    planned p;
    open_planned(context, graph, 4, &p);
    hbp__scheduler scheduler;
    hbp__piece_list list;
    OK(context, hbp__scheduler_open(context, &p.problem, 16, &scheduler));
    OK(context, hbp__pieces_open(context, &scheduler, &list));
    static const int32_t pieces[][3] = {{0, 1, 2}, {1, 0, 5}, {2, 0, 1}, {0, 1, 3},
                                        {1, 0, 6}, {0, 0, 3}, {1, 1, 1}, {2, 0, 5}};
    for (int i = 0; i < 8; i++) {
        const hbp__curve *c = scheduler.curve[pieces[i][0]];
        list.piece[list.count++] = (hbp__piece){.meta_op = pieces[i][0],
                                                .size = pieces[i][1],
                                                .gpus = c->size[pieces[i][1]],
                                                .count = pieces[i][2]};
    }
    ck_assert(hbp__pieces_schedule(&scheduler, &list, INT64_MAX));
    hbp__pieces_sort(&scheduler, &list);
    int64_t makespan = list.makespan_ns;
    hbp__pieces_join(&scheduler, &list);
    check_list(context, &p, &scheduler, &list);
    ck_assert_int_eq(list.count, 5);
    ck_assert_int_eq(list.makespan_ns, makespan);
    static const int32_t joined[][3] = {{0, 1, 5}, {1, 0, 11}, {2, 0, 6}, {0, 0, 3}, {1, 1, 1}};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            if (list.piece[k].meta_op == joined[i][0] && list.piece[k].size == joined[i][1])
                ck_assert_int_eq(list.piece[k].count, joined[i][2]);
    close_planned(&p);
}
END_TEST

static hbp_status improve(hbp_context *context, void *user)
{
    bench *b = user;
    return hbp__overlap_improve(context, &b->scheduler, 1, 3, &b->list);
}

START_TEST(memory_may_run_out_and_users_may_cancel)
{
    hbp__rng rng = hbp__rng_make(93, 0, 0);
    bench b;
    bench_open(&b, &rng, NULL);
    random_list(&b.scheduler, &rng, &b.list);
    ck_assert(hbp__pieces_schedule(&b.scheduler, &b.list, INT64_MAX));
    hbp__pieces_sort(&b.scheduler, &b.list);
    failing_sweep(improve, &b);
    ck_assert_int_gt(cancel_sweep(improve, &b), 2);
    check_list(b.context, &b.planned, &b.scheduler, &b.list);
    bench_close(&b);
}
END_TEST

TEST_MAIN("overlap_improve", from_anywhere_to_near_the_bound, from_anywhere_to_the_shortest,
          neighbours_of_one_size_are_joined, memory_may_run_out_and_users_may_cancel)
