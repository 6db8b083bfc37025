/* Few tasks on many GPUs, against the exact optimum: bound and plan are that. */
#include "hbp/tasks.h"

#include "graphs.h"
#include "keep.h"
#include "nodes.h"
#include "tasks_oracle.h"

/* One operator of a chain's sort: work that GPUs share and a part that they do not. */
static int32_t draw_profile(hbp_context *context, hbp_graph *graph, hbp__rng *rng, int32_t gpus)
{
    int32_t at[16], points = 0, profile = -1;
    int64_t ns[16];
    int64_t work = 2000000 + (int64_t)hbp__rng_below(rng, 60000000);
    int64_t fixed = 200000 + (int64_t)hbp__rng_below(rng, 500000);
    for (int32_t n = 1; n <= gpus; n *= 2, points++) {
        at[points] = n;
        ns[points] = work / n + fixed;
    }
    OK(context, hbp_graph_add_profile(context, graph, at, ns, points, &profile));
    return profile;
}

/* One to three tasks of an encoder and, some of them, a head: at most five operators. */
static hbp_graph *draw_few(hbp_context *context, hbp__rng *rng, int32_t gpus)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    hbp_graph *graph = new_graph(context);
    int32_t left = 5, chains = 0;
    for (int32_t tasks = 1 + (int32_t)hbp__rng_below(rng, 3); tasks > 0 && left > 0; tasks--) {
        int32_t before = -1;
        for (int32_t part = 1 + (int32_t)hbp__rng_below(rng, 2); part > 0 && left > 0; part--, chains++) {
            hbp_operator o = {.struct_size = sizeof o};
            int32_t count = 1 + (int32_t)hbp__rng_below(rng, 2), first = 0;
            count = count < left ? count : left;
            left -= count;
            o.profile = draw_profile(context, graph, rng, gpus);
            o.degrees = HBP_DEGREES_PROFILED;
            o.name = o.type = names[chains];
            o.task = names[tasks];
            o.parameters = names[chains];
            OK(context, hbp_graph_add_operators(context, graph, &o, count, &first));
            if (before >= 0)
                OK(context, hbp_graph_add_edge(context, graph, before, first, -1));
            before = first + count - 1;
        }
    }
    return graph;
}

static int64_t optimum_of(hbp_context *context, const hbp_graph *graph, int32_t gpus)
{
    static oracle o;
    hbp__meta_graph meta;
    hbp__scaling scaling;
    OK(context, hbp__meta_graph_open(context, graph, &meta));
    OK(context, hbp__scaling_open(context, graph, &meta, gpus, &scaling));
    int64_t best = oracle_makespan(&meta, &scaling, &o);
    hbp__scaling_close(&scaling);
    hbp__meta_graph_close(&meta);
    return best;
}

START_TEST_IN_CONTEXT(plans_are_the_optimum)
{
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    const int rounds = TEST_ROUNDS(200);
    for (int round = 0; round < rounds; round++) {
        int32_t gpus = 64 << hbp__rng_below(&rng, 4);
        hbp_graph *graph = draw_few(context, &rng, gpus);
        hbp_machine *machine = NULL;
        OK(context, make_nodes(context, "a800-80", gpus / 8, &machine));
        hbp_task_schedule *schedule = NULL;
        hbp_tasks_options options = {.struct_size = sizeof options, .limit_bytes = -1};
        hbp_task_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_plan_tasks(context, graph, machine, &options, &schedule));
        OK(context, hbp_task_schedule_get_summary(context, schedule, &summary));
        int64_t best = optimum_of(context, graph, gpus);
        ck_assert_int_eq(summary.bound_ns, best);
        ck_assert_int_eq(summary.makespan_ns, best);
        ck_assert(summary.proven);
        hbp_task_schedule_free(schedule);
        hbp_machine_free(machine);
        hbp_graph_free(graph);
    }
}
END_TEST

TEST_MAIN("few_tasks", plans_are_the_optimum)
