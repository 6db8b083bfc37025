/* A cost from what a run measured: how far the prior is off, how far the fit, and what became of each term.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "hbp/io.h"
#include "options.h"

/* A run's times against a prior and what was fitted to them. */
typedef struct fitting {
    hbp_timeline_columns columns;
    hbp_cost_terms prior;
    hbp_cost_terms fitted;
    hbp_timeline_report before;
    hbp_timeline_report after;
    hbp_fit_report report;
} fitting;

#define TERM(name)                                                                                           \
    {                                                                                                        \
#name, offsetof(hbp_cost_terms, name)                                                                \
    }

/* What a fit may change. */
static const struct {
    const char *name;
    size_t offset;
} numbers[] = {TERM(ns_per_token),     TERM(ns_per_token_squared),
               TERM(recompute_linear), TERM(recompute_attention),
               TERM(pack_ns),          TERM(traffic_ns),
               TERM(step_ns),          TERM(static_bytes),
               TERM(activation_bytes), TERM(recomputed_bytes),
               TERM(working_bytes),    TERM(logits_bytes),
               TERM(sp_buffer_bytes)},
  tables[] = {TERM(sp_latency_ns), TERM(sp_ns_per_token)};
#undef TERM

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static double number_of(const hbp_cost_terms *terms, int i)
{
    double value;
    memcpy(&value, (const char *)terms + numbers[i].offset, sizeof value);
    return value;
}

static double row_of(const hbp_cost_terms *terms, int i, int32_t row)
{
    const double *rows;
    memcpy(&rows, (const char *)terms + tables[i].offset, sizeof rows);
    return rows[row];
}

/* Whether `text` holds the first `length` characters of `part`, capitals or not. */
static int holds(const char *text, const char *part, size_t length)
{
    for (; *text; text++) {
        size_t k = 0;
        while (k < length && tolower((unsigned char)text[k]) == tolower((unsigned char)part[k]))
            k++;
        if (k == length)
            return 1;
    }
    return length == 0;
}

/* "h100" is an "NVIDIA H100 80GB HBM3", "a100-80" an "NVIDIA A100-SXM4-80GB". */
static int is_same_device(const char *machine, const char *device)
{
    return holds(device, machine, strcspn(machine, "-: ")) || holds(machine, device, strlen(device));
}

static const char *other_device(const cli *c, const fitting *f)
{
    const char *machine = hbp_cost_get_machine_name(c->cost);
    return f->columns.device && machine[0] && !is_same_device(machine, f->columns.device) ? machine : NULL;
}

static hbp_status compare(cli *c, const hbp_cost *cost, hbp_timeline_report *report)
{
    *report = (hbp_timeline_report){.struct_size = sizeof *report};
    return hbp_timeline_compare(c->context, c->timeline, cost, report);
}

static hbp_status save(cli *c, const fitting *f)
{
    hbp_cost_file_options options = {.struct_size = sizeof options};
    /* The text says more than the name of a model with fields replaced. */
    if (c->model && strcmp(hbp_model_get_name(c->model), "custom") == 0)
        options.model = c->model_text;
    options.machine = f->columns.device;
    options.note = c->note;
    return hbp_cost_save(c->context, c->fitted, c->output, &options);
}

static json_t *errors_json(const hbp_timeline_report *r)
{
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:I}", "median_pack_error", r->median_pack_error,
                     "p95_pack_error", r->p95_pack_error, "max_pack_error", r->max_pack_error,
                     "median_step_error", r->median_step_error, "p95_step_error", r->p95_step_error,
                     "max_step_error", r->max_step_error, "median_bytes_error", r->median_bytes_error,
                     "max_bytes_error", r->max_bytes_error, "predicted_ns", (json_int_t)r->predicted_ns);
}

static json_t *table_json(const hbp_cost_terms *terms, int i)
{
    json_t *list = json_array();
    for (int32_t row = 0; row < terms->degrees; row++)
        json_array_append_new(list, json_number(row_of(terms, i, row)));
    return list;
}

static void put_term(const cli *c, json_t *terms, const char *name, json_t *prior, json_t *value)
{
    json_object_set_new(terms, name,
                        json_pack("{s:o,s:s,s:o,s:s}", "prior", prior, "prior_source",
                                  hbp_cost_get_source(c->cost, name), "value", value, "source",
                                  hbp_cost_get_source(c->fitted, name)));
}

