#include "simulate/task_bound.h"

#include "failing.h"
#include "graphs.h"
#include "tasks_oracle.h"

typedef struct case_of {
    hbp_graph *graph;
    hbp__meta_graph meta;
    hbp__scaling scaling;
    int32_t gpus;
} case_of;

static void case_open(hbp_context *context, hbp_graph *graph, int32_t gpus, case_of *c)
{
    c->graph = graph;
    c->gpus = gpus;
    OK(context, hbp__meta_graph_open(context, graph, &c->meta));
    OK(context, hbp__scaling_open(context, graph, &c->meta, gpus, &c->scaling));
}

static void case_close(case_of *c)
{
    hbp__scaling_close(&c->scaling);
    hbp__meta_graph_close(&c->meta);
    hbp_graph_free(c->graph);
}

static hbp__task_bounds bounds_of(hbp_context *context, const case_of *c)
{
    hbp__task_bounds bounds;
    OK(context, hbp__task_bound(context, &c->meta, &c->scaling, &bounds, NULL));
    ck_assert_int_ge(bounds.bound_ns, bounds.critical_path_ns);
    ck_assert_int_ge(bounds.bound_ns, bounds.area_ns);
    return bounds;
}

/* On 1 to 4 GPUs, up to 5 operators. */
START_TEST(no_schedule_is_shorter)
{
    static oracle o;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    graph_sizes sizes = {.tasks = 3, .encoders = 2, .heads = 1, .chain = 2, .most_gpus = 4};
    int tried = 0, met = 0;
    double ratio = 0, plain = 0;
    while (tried < 1500) {
        case_of c;
        hbp_graph *graph = random_graph(context, &rng, &sizes);
        if (hbp_graph_count_operators(graph) > 5) {
            hbp_graph_free(graph);
            continue;
        }
        case_open(context, graph, 4, &c);
        hbp__task_bounds bounds = bounds_of(context, &c);
        int64_t best = oracle_makespan(&c.meta, &c.scaling, &o);
        ck_assert_msg(bounds.bound_ns <= best, "bound %lld, optimum %lld", (long long)bounds.bound_ns,
                      (long long)best);
        ratio += (double)bounds.bound_ns / (double)best;
        plain += (double)hbp__max_i64(bounds.critical_path_ns, bounds.area_ns) / (double)best;
        met += bounds.bound_ns == best;
        tried++;
        case_close(&c);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("task_bound", no_schedule_is_shorter)
