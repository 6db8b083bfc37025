/* Many tasks planned in one call: promises over random graphs, memory, joining and leaving, the published
 * workloads. */
#include "base/methods.h"
#include "failing.h"
#include "graphs.h"

#include "base/rng.h"
#include "data/tasks/task_schedule.h"
#include "keep.h"
#include "nodes.h"

/* Graphs of the large property test: the figure to reach with all rounds is 10,000; sanitizers make each ten
 * times as slow. */
#define RANDOM_GRAPHS TEST_FEW(TEST_SANITIZED ? 500 : TEST_ROUNDS(10000), 100)

static hbp_machine *make_machine(hbp_context *context, const char *preset, int32_t nodes)
{
    hbp_machine *machine = NULL;
    OK(context, make_nodes(context, preset, nodes, &machine));
    return machine;
}

static hbp_machine *small_machine(hbp_context *context, int32_t nodes, int32_t gpus)
{
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    fields.nodes = nodes;
    fields.gpus_per_node = gpus;
    fields.domain_gpus = gpus;
    fields.hbm_bytes = INT64_C(80000000000);
    fields.nvlink_bytes_per_s = 200e9;
    fields.network_bytes_per_s = 25e9;
    hbp_machine *machine = NULL;
    OK(context, hbp_machine_create(context, &fields, &machine));
    return machine;
}

static hbp_task_summary summary_of(hbp_context *context, const hbp_task_schedule *schedule)
{
    hbp_task_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_task_schedule_get_summary(context, schedule, &summary));
    return summary;
}

static hbp_task_summary planned(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                                const hbp_tasks_options *options, hbp_task_schedule **schedule)
{
    hbp_task_schedule *made = NULL;
    OK(context, hbp_plan_tasks(context, graph, machine, options, &made));
    OK(context, hbp_task_schedule_validate(context, made, graph, machine));
    hbp_task_summary summary = summary_of(context, made);
    if (schedule)
        *schedule = made;
    else
        hbp_task_schedule_free(made);
    return summary;
}

static int64_t simulated(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                         const hbp_task_schedule *schedule)
{
    hbp_task_run *run = NULL;
    hbp_task_run_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_simulate_tasks(context, graph, machine, schedule, NULL, &run));
    OK(context, hbp_task_run_get_summary(context, run, &summary));
    hbp_task_run_free(run);
    return summary.total_ns;
}

/* Every promise on random graphs: the validator finds nothing, no makespan is below the bound, and the
 * default runs no longer than the published waves placed the same way. */
START_TEST_IN_CONTEXT(random_graphs_keep_every_promise)
{
    hbp__rng rng = hbp__rng_make(5, 1, 0);
    for (int i = 0, mark = keep_mark(); i < RANDOM_GRAPHS; keep_release(mark), i++) {
        int32_t nodes = 1 << hbp__rng_below(&rng, 2), gpus = 1 << hbp__rng_below(&rng, 4);
        graph_sizes sizes = {.tasks = 4, .most_gpus = nodes * gpus};
        hbp_graph *graph = keep(random_graph(context, &rng, &sizes));
        hbp_machine *machine = keep(small_machine(context, nodes, gpus));
        hbp_tasks_options options = {.struct_size = sizeof options};
        options.effort = 1;
        options.limit_bytes = -1;
        options.method = hbp__tasks_name(i % 8 ? (int32_t)hbp__rng_below(&rng, HBP__TASKS_DISTMM + 1)
                                               : HBP__TASKS_OVERLAP);
        options.placement_method =
            hbp__placement_name((int32_t)hbp__rng_below(&rng, HBP__PLACEMENT_METHOD_COUNT));
        hbp_task_schedule *own = NULL;
        hbp_task_summary s = planned(context, graph, machine, &options, &own);
        ck_assert_int_ge(s.makespan_ns, s.bound_ns);
        ck_assert_int_ge(s.bound_ns, s.critical_path_ns);
        ck_assert_int_ge(s.bound_ns, s.area_ns);
        ck_assert_int_eq(s.proven, s.makespan_ns == s.bound_ns);
        if (hbp__tasks_method(options.method) == HBP__TASKS_OVERLAP && i % 16 == 0) {
            hbp_task_schedule *paper = NULL;
            options.method = hbp__tasks_name(HBP__TASKS_SPINDLE);
            hbp_task_summary published = planned(context, graph, machine, &options, &paper);
            ck_assert_int_le(s.makespan_ns, published.makespan_ns);
            ck_assert_int_le(simulated(context, graph, machine, own),
                             simulated(context, graph, machine, paper));
            hbp_task_schedule_free(paper);
        }
        hbp_task_schedule_free(own);
    }
}
END_TEST

/* A limit that shrinks: what is planned stays within it (the validator adds the bytes up again), until a
 * message says that nothing fits; never a limit that fits below one that did not. */
