/* Schedules of tasks and their runs as text and JSON, and what show, validate and trace make of their files.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hbp/io.h"
#include "options.h"
#include "report/report.h"

enum { PRINTED_SLICES = 40 };

/* The graph: a file, or a workload of that name. */
hbp_status cli_read_graph(cli *c, const char *text)
{
    int named = 0;
    const char *name;
    for (int64_t i = 0; (name = hbp_preset_get_name("workload", i)) != NULL; i++)
        named |= strcmp(text, name) == 0;
    hbp_status status = cli_make_machine(c);
    if (status < 0)
        return status;
    if (access(text, R_OK) != 0 && (named || !strpbrk(text, "./"))) /* the library names the nearest */
        return cli_as_usage(c, hbp_graph_create_workload(c->context, text, c->machine, &c->graph));
    return hbp_graph_load(c->context, text, &c->graph);
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

json_t *cli_slices_json(const hbp_task_schedule *s)
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
                            (int)view.slice_meta_ops[i], "name", view.meta_op_names[view.slice_meta_ops[i]],
                            "task", view.task_names[view.meta_op_tasks[view.slice_meta_ops[i]]], "first",
                            (int)view.slice_firsts[i], "operators", (int)view.slice_operators[i], "start_ns",
                            (json_int_t)view.slice_starts[i], "end_ns", (json_int_t)view.slice_ends[i],
                            "ranks", ranks_json(s, view.slice_groups[i])));
    }
    return list;
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
    table_begin(
        &t, 8,
        (const char *[]){"wave", "-<task", "<MetaOp", "-<operators", "GPUs", "<ranks", "start", "end"});
    for (int64_t i = 0, wave = 0; i < count && i < most; i++) {
        while (view.wave_offsets[wave + 1] <= i)
            wave++;
        table_add(&t, "%lld", (long long)wave);
        table_add(&t, "%s", view.task_names[view.meta_op_tasks[view.slice_meta_ops[i]]]);
        table_add(&t, "%s", view.meta_op_names[view.slice_meta_ops[i]]);
        table_add(&t, "%d-%d", (int)view.slice_firsts[i],
                  (int)(view.slice_firsts[i] + view.slice_operators[i] - 1));
        table_add(&t, "%d", (int)view.slice_gpus[i]);
        table_add_text(&t, show_ranks(s, view.slice_groups[i]));
        table_add_text(&t, show_time((double)view.slice_starts[i]));
        table_add_text(&t, show_time((double)view.slice_ends[i]));
    }
    table_end(&t);
    if (count > most)
        say("  ... and %s more; --all shows them\n", show_number(count - most, "slice").s);
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

json_t *cli_schedule_json(const hbp_task_summary *s, const hbp_task_run_summary *r)
{
    json_t *row = json_pack(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "gpus", (int)s->gpus,
        "tasks", (int)s->tasks, "operators", (int)s->operators, "meta_ops", (int)s->meta_ops, "levels",
        (int)s->levels, "waves", (int)s->waves, "slice_count", (int)s->slices, "makespan_ns",
        (json_int_t)s->makespan_ns, "bound_ns", (json_int_t)s->bound_ns, "critical_path_ns",
        (json_int_t)s->critical_path_ns, "area_ns", (json_int_t)s->area_ns, "relaxed_ns",
        (json_int_t)s->relaxed_ns, "flow_bytes", (json_int_t)s->flow_bytes, "moved_bytes",
        (json_int_t)s->moved_bytes, "crossing_bytes", (json_int_t)s->crossing_bytes, "limit_bytes",
        (json_int_t)s->limit_bytes, "peak_bytes", (json_int_t)s->peak_bytes, "kept_bytes",
        (json_int_t)s->kept_bytes, "fetched_bytes", (json_int_t)s->fetched_bytes);
    if (r) {
        json_object_set_new(row, "total_ns", json_integer(r->total_ns));
        json_object_set_new(row, "slices_ns", json_integer(r->slices_ns));
        json_object_set_new(row, "gradient_ns", json_integer(r->gradient_ns));
    }
    json_object_set_new(row, "gap", json_number(s->gap));
    json_object_set_new(row, "idle", json_number(s->idle));
    if (r) {
        json_object_set_new(row, "run_idle", json_number(r->idle));
        json_object_set_new(row, "transfer_ns", json_integer(r->transfer_ns));
    }
    return row;
}

