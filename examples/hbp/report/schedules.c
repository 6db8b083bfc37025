/* Pages of what runs as slices on lanes: task schedules, runs of them, runs of pipelines. */
#include <stdio.h>
#include <stdlib.h>

#include "report.h"

static json_t *begin_slices(json_t *page, const char *title, json_t *answer, const char *lane, int64_t lanes,
                            int64_t total_ns)
{
    json_t *picture = report_picture(page, "timeline", "step", title, answer);
    json_t *rest = json_pack("{s:s,s:s,s:I,s:I,s:[],s:[]}", "mode", "slices", "lane", lane, "lanes",
                             (json_int_t)lanes, "total_ns", (json_int_t)total_ns, "labels", "legend");
    json_object_update(picture, rest);
    json_decref(rest);
    return picture;
}

static void add_label(json_t *picture, json_t *name, int colour, json_t *about)
{
    json_array_append_new(json_object_get(picture, "labels"),
                          json_pack("{s:o,s:i,s:o}", "name", name, "colour", colour, "about", about));
}

static void add_legend(json_t *picture, const char *name, int colour)
{
    json_array_append_new(json_object_get(picture, "legend"),
                          json_pack("{s:o,s:i}", "name", report_text("%s", name), "colour", colour));
}

/* ---- Task schedules ---- */

enum { COLOURS = 16 }; /* of tasks: 8, and the same with stripes */

