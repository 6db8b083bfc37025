#include <stdio.h>
#include <string.h>

#include "hbp/io.h"
#include "options.h"

/* One way of running the tasks, and what it came to; `failed` keeps the library's message. */
typedef struct way {
    const char *name;
    const char *method;
    const char *placement;
    char failed[256];
    double seconds;
    hbp_task_summary summary;
    hbp_task_run_summary run;
} way;

static void read_options(const cli *c, hbp_tasks_options *options)
{
    *options = (hbp_tasks_options){.struct_size = sizeof *options};
    options->method = cli_value_name("HBP_TASKS_METHODS", c->method);
    options->placement_method = cli_value_name("HBP_PLACEMENT_METHODS", c->placement);
    options->effort = (int32_t)c->effort;
    options->reserve_bytes = c->reserve_bytes;
    options->limit_bytes = c->memory_bytes;
    options->previous = c->previous;
    options->seed = (uint64_t)c->seed;
}

static hbp_status run_schedule(cli *c, way *w)
{
    hbp_task_run_options options = {.struct_size = sizeof options};
    options.barriers = (int32_t)c->barriers;
    w->summary.struct_size = sizeof w->summary;
    w->run.struct_size = sizeof w->run;
    hbp_task_run_free(c->task_run);
    c->task_run = NULL;
    hbp_status status =
        hbp_simulate_tasks(c->context, c->graph, c->machine, c->schedule, &options, &c->task_run);
    if (status >= 0)
        status = hbp_task_run_get_summary(c->context, c->task_run, &w->run);
    return status >= 0 ? hbp_task_schedule_get_summary(c->context, c->schedule, &w->summary) : status;
}

/* Plans by one method into c->schedule and simulates it. */
static hbp_status measure(cli *c, hbp_tasks_options *options, way *w)
{
    options->method = w->method;
    options->placement_method = w->placement;
    hbp_task_schedule_free(c->schedule);
    c->schedule = NULL;
    double start = cli_now();
    hbp_status status = hbp_plan_tasks(c->context, c->graph, c->machine, options, &c->schedule);
    w->seconds = cli_now() - start;
    if (status >= 0)
        status = run_schedule(c, w);
    if (status < 0)
        snprintf(w->failed, sizeof w->failed, "%s", cli_message(c));
    return status;
}

static json_t *way_json(const way *w)
{
    json_t *row =
        json_pack("{s:s,s:s,s:s}", "name", w->name, "method", w->method, "placement_method", w->placement);
    if (!row)
        return NULL;
    if (w->failed[0]) {
        json_object_set_new(row, "failed", json_string(w->failed));
        return row;
    }
    json_t *rest = cli_schedule_json(&w->summary, &w->run);
    json_object_update_missing(row, rest);
    json_decref(rest);
    return row;
}

static int print_json(cli *c, const way *w)
{
    c->result = way_json(w);
    if (c->result) {
        json_object_set_new(c->result, "digest", json_string(show_digest(w->summary.digest).s));
        json_object_set_new(c->result, "slices", cli_slices_json(c->schedule));
        json_object_set_new(c->result, "path", json_path(c->output));
    }
    return cli_print_json(c);
}

