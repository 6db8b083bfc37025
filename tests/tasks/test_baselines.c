#include "graphs.h"
#include "keep.h"
#include "tasks/alone.h"
#include "tasks/baselines/baselines.h"

static planner *const planners[] = {hbp__plan_sequential, hbp__plan_uniform, hbp__plan_optimus,
                                    hbp__plan_distmm};

/* A task of one chain with these times on 1, 2, 4 GPUs, 0 for none. */
static void add_task(hbp_context *context, hbp_graph *graph, const char *name, int64_t count, int64_t on_1,
                     int64_t on_2, int64_t on_4)
{
    static const int32_t gpus[] = {1, 2, 4};
    const int64_t ns[] = {on_1, on_2, on_4};
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 1 + (on_2 > 0) + (on_4 > 0), &o.profile));
    add_chain(context, graph, &o, name, "layer", name, count);
}

START_TEST_IN_CONTEXT(two_tasks_by_hand)
{
    hbp_graph *graph = keep(new_graph(context));
    add_task(context, graph, "long", 1, 100, 60, 40);
    add_task(context, graph, "short", 1, 50, 30, 0);
    planned p;
    open_planned(context, graph, 4, &p);
    ck_assert_int_eq(makespan(context, hbp__plan_sequential, &p), 40 + 30);
    ck_assert_int_eq(makespan(context, hbp__plan_uniform, &p), 60);
    ck_assert_int_eq(makespan(context, hbp__plan_distmm, &p), 40 + 30);
    /* 40 a GPU for the first step of `long`, then 20 for that of `short`; 10 a GPU comes too late. */
    hbp__task_slices slices = plan(context, hbp__plan_optimus, &p);
    ck_assert_int_eq(slices.count, 2);
    ck_assert_int_eq(slices.slice[0].gpus, 2);
    ck_assert_int_eq(slices.slice[1].gpus, 2);
    ck_assert_int_eq(slices.waves, 1);
    ck_assert_int_eq(slices.makespan_ns, 60);
    hbp__task_slices_close(&slices);
    close_planned(&p);
    /* On 5 the last step still does not fit: it takes two more of one that is left. */
    open_planned(context, graph, 5, &p);
    ck_assert_int_eq(makespan(context, hbp__plan_optimus, &p), 60);
    ck_assert_int_eq(makespan(context, hbp__plan_uniform, &p), 60); /* 3 each, of which 2 are of use */
    close_planned(&p);
    open_planned(context, graph, 6, &p);
    ck_assert_int_eq(makespan(context, hbp__plan_optimus, &p), 40);
    close_planned(&p);
}
END_TEST

START_TEST_IN_CONTEXT(the_longest_goes_first)
{
    hbp_graph *graph = keep(new_graph(context));
    add_task(context, graph, "a", 1, 4, 0, 0);
    add_task(context, graph, "b", 1, 5, 0, 0);
    add_task(context, graph, "c", 7, 1, 0, 0);
    planned p;
    open_planned(context, graph, 2, &p);
    hbp__task_slices slices = plan(context, hbp__plan_optimus, &p);
    ck_assert_int_eq(slices.makespan_ns, 9);
    ck_assert_int_eq(makespan(context, hbp__plan_uniform, &p), 9);
    ck_assert_int_eq(makespan(context, hbp__plan_sequential, &p), 16);
    hbp__task_slices_close(&slices);
    close_planned(&p);
}
END_TEST

/* Tasks that feed one another count as one, and nothing waits for ever. */
START_TEST_IN_CONTEXT(tasks_with_edges_between_them_are_one)
{
    hbp_graph *graph = keep(new_graph(context));
    add_task(context, graph, "a0", 1, 10, 6, 0);
    add_task(context, graph, "b0", 1, 10, 6, 0);
    add_task(context, graph, "c", 1, 25, 14, 0);
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    int32_t a1 = add_chain(context, graph, &o, "a1", "end", "a0", 1); /* b0 -> a1 and a0 -> b1 */
    int32_t b1 = add_chain(context, graph, &o, "b1", "end", "b0", 1);
    OK(context, hbp_graph_add_edge(context, graph, 1, a1, -1));
    OK(context, hbp_graph_add_edge(context, graph, 0, b1, -1));
    planned p;
    open_planned(context, graph, 2, &p);
    ck_assert_int_eq(makespan(context, hbp__plan_sequential, &p), 4 * 6 + 14);
    ck_assert_int_eq(makespan(context, hbp__plan_uniform, &p), 40);
    ck_assert_int_eq(makespan(context, hbp__plan_optimus, &p), 40);
    ck_assert_int_eq(makespan(context, hbp__plan_distmm, &p), 10 + 10 + 14);
    close_planned(&p);
}
END_TEST