static int print_json(cli *c, const fitting *f)
{
    json_t *terms = json_object();
    json_t *degrees = json_array();
    for (int i = 0; i < COUNT(numbers); i++)
        put_term(c, terms, numbers[i].name, json_number(number_of(&f->prior, i)),
                 json_number(number_of(&f->fitted, i)));
    for (int i = 0; i < COUNT(tables); i++)
        put_term(c, terms, tables[i].name, table_json(&f->prior, i), table_json(&f->fitted, i));
    for (int32_t row = 0; row < f->fitted.degrees; row++)
        json_array_append_new(degrees, json_integer(f->fitted.degree[row]));
    c->result = json_pack(
        "{s:o,s:o,s:o,s:i,s:I,s:I,s:I,s:i,s:s,s:f,s:f,s:o,s:o,s:o,s:o}", "path", json_path(c->output),
        "device", json_path(f->columns.device), "date", json_path(f->columns.date), "ranks",
        (int)f->columns.ranks, "packs", (json_int_t)f->after.packs, "steps", (json_int_t)f->after.steps,
        "measured_ns", (json_int_t)f->after.measured_ns, "terms_fitted", (int)f->report.terms_fitted, "times",
        cli_value_name("HBP_FIT", f->report.times), "held_out_time_error", f->report.held_out_time_error,
        "scaled_time_error", f->report.scaled_time_error, "prior", errors_json(&f->before), "fitted",
        errors_json(&f->after), "degree", degrees, "terms", terms);
    return cli_print_json(c);
}

static void add_errors(table *t, const char *name, double median, double p95, double max)
{
    table_add(t, "%s", name);
    table_add_text(t, show_share(median));
    table_add_text(t, p95 < 0 ? show_real("-", 0) : show_share(p95));
    table_add_text(t, show_share(max));
}

static void add_report(table *t, const hbp_timeline_report *r, int bytes, const char *const names[3])
{
    add_errors(t, names[0], r->median_pack_error, r->p95_pack_error, r->max_pack_error);
    add_errors(t, names[1], r->median_step_error, r->p95_step_error, r->max_step_error);
    if (bytes)
        add_errors(t, names[2], r->median_bytes_error, -1, r->max_bytes_error);
}

static void add_term(const cli *c, table *t, const char *shown_name, const char *name, double prior,
                     double value)
{
    table_add(t, "%s", shown_name);
    table_add_text(t, show_real("%.6g", prior));
    table_add_text(t, show_real("%.6g", value));
    table_add(t, "%s", hbp_cost_get_source(c->fitted, name));
}

/* Whether packs held out are predicted better by what was fitted. */
static void say_times(const hbp_fit_report *r)
{
    if (r->held_out_time_error <= 0 && r->scaled_time_error <= 0)
        return;
    const shown prior = show_share(r->prior_median_time_error), fit = show_share(r->held_out_time_error),
                scaled = show_share(r->scaled_time_error);
    if (r->held_out_time_error < 0) {
        say("\nthe prior's times are kept%s: fits to parts of the packs were refused\n",
            r->times == HBP_FIT_SCALED ? ", scaled" : "");
        return;
    }
    if (r->times == HBP_FIT_PACKS)
        say("\npacks held out are predicted within %s by what was fitted to the others, within %s by the "
            "prior "
            "(medians)\n",
            fit.s, prior.s);
    else
        say("\nthe prior's times are kept%s: packs held out are predicted within %s by a fit to the others, "
            "within %s by the prior%s (medians). Was the machine busy?\n",
            r->times == HBP_FIT_SCALED ? ", scaled" : "", fit.s,
            r->times == HBP_FIT_SCALED ? scaled.s : prior.s, r->times == HBP_FIT_SCALED ? " scaled" : "");
}

