#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const char *const placement_names[] = {"flows", "paper", "sequential"};
static const char *const mode_names[] = {"overlap", "paper", "sequential", "uniform", "optimus", "distmm"};

enum { PRINTED_SLICES = 40 };

/* One way of running the tasks, and what it came to; `failed` keeps the library's message. */
typedef struct way {
    const char *name;
    int32_t mode;
    int32_t placement;
    char failed[256];
    double seconds;
    hbp_task_summary summary;
    hbp_task_run_summary run;
} way;

/* The graph: a file, or a workload of that name. */
static hbp_status read_graph(cli *c)
{
    int named = 0;
    for (int64_t i = 0; i < hbp_workload_count_presets(); i++)
        named |= strcmp(c->file, hbp_workload_get_preset_name(i)) == 0;
    hbp_status status = cli_make_machine(c);
    if (status < 0)
        return status;
    if (access(c->file, R_OK) != 0 && (named || !strpbrk(c->file, "./"))) /* the library names the nearest */
        return hbp_graph_create_workload(c->context, c->file, c->machine, &c->graph);
    return hbp_graph_read(c->context, c->file, &c->graph);
}

static void read_options(const cli *c, hbp_tasks_options *options)
{
    hbp_tasks_options_init(options, sizeof *options);
    options->mode = (int32_t)c->mode;
    options->placement = (int32_t)c->placement;
    options->effort = (int32_t)c->effort;
    options->reserve_bytes = c->reserve_mib << 20;
    options->limit_bytes = c->memory_mib << 20;
    options->previous = c->previous;
    options->seed = (uint64_t)c->seed;
}