/* Optimus by its definition: every step of every task is looked at anew. */
static int64_t optimus(const planned *p, int32_t tasks)
{
    int32_t gpus[16], left = p->problem.gpus;
    for (int32_t t = 0; t < tasks; t++) {
        for (gpus[t] = 1; !task_ns(p, t, gpus[t]);)
            gpus[t]++;
        left -= gpus[t];
    }
    for (int moved = 1; moved;) {
        int32_t best = -1, to = 0;
        long double most = 0;
        for (int32_t t = 0; t < tasks; t++)
            for (int32_t n = gpus[t] + 1; n <= gpus[t] + left; n++)
                if (task_ns(p, t, n) < task_ns(p, t, gpus[t])) {
                    long double saved =
                        (long double)(task_ns(p, t, gpus[t]) - task_ns(p, t, n)) / (n - gpus[t]);
                    if (saved > most) {
                        most = saved;
                        best = t;
                        to = n;
                    }
                    break; /* the next valid step alone */
                }
        moved = best >= 0;
        if (moved) {
            left -= to - gpus[best];
            gpus[best] = to;
        }
    }
    return longest_first(p, tasks, gpus);
}

static int64_t uniform(const planned *p, int32_t tasks)
{
    int32_t gpus[16];
    for (int32_t t = 0; t < tasks; t++) {
        int32_t share = (p->problem.gpus + tasks - 1) / tasks;
        while (!task_ns(p, t, share))
            share++;
        for (gpus[t] = 1; !task_ns(p, t, gpus[t]) || task_ns(p, t, gpus[t]) > task_ns(p, t, share);)
            gpus[t]++;
    }
    return longest_first(p, tasks, gpus);
}

START_TEST_IN_CONTEXT(random_graphs_as_defined)
{
    hbp__rng rng = hbp__rng_make(17, 0, 0);
    int32_t together = 0, apart = 0;
    for (int32_t round = 0; round < 1500; round++) {
        graph_sizes sizes = {.most_gpus = 16};
        hbp_graph *graph = random_graph(context, &rng, &sizes);
        int32_t gpus = (int32_t)random_between(&rng, 4, 24);
        int32_t tasks = (int32_t)graph_view(graph).tasks;
        planned p;
        open_planned(context, graph, gpus, &p);
        int64_t sum = 0;
        for (int32_t t = 0; t < tasks; t++)
            sum += task_ns(&p, t, gpus);
        ck_assert_int_eq(makespan(context, hbp__plan_sequential, &p), sum);
        ck_assert_int_eq(makespan(context, hbp__plan_optimus, &p), optimus(&p, tasks));
        ck_assert_int_eq(makespan(context, hbp__plan_uniform, &p), uniform(&p, tasks));
        hbp__task_slices slices = plan(context, hbp__plan_uniform, &p);
        int64_t starts = 0;
        for (int64_t s = 0; s < slices.count; s++)
            starts += slices.slice[s].start_ns == 0;
        together += starts == tasks;
        apart += starts < tasks;
        hbp__task_slices_close(&slices);
        close_planned(&p);
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(together, 200);
    ck_assert_int_gt(apart, 200);
}
END_TEST

static void same_slice(const hbp__task_slice *a, const hbp__task_slice *b)
{
    ck_assert_int_eq(a->meta_op, b->meta_op);
    ck_assert_int_eq(a->first, b->first);
    ck_assert_int_eq(a->count, b->count);
    ck_assert_int_eq(a->gpus, b->gpus);
    ck_assert_int_eq(a->wave, b->wave);
    ck_assert_int_eq(a->start_ns, b->start_ns);
    ck_assert_int_eq(a->end_ns, b->end_ns);
}

START_TEST_IN_CONTEXT(the_same_again)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int32_t round = 0; round < 50; round++) {
        hbp_graph *graph = random_graph(context, &rng, NULL);
        planned p;
        open_planned(context, graph, 8, &p);
        for (int32_t i = 0; i < 4; i++) {
            hbp__task_slices a = plan(context, planners[i], &p), b = plan(context, planners[i], &p);
            ck_assert_int_eq(a.count, b.count);
            for (int64_t s = 0; s < a.count; s++)
                same_slice(&a.slice[s], &b.slice[s]);
            hbp__task_slices_close(&a);
            hbp__task_slices_close(&b);
        }
        close_planned(&p);
        hbp_graph_free(graph);
    }
}
END_TEST

static hbp_status plan_once(hbp_context *context, void *user)
{
    const planned *p = user;
    for (int32_t i = 0; i < 4; i++) {
        hbp__task_slices slices = {0};
        hbp_status status = planners[i](context, &p->problem, &slices);
        hbp__task_slices_close(&slices);
        HBP__TRY(status);
    }
    return HBP_OK;
}

START_TEST_IN_CONTEXT(failed_allocations_leave_nothing)
{
    hbp_graph *graph = keep(page_graph(context));
    planned p;
    open_planned(context, graph, 8, &p);
    failing_sweep(plan_once, &p);
    close_planned(&p);
}
END_TEST

TEST_MAIN("baselines", two_tasks_by_hand, the_longest_goes_first, tasks_with_edges_between_them_are_one,
          random_graphs_as_defined, the_same_again, failed_allocations_leave_nothing)