static int print_text(cli *c, const way *w)
{
    const hbp_task_summary *s = &w->summary;
    cli_print_schedule(c, s, &w->run);
    if (w->seconds > 0)
        say("; planned in %s", show_time(w->seconds * 1e9).s);
    if (c->previous)
        say("\nof the states, %s stay on their GPUs and %s come from others",
            show_bytes((double)s->kept_bytes).s, show_bytes((double)s->fetched_bytes).s);
    say("\n");
    if (c->output)
        say("wrote %s, digest %s\n", show_name(c->output).s, show_digest(s->digest).s);
    if (c->run_out)
        say("wrote %s, digest %s\n", show_name(c->run_out).s, show_digest(w->run.digest).s);
    if (c->trace_file)
        say("wrote %s; open it at ui.perfetto.dev\n", show_name(c->trace_file).s);
    return 0;
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

#define PLANNING "curves 10, waves 20x10, shorter schedules 40, place slices 30x10"

static int compare(cli *c)
{
    way ways[] = {{.name = "this plan", .method = "overlap", .placement = "flows"},
                  {.name = "Spindle", .method = "spindle", .placement = "spindle"},
                  {.name = "DistMM", .method = "distmm", .placement = "flows"},
                  {.name = "Optimus", .method = "optimus", .placement = "flows"},
                  {.name = "uniform", .method = "uniform", .placement = "flows"},
                  {.name = "sequential", .method = "sequential", .placement = "flows"}};
    enum { WAYS = sizeof ways / sizeof *ways };
    hbp_tasks_options options;
    read_options(c, &options);
    job_part parts[WAYS + 1] = {{0}};
    for (int i = 0; i < WAYS; i++)
        parts[i] = (job_part){ways[i].name, 1, PLANNING};
    progress_begin(parts);
    for (int i = 0; i < WAYS; i++) {
        progress_part(i);
        hbp_status status = measure(c, &options, &ways[i]);
        if (status < 0 && (i == 0 || status != HBP_E_INFEASIBLE))
            return cli_failed(c);
    }
    cli_finish_progress();
    if (c->json) {
        c->result = json_array();
        for (int i = 0; i < WAYS; i++)
            json_array_append_new(c->result, way_json(&ways[i]));
        return cli_print_json(c);
    }
    const hbp_task_summary *own = &ways[0].summary;
    say("%s: %s, %s in %s on %s; %s\n\n", show_name(c->file).s, show_number(own->tasks, "task").s,
        show_number(own->operators, "operator").s, show_number(own->meta_ops, "MetaOp").s,
        show_number(own->levels, "level").s, show_number(own->gpus, "GPU").s);
    table t;
    table_begin(&t, 10,
                (const char *[]){"<method", "step", "x this", "gap", "with transfers", "-moved", "-crossing",
                                 "idle", "-fullest GPU", "-planned in"});
    for (int i = 0; i < WAYS; i++) {
        const way *w = &ways[i];
        table_add(&t, "%s", w->name);
        if (w->failed[0]) {
            table_add(&t, "does not fit");
            for (int k = 2; k < 10; k++)
                table_add(&t, "-");
            continue;
        }
        table_add_text(&t, show_compared_time((double)w->summary.makespan_ns));
        table_add(&t, "%.2f", share_of(w->summary.makespan_ns, own->makespan_ns));
        table_add_text(&t, show_share(w->summary.gap));
        table_add_text(&t, show_compared_time((double)w->run.total_ns));
        table_add_text(&t, show_bytes((double)w->summary.moved_bytes));
        table_add_text(&t, show_bytes((double)w->summary.crossing_bytes));
        table_add_text(&t, show_share(w->run.idle));
        table_add_text(&t, show_bytes((double)w->summary.peak_bytes));
        table_add_text(&t, show_time(w->seconds * 1e9));
    }
    table_end(&t);
    say("\nno schedule takes less than %s; sum of C* over levels %s\n",
        show_compared_time((double)own->bound_ns).s, show_compared_time((double)own->relaxed_ns).s);
    return 0;
}

static hbp_status write_files(cli *c)
{
    hbp_status status = HBP_OK;
    if (c->output)
        status = hbp_task_schedule_save(c->context, c->schedule, c->output);
    if (status >= 0 && c->run_out)
        status = hbp_task_run_save(c->context, c->task_run, c->run_out);
    if (status >= 0 && c->trace_file) /* without a run, the schedule's own times */
        status = hbp_task_schedule_trace(c->context, c->schedule, c->task_run, c->trace_file);
    if (status >= 0 && c->graph_out) {
        size_t length = strlen(c->graph_out);
        int packed = length > 8 && strcmp(c->graph_out + length - 8, ".msgpack") == 0;
        status =
            hbp_graph_save(c->context, c->graph, c->graph_out, packed ? HBP_GRAPH_MSGPACK : HBP_GRAPH_JSON);
    }
    return status;
}

/* A schedule may be from a machine with more memory. */
static hbp_status check_memory(cli *c, const hbp_task_summary *s)
{
    hbp_machine_fields fields = {.struct_size = sizeof fields};
    hbp_status status = hbp_machine_get_fields(c->context, c->machine, &fields);
    int64_t limit = c->memory_bytes ? c->memory_bytes : fields.hbm_bytes;
    if (status >= 0 && limit > 0 && s->peak_bytes > limit)
        return cli_own_failure("%s: the fullest GPU needs %s; there are %s", c->schedule_file,
                               show_bytes((double)s->peak_bytes).s, show_bytes((double)limit).s);
    return status;
}

int cli_tasks(cli *c)
{
    CLI_TRY(c, cli_read_graph(c, c->file));
    if (c->previous_file)
        CLI_TRY(c, hbp_task_schedule_load(c->context, c->previous_file, &c->previous));
    if (c->compare)
        return compare(c);
    static const job_part parts[] = {{"planning", 100, PLANNING}, {NULL, 0, NULL}};
    progress_begin(parts);
    way w = {.method = cli_value_name("HBP_TASKS_METHODS", c->method),
             .placement = cli_value_name("HBP_PLACEMENT_METHODS", c->placement)};
    if (c->schedule_file) {
        CLI_TRY(c, hbp_task_schedule_load(c->context, c->schedule_file, &c->schedule));
        CLI_TRY(c, run_schedule(c, &w));
        CLI_TRY(c, check_memory(c, &w.summary));
        w.method = w.summary.method;
        w.placement = w.summary.placement_method;
    } else {
        hbp_tasks_options options;
        read_options(c, &options);
        CLI_TRY(c, measure(c, &options, &w));
    }
    w.name = w.summary.method;
    CLI_TRY(c, write_files(c));
    cli_finish_progress();
    return c->json ? print_json(c, &w) : print_text(c, &w);
}