static void print_run(const hbp_task_run_summary *r)
{
    say("with transfers and gradients %s; GPUs idle %s of the slices' time\n",
        show_time((double)r->total_ns).s, show_share(r->idle).s);
}

void cli_print_schedule(const cli *c, const hbp_task_summary *s, const hbp_task_run_summary *r)
{
    say("%s: %s, %s in %s on %s; %s\n\n", show_name(c->file).s, show_number(s->tasks, "task").s,
        show_number(s->operators, "operator").s, show_number(s->meta_ops, "MetaOp").s,
        show_number(s->levels, "level").s, show_number(s->gpus, "GPU").s);
    print_slices(c, c->all ? INT64_MAX : PRINTED_SLICES);
    say("\n%s: %s a step, at most %s above the best there can be (%s); %.3f of the sum of C*\n", s->method,
        show_time((double)s->makespan_ns).s, show_share(s->gap).s, show_time((double)s->bound_ns).s,
        share_of(s->makespan_ns, s->relaxed_ns));
    if (r)
        print_run(r);
    say("%s between slices, of which %s leaves its GPU and %s its NVLink domain\n",
        show_bytes((double)s->flow_bytes).s, show_share(share_of(s->moved_bytes, s->flow_bytes)).s,
        show_share(share_of(s->crossing_bytes, s->flow_bytes)).s);
    say("fullest GPU %s%s%s; %d waves, %d slices, %d communicators", show_bytes((double)s->peak_bytes).s,
        s->limit_bytes ? " of " : "", s->limit_bytes ? show_bytes((double)s->limit_bytes).s : "",
        (int)s->waves, (int)s->slices, (int)s->groups);
}

/* --- files -------------------------------------------------------------------------------------------------
 */

static int show_schedule(cli *c)
{
    hbp_task_summary s = {.struct_size = sizeof s};
    CLI_TRY(c, hbp_task_schedule_get_summary(c->context, c->schedule, &s));
    cli_finish_progress();
    const char *digest = show_digest(s.digest).s;
    if (c->json) {
        c->result = cli_schedule_json(&s, NULL);
        json_object_set_new(c->result, "method", json_string(s.method));
        json_object_set_new(c->result, "placement_method", json_string(s.placement_method));
        json_object_set_new(c->result, "digest", json_string(digest));
        json_object_set_new(c->result, "slices", cli_slices_json(c->schedule));
        return cli_print_json(c);
    }
    cli_print_schedule(c, &s, NULL);
    say("\ndigest %s\n", digest);
    return 0;
}

static int show_run(cli *c)
{
    hbp_task_run_summary s = {.struct_size = sizeof s};
    hbp_task_run_view view = {.struct_size = sizeof view};
    CLI_TRY(c, hbp_task_run_get_summary(c->context, c->task_run, &s));
    (void)hbp_task_run_get_view(c->task_run, &view);
    cli_finish_progress();
    if (c->json) {
        c->result =
            json_pack("{s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:s,s:s}", "gpus", (int)s.gpus,
                      "slice_count", (json_int_t)view.slices, "total_ns", (json_int_t)s.total_ns, "slices_ns",
                      (json_int_t)s.slices_ns, "transfer_ns", (json_int_t)s.transfer_ns, "gradient_ns",
                      (json_int_t)s.gradient_ns, "flow_bytes", (json_int_t)s.flow_bytes, "moved_bytes",
                      (json_int_t)s.moved_bytes, "crossing_bytes", (json_int_t)s.crossing_bytes, "peak_bytes",
                      (json_int_t)s.peak_bytes, "run_idle", json_number(s.idle), "schedule_digest",
                      show_digest(s.schedule_digest).s, "digest", show_digest(s.digest).s);
        return cli_print_json(c);
    }
    say("%s: a run of %s on %s\n", show_name(c->file).s, show_number(view.slices, "slice").s,
        show_number(s.gpus, "GPU").s);
    print_run(&s);
    say("%s of it behind the last slice; waiting for transfers takes %s of all GPUs' time; fullest GPU "
        "%s\ndigest %s, of schedule %s\n",
        show_time((double)s.gradient_ns).s, show_time((double)s.transfer_ns).s,
        show_bytes((double)s.peak_bytes).s, show_digest(s.digest).s, show_digest(s.schedule_digest).s);
    return 0;
}

