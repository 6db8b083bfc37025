#include "tasks/baselines/jobs.h"

#include "graphs.h"
#include "keep.h"
#include "tasks/alone.h"

/* A random graph with edges between some of its tasks, from earlier operators to later ones. */
static hbp_graph *joined_graph(hbp_context *context, hbp__rng *rng)
{
    graph_sizes sizes = {.tasks = 8};
    hbp_graph *graph = random_graph(context, rng, &sizes);
    const int32_t *task = graph_view(graph).operator_tasks;
    int64_t count = graph_view(graph).operators;
    for (int64_t edges = random_between(rng, 0, 4); edges > 0; edges--) {
        int32_t from = (int32_t)random_between(rng, 0, count - 1);
        int32_t to = (int32_t)random_between(rng, 0, count - 1);
        if (from < to && task[from] != task[to])
            (void)hbp_graph_add_edge(context, graph, from, to, -1); /* one that is there is refused */
    }
    return graph;
}

/* Whether tasks a and b hang together: by spreading from a along edges of the graph. */
static int together(const hbp_graph *graph, int32_t a, int32_t b)
{
    int32_t reached[16] = {0};
    const int32_t *task = graph_view(graph).operator_tasks;
    reached[a] = 1;
    for (int grown = 1; grown;) {
        grown = 0;
        for (int64_t e = 0; e < graph_view(graph).edges; e++) {
            int32_t from = graph_view(graph).edge_from[e], to = graph_view(graph).edge_to[e];
            if (reached[task[from]] != reached[task[to]]) {
                reached[task[from]] = reached[task[to]] = 1;
                grown = 1;
            }
        }
    }
    return reached[b];
}

START_TEST_IN_CONTEXT(jobs_are_tasks_that_hang_together)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    int32_t joined = 0;
    for (int32_t round = 0; round < 500; round++) {
        hbp_graph *graph = joined_graph(context, &rng);
        int32_t tasks = (int32_t)graph_view(graph).tasks, least = -1, seen = 0;
        planned p;
        hbp__jobs jobs;
        open_planned(context, graph, 8, &p);
        OK(context, hbp__jobs_open(context, &p.problem, &jobs));
        joined += jobs.count < tasks;
        ck_assert_int_eq(jobs.first[0], 0);
        ck_assert_int_eq(jobs.first[jobs.count], p.meta.count);
        int32_t job_of[16];
        for (int32_t j = 0; j < jobs.count; j++) {
            int32_t own = tasks;
            for (int32_t i = jobs.first[j]; i < jobs.first[j + 1]; i++) {
                int32_t task = p.meta.meta_op[jobs.meta_op[i]].task;
                job_of[task] = j;
                own = task < own ? task : own;
                ck_assert(i == jobs.first[j] || jobs.meta_op[i - 1] < jobs.meta_op[i]);
                seen++;
            }
            ck_assert_int_gt(own, least); /* numbered by their least tasks */
            least = own;
        }
        ck_assert_int_eq(seen, p.meta.count);
        for (int32_t a = 0; a < tasks; a++)
            for (int32_t b = 0; b < a; b++)
                ck_assert_int_eq(job_of[a] == job_of[b], together(graph, a, b));
        close_planned(&p);
        hbp_graph_free(graph);
    }
    ck_assert_int_gt(joined, 100);
}
END_TEST

START_TEST_IN_CONTEXT(sizes_and_times_of_jobs)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (int32_t round = 0; round < 300; round++) {
        hbp_graph *graph = random_graph(context, &rng, NULL);
        planned p;
        hbp__jobs jobs;
        open_planned(context, graph, 12, &p);
        OK(context, hbp__jobs_open(context, &p.problem, &jobs));
        for (int32_t j = 0; j < jobs.count; j++) {
            int32_t least = hbp__job_least(&p.problem, &jobs, j);
            ck_assert_int_gt(task_ns(&p, j, least), 0);
            ck_assert_int_eq(task_ns(&p, j, least - 1), 0);
            for (int32_t n = least; n <= 12; n++) {
                int64_t ns = hbp__job_ns(&p.problem, &jobs, j, n);
                int32_t most = hbp__job_most(&p.problem, &jobs, j, n);
                ck_assert_int_eq(ns, task_ns(&p, j, n));
                ck_assert_int_eq(ns, task_ns(&p, j, most));
                ck_assert_int_le(most, n);
                ck_assert(most == 1 || task_ns(&p, j, most - 1) != ns);
            }
        }
        close_planned(&p);
        hbp_graph_free(graph);
    }
}
END_TEST

START_TEST_IN_CONTEXT(jobs_run_as_soon_as_gpus_are_free)
{
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    for (int32_t round = 0; round < 1000; round++) {
        graph_sizes sizes = {.tasks = 12};
        hbp_graph *graph = random_graph(context, &rng, &sizes);
        int32_t n = (int32_t)random_between(&rng, 4, 16), gpus[16];
        planned p;
        hbp__jobs jobs;
        hbp__task_slices slices = {0};
        open_planned(context, graph, n, &p);
        OK(context, hbp__jobs_open(context, &p.problem, &jobs));
        for (int32_t j = 0; j < jobs.count; j++)
            gpus[j] = (int32_t)random_between(&rng, hbp__job_least(&p.problem, &jobs, j), n);
        OK(context, hbp__jobs_run(context, &p.problem, &jobs, gpus, &slices));
        check_slices(&p, &slices);
        ck_assert_int_eq(slices.makespan_ns, longest_first(&p, jobs.count, gpus));
        hbp__task_slices_close(&slices);
        close_planned(&p);
        hbp_graph_free(graph);
    }
}
END_TEST

static hbp_status run_once(hbp_context *context, void *user)
{
    const planned *p = user;
    static const int32_t gpus[] = {4, 4, 4, 4};
    hbp__jobs jobs;
    hbp__task_slices slices = {0};
    HBP__TRY(hbp__jobs_open(context, &p->problem, &jobs));
    hbp_status status = hbp__jobs_run(context, &p->problem, &jobs, gpus, &slices);
    hbp__task_slices_close(&slices);
    return status;
}

START_TEST_IN_CONTEXT(failed_allocations_leave_nothing)
{
    hbp_graph *graph = keep(page_graph(context));
    planned p;
    open_planned(context, graph, 8, &p);
    failing_sweep(run_once, &p);
    close_planned(&p);
}
END_TEST

TEST_MAIN("jobs", jobs_are_tasks_that_hang_together, sizes_and_times_of_jobs,
          jobs_run_as_soon_as_gpus_are_free, failed_allocations_leave_nothing)