static void print_text(const cli *c, const fitting *f)
{
    const int bytes = f->columns.peak_bytes != NULL;
    say("%s of %s on %s%s%s, %s fitted\n\n", show_number(f->after.packs, "pack").s,
        show_number(f->after.steps, "step").s, show_number(f->columns.ranks, "rank").s,
        f->columns.device ? " of " : "", f->columns.device ? f->columns.device : "",
        show_number(f->report.terms_fitted, "term").s);
    table t;
    table_begin(&t, 4, (const char *[]){"<relative error of", "median", "95 %", "largest"});
    add_report(&t, &f->before, bytes,
               (const char *const[]){"packs, prior", "steps, prior", "peak bytes, prior"});
    add_report(&t, &f->after, bytes,
               (const char *const[]){"packs, fitted", "steps, fitted", "peak bytes, fitted"});
    table_end(&t);
    say_times(&f->report);
    say("\n");
    table_begin(&t, 4, (const char *[]){"<term", "prior", "fitted", "<source"});
    for (int i = 0; i < COUNT(numbers); i++)
        add_term(c, &t, numbers[i].name, numbers[i].name, number_of(&f->prior, i), number_of(&f->fitted, i));
    for (int i = 0; i < COUNT(tables); i++)
        for (int32_t row = 1; row < f->fitted.degrees; row++) {
            char name[48];
            snprintf(name, sizeof name, "%s, SP %d", tables[i].name, (int)f->fitted.degree[row]);
            add_term(c, &t, name, tables[i].name, row_of(&f->prior, i, row), row_of(&f->fitted, i, row));
        }
    table_end(&t);
    if (c->output)
        say("\nwrote %s; hbp plan --cost %s plans with it\n", show_name(c->output).s, show_name(c->output).s);
    else
        say("\n-o FILE writes the cost\n");
}

enum { MOST_ANCHORS = 64 };

/* The runs of --anchor, with ; between them; returns their number, or -1 and why in *status. */
static int read_anchors(const cli *c, hbp_anchor *anchors, hbp_status *status)
{
    char text[512];
    int count = 0;
    for (const char *at = c->anchor; *at; at += strcspn(at, ";"), at += *at == ';') {
        const size_t length = strcspn(at, ";");
        if (count == MOST_ANCHORS || length >= sizeof text) {
            *status = cli_own_usage("--anchor has over %d runs, or one of over %d characters", MOST_ANCHORS,
                                    (int)sizeof text - 1);
            return -1;
        }
        memcpy(text, at, length);
        text[length] = '\0';
        anchors[count] = (hbp_anchor){.struct_size = sizeof *anchors};
        *status = cli_as_usage(c, hbp_anchor_read(c->context, text, &anchors[count]));
        if (*status < 0)
            return -1;
        count++;
    }
    return count;
}

/* What a run that a cost is scaled to says. */
typedef struct scaling {
    double scale; /* of all times */
    double least; /* of several runs' scales, and the greatest */
    double most;
    int runs;
    hbp_anchor anchor;
} scaling;

/* The times of a cost over those of the one that it was scaled from. */
static hbp_status find_scale(cli *c, const hbp_cost *scaled, double *scale)
{
    hbp_cost_terms before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    hbp_status status = hbp_cost_get_terms(c->context, c->cost, &before);
    if (status >= 0)
        status = hbp_cost_get_terms(c->context, scaled, &after);
    *scale = before.ns_per_token > 0 ? after.ns_per_token / before.ns_per_token : 1;
    return status;
}

/* A run that the cost has not memory for was made otherwise than it says, most likely with layers recomputed.
 */
static void warn_of_memory(cli *c, const hbp_anchor *a)
{
    hbp_cost_terms t = {.struct_size = sizeof t};
    const int32_t sp = a->sp ? a->sp : 1;
    const int64_t sequences = a->sequences_per_micro_batch ? a->sequences_per_micro_batch : 1;
    const int64_t tokens = a->sequence_tokens * sequences;
    const int64_t bytes = hbp_cost_predict_pack_bytes(c->cost, sp, a->recompute, tokens, 0);
    if (hbp_cost_get_terms(c->context, c->cost, &t) < 0 || bytes <= t.limit_bytes)
        return;
    const int32_t layers = hbp_cost_predict_recompute(c->cost, sp, tokens);
    fprintf(
        stderr,
        "hbp: warning: --anchor: with recompute %d that run needs %s on each GPU, more than the %s there are",
        (int)a->recompute, show_bytes((double)bytes).s, show_bytes((double)t.limit_bytes).s);
    if (layers > 0)
        fprintf(stderr, "; with recompute %d it fits", (int)layers);
    fprintf(stderr, "\n");
}

/* The cost scaled to the run that --anchor gives, of several to the one whose scale is the middle one, in the
 * cost's place. */
