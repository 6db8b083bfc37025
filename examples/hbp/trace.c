#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"

/* What is shown unless --steps says it, chosen so that a trace stays below 100 MB: a pack on a rank is some
 * 900 bytes with its parts. */
enum { USUAL_STEPS = 20, USUAL_PACKS = 100000 };

/* Steps [first, first + count) of those in the file, and whether nobody asked for just these. */
typedef struct range {
    int64_t first;
    int64_t count;
    int64_t first_step; /* of the file, in the whole plan */
    int is_usual;
} range;

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

/* A number of steps at *text, which moves behind it; -1: there is none, or it is too large. */
static int64_t take_steps(const char **text)
{
    int64_t value = 0;
    if (**text < '0' || **text > '9')
        return -1;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (value > (INT64_MAX - 9) / 10)
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

/* Reads N, A:B or all into steps [*first, *end), of which the plan has `all`; an end may be left out. 0 when
 * it is none of them. */
static int read_steps(const char *text, int64_t all, int64_t *first, int64_t *end)
{
    const char *at = text;
    if (strcmp(text, "all") == 0) {
        *end = all;
        return 1;
    }
    int64_t a = *at == ':' ? *first : take_steps(&at);
    if (a < 0)
        return 0;
    if (!*at) { /* 0 steps are all, as in hbp_trace_options */
        *end = a == 0 || a > all - *first ? all : *first + a;
        return 1;
    }
    if (*at != ':')
        return 0;
    at++;
    int64_t b = *at ? take_steps(&at) : INT64_MAX;
    if (*at || b <= a)
        return 0;
    *first = a;
    *end = b < all ? b : all;
    return 1;
}

int cli_check_steps(const cli *c)
{
    int64_t first = 0, end;
    if (!c->steps_text)
        return 0;
    if (!read_steps(c->steps_text, INT64_MAX, &first, &end))
        return cli_usage("--steps is '%s'; it must be a number of steps, A:B for steps A to B - 1, or all",
                         c->steps_text);
    if (c->step >= 0 && strchr(c->steps_text, ':'))
        return cli_usage("--steps %s says where to begin; --step has no place beside it", c->steps_text);
    return 0;
}

int cli_find_steps(const cli *c, int64_t first_step, int64_t all, int64_t *first, int64_t *end)
{
    int64_t from = first_step + *first, to = first_step + all;
    if (c->steps_text && !read_steps(c->steps_text, to, &from, &to)) /* :B before the first one */
        from = 0;
    const int wrong = cli_check_step(c, from, first_step, all);
    *first = from - first_step;
    *end = to - first_step;
    return wrong;
}

/* The first step that was measured, or 0. */
static int64_t first_measured(const cli *c)
{
    hbp_timeline_columns t = {.struct_size = sizeof t};
    hbp_plan_summary plan = {.struct_size = sizeof plan};
    int64_t least = -1;
    if (hbp_timeline_get_columns(c->context, c->timeline, &t) < 0 ||
        hbp_plan_get_summary(c->context, c->plan, &plan) < 0)
        return 0;
    for (int64_t i = 0; i < t.count; i++) {
        int64_t step = t.step[i] - plan.first_step;
        if (step >= 0 && step < plan.steps && (least < 0 || step < least))
            least = step;
    }
    return least < 0 ? 0 : least;
}

/* So many steps that a viewer opens the trace at once: packs are counted on each of their ranks. */
static int64_t usual_steps(const cli *c, const hbp_plan_view *view, int64_t first)
{
    hbp_plan_summary plan = {.struct_size = sizeof plan};
    hbp_vlm_plan_summary vlm = {.struct_size = sizeof vlm};
    if (hbp_plan_get_summary(c->context, c->plan, &plan) < 0)
        return 1;
    int64_t rows = plan.ranks, count = 1;
    if (c->vlm_plan && hbp_vlm_plan_get_summary(c->context, c->vlm_plan, &vlm) >= 0)
        rows = (int64_t)2 * vlm.replicas * vlm.stages * vlm.virtual_stages; /* forward and backward */
    while (first + count < view->steps && count < USUAL_STEPS &&
           (view->step_offsets[first + count + 1] - view->step_offsets[first]) <= USUAL_PACKS / rows)
        count++;
    return count;
}

static int find_steps(cli *c, const hbp_plan_view *view, range *shown_steps)
{
    hbp_plan_summary s = {.struct_size = sizeof s};
    CLI_TRY(c, hbp_plan_get_summary(c->context, c->plan, &s));
    int64_t first = c->step < 0 ? 0 : c->step - s.first_step, end;
    int is_usual = c->steps_text == NULL;
    if (is_usual && c->timeline && c->step < 0)
        first = first_measured(c);
    int wrong = cli_find_steps(c, s.first_step, view->steps, &first, &end);
    if (wrong)
        return wrong;
    *shown_steps =
        (range){first, is_usual ? usual_steps(c, view, first) : end - first, s.first_step, is_usual};
    return 0;
}

/* What the options say, else what the plan file has: where it has none, packs are shown whole. */
static int find_cost(cli *c)
{
    if (c->vlm_plan && (c->cost_file || c->model_text || c->machine_text))
        return cli_usage("--cost, --model and --machine are for packs; %s has its layers' times", c->file);
    if (c->vlm_plan)
        return 0;
    if (c->cost_file || c->model_text || c->machine_text) {
        CLI_TRY(c, cli_make_cost(c));
        return 0;
    }
    hbp_status status = hbp_cost_load(c->context, c->file, &c->cost);
    if (status < 0 && status != HBP_E_FORMAT)
        return cli_failed(c);
    return 0;
}

/* "20 of 101 steps from step 0 on (--steps all shows all)" */
static void print_written(const cli *c, const hbp_plan_view *view, const range *r, int64_t measured_steps)
{
    say("wrote %s: ", show_name(c->output).s);
    if (r->count < view->steps && r->is_usual)
        say("%s of %s from step %lld on (--steps N, A:B or all shows others)", show_count(r->count).s,
            show_number(view->steps, "step").s, (long long)(r->first_step + r->first));
    else
        say("%s", show_number(r->count, "step").s);
    if (c->timeline)
        say(r->is_usual ? ", %s measured in all" : ", %s of them measured", show_count(measured_steps).s);
    say("; open it at ui.perfetto.dev\n");
    if (!c->cost && !c->vlm_plan)
        say("packs are shown whole: %s holds no cost; --cost, or --model and --machine, shows their parts\n",
            show_name(c->file).s);
}

static json_t *written_json(const cli *c, const hbp_plan_view *view, const range *r)
{
    return json_pack("{s:o,s:I,s:I,s:I,s:b}", "path", json_path(c->output), "first_step",
                     (json_int_t)(r->first_step + r->first), "steps", (json_int_t)r->count, "plan_steps",
                     (json_int_t)view->steps, "parts", c->cost != NULL);
}

/* How far off predictions are: over the steps that were asked for, or all that were measured. */
static int tell_measured(cli *c, const hbp_plan_view *view, const range *r)
{
    measured m = {0};
    int failed = compare_measured(c, r->is_usual ? 0 : r->first, r->is_usual ? view->steps : r->count, &m);
    if (failed)
        return failed;
    if (c->json) {
        json_t *more = json_pack("{s:I,s:I,s:f,s:f,s:f,s:f,s:I,s:I}", "measured_packs", (json_int_t)m.packs,
                                 "measured_steps", (json_int_t)m.steps, "median_pack_error", m.pack_median,
                                 "p95_pack_error", m.pack_p95, "median_step_error", m.step_median,
                                 "p95_step_error", m.step_p95, "measured_ns", (json_int_t)m.measured_ns,
                                 "predicted_ns", (json_int_t)m.predicted_ns);
        c->result = written_json(c, view, r);
        json_object_update(c->result, more);
        json_decref(more);
        return cli_print_json(c);
    }
    print_written(c, view, r, m.steps);
    if (!m.packs)
        return 0;
    say("predictions are off by %s in the median and %s at the 95th percentile of %s, "
        "by %s and %s of the steps' sums of slowest packs: %s measured, %s predicted\n",
        show_share(m.pack_median).s, show_share(m.pack_p95).s, show_number(m.packs, "pack").s,
        show_share(m.step_median).s, show_share(m.step_p95).s, show_time((double)m.measured_ns).s,
        show_time((double)m.predicted_ns).s);
    return 0;
}

int cli_trace(cli *c)
{
    static const job_part parts[] = {{"tracing", 100, "load 40, trace 60"}, {NULL, 0, NULL}};
    int wrong = cli_check_steps(c);
    if (wrong)
        return wrong;
    progress_begin(parts);
    const cli_object *object = cli_find_object(c);
    if (object) {
        wrong = cli_load_object(c, object);
        return wrong ? wrong : object->trace(c);
    }
    if (c->schedule_file)
        return cli_usage("--schedule is for runs of tasks");
    CLI_TRY(c, cli_load_plan(c));
    if (c->measured_file)
        CLI_TRY(c, hbp_timeline_load(c->context, c->measured_file, &c->timeline));
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(c->plan, &view);
    range r;
    wrong = find_steps(c, &view, &r);
    if (!wrong)
        wrong = find_cost(c);
    if (wrong)
        return wrong;
    const hbp_trace_options options = {.struct_size = sizeof options,
                                       .first_step = r.first,
                                       .steps = r.count,
                                       .timeline = c->timeline,
                                       .cost = c->cost};
    CLI_TRY(c, c->vlm_plan && !c->timeline ? hbp_vlm_plan_trace(c->context, c->vlm_plan, c->output, &options)
                                           : hbp_plan_trace(c->context, c->plan, c->output, &options));
    cli_finish_progress();
    if (c->timeline)
        return tell_measured(c, &view, &r);
    if (c->json) {
        c->result = written_json(c, &view, &r);
        return cli_print_json(c);
    }
    print_written(c, &view, &r, 0);
    return 0;
}