START_TEST_IN_CONTEXT(memory_is_never_exceeded)
{
    hbp__rng rng = hbp__rng_make(5, 2, 0);
    int fitted = 0, refused = 0;
    for (int i = 0, mark = keep_mark(); i < TEST_FEW(16, 4); keep_release(mark), i++) {
        hbp_graph *graph = keep(random_graph(context, &rng, NULL));
        hbp_machine *machine = keep(small_machine(context, 2, 4));
        hbp_tasks_options options = {.struct_size = sizeof options};
        options.effort = 1;
        options.limit_bytes = -1;
        hbp_task_summary s = planned(context, graph, machine, &options, NULL);
        ck_assert_int_eq(s.limit_bytes, 0);
        int64_t peak = s.peak_bytes > 0 ? s.peak_bytes : 1;
        for (int k = 8; k > 0; k--) {
            options.limit_bytes = peak / 8 * k;
            if (options.limit_bytes < 1)
                break;
            hbp_task_schedule *schedule = NULL, *paper = NULL;
            hbp_tasks_options published = options;
            published.method = hbp__tasks_name(HBP__TASKS_SPINDLE);
            int64_t most = INT64_MAX; /* never longer than the published waves where these fit */
            hbp_status status = hbp_plan_tasks(context, graph, machine, &published, &paper);
            if (status != HBP_E_INFEASIBLE) {
                OK(context, status);
                most = summary_of(context, paper).makespan_ns;
                hbp_task_schedule_free(paper);
            }
            status = hbp_plan_tasks(context, graph, machine, &options, &schedule);
            if (status == HBP_E_INFEASIBLE) {
                ck_assert_int_eq(most, INT64_MAX);
                ck_assert_ptr_null(schedule);
                ck_assert_str_ne(hbp_context_message(context), "");
                refused++;
                break;
            }
            OK(context, status);
            OK(context, hbp_task_schedule_validate(context, schedule, graph, machine));
            ck_assert_int_le(summary_of(context, schedule).peak_bytes, options.limit_bytes);
            ck_assert_int_le(summary_of(context, schedule).makespan_ns, most);
            fitted += k < 8;
            hbp_task_schedule_free(schedule);
        }
    }
    ck_assert_int_gt(fitted, 8);
    ck_assert_int_gt(refused, 0);
}
END_TEST

/* Figures of the published workloads at 8 to 64 GPUs: 1.07 of the sum of C* as published, 1.04 by default. */
START_TEST_IN_CONTEXT(workloads_come_near_the_optimum)
{
    for (int64_t w = 0; hbp_preset_get_name("workload", w); w++)
        for (int32_t nodes = 1; nodes <= 8; nodes *= 2) {
            hbp_machine *machine = make_machine(context, "a800-80", nodes);
            hbp_graph *graph = NULL;
            const char *name = hbp_preset_get_name("workload", w);
            OK(context, hbp_graph_create_workload(context, name, machine, &graph));
            hbp_tasks_options options = {.struct_size = sizeof options};
            hbp_task_schedule *schedule = NULL;
            hbp_status status = hbp_plan_tasks(context, graph, machine, &options, &schedule);
            if (status == HBP_E_INFEASIBLE && nodes == 1) { /* 9 and 30 billion parameters on 8 GPUs */
                options.limit_bytes = -1;
                status = hbp_plan_tasks(context, graph, machine, &options, &schedule);
            }
            OK(context, status);
            hbp_task_summary own = summary_of(context, schedule);
            hbp_task_schedule_free(schedule);
            options.method = hbp__tasks_name(HBP__TASKS_SPINDLE);
            options.limit_bytes = -1;
            hbp_task_summary paper = planned(context, graph, machine, &options, NULL);
            double c = (double)own.relaxed_ns;
            ck_assert_msg((double)paper.makespan_ns <= 1.07 * c, "%s on %d: paper %.4f", name, 8 * nodes,
                          (double)paper.makespan_ns / c);
            ck_assert_msg((double)own.makespan_ns <= 1.04 * c, "%s on %d: own %.4f", name, 8 * nodes,
                          (double)own.makespan_ns / c);
            hbp_graph_free(graph);
            hbp_machine_free(machine);
        }
}
END_TEST

/* A task leaves, and comes back: most states are reused in place, more than without a look at the past. */
START_TEST_IN_CONTEXT(states_stay_when_tasks_come_and_go)
{
    hbp_machine *machine = keep(make_machine(context, "a800-80", 2));
    hbp_graph *many = NULL, *few = NULL;
    MAKES(context, many, hbp_graph_create_workload(context, "clip-10", machine, &many));
    MAKES(context, few, hbp_graph_create_workload(context, "clip-7", machine, &few));
    hbp_task_schedule *before = NULL, *after = NULL, *again = NULL;
    hbp_task_summary first = planned(context, many, machine, NULL, &before);
    ck_assert_int_eq(first.kept_bytes, 0);
    ck_assert_int_eq(first.fetched_bytes, 0);
    hbp_tasks_options options = {.struct_size = sizeof options};
    options.previous = before;
    hbp_task_summary left = planned(context, few, machine, &options, &after);
    ck_assert_int_gt(left.kept_bytes, left.fetched_bytes);
    options.previous = after;
    hbp_task_summary joined = planned(context, many, machine, &options, &again);
    ck_assert_int_gt(joined.kept_bytes, joined.fetched_bytes);
    /* Nothing changed: everything stays. */
    hbp_task_schedule *same = NULL;
    options.previous = again;
    hbp_task_summary still = planned(context, many, machine, &options, &same);
    ck_assert_int_eq(still.fetched_bytes, 0);
    hbp_task_schedule_free(before);
    hbp_task_schedule_free(after);
    hbp_task_schedule_free(again);
    hbp_task_schedule_free(same);
}
END_TEST