static hbp_status run_schedule(cli *c, way *w)
{
    hbp_task_run_options options;
    hbp_task_run_options_init(&options, sizeof options);
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

/* Plans one way into c->schedule and runs it on paper. */
static hbp_status measure(cli *c, hbp_tasks_options *options, way *w)
{
    options->mode = w->mode;
    options->placement = w->placement;
    hbp_task_schedule_free(c->schedule);
    c->schedule = NULL;
    double start = cli_now();
    hbp_status status = hbp_plan_tasks(c->context, c->graph, c->machine, options, &c->schedule);
    w->seconds = cli_now() - start;
    if (status >= 0)
        status = run_schedule(c, w);
    if (status < 0)
        snprintf(w->failed, sizeof w->failed, "%s", hbp_context_message(c->context));
    return status;
}

static json_t *way_json(const way *w)
{
    const hbp_task_summary *s = &w->summary;
    const hbp_task_run_summary *r = &w->run;
    json_t *row = json_pack("{s:s,s:s,s:s}", "way", w->name, "mode", mode_names[w->mode], "placement",
                            placement_names[w->placement]);
    if (!row)
        return NULL;
    if (w->failed[0]) {
        json_object_set_new(row, "failed", json_string(w->failed));
        return row;
    }
    json_t *rest = json_pack(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:"
        "o,s:I}",
        "gpus", (int)s->gpus, "tasks", (int)s->tasks, "operators", (int)s->operators, "meta_ops",
        (int)s->meta_ops, "levels", (int)s->levels, "waves", (int)s->waves, "slice_count", (int)s->slices,
        "makespan_ns", (json_int_t)s->makespan_ns, "bound_ns", (json_int_t)s->bound_ns, "critical_path_ns",
        (json_int_t)s->critical_path_ns, "area_ns", (json_int_t)s->area_ns, "relaxed_ns",
        (json_int_t)s->relaxed_ns, "flow_bytes", (json_int_t)s->flow_bytes, "moved_bytes",
        (json_int_t)s->moved_bytes, "crossing_bytes", (json_int_t)s->crossing_bytes, "limit_bytes",
        (json_int_t)s->limit_bytes, "peak_bytes", (json_int_t)s->peak_bytes, "kept_bytes",
        (json_int_t)s->kept_bytes, "fetched_bytes", (json_int_t)s->fetched_bytes, "total_ns",
        (json_int_t)r->total_ns, "slices_ns", (json_int_t)r->slices_ns, "gradient_ns",
        (json_int_t)r->gradient_ns, "gap", json_number(s->gap), "idle", json_number(s->idle), "run_idle",
        json_number(r->idle), "transfer_ns", (json_int_t)r->transfer_ns);
    json_object_update_missing(row, rest);
    json_decref(rest);
    return row;
}

static json_t *ranks_json(const hbp_task_schedule *schedule, int32_t group)
{
    hbp_task_schedule_view view = {.struct_size = sizeof view};
    (void)hbp_task_schedule_get_view(schedule, &view);
    json_t *list = json_array();
    for (int64_t i = view.group_offsets[group]; i < view.group_offsets[group + 1]; i++)
        json_array_append_new(list, json_integer(view.group_ranks[i]));
    return list;
}

static json_t *slices_json(const hbp_task_schedule *s)
{
    hbp_task_schedule_view view = {.struct_size = sizeof view};
    (void)hbp_task_schedule_get_view(s, &view);
    int64_t count = view.slices;
    json_t *list = json_array();
    for (int64_t i = 0, wave = 0; i < count; i++) {
        while (view.wave_offsets[wave + 1] <= i)
            wave++;
        json_array_append_new(
            list, json_pack("{s:I,s:i,s:s,s:s,s:i,s:i,s:I,s:I,s:o}", "wave", (json_int_t)wave, "meta_op",
                            (int)view.slice_meta_ops[i], "name",
                            hbp_task_schedule_get_meta_op_name(s, view.slice_meta_ops[i]), "task",
                            hbp_task_schedule_get_task_name(s, view.meta_op_tasks[view.slice_meta_ops[i]]),
                            "first", (int)view.slice_firsts[i], "operators", (int)view.slice_operators[i],
                            "start_ns", (json_int_t)view.slice_starts[i], "end_ns",
                            (json_int_t)view.slice_ends[i], "ranks", ranks_json(s, view.slice_groups[i])));
    }
    return list;
}

static int print_json(cli *c, const way *w)
{
    c->result = way_json(w);
    if (c->result) {
        json_object_set_new(c->result, "digest",
                            json_string(show_digest(hbp_task_schedule_get_digest(c->schedule)).s));
        json_object_set_new(c->result, "slices", slices_json(c->schedule));
        json_object_set_new(c->result, "path", c->output ? json_string(c->output) : json_null());
    }
    return cli_print_json(c);
}

/* "0-3,8-11": ascending ranks as ranges. */
static shown show_ranks(const hbp_task_schedule *schedule, int32_t group)
{
    hbp_task_schedule_view view = {.struct_size = sizeof view};
    (void)hbp_task_schedule_get_view(schedule, &view);
    shown text = {""};
    int at = 0;
    for (int64_t i = view.group_offsets[group], end = view.group_offsets[group + 1]; i < end;) {
        int64_t last = i;
        while (last + 1 < end && view.group_ranks[last + 1] == view.group_ranks[last] + 1)
            last++;
        if (at > (int)sizeof text.s - 40) {
            snprintf(text.s + at, sizeof text.s - (size_t)at, ",...");
            return text;
        }
        at += snprintf(text.s + at, sizeof text.s - (size_t)at, last > i ? "%s%d-%d" : "%s%d", at ? "," : "",
                       (int)view.group_ranks[i], (int)view.group_ranks[last]);
        i = last + 1;
    }
    return text;
}

static void print_slices(const cli *c, int64_t most)
{
    const hbp_task_schedule *s = c->schedule;
    hbp_task_schedule_view view = {.struct_size = sizeof view};
    (void)hbp_task_schedule_get_view(s, &view);
    int64_t count = view.slices;
    table t;
    table_begin(&t, 8,
                (const char *[]){"wave", "<task", "<MetaOp", "<operators", "GPUs", "<ranks", "start", "end"});
    for (int64_t i = 0, wave = 0; i < count && i < most; i++) {
        while (view.wave_offsets[wave + 1] <= i)
            wave++;
        table_add(&t, "%lld", (long long)wave);
        table_add(&t, "%s", hbp_task_schedule_get_task_name(s, view.meta_op_tasks[view.slice_meta_ops[i]]));
        table_add(&t, "%s", hbp_task_schedule_get_meta_op_name(s, view.slice_meta_ops[i]));
        table_add(&t, "%d-%d", (int)view.slice_firsts[i],
                  (int)(view.slice_firsts[i] + view.slice_operators[i] - 1));
        table_add(&t, "%d", (int)view.slice_gpus[i]);
        table_add_text(&t, show_ranks(s, view.slice_groups[i]));
        table_add_text(&t, show_time((double)view.slice_starts[i]));
        table_add_text(&t, show_time((double)view.slice_ends[i]));
    }
    table_end(&t);
    if (count > most)
        printf("  ... and %s more; --all shows them\n", show_number(count - most, "slice").s);
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static int print_text(cli *c, const way *w)
{
    const hbp_task_summary *s = &w->summary;
    const hbp_task_run_summary *r = &w->run;
    printf("%s: %s, %s in %s on %s; %s\n\n", show_name(c->file).s, show_number(s->tasks, "task").s,
           show_number(s->operators, "operator").s, show_number(s->meta_ops, "MetaOp").s,
           show_number(s->levels, "level").s, show_number(s->gpus, "GPU").s);
    print_slices(c, c->all ? INT64_MAX : PRINTED_SLICES);
    printf("\n%s: %s a step, at most %s above the best there can be (%s); %.3f of the sum of C*\n",
           mode_names[s->mode], show_time((double)s->makespan_ns).s, show_share(s->gap).s,
           show_time((double)s->bound_ns).s, share_of(s->makespan_ns, s->relaxed_ns));
    printf("with transfers and gradients %s; GPUs idle %s of the slices' time\n",
           show_time((double)r->total_ns).s, show_share(r->idle).s);
    printf("%s between slices, of which %s leaves its GPU and %s its NVLink domain\n",
           show_bytes((double)s->flow_bytes).s, show_share(share_of(s->moved_bytes, s->flow_bytes)).s,
           show_share(share_of(s->crossing_bytes, s->flow_bytes)).s);
    printf("fullest GPU %s%s%s; %d waves, %d slices, %d communicators", show_bytes((double)s->peak_bytes).s,
           s->limit_bytes ? " of " : "", s->limit_bytes ? show_bytes((double)s->limit_bytes).s : "",
           (int)s->waves, (int)s->slices, (int)s->groups);
    if (w->seconds > 0)
        printf("; planned in %s", show_time(w->seconds * 1e9).s);
    if (c->previous)
        printf("\nof the states, %s stay on their GPUs and %s come from others",
               show_bytes((double)s->kept_bytes).s, show_bytes((double)s->fetched_bytes).s);
    printf("\n");
    if (c->output)
        printf("wrote %s, digest %s\n", show_name(c->output).s,
               show_digest(hbp_task_schedule_get_digest(c->schedule)).s);
    if (c->trace_file)
        printf("wrote %s; open it at ui.perfetto.dev\n", show_name(c->trace_file).s);
    return 0;
}

static int compare(cli *c)
{
    way ways[] = {{.name = "this plan", .mode = HBP_TASKS_OVERLAP},
                  {.name = "Spindle", .mode = HBP_TASKS_PAPER, .placement = HBP_PLACE_PAPER},
                  {.name = "DistMM", .mode = HBP_TASKS_DISTMM},
                  {.name = "Optimus", .mode = HBP_TASKS_OPTIMUS},
                  {.name = "uniform", .mode = HBP_TASKS_UNIFORM},
                  {.name = "sequential", .mode = HBP_TASKS_SEQUENTIAL}};
    enum { WAYS = sizeof ways / sizeof *ways };
    hbp_tasks_options options;
    read_options(c, &options);
    for (int i = 0; i < WAYS; i++) {
        hbp_status status = measure(c, &options, &ways[i]);
        if (status < 0 && (i == 0 || status != HBP_E_INFEASIBLE))
            return cli_failed(c);
    }
    cli_clear_progress();
    if (c->json) {
        c->result = json_array();
        for (int i = 0; i < WAYS; i++)
            json_array_append_new(c->result, way_json(&ways[i]));
        return cli_print_json(c);
    }
    const hbp_task_summary *own = &ways[0].summary;
    printf("%s: %s, %s in %s on %s; %s\n\n", show_name(c->file).s, show_number(own->tasks, "task").s,
           show_number(own->operators, "operator").s, show_number(own->meta_ops, "MetaOp").s,
           show_number(own->levels, "level").s, show_number(own->gpus, "GPU").s);
    table t;
    table_begin(&t, 10,
                (const char *[]){"<way", "step", "x this", "over bound", "with transfers", "moved",
                                 "crossing", "idle", "fullest GPU", "planned in"});
    for (int i = 0; i < WAYS; i++) {
        const way *w = &ways[i];
        table_add(&t, "%s", w->name);
        if (w->failed[0]) {
            table_add(&t, "does not fit");
            for (int k = 2; k < 10; k++)
                table_add(&t, "-");
            continue;
        }
        table_add_text(&t, show_time((double)w->summary.makespan_ns));
        table_add(&t, "%.2f", share_of(w->summary.makespan_ns, own->makespan_ns));
        table_add_text(&t, show_share(w->summary.gap));
        table_add_text(&t, show_time((double)w->run.total_ns));
        table_add_text(&t, show_bytes((double)w->summary.moved_bytes));
        table_add_text(&t, show_bytes((double)w->summary.crossing_bytes));
        table_add_text(&t, show_share(w->run.idle));
        table_add_text(&t, show_bytes((double)w->summary.peak_bytes));
        table_add_text(&t, show_time(w->seconds * 1e9));
    }
    table_end(&t);
    printf("\nno schedule takes less than %s; sum of C* over levels %s\n", show_time((double)own->bound_ns).s,
           show_time((double)own->relaxed_ns).s);
    return 0;
}

static hbp_status write_files(cli *c)
{
    hbp_status status = HBP_OK;
    if (c->output)
        status = hbp_task_schedule_save(c->context, c->schedule, c->output);
    hbp_task_run_view run = {.struct_size = sizeof run}; /* without a run, the schedule's own times */
    (void)hbp_task_run_get_view(c->task_run, &run);
    if (status >= 0 && c->trace_file)
        status =
            hbp_task_schedule_trace(c->context, c->schedule, run.slice_starts, run.slice_ends, c->trace_file);
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
    hbp_machine_fields fields;
    hbp_machine_fields_init(&fields, sizeof fields);
    hbp_status status = hbp_machine_get_fields(c->context, c->machine, &fields);
    int64_t limit = c->memory_mib ? c->memory_mib << 20 : fields.hbm_bytes;
    if (status >= 0 && limit > 0 && s->peak_bytes > limit)
        return cli_own_failure("%s: the fullest GPU needs %s; there are %s", c->schedule_file,
                               show_bytes((double)s->peak_bytes).s, show_bytes((double)limit).s);
    return status;
}

int cli_tasks(cli *c)
{
    if (!c->machine_text)
        return cli_usage("hbp tasks needs --machine, such as --machine a800-80:2");
    if (c->compare && (c->output || c->trace_file || c->graph_out || c->schedule_file || c->mode))
        return cli_usage(
            "--compare plans every mode and writes nothing; leave out --mode, -o, --trace, --graph-out "
            "and --schedule");
    if (c->schedule_file && (c->previous_file || c->mode || c->placement || c->effort || c->reserve_mib))
        return cli_usage("--schedule plans nothing; leave out --previous, --mode, --placement, --effort and "
                         "--reserve");
    CLI_TRY(c, read_graph(c));
    if (c->previous_file)
        CLI_TRY(c, hbp_task_schedule_load(c->context, c->previous_file, &c->previous));
    if (c->compare)
        return compare(c);
    way w = {.mode = (int32_t)c->mode, .placement = (int32_t)c->placement};
    if (c->schedule_file) {
        CLI_TRY(c, hbp_task_schedule_load(c->context, c->schedule_file, &c->schedule));
        CLI_TRY(c, run_schedule(c, &w));
        CLI_TRY(c, check_memory(c, &w.summary));
        w.mode = w.summary.mode;
        w.placement = w.summary.placement;
    } else {
        hbp_tasks_options options;
        read_options(c, &options);
        CLI_TRY(c, measure(c, &options, &w));
    }
    w.name = mode_names[w.summary.mode];
    CLI_TRY(c, write_files(c));
    cli_clear_progress();
    return c->json ? print_json(c, &w) : print_text(c, &w);
}
