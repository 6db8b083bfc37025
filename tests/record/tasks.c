/* Schedules of many tasks, and runs of them. */
#include "record.h"

static void digest_schedule(const record *r, answer *a, const hbp_task_schedule *s)
{
    hbp_task_summary t = {.struct_size = sizeof t};
    if (hbp_task_schedule_get_summary(r->context, s, &t) < 0)
        return;
    digest_number(a, (int64_t)t.digest);
    hbp_task_schedule_view view = {.struct_size = sizeof view};
    (void)hbp_task_schedule_get_view(s, &view);
    DIGEST_VIEW(a, view.meta_op_offsets, view.meta_ops + 1);
    DIGEST_VIEW(a, view.operators, view.operators_total);
    DIGEST_VIEW(a, view.meta_op_levels, view.meta_ops);
    DIGEST_VIEW(a, view.meta_op_tasks, view.meta_ops);
    DIGEST_VIEW(a, view.level_ns, view.levels);
    DIGEST_VIEW(a, view.wave_offsets, view.waves + 1);
    DIGEST_VIEW(a, view.slice_meta_ops, view.slices);
    DIGEST_VIEW(a, view.slice_firsts, view.slices);
    DIGEST_VIEW(a, view.slice_operators, view.slices);
    DIGEST_VIEW(a, view.slice_gpus, view.slices);
    DIGEST_VIEW(a, view.slice_groups, view.slices);
    DIGEST_VIEW(a, view.slice_starts, view.slices);
    DIGEST_VIEW(a, view.slice_ends, view.slices);
    DIGEST_VIEW(a, view.group_offsets, view.groups + 1);
    DIGEST_VIEW(a, view.group_ranks, view.group_ranks_total);
    DIGEST_VIEW(a, view.parameter_groups, view.parameters);
    DIGEST_VIEW(a, view.rank_busy_ns, view.ranks);
    DIGEST_VIEW(a, view.rank_bytes, view.ranks);
    for (int64_t i = 0; i < t.meta_ops; i++)
        digest_text(a, view.meta_op_names[i]);
    for (int64_t i = 0; i < t.tasks; i++)
        digest_text(a, view.task_names[i]);
    for (int64_t i = 0; i < t.parameters; i++)
        digest_text(a, view.parameter_names[i]);
    digest_number(a, t.kept_bytes);
    digest_number(a, t.fetched_bytes);
    snprintf(a->facts, sizeof a->facts,
             " %d slices in %d waves, %lld ns, bound %lld, moved %lld of %lld, peak %lld, idle %.6f",
             (int)t.slices, (int)t.waves, (long long)t.makespan_ns, (long long)t.bound_ns,
             (long long)t.moved_bytes, (long long)t.flow_bytes, (long long)t.peak_bytes, t.idle);
}

/* Every method of each graph; then the schedule before is known. */
static void start_schedule(const record *r, int32_t variant, void *options)
{
    hbp_tasks_options *o = options;
    o->effort = 1;
    o->method = record_method("HBP_TASKS_METHODS", variant / RECORD_GRAPHS % 6);
    o->previous = variant >= 6 * RECORD_GRAPHS ? r->schedule : NULL;
}

static hbp_status ask_schedule(const record *r, int32_t variant, const void *options, answer *a)
{
    const hbp_graph *graph = r->graph[variant % RECORD_GRAPHS];
    hbp_task_schedule *schedule = NULL;
    RECORD_TRY(hbp_plan_tasks(r->context, graph, r->machine, options, &schedule));
    hbp_status status = hbp_task_schedule_validate(r->context, schedule, graph, r->machine);
    if (status >= 0)
        digest_schedule(r, a, schedule);
    hbp_task_schedule_free(schedule);
    return status;
}

static hbp_status ask_run(const record *r, int32_t variant, const void *options, answer *a)
{
    hbp_tasks_options ask = {
        .struct_size = sizeof ask, .effort = 1, .method = record_method("HBP_TASKS_METHODS", variant)};
    hbp_task_schedule *schedule = NULL;
    hbp_task_run *run = NULL;
    hbp_task_run_summary s = {.struct_size = sizeof s};
    hbp_status status = hbp_plan_tasks(r->context, r->graph[1], r->machine, &ask, &schedule);
    if (status >= 0)
        status = hbp_simulate_tasks(r->context, r->graph[1], r->machine, schedule, options, &run);
    if (status >= 0)
        status = hbp_task_run_get_summary(r->context, run, &s);
    if (status >= 0) {
        hbp_task_run_view view = {.struct_size = sizeof view};
        (void)hbp_task_run_get_view(run, &view);
        DIGEST_VIEW(a, view.slice_starts, view.slices);
        DIGEST_VIEW(a, view.slice_ends, view.slices);
        digest_number(a, s.peak_bytes);
        snprintf(a->facts, sizeof a->facts, " %lld ns, %lld of slices, %lld of transfers, idle %.6f",
                 (long long)s.total_ns, (long long)s.slices_ns, (long long)s.transfer_ns, s.idle);
    }
    hbp_task_run_free(run);
    hbp_task_schedule_free(schedule);
    return status;
}

/* An operator like those of a workload, alone in a graph. */
static void start_operator(const record *r, int32_t variant, void *options)
{
    hbp_operator *o = options;
    (void)r;
    (void)variant;
    o->type = "attention";
    o->task = "t";
    o->batch = 16;
    o->state_bytes = 1000000;
    o->output_bytes = 5000;
}

static hbp_status ask_operator(const record *r, int32_t variant, const void *options, answer *a)
{
    static const int32_t gpus[] = {1, 2, 4, 8};
    static const int64_t ns[] = {4000, 2100, 1200, 900};
    hbp_context *c = r->context;
    hbp_graph *graph = NULL;
    hbp_task_schedule *schedule = NULL;
    int32_t profile = -1, first = -1;
    (void)variant;
    RECORD_TRY(hbp_graph_create(c, &graph));
    hbp_status status = hbp_graph_add_profile(c, graph, gpus, ns, 4, &profile);
    if (status >= 0)
        status = hbp_graph_add_operators(c, graph, options, 3, &first);
    if (status >= 0)
        status = hbp_graph_validate(c, graph);
    if (status >= 0)
        status = hbp_plan_tasks(c, graph, r->machine, NULL, &schedule);
    if (status >= 0)
        digest_schedule(r, a, schedule);
    hbp_task_schedule_free(schedule);
    hbp_graph_free(graph);
    return status;
}

const question record_tasks[] = {
    {"tasks", "hbp_tasks_options", sizeof(hbp_tasks_options), 7 * RECORD_GRAPHS, 1, 60, start_schedule,
     ask_schedule},
    {"task-run", "hbp_task_run_options", sizeof(hbp_task_run_options), 6, 1, 20, NULL, ask_run},
    {"operator", "hbp_operator", sizeof(hbp_operator), 1, 1, 40, start_operator, ask_operator},
    {0}};
