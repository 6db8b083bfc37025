#include "graphs.h"
#include "keep.h"
#include "tasks/alone.h"
#include "tasks/baselines/baselines.h"
#include "tasks/waves/waves.h"

/* Two towers of one task, and another task: the towers run side by side, the tasks do not. */
START_TEST_IN_CONTEXT(towers_of_a_task_run_side_by_side)
{
    hbp_graph *graph = keep(new_graph(context));
    static const int32_t gpus[] = {1, 2};
    static const int64_t ns[] = {10, 8};
    hbp_operator o = {.struct_size = sizeof o};
    o.degrees = HBP_DEGREES_PROFILED;
    OK(context, hbp_graph_add_profile(context, graph, gpus, ns, 2, &o.profile));
    int32_t left = add_chain(context, graph, &o, "left", "left", "pair", 2);
    int32_t right = add_chain(context, graph, &o, "right", "right", "pair", 2);
    int32_t loss = add_chain(context, graph, &o, "loss", "loss", "pair", 1);
    OK(context, hbp_graph_add_edge(context, graph, left + 1, loss, -1));
    OK(context, hbp_graph_add_edge(context, graph, right + 1, loss, -1));
    add_chain(context, graph, &o, "alone", "alone", "other", 1);
    planned p;
    open_planned(context, graph, 2, &p);
    ck_assert_int_eq(makespan(context, hbp__plan_sequential, &p), 6 * 8);
    ck_assert_int_eq(makespan(context, hbp__plan_distmm, &p), 20 + 8 + 8);
    ck_assert_int_eq(makespan(context, hbp__plan_uniform, &p), 50);
    close_planned(&p);
}
END_TEST

/* The part of a graph that one task is. */
static hbp_graph *task_alone(hbp_context *context, const hbp_graph *graph, int32_t task)
{
    hbp_graph *alone = new_graph(context);
    int64_t count = graph_view(graph).operators;
    const int32_t *tasks = graph_view(graph).operator_tasks;
    int32_t *number = calloc((size_t)count, sizeof *number);
    hbp_graph_view view = graph_view(graph);
    for (int64_t i = 0; i < view.profiles; i++) {
        int64_t first = view.profile_offsets[i];
        OK(context, hbp_graph_add_profile(context, alone, view.point_gpus + first, view.point_ns + first,
                                          view.profile_offsets[i + 1] - first, NULL));
    }
    for (int64_t i = 0; i < count; i++)
        if (tasks[i] == task) {
            hbp_operator o = {.struct_size = sizeof o};
            OK(context, hbp_graph_get_operator(context, graph, i, &o));
            OK(context, hbp_graph_add_operators(context, alone, &o, 1, &number[i]));
        }
    for (int64_t e = 0; e < view.edges; e++)
        if (tasks[view.edge_from[e]] == task)
            OK(context, hbp_graph_add_edge(context, alone, number[view.edge_from[e]], number[view.edge_to[e]],
                                           view.edge_bytes[e]));
    free(number);
    return alone;
}

START_TEST_IN_CONTEXT(distmm_is_the_published_method_on_each_task_alone)
{
    hbp__rng rng = hbp__rng_make(23, 0, 0);
    int32_t faster = 0;
    for (int32_t round = 0; round < 400; round++) {
        hbp_graph *graph = random_graph(context, &rng, NULL);
        int32_t gpus = (int32_t)random_between(&rng, 4, 16);
        planned p;
        open_planned(context, graph, gpus, &p);
        int64_t sum = 0;
        for (int32_t t = 0; t < (int32_t)graph_view(graph).tasks; t++) {
            hbp_graph *alone = task_alone(context, graph, t);
            planned part;
            open_planned(context, alone, gpus, &part);
            sum += makespan(context, hbp__plan_waves, &part);
            close_planned(&part);
            hbp_graph_free(alone);
        }
        int64_t ns = makespan(context, hbp__plan_distmm, &p);
        ck_assert_int_eq(ns, sum);
        faster += ns < makespan(context, hbp__plan_sequential, &p);
        close_planned(&p);
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(faster, 40);
}
END_TEST

static hbp_status plan_once(hbp_context *context, void *user)
{
    const planned *p = user;
    hbp__task_slices slices = {0};
    hbp_status status = hbp__plan_distmm(context, &p->problem, &slices);
    hbp__task_slices_close(&slices);
    return status;
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

TEST_MAIN("distmm", towers_of_a_task_run_side_by_side, distmm_is_the_published_method_on_each_task_alone,
          failed_allocations_leave_nothing)