static hbp_status scale_cost(cli *c, scaling *found)
{
    static hbp_anchor anchors[MOST_ANCHORS];
    double sorted[MOST_ANCHORS];
    hbp_status status = HBP_OK;
    hbp_cost *scaled = NULL;
    const int count = read_anchors(c, anchors, &status);
    if (count < 0)
        return status;
    if (!count)
        return cli_own_usage("--anchor is empty; a run is tokens_per_s_per_gpu=5600,sequence_tokens=8K");
    for (int i = 0; i < count; i++) {
        int k = i;
        status = cli_as_usage(c, hbp_cost_anchor(c->context, c->cost, &anchors[i], &scaled));
        double scale = 1;
        if (status >= 0)
            status = find_scale(c, scaled, &scale);
        hbp_cost_free(scaled);
        scaled = NULL;
        if (status < 0)
            return status;
        const hbp_anchor anchor = anchors[i];
        for (; k > 0 && sorted[k - 1] > scale; k--) {
            sorted[k] = sorted[k - 1];
            anchors[k] = anchors[k - 1];
        }
        sorted[k] = scale;
        anchors[k] = anchor;
    }
    *found =
        (scaling){sorted[(count - 1) / 2], sorted[0], sorted[count - 1], count, anchors[(count - 1) / 2]};
    warn_of_memory(c, &found->anchor);
    status = hbp_cost_anchor(c->context, c->cost, &anchors[(count - 1) / 2], &scaled);
    if (status < 0)
        return status;
    hbp_cost_free(c->cost);
    c->cost = scaled;
    return HBP_OK;
}

/* --anchor without a timeline: all times scaled. */
static int print_scaled(cli *c, const scaling *s)
{
    const fitting none = {.report = {.struct_size = sizeof none.report}};
    c->fitted = c->cost;
    c->cost = NULL;
    if (c->output)
        CLI_TRY(c, save(c, &none));
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:o,s:f}", "path", json_path(c->output), "scale", s->scale);
        return cli_print_json(c);
    }
    say("all times x %.4g, memory as it was: %s, %.6g predicted before\n", s->scale,
        hbp_cost_get_source(c->fitted, "ns_per_token"), s->anchor.tokens_per_s_per_gpu * s->scale);
    if (s->runs > 1)
        say("of %d runs, whose scales are %.4g to %.4g, the middle one, of an even number the lower\n",
            s->runs, s->least, s->most);
    if (c->output)
        say("wrote %s; hbp plan --cost %s plans with it\n", show_name(c->output).s, show_name(c->output).s);
    else
        say("-o FILE writes the cost\n");
    return 0;
}

int cli_fit(cli *c)
{
    static const job_part parts[] = {{"fitting", 100, "timeline 50, fit 50"}, {NULL, 0, NULL}};
    scaling scaled = {.scale = 1};
    progress_begin(parts);
    fitting f = {.report = {.struct_size = sizeof f.report}};
    if (c->file)
        CLI_TRY(c, hbp_timeline_load(c->context, c->file, &c->timeline));
    CLI_TRY(c, cli_make_cost(c));
    if (c->anchor)
        CLI_TRY(c, scale_cost(c, &scaled));
    if (!c->file)
        return print_scaled(c, &scaled);
    f.columns = (hbp_timeline_columns){.struct_size = sizeof f.columns};
    CLI_TRY(c, hbp_timeline_get_columns(c->context, c->timeline, &f.columns));
    hbp_measurements measurements = {.struct_size = sizeof measurements};
    CLI_TRY(c, hbp_timeline_get_measurements(c->context, c->timeline, &measurements));
    hbp_fit_report report = {.struct_size = sizeof report};
    CLI_TRY(c, hbp_cost_fit(c->context, c->cost, &measurements, &c->fitted, &report));
    f.report = report;
    CLI_TRY(c, compare(c, c->cost, &f.before));
    CLI_TRY(c, compare(c, c->fitted, &f.after));
    f.prior = (hbp_cost_terms){.struct_size = sizeof f.prior};
    f.fitted = (hbp_cost_terms){.struct_size = sizeof f.fitted};
    CLI_TRY(c, hbp_cost_get_terms(c->context, c->cost, &f.prior));
    CLI_TRY(c, hbp_cost_get_terms(c->context, c->fitted, &f.fitted));
    if (c->output)
        CLI_TRY(c, save(c, &f));
    cli_finish_progress();
    const char *other = other_device(c, &f);
    if (other)
        fprintf(stderr, "hbp: warning: %s was measured on '%s'; the prior is of '%s'\n", show_name(c->file).s,
                f.columns.device, other);
    if (c->json)
        return print_json(c, &f);
    print_text(c, &f);
    return 0;
}