START_TEST_IN_CONTEXT(wrong_arguments_are_named)
{
    hbp_machine *machine = keep(small_machine(context, 1, 8));
    hbp__rng rng = hbp__rng_make(5, 3, 0);
    hbp_graph *graph = keep(random_graph(context, &rng, NULL)), *empty = NULL;
    hbp_task_schedule *out = NULL;
    hbp_tasks_options options = {.struct_size = sizeof options};
    MAKES(context, empty, hbp_graph_create(context, &empty));
    FAILS(context, HBP_E_INVALID, "graph", hbp_plan_tasks(context, NULL, machine, NULL, &out));
    FAILS(context, HBP_E_INVALID, "machine", hbp_plan_tasks(context, graph, NULL, NULL, &out));
    FAILS(context, HBP_E_INVALID, "out", hbp_plan_tasks(context, graph, machine, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "no operators", hbp_plan_tasks(context, empty, machine, NULL, &out));
    options.method = "spindel";
    FAILS(context, HBP_E_INVALID, "`method` is 'spindel'; did you mean 'spindle'?",
          hbp_plan_tasks(context, graph, machine, &options, &out));
    options.method = hbp__tasks_name(0);
    options.placement_method = "flow";
    FAILS(context, HBP_E_INVALID, "`placement_method` is 'flow'; did you mean 'flows'?",
          hbp_plan_tasks(context, graph, machine, &options, &out));
    options.placement_method = NULL;
    options.effort = 10;
    FAILS(context, HBP_E_INVALID, "`effort` is 10; it must be in 0..9",
          hbp_plan_tasks(context, graph, machine, &options, &out));
    options.effort = 0;
    options.reserve_bytes = -2;
    FAILS(context, HBP_E_INVALID, "`reserve_bytes` is -2; it must be in -1..9223372036854775807",
          hbp_plan_tasks(context, graph, machine, &options, &out));
    options.reserve_bytes = INT64_C(90000000000);
    FAILS(context, HBP_E_INFEASIBLE, "nothing is left",
          hbp_plan_tasks(context, graph, machine, &options, &out));
    options.reserve_bytes = 0;
    options.limit_bytes = -2;
    FAILS(context, HBP_E_INVALID, "`limit_bytes` is -2; it must be in -1..9223372036854775807",
          hbp_plan_tasks(context, graph, machine, &options, &out));
    ck_assert_ptr_null(out);
}
END_TEST

typedef struct call {
    hbp_graph *graph;
    hbp_machine *machine;
    hbp_tasks_options options;
} call;

static hbp_status plan_once(hbp_context *context, void *user)
{
    const call *c = user;
    hbp_task_schedule *schedule = NULL;
    hbp_status status = hbp_plan_tasks(context, c->graph, c->machine, &c->options, &schedule);
    ck_assert_int_eq(status >= 0, schedule != NULL);
    hbp_task_schedule_free(schedule);
    return status;
}

START_TEST_IN_CONTEXT(allocations_may_fail_and_calls_be_cancelled)
{
    hbp__rng rng = hbp__rng_make(5, 4, 0);
    graph_sizes sizes = {.tasks = 2, .encoders = 1, .heads = 1, .chain = 2, .most_gpus = 4, .all_tasks = 1};
    call c = {.machine = keep(small_machine(context, 1, 4)),
              .graph = keep(random_graph(context, &rng, &sizes))};
    c.options = (hbp_tasks_options){.struct_size = sizeof c.options};
    c.options.effort = 1;
    c.options.limit_bytes = -1;
    failing_sweep(plan_once, &c);
    cancel_sweep(plan_once, &c);
}
END_TEST

START_TEST_IN_CONTEXT(the_same_call_gives_the_same_schedule)
{
    hbp_machine *machine = keep(make_machine(context, "a800-80", 2));
    hbp_graph *graph = NULL;
    MAKES(context, graph, hbp_graph_create_workload(context, "ofasys-7", machine, &graph));
    hbp_task_schedule *a = NULL, *b = NULL;
    planned(context, graph, machine, NULL, &a);
    planned(context, graph, machine, NULL, &b);
    ck_assert_uint_eq(task_schedule_digest(a), task_schedule_digest(b));
    hbp_task_schedule_free(a);
    hbp_task_schedule_free(b);
}
END_TEST

TEST_MAIN("plan_tasks", random_graphs_keep_every_promise, memory_is_never_exceeded,
          workloads_come_near_the_optimum, states_stay_when_tasks_come_and_go, wrong_arguments_are_named,
          allocations_may_fail_and_calls_be_cancelled, the_same_call_gives_the_same_schedule)
