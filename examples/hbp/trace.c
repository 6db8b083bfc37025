#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "hbp/io.h"

/* How far the plan's predictions are from what was measured of the steps shown, dummies left out. */
typedef struct measured {
    int64_t packs;
    int64_t steps;
    double pack_median;
    double pack_p95;
    double step_median;
    double step_p95;
    int64_t measured_ns; /* sum over steps of each micro-batch's slowest pack */
    int64_t predicted_ns;
} measured;

/* Slowest packs of a micro-batch. */
typedef struct slowest {
    int64_t measured_ns;
    int64_t predicted_ns;
} slowest;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The least value that `percent` of 100 do not exceed; sorts. */
static double quantile(double *values, int64_t count, int64_t percent)
{
    if (!count)
        return 0;
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[(count * percent + 99) / 100 - 1];
}

static double error_of(int64_t predicted, int64_t seen)
{
    return fabs((double)predicted - (double)seen) / (double)seen;
}

/* The rows fit the plan: a trace of them has been written. */
static void compare_rows(const cli *c, const hbp_timeline_columns *t, int64_t first, int64_t steps,
                         double *error, slowest *batch, measured *m)
{
    hbp_plan_summary plan = {.struct_size = sizeof plan};
    if (hbp_plan_get_summary(c->context, c->plan, &plan) < 0)
        return;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t step = t->step[i] - plan.first_step;
        if (step < first || step >= first + steps)
            continue;
        int64_t pack = hbp_plan_get_rank_pack(c->plan, step, t->micro_batch[i], t->first_rank[i]);
        if (view.pack_offsets[pack] == view.pack_offsets[pack + 1] || !t->time_ns[i])
            continue;
        slowest *b = &batch[view.step_offsets[step] - view.step_offsets[first] + t->micro_batch[i]];
        if (t->time_ns[i] > b->measured_ns)
            b->measured_ns = t->time_ns[i];
        if (view.pack_ns[pack] > b->predicted_ns)
            b->predicted_ns = view.pack_ns[pack];
        error[m->packs++] = error_of(view.pack_ns[pack], t->time_ns[i]);
    }
    m->pack_median = quantile(error, m->packs, 50);
    m->pack_p95 = quantile(error, m->packs, 95);
    for (int64_t step = first; step < first + steps; step++) {
        slowest sum = {0};
        for (int64_t k = view.step_offsets[step] - view.step_offsets[first];
             k < view.step_offsets[step + 1] - view.step_offsets[first]; k++) {
            sum.measured_ns += batch[k].measured_ns;
            sum.predicted_ns += batch[k].predicted_ns;
        }
        m->measured_ns += sum.measured_ns;
        m->predicted_ns += sum.predicted_ns;
        if (sum.measured_ns) /* no more steps than packs, so there is room */
            error[m->steps++] = error_of(sum.predicted_ns, sum.measured_ns);
    }
    m->step_median = quantile(error, m->steps, 50);
    m->step_p95 = quantile(error, m->steps, 95);
}

static int compare_measured(const cli *c, int64_t first, int64_t steps, measured *m)
{
    hbp_timeline_columns t = {.struct_size = sizeof t};
    if (hbp_timeline_get_columns(c->context, c->timeline, &t) < 0)
        return cli_error("%s", cli_message(c));
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    double *error = malloc((size_t)t.count * sizeof *error);
    slowest *batch =
        calloc((size_t)(view.step_offsets[first + steps] - view.step_offsets[first]), sizeof *batch);
    if (error && batch)
        compare_rows(c, &t, first, steps, error, batch, m);
    free(error);
    free(batch);
    return error && batch ? 0 : cli_error("out of memory");
}

static int tell_measured(cli *c, int64_t first, int64_t steps)
{
    measured m = {0};
    int failed = compare_measured(c, first, steps, &m);
    if (failed)
        return failed;
    if (c->json) {
        c->result = json_pack("{s:s,s:I,s:I,s:I,s:I,s:f,s:f,s:f,s:f,s:I,s:I}", "path", c->output,
                              "first_step", (json_int_t)first, "steps", (json_int_t)steps, "measured_packs",
                              (json_int_t)m.packs, "measured_steps", (json_int_t)m.steps, "median_pack_error",
                              m.pack_median, "p95_pack_error", m.pack_p95, "median_step_error", m.step_median,
                              "p95_step_error", m.step_p95, "measured_ns", (json_int_t)m.measured_ns,
                              "predicted_ns", (json_int_t)m.predicted_ns);
        return cli_print_json(c);
    }
    printf("wrote %s: %s, %s of them measured; open it at ui.perfetto.dev\n", show_name(c->output).s,
           show_number(steps, "step").s, show_count(m.steps).s);
    if (!m.packs)
        return 0;
    printf("predictions are off by %s in the median and %s at the 95th percentile of %s,\n"
           "by %s and %s of the steps' sums of slowest packs: %s measured, %s predicted\n",
           show_share(m.pack_median).s, show_share(m.pack_p95).s, show_number(m.packs, "pack").s,
           show_share(m.step_median).s, show_share(m.step_p95).s, show_time((double)m.measured_ns).s,
           show_time((double)m.predicted_ns).s);
    return 0;
}

int cli_trace(cli *c)
{
    if (!c->output)
        return cli_usage("hbp trace needs -o FILE");
    const cli_object *object = cli_find_object(c);
    if (object) {
        int wrong = cli_load_object(c, object);
        return wrong ? wrong : object->trace(c);
    }
    if (c->schedule_file)
        return cli_usage("--schedule is for runs of tasks");
    CLI_TRY(c, cli_load_plan(c));
    int64_t first = c->step < 0 ? 0 : c->step;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    int64_t count = view.steps;
    if (first >= count)
        return cli_error("there is no step %lld; the plan has %lld", (long long)first, (long long)count);
    int64_t steps = c->steps == 0 || c->steps > count - first ? count - first : c->steps;
    if (c->measured_file)
        CLI_TRY(c, hbp_timeline_load(c->context, c->measured_file, &c->timeline));
    const hbp_trace_options options = {
        .struct_size = sizeof options, .first_step = first, .steps = steps, .timeline = c->timeline};
    CLI_TRY(c, c->vlm_plan && !c->timeline ? hbp_vlm_plan_trace(c->context, c->vlm_plan, c->output, &options)
                                           : hbp_plan_trace(c->context, c->plan, c->output, &options));
    cli_clear_progress();
    if (c->timeline)
        return tell_measured(c, first, steps);
    if (c->json) {
        c->result = json_pack("{s:s,s:I,s:I}", "path", c->output, "first_step", (json_int_t)first, "steps",
                              (json_int_t)steps);
        return cli_print_json(c);
    }
    printf("wrote %s: %s; open it at ui.perfetto.dev\n", show_name(c->output).s,
           show_number(steps, "step").s);
    return 0;
}