/* A slice on ranks that are not consecutive is one slice for each run of them. */
#define EACH_RUN(v, s, first, end)                                                                           \
    for (int64_t first = (v)->group_offsets[(v)->slice_groups[s]], end,                                      \
                 last##first = (v)->group_offsets[(v)->slice_groups[s] + 1];                                 \
         first < last##first && (end = run_end(v, first, last##first), 1); first = end)

static int64_t run_end(const hbp_task_schedule_view *v, int64_t first, int64_t last)
{
    int64_t end = first + 1;
    while (end < last && v->group_ranks[end] == v->group_ranks[end - 1] + 1)
        end++;
    return end;
}

static void put_slices(report_columns *c, const hbp_task_schedule_view *v, const int64_t *starts,
                       const int64_t *ends)
{
#define COLUMN(name, value)                                                                                  \
    report_column(c, name);                                                                                  \
    for (int64_t s = 0; s < v->slices; s++)                                                                  \
        EACH_RUN(v, s, i, end) report_put(c, value);
    COLUMN("slice_lane", v->group_ranks[i])
    COLUMN("slice_lanes", end - i)
    COLUMN("slice_start", starts[s])
    COLUMN("slice_ns", ends[s] - starts[s])
    COLUMN("slice_label", s)
#undef COLUMN
}

static void draw_schedule(json_t *page, report_columns *c, const hbp_task_schedule_view *v,
                          const int64_t *starts, const int64_t *ends, int64_t total_ns, json_t *answer)
{
    json_t *picture = begin_slices(page, "What runs where and when, and which GPUs wait?", answer, "GPU",
                                   v->ranks, total_ns);
    for (int64_t s = 0; s < v->slices; s++) {
        const int32_t op = v->slice_meta_ops[s];
        const char *task = v->task_names[v->meta_op_tasks[op]];
        add_label(picture, report_text("%s of %s", show_name(v->meta_op_names[op]).s, show_name(task).s),
                  v->meta_op_tasks[op] % COLOURS,
                  report_text("%s from operator %d on, on %s",
                              show_number(v->slice_operators[s], "operator").s, (int)v->slice_firsts[s],
                              show_number(v->slice_gpus[s], "GPU").s));
    }
    for (int64_t i = 0; i < v->tasks; i++)
        add_legend(picture, show_name(v->task_names[i]).s, (int)(i % COLOURS));
    if (v->tasks > COLOURS)
        json_object_set_new(
            picture, "note",
            report_text("Colours repeat: of %s, the %dth has that of the first again, and so on.",
                        show_number(v->tasks, "task").s, COLOURS + 1));
    put_slices(c, v, starts, ends);
}

/* Columns by GPU, of the first REPORT_RANKS. */
static void draw_by_gpu(json_t *page, const hbp_task_schedule_view *v, const hbp_task_summary *s,
                        const hbp_task_run_summary *r)
{
    const int64_t work_ns = r ? r->slices_ns : s->makespan_ns;
    const int64_t count = v->ranks < REPORT_RANKS ? v->ranks : REPORT_RANKS;
    double busy[REPORT_RANKS], waits[REPORT_RANKS], gradients[REPORT_RANKS], peak[REPORT_RANKS];
    for (int64_t g = 0; g < count; g++) {
        busy[g] = (double)v->rank_busy_ns[g];
        waits[g] = (double)(work_ns - v->rank_busy_ns[g]);
        gradients[g] = r ? (double)r->gradient_ns : 0;
        peak[g] = (double)v->rank_bytes[g];
    }
    json_t *time = report_picture(
        page, "columns", "ranks", "Where does each GPU's time go?",
        report_text("GPUs have nothing to run in %s of the first %s, until the last slice ends.",
                    show_share(r ? r->idle : s->idle).s, show_time((double)work_ns).s));
    json_t *memory = report_picture(
        page, "columns", "memory", "Does it fit?",
        s->limit_bytes
            ? report_text("%s: the fullest GPU peaks at %s of %s.",
                          s->peak_bytes <= s->limit_bytes ? "It fits" : "It does not fit",
                          show_bytes((double)s->peak_bytes).s, show_bytes((double)s->limit_bytes).s)
            : report_text("The fullest GPU peaks at %s; no limit was given.",
                          show_bytes((double)s->peak_bytes).s));
    json_t *names = json_array();
    for (int64_t g = 0; g < count; g++)
        json_array_append_new(names, report_text("%lld", (long long)g));
    json_object_set(time, "names", names);
    json_object_set_new(memory, "names", names);
    json_object_set_new(time, "axis", json_string("GPU"));
    json_object_set_new(memory, "axis", json_string("GPU"));
    json_t *panel = report_panel(time, "time of a GPU", "ns");
    report_series(panel, "computation", "compute", busy, count);
    report_series(panel, r ? "waiting, for transfers as well" : "waiting", "wait", waits, count);
    if (r)
        report_series(panel, "once a step: gradients", "step", gradients, count);
    panel = report_panel(memory, "peak memory", "bytes");
    report_series(panel, "peak memory", "plain", peak, count);
    if (s->limit_bytes)
        report_limit(panel, "limit", (double)s->limit_bytes);
    if (count < v->ranks) {
        json_object_set_new(
            time, "note",
            report_text("The first %s of %s.", show_count(count).s, show_number(v->ranks, "GPU").s));
    }
}

static hbp_status of_schedule(cli *c, json_t *page, report_columns *columns, const hbp_task_run *run)
{
    hbp_task_summary s = {.struct_size = sizeof s};
    hbp_task_schedule_view v = {.struct_size = sizeof v};
    hbp_task_run_summary r = {.struct_size = sizeof r};
    hbp_task_run_view times = {.struct_size = sizeof times};
    hbp_status status = hbp_task_schedule_get_summary(c->context, c->schedule, &s);
    if (status >= 0)
        status = hbp_task_schedule_get_view(c->schedule, &v);
    if (status >= 0 && run)
        status = hbp_task_run_get_summary(c->context, run, &r);
    if (status >= 0 && run)
        status = hbp_task_run_get_view(run, &times);
    if (status < 0)
        return status;
    report_lead(page, report_text("%s of %s on %s, scheduled by method %s and placed by method %s.",
                                  show_number(s.operators, "operator").s, show_number(s.tasks, "task").s,
                                  show_number(s.gpus, "GPU").s, s.method, s.placement_method));
    report_lead(
        page,
        report_text(
            "One round takes %s without transfers and gradients%s; no schedule of these operators takes less "
            "than %s: it is %s above.",
            show_time((double)s.makespan_ns).s, run ? "" : " (hbp tasks --run-out saves a run with them)",
            show_time((double)s.bound_ns).s, show_share(s.gap).s));
    if (run)
        report_lead(page,
                    report_text("Run with transfers and gradients it takes %s: slices end at %s, gradients "
                                "take %s.",
                                show_time((double)r.total_ns).s, show_time((double)r.slices_ns).s,
                                show_time((double)r.gradient_ns).s));
    report_fact(page, "GPUs", show_count(s.gpus));
    report_fact(page, "tasks", show_count(s.tasks));
    report_fact(page, "slices", show_count(s.slices));
    if (run)
        report_fact(page, "with transfers and gradients", show_time((double)r.total_ns));
    report_fact(page, run ? "without them" : "one round, without transfers",
                show_time((double)s.makespan_ns));
    report_fact(page, "above the bound", show_share(s.gap));
    report_fact(page, "idle", show_share(run ? r.idle : s.idle));
    report_fact(page, "peak memory", show_bytes((double)s.peak_bytes));
    report_fact(page, "digest", show_digest(run ? r.digest : s.digest));
    json_t *bars = report_picture(
        page, "bars", "methods", "How near is it to the best there can be?",
        report_text("No schedule ends left of the line; what is below the first bar are simpler bounds, "
                    "of which none is above the line."));
    json_object_set_new(bars, "unit", json_string("ns"));
    report_bar(bars, "this schedule", (double)s.makespan_ns, "", 1);
    report_bar(bars, "longest chain, each operator at its fastest", (double)s.critical_path_ns, "", 0);
    report_bar(bars, "all work, GPUs never idle", (double)s.area_ns, "", 0);
    report_limit(bars, "no schedule is below", (double)s.bound_ns);
    draw_schedule(page, columns, &v, run ? times.slice_starts : v.slice_starts,
                  run ? times.slice_ends : v.slice_ends, run ? r.total_ns : s.makespan_ns,
                  report_text("A slice is a part of a MetaOp, a chain of a task's operators, on its GPUs; "
                              "hatched is waiting, and pointing at a slice says what it is."));
    draw_by_gpu(page, &v, &s, run ? &r : NULL);
    return HBP_OK;
}

int report_of_schedule(cli *c, json_t *page, report_columns *columns)
{
    CLI_TRY(c, of_schedule(c, page, columns, NULL));
    return 0;
}

int report_of_task_run(cli *c, json_t *page, report_columns *columns)
{
    int wrong = cli_load_schedule_of_run(c);
    if (wrong)
        return wrong;
    CLI_TRY(c, of_schedule(c, page, columns, c->task_run));
    return 0;
}

/* ---- Pipelines ---- */

int report_of_pipeline(cli *c, json_t *page, report_columns *columns)
{
    hbp_pipeline_summary s = {.struct_size = sizeof s};
    hbp_pipeline_run_view v = {.struct_size = sizeof v};
    CLI_TRY(c, hbp_pipeline_run_get_summary(c->context, c->pipeline_run, &s));
    CLI_TRY(c, hbp_pipeline_run_get_view(c->pipeline_run, &v));
    report_lead(page,
                report_text("A step of %s through %s takes %s; no order of them takes less than %s. Stages "
                            "wait %s of the time.",
                            show_number(s.micro_batches, "micro-batch").s, show_number(s.stages, "stage").s,
                            show_time((double)s.total_ns).s, show_time((double)s.bound_ns).s,
                            show_share(s.bubble).s));
    report_fact(page, "stages", show_count(s.stages));
    report_fact(page, "micro-batches", show_count(s.micro_batches));
    report_fact(page, "step", show_time((double)s.total_ns));
    report_fact(page, "bubble", show_share(s.bubble));
    report_fact(page, "peak memory", show_bytes((double)s.peak_bytes));
    report_fact(page, "digest", show_digest(s.digest));
    json_t *picture =
        begin_slices(page, "What does each stage run, and when does it wait?",
                     report_text("Forward and backward of each micro-batch; hatched is waiting."), "stage",
                     s.stages, s.total_ns);
    add_legend(picture, "forward", 0);
    add_legend(picture, "backward", 2);
    for (int64_t i = 0; i < v.operations; i++) {
        const int forward = v.operation_directions[i] == HBP_FORWARD;
        add_label(picture,
                  report_text("%s %d", forward ? "forward" : "backward", (int)v.operation_micro_batches[i]),
                  forward ? 0 : 2,
                  report_text("micro-batch %d, chunk %d", (int)v.operation_micro_batches[i],
                              (int)v.operation_chunks[i]));
    }
#define COLUMN(name, value)                                                                                  \
    report_column(columns, name);                                                                            \
    for (int64_t i = 0; i < v.operations; i++)                                                               \
        report_put(columns, value);
    COLUMN("slice_lane", v.operation_stages[i])
    COLUMN("slice_lanes", 1)
    COLUMN("slice_start", v.operation_starts[i])
    COLUMN("slice_ns", v.operation_ends[i] - v.operation_starts[i])
    COLUMN("slice_label", i)
#undef COLUMN
    json_t *time =
        report_picture(page, "bars", "stages", "Which stage is the busiest?",
                       report_text("Time that each stage computes, of %s.", show_time((double)s.total_ns).s));
    json_t *memory = report_picture(page, "bars", "memory", "Which stage is the fullest?",
                                    report_text("Peak memory of each stage."));
    json_object_set_new(time, "unit", json_string("ns"));
    json_object_set_new(memory, "unit", json_string("bytes"));
    for (int64_t i = 0; i < v.stages; i++) {
        const shown label = show_real("stage %.0f", (double)i);
        report_bar(time, label.s, (double)v.stage_busy_ns[i], "", 0);
        report_bar(memory, label.s, (double)v.stage_bytes[i], "", 0);
    }
    return 0;
}
