#include "tasks/overlap/overlap_search.h"

#include "keep.h"
#include "simulate/tasks/task_bound.h"
#include "tasks/lists.h"

/* Starts are sound as they are: nothing has to be placed again. */
static void check_scheduled(bench *b)
{
    hbp__pieces_sort(&b->scheduler, &b->list);
    hbp__pieces_copy(&b->other, &b->list);
    b->list.makespan_ns = b->list.area_ns = b->list.ends_ns = 0;
    for (int32_t i = 0; i < b->list.count; i++) {
        const hbp__piece *p = &b->list.piece[i];
        b->list.makespan_ns = p->end_ns > b->list.makespan_ns ? p->end_ns : b->list.makespan_ns;
        b->list.area_ns += (p->end_ns - p->start_ns) * p->gpus;
        b->list.ends_ns += p->end_ns;
    }
    check_list(b->context, &b->planned, &b->scheduler, &b->list);
    ck_assert(hbp__pieces_schedule(&b->scheduler, &b->other, b->list.makespan_ns));
}

START_TEST(everything_runs_once_and_in_time)
{
    hbp__rng rng = hbp__rng_make(71, 0, 0);
    int32_t idle = 0, trials = TEST_FEW(500, 60);
    double sum = 0;
    for (int trial = 0; trial < trials; trial++) {
        bench b;
        bench_open(&b, &rng, &(graph_sizes){.tasks = 8, .chain = 12});
        hbp__task_bounds bounds;
        OK(b.context, hbp__task_bound(b.context, &b.planned.meta, &b.planned.scaling, &bounds, NULL));
        hbp__allocation a;
        hbp__list_scheduling r;
        OK(b.context, hbp__allocation_open(b.context, &b.scheduler, &a));
        OK(b.context, hbp__list_scheduling_open(b.context, &a, &r));
        int64_t best = INT64_MAX;
        for (int32_t spans = 4; spans <= 32; spans *= 2) {
            ck_assert(hbp__list_schedule(&r, bounds.bound_ns, spans, &b.list));
            check_scheduled(&b);
            best = b.list.makespan_ns < best ? b.list.makespan_ns : best;
            ck_assert(hbp__list_schedule(&r, 1, spans, &b.list)); /* never in time: as fast as can be */
            check_scheduled(&b);
        }
        ck_assert_int_ge(best, bounds.bound_ns);
        sum += (double)best / (double)bounds.bound_ns;
        idle += best == bounds.bound_ns;
        bench_close(&b);
    }
    ck_assert_double_lt(sum / trials, 1.12);
    ck_assert_int_gt(idle, trials / 10);
}
END_TEST

/* Two alike on four GPUs share them evenly to the end. */
START_TEST_IN_CONTEXT(two_alike_share_evenly)
{
    hbp_graph *graph = keep(new_graph(context));
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    o.profile = add_falling_profile(context, graph, 960, 20, 4);
    add_chain(context, graph, &o, "a", "a", "task a", 8);
    add_chain(context, graph, &o, "b", "b", "task b", 8);
    planned p;
    open_planned(context, graph, 4, &p);
    hbp__scheduler scheduler;
    hbp__allocation a;
    hbp__list_scheduling r;
    hbp__piece_list list;
    OK(context, hbp__scheduler_open(context, &p.problem, 16, &scheduler));
    OK(context, hbp__allocation_open(context, &scheduler, &a));
    OK(context, hbp__list_scheduling_open(context, &a, &r));
    OK(context, hbp__pieces_open(context, &scheduler, &list));
    ck_assert(hbp__list_schedule(&r, 4000, 1, &list));
    ck_assert_int_eq(list.count, 2);
    for (int32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(list.piece[i].meta_op, i);
        ck_assert_int_eq(list.piece[i].gpus, 2);
        ck_assert_int_eq(list.piece[i].count, 8);
        ck_assert_int_eq(list.piece[i].start_ns, 0);
        ck_assert_int_eq(list.piece[i].end_ns, 4000);
    }
    ck_assert(hbp__list_schedule(&r, 4000, 4, &list));
    ck_assert_int_eq(list.count, 8);
    scheduler.room = 7;
    ck_assert(!hbp__list_schedule(&r, 4000, 4, &list));
    close_planned(&p);
}
END_TEST

static hbp_status open_both(hbp_context *context, void *user)
{
    hbp__scheduler *scheduler = user;
    hbp__allocation a;
    hbp__list_scheduling r;
    HBP__TRY(hbp__allocation_open(context, scheduler, &a));
    return hbp__list_scheduling_open(context, &a, &r);
}

START_TEST(memory_may_run_out)
{
    hbp__rng rng = hbp__rng_make(72, 0, 0);
    bench b;
    bench_open(&b, &rng, NULL);
    failing_sweep(open_both, &b.scheduler);
    bench_close(&b);
}
END_TEST

TEST_MAIN("overlap_list_schedule", everything_runs_once_and_in_time, two_alike_share_evenly,
          memory_may_run_out)
