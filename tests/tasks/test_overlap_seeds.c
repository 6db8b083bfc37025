#include "tasks/overlap/overlap_search.h"

#include "keep.h"
#include "simulate/tasks/task_bound.h"
#include "tasks/baselines/baselines.h"
#include "tasks/lists.h"
#include "tasks/waves/waves.h"

static int64_t bound_of(const bench *b)
{
    hbp__task_bounds bounds;
    OK(b->context, hbp__task_bound(b->context, &b->planned.meta, &b->planned.scaling, &bounds, NULL));
    return bounds.bound_ns;
}

START_TEST(no_longer_than_given_and_near_the_bound)
{
    hbp__rng rng = hbp__rng_make(81, 0, 0);
    int32_t trials = 500, shorter = 0;
    double sum = 0;
    for (int trial = 0; trial < trials; trial++) {
        bench b;
        bench_open(&b, &rng, &(graph_sizes){.tasks = 8, .chain = 12});
        int64_t bound = bound_of(&b);
        hbp__task_slices waves = {0}, sequential = {0};
        OK(b.context, hbp__plan_waves(b.context, &b.planned.problem, &waves));
        OK(b.context, hbp__plan_sequential(b.context, &b.planned.problem, &sequential));
        const hbp__task_slices *given[] = {&waves, &sequential};
        hbp__scheduler scheduler;
        OK(b.context, hbp__scheduler_open(b.context, &b.planned.problem, 2048, &scheduler));
        hbp__piece_list best, spare;
        OK(b.context, hbp__pieces_open(b.context, &scheduler, &best));
        OK(b.context, hbp__pieces_open(b.context, &scheduler, &spare));
        OK(b.context, hbp__overlap_seeds(b.context, &scheduler, given, 2, bound, &best, &spare));
        check_list(b.context, &b.planned, &scheduler, &best);
        ck_assert_int_le(best.makespan_ns, waves.makespan_ns);
        ck_assert_int_le(best.makespan_ns, sequential.makespan_ns);
        shorter += best.makespan_ns < waves.makespan_ns;
        sum += (double)best.makespan_ns / (double)bound;
        OK(b.context, hbp__overlap_seeds(b.context, &scheduler, NULL, 0, bound, &best, &spare));
        check_list(b.context, &b.planned, &scheduler, &best);
        hbp__task_slices_close(&waves);
        hbp__task_slices_close(&sequential);
        bench_close(&b);
    }
    ck_assert_int_gt(shorter, trials / 2);
    ck_assert_double_lt(sum / trials, 1.0385);
}
END_TEST

/* Barriers go: two waves whose slices do not wait for one another run at once. A size that is no faster than
 * a smaller one is left for that. */
START_TEST_IN_CONTEXT(given_slices_lose_their_barriers)
{
    hbp_graph *graph = keep(new_graph(context));
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    static const int32_t gpus[] = {1, 2};
    static const int64_t ns[] = {100, 100};
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 2, &o.profile));
    add_chain(context, graph, &o, "a", "a", "task a", 3);
    add_chain(context, graph, &o, "b", "b", "task b", 3);
    planned p;
    open_planned(context, graph, 2, &p);
    hbp__task_slice slice[] = {{0, 0, 3, 2, 0, 0, 300}, {1, 0, 3, 1, 1, 300, 600}};
    hbp__task_slices slices = {.slice = slice, .count = 2, .waves = 2, .makespan_ns = 600};
    const hbp__task_slices *given[] = {&slices};
    hbp__scheduler scheduler;
    hbp__piece_list best, spare;
    OK(context, hbp__scheduler_open(context, &p.problem, 8, &scheduler));
    OK(context, hbp__pieces_open(context, &scheduler, &best));
    OK(context, hbp__pieces_open(context, &scheduler, &spare));
    OK(context, hbp__overlap_seeds(context, &scheduler, given, 1, 300, &best, &spare));
    check_list(context, &p, &scheduler, &best);
    ck_assert_int_eq(best.makespan_ns, 300);
    ck_assert_int_eq(best.area_ns, 600);
    close_planned(&p);
}
END_TEST

static hbp_status find_seeds(hbp_context *context, void *user)
{
    bench *b = user;
    return hbp__overlap_seeds(context, &b->scheduler, NULL, 0, 1, &b->list, &b->other);
}

START_TEST(memory_may_run_out_and_users_may_cancel)
{
    hbp__rng rng = hbp__rng_make(82, 0, 0);
    bench b;
    bench_open(&b, &rng, NULL);
    failing_sweep(find_seeds, &b);
    check_list(b.context, &b.planned, &b.scheduler, &b.list);
    ck_assert_int_gt(cancel_sweep(find_seeds, &b), 5);
    bench_close(&b);
}
END_TEST

TEST_MAIN("overlap_seeds", no_longer_than_given_and_near_the_bound, given_slices_lose_their_barriers,
          memory_may_run_out_and_users_may_cancel)