/* The graph and machine that a schedule is held to, and the schedule of a run. */
static int load_company(cli *c)
{
    if ((c->graph_text != NULL) != (c->machine_text != NULL))
        return cli_usage("--graph and --machine go together");
    if (c->task_run && (c->graph_text != NULL) != (c->schedule_file != NULL))
        return cli_usage("a run is held to --schedule, --graph and --machine, or to none of them");
    if (!c->task_run && c->schedule_file)
        return cli_usage("--schedule is for runs of one; %s is a schedule itself", c->file);
    if (c->graph_text)
        CLI_TRY(c, cli_read_graph(c, c->graph_text));
    if (c->schedule_file)
        CLI_TRY(c, hbp_task_schedule_load(c->context, c->schedule_file, &c->schedule));
    return 0;
}

static int validate_schedule(cli *c)
{
    int wrong = load_company(c);
    if (wrong)
        return wrong;
    hbp_task_summary s = {.struct_size = sizeof s};
    CLI_TRY(c, hbp_task_schedule_get_summary(c->context, c->schedule, &s));
    hbp_status status =
        c->graph ? hbp_task_schedule_validate(c->context, c->schedule, c->graph, c->machine) : HBP_OK;
    return cli_print_validity(c, status, s.digest,
                              c->graph ? "keeps every promise to its graph and the machine"
                                       : "agrees with itself (not checked: --graph on --machine)");
}

static int validate_run(cli *c)
{
    int wrong = load_company(c);
    if (wrong)
        return wrong;
    hbp_task_run_summary s = {.struct_size = sizeof s};
    const hbp_task_run_options options = {.struct_size = sizeof options, .barriers = (int32_t)c->barriers};
    CLI_TRY(c, hbp_task_run_get_summary(c->context, c->task_run, &s));
    hbp_status status =
        hbp_task_run_validate(c->context, c->task_run, c->graph, c->machine, c->schedule, &options);
    return cli_print_validity(c, status, s.digest,
                              c->schedule
                                  ? "is what its schedule takes on this machine"
                                  : "agrees with itself (not checked: --schedule of --graph on --machine)");
}

static int trace_schedule(cli *c)
{
    if (c->schedule_file)
        return cli_usage("--schedule is for runs of one; %s is a schedule itself", c->file);
    CLI_TRY(c, hbp_task_schedule_trace(c->context, c->schedule, NULL, c->output));
    return cli_print_written(c);
}

int cli_load_schedule_of_run(cli *c)
{
    if (!c->schedule_file)
        return cli_usage("a run of tasks needs --schedule FILE, which says what ran where");
    hbp_task_run_view view = {.struct_size = sizeof view};
    hbp_task_summary s = {.struct_size = sizeof s};
    hbp_task_run_summary run = {.struct_size = sizeof run};
    (void)hbp_task_run_get_view(c->task_run, &view);
    CLI_TRY(c, hbp_task_run_get_summary(c->context, c->task_run, &run));
    CLI_TRY(c, hbp_task_schedule_load(c->context, c->schedule_file, &c->schedule));
    CLI_TRY(c, hbp_task_schedule_get_summary(c->context, c->schedule, &s));
    if (s.slices != view.slices || s.digest != run.schedule_digest)
        return cli_error("%s is a run of schedule %s; %s is %s", c->file, show_digest(run.schedule_digest).s,
                         c->schedule_file, show_digest(s.digest).s);
    return 0;
}

static int trace_run(cli *c)
{
    int wrong = cli_load_schedule_of_run(c);
    if (wrong)
        return wrong;
    CLI_TRY(c, hbp_task_schedule_trace(c->context, c->schedule, c->task_run, c->output));
    return cli_print_written(c);
}

static hbp_status load_schedule(cli *c)
{
    return hbp_task_schedule_load(c->context, c->file, &c->schedule);
}

static hbp_status dump_schedule(const cli *c, const char *path)
{
    return hbp_task_schedule_write_json(c->context, c->schedule, path);
}

static hbp_status load_run(cli *c)
{
    return hbp_task_run_load(c->context, c->file, &c->task_run);
}

static hbp_status dump_run(const cli *c, const char *path)
{
    return hbp_task_run_write_json(c->context, c->task_run, path);
}

const cli_object cli_schedule_object = {"hbp-tasks",    "a task schedule",  CLI_TAKES_GRAPH,
                                        load_schedule,  show_schedule,      validate_schedule,
                                        trace_schedule, report_of_schedule, dump_schedule};
const cli_object cli_task_run_object = {"hbp-task-run", "a run of tasks",   CLI_TAKES_GRAPH,
                                        load_run,       show_run,           validate_run,
                                        trace_run,      report_of_task_run, dump_run};
