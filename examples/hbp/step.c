#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"
#include "options.h"
#include "step_settings.h"

#ifdef HBP_COMMAND_GLPK
#include <hbp/glpk.h>
#endif

/* One way of planning the step and what it came to; `failed` keeps the library's message. */
typedef struct way {
    const char *method;
    int64_t tokens_per_rank; /* the best one, where settings were swept; else 0 */
    int32_t sp;              /* the same of static SP */
    int32_t least_sp;        /* of Megatron's two; else 0 */
    int32_t buckets;         /* of the published planner, -1: none; else 0 */
    char failed[256];
    double seconds;
    double idle;
    hbp_plan_summary summary;
} way;

#define ONE(id, name, paper, text) +1
enum { WAYS = HBP_STEP_METHODS(ONE) };
#undef ONE

/* What one micro-batch is made of. */
typedef struct micro_batch {
    shown groups; /* as the paper writes them */
    int64_t sequences;
    int64_t tokens;
    int64_t longest;
    int32_t recompute; /* most layers of a group */
    int64_t ns;
    double busy; /* rank-time of packs, ns */
    double idle; /* NaN where its ranks do not all wait for one another */
} micro_batch;

/* Groups with samples by descending degree: <32,16,8x2>. `packs` of them, from row `first` on. */
static shown show_groups(const hbp_plan *plan, int64_t first, int64_t end)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    shown text = {"<"};
    size_t at = 1;
    for (int32_t last = INT32_MAX; at < sizeof text.s - 32;) {
        int32_t degree = 0;
        int64_t count = 0;
        for (int64_t p = first; p < end; p++)
            if (view.pack_offsets[p + 1] > view.pack_offsets[p] && view.pack_sp[p] < last &&
                view.pack_sp[p] >= degree) {
                count = view.pack_sp[p] == degree ? count + 1 : 1;
                degree = view.pack_sp[p];
            }
        if (!count)
            break;
        at += (size_t)snprintf(text.s + at, sizeof text.s - at, at > 1 ? ",%d" : "%d", (int)degree);
        if (count > 1)
            at += (size_t)snprintf(text.s + at, sizeof text.s - at, "x%lld", (long long)count);
        last = degree;
    }
    text.s[at] = '>';
    text.s[at + 1] = 0;
    return text;
}

static micro_batch describe(const hbp_plan *plan, const hbp_plan_summary *s, int64_t m)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int64_t first = view.micro_batch_offsets[m], end = view.micro_batch_offsets[m + 1];
    micro_batch b = {.groups = show_groups(plan, first, end),
                     .sequences = view.pack_offsets[end] - view.pack_offsets[first],
                     .ns = view.micro_batch_ns[m]};
    for (int64_t p = first; p < end; p++) {
        if (view.pack_offsets[p + 1] == view.pack_offsets[p])
            continue;
        b.tokens += view.pack_tokens[p];
        b.recompute = view.pack_recompute[p] > b.recompute ? view.pack_recompute[p] : b.recompute;
        b.busy += (double)view.pack_sp[p] * (double)view.pack_ns[p];
    }
    for (int64_t i = view.pack_offsets[first]; i < view.pack_offsets[end]; i++)
        b.longest = view.sample_tokens[i] > b.longest ? view.sample_tokens[i] : b.longest;
    b.idle = b.ns > 0 ? 1 - b.busy / ((double)s->ranks * (double)b.ns) : 0;
    if (s->lockstep_ranks)
        b.idle = NAN;
    return b;
}

/* A file of an epoch is more likely than a step of so many samples. */
#define LARGE_STEP 65536

static void warn_of_size(const cli *c, int64_t samples)
{
    if (samples > LARGE_STEP)
        fprintf(
            stderr,
            "hbp: warning: %s samples of %s are planned as one step; --samples-per-step N takes N of them, "
            "hbp plan makes steps of all\n",
            show_count(samples).s, show_input(c->file).s);
}

/* What the step holds in the place of the whole file; *longest gets the longest of the file. */
static hbp_status cut_batch(cli *c, int64_t *longest)
{
    hbp_lengths_summary s = {.struct_size = sizeof s};
    hbp_status status = hbp_lengths_get_summary(c->context, c->lengths, &s);
    if (status < 0)
        return status;
    *longest = s.max_length;
    if (!c->samples_per_step)
        warn_of_size(c, s.samples - c->skip);
    return cli_cut_lengths(c, c->file);
}

/* "A:B", "A:", ":B", or "A" for exactly A. */
static int parse_range(const char *text, hbp_step_options *options)
{
    char *end;
    long long first = strtoll(text, &end, 10), last = first;
    int given = end > text;
    if (*end == ':') {
        const char *second = end + 1;
        first = given ? first : 0;
        last = strtoll(second, &end, 10);
        given |= end > second;
    }
    if (!given || *end || first < 0 || last < 0 || first > INT32_MAX || last > INT32_MAX)
        return cli_usage("--micro-batches is '%s'; it must be A:B, or A for exactly A", text);
    if (last > 0 && first > last)
        return cli_usage("--micro-batches is '%s'; it must not begin above its end", text);
    options->min_micro_batches = (int32_t)first;
    options->max_micro_batches = (int32_t)last;
    return 0;
}

static int read_options(cli *c, hbp_step_options *options)
{
    *options = (hbp_step_options){.struct_size = sizeof *options};
    options->method = cli_value_name("HBP_STEP_METHODS", c->method);
    options->exact = (int32_t)c->exact;
    options->effort = (int32_t)c->effort;
    options->any_degree = (int32_t)c->any_degree;
    options->recompute = (int32_t)c->recompute;
    options->micro_batch_multiple = (int32_t)c->micro_batch_multiple;
    options->sequence_multiple = c->sequence_multiple;
    options->pack_multiple = c->pack_multiple;
    options->time_limit_ms = c->time_limit;
    options->max_samples = (int32_t)c->max_samples;
    options->max_pack_length = c->max_pack_length;
    options->tokens_per_rank = c->tokens_per_rank;
    options->equal_samples = (int32_t)c->equal_samples;
    options->sequence_multiple_per_sp = c->sequence_multiple_per_sp;
    options->pack_multiple_per_sp = c->pack_multiple_per_sp;
    options->max_vision = c->max_vision;
    return c->micro_batches ? parse_range(c->micro_batches, options) : 0;
}

/* The same options for a step of one sample. */
static hbp_status plan_one(cli *c, const hbp_lengths *one, const void *options)
{
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(c->context, one, c->cost, options, &plan);
    hbp_plan_free(plan);
    return status;
}

/* Plans the step one way into c->plan, at the best settings of that way if `swept`. */
static hbp_status measure(cli *c, const hbp_step_options *given, int swept, way *w)
{
    hbp_step_options best = *given, *options = &best;
    hbp_status status = HBP_OK;
    w->method = options->method;
    if (swept && step_settings_swept(options->method)) {
        int is_static = strcmp(options->method, "static-sp") == 0;
        status = step_settings_plan(c->context, c->lengths, c->cost, options, &c->plan);
        hbp_plan_free(c->plan);
        c->plan = NULL;
        w->tokens_per_rank = strcmp(options->method, "hybrid-cp") == 0 ? options->sequence_tokens_per_rank
                                                                       : options->tokens_per_rank;
        w->sp = is_static ? options->min_sp : 0;
        w->least_sp = is_static ? 0 : options->min_sp;
        w->buckets = options->buckets;
    }
    double start = cli_now();
    if (status >= 0)
        status = hbp_plan_step(c->context, c->lengths, c->cost, options, &c->plan);
    w->seconds = cli_now() - start;
    w->summary.struct_size = sizeof w->summary;
    if (status >= 0)
        status = hbp_plan_get_summary(c->context, c->plan, &w->summary);
    if (status < 0) {
        snprintf(w->failed, sizeof w->failed, "%s", cli_message(c));
        if (c->skip && status == HBP_E_INFEASIBLE)
            status = cli_own_failure("%s; it is counted from sample %lld of %s", w->failed,
                                     (long long)c->skip, c->file);
        return status;
    }
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    status = hbp_cost_get_terms(c->context, c->cost, &terms);
    double ns = (double)w->summary.ranks * ((double)w->summary.predicted_ns - round(terms.step_ns)), busy = 0;
    for (int64_t m = 0; m < w->summary.micro_batches; m++)
        busy += describe(c->plan, &w->summary, m).busy;
    w->idle = ns > 0 ? 1 - busy / ns : 0;
    return status;
}

static hbp_status save(cli *c)
{
    hbp_plan_save_options options = {.struct_size = sizeof options};
    options.cost = c->cost;
    options.note = c->note;
    return hbp_plan_save(c->context, c->plan, c->output, &options);
}

static json_t *way_json(const way *w)
{
    const hbp_plan_summary *s = &w->summary;
    if (w->failed[0])
        return json_pack("{s:s,s:s}", "method", w->method, "failed", w->failed);
    return json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:b,s:b,s:o,s:f}", "method", w->method, "digest",
                     show_digest(s->digest).s, "ranks", (json_int_t)s->ranks, "samples",
                     (json_int_t)s->samples, "tokens", (json_int_t)s->tokens, "micro_batches",
                     (json_int_t)s->micro_batches, "predicted_ns", (json_int_t)s->predicted_ns, "bound_ns",
                     json_known(s->bound_ns), "gap", json_number(s->gap), "complete", (int)s->complete,
                     "proven", (int)s->proven, "idle", json_number(w->idle), "planning_ms", w->seconds * 1e3);
}

static int print_json(cli *c, const way *w)
{
    json_t *rows = json_array();
    for (int64_t m = 0; m < w->summary.micro_batches; m++) {
        micro_batch b = describe(c->plan, &w->summary, m);
        json_array_append_new(rows,
                              json_pack("{s:s,s:I,s:I,s:I,s:i,s:I,s:o}", "groups", b.groups.s, "sequences",
                                        (json_int_t)b.sequences, "tokens", (json_int_t)b.tokens, "longest",
                                        (json_int_t)b.longest, "recompute", (int)b.recompute, "predicted_ns",
                                        (json_int_t)b.ns, "idle", json_number(b.idle)));
    }
    c->result = way_json(w);
    if (c->result) {
        json_object_set_new(c->result, "path", json_path(c->output));
        json_object_set_new(c->result, "groups", rows);
    }
    return cli_print_json(c);
}

static int print_text(const cli *c, const way *w)
{
    const hbp_plan_summary *s = &w->summary;
    say("%s, %s on %s\n\n", show_number(s->samples, "sample").s, show_number(s->tokens, "token").s,
        show_gpus(s).s);
    table t;
    table_begin(&t, 8,
                (const char *[]){"micro-batch", "<groups", "samples", "tokens", "-longest",
                                 "-recomputed layers", "time", "idle"});
    for (int64_t m = 0; m < s->micro_batches; m++) {
        micro_batch b = describe(c->plan, s, m);
        table_add_text(&t, show_count(m));
        table_add_text(&t, b.groups);
        table_add_text(&t, show_count(b.sequences));
        table_add_text(&t, show_count(b.tokens));
        table_add_text(&t, show_count(b.longest));
        table_add(&t, "%d", (int)b.recompute);
        table_add_text(&t, show_time((double)b.ns));
        table_add_text(&t, s->lockstep_ranks ? show_real("-", 0) : show_share(b.idle));
    }
    table_end(&t);
    say("\npredicted %s", show_time((double)s->predicted_ns).s);
    if (s->proven)
        say(", the best there can be %s", show_conditions(s).s);
    else if (s->bound_ns > 0)
        say(", at most %s above the best there can be %s (%s)", show_share(s->gap).s, show_conditions(s).s,
            show_time((double)s->bound_ns).s);
    say("; idle %s; planned in %s\n", show_share(w->idle).s, show_time(w->seconds * 1e9).s);
    if (!s->complete)
        say("a limit cut the search short\n");
    if (c->output)
        say("wrote %s, digest %s\n", show_name(c->output).s, show_digest(s->digest).s);
    return 0;
}

static int print_ways_json(cli *c, const way *ways, int64_t bound_ns)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < WAYS; i++) {
        json_t *row = way_json(&ways[i]);
        if (row && !ways[i].failed[0]) {
            json_object_set_new(
                row, "ratio",
                json_number((double)ways[i].summary.predicted_ns / (double)ways[0].summary.predicted_ns));
            json_object_set_new(row, "tokens_per_rank", json_integer(ways[i].tokens_per_rank));
            json_object_set_new(row, "sp", json_integer(ways[i].sp));
            json_object_set_new(row, "min_sp", json_integer(ways[i].least_sp));
            json_object_set_new(row, "buckets", json_integer(ways[i].buckets));
        }
        json_array_append_new(list, row);
    }
    c->result = json_pack("{s:o,s:o}", "bound_ns", json_known(bound_ns), "methods", list);
    return cli_print_json(c);
}

/* The settings that a way was given, its best: "SP 16, 12,288 a rank". */
static shown show_settings(const way *w)
{
    shown text = {""}, tokens = show_count(w->tokens_per_rank);
    if (!w->tokens_per_rank)
        return show_real("-", 0);
    if (w->sp)
        snprintf(text.s, sizeof text.s, "SP %d, %.20s a rank", (int)w->sp, tokens.s);
    else if (w->buckets)
        snprintf(text.s, sizeof text.s, "%.4s buckets, %.12s a rank",
                 w->buckets < 0 ? "no" : show_count(w->buckets).s, tokens.s);
    else if (w->least_sp > 1)
        snprintf(text.s, sizeof text.s, "SP >= %d, %.16s a rank", (int)w->least_sp, tokens.s);
    else
        snprintf(text.s, sizeof text.s, "%.20s a rank", tokens.s);
    return text;
}

static void print_ways(const way *ways, int64_t bound_ns, int is_exact)
{
    table t;
    table_begin(&t, 8,
                (const char *[]){"<method", "-<best settings", "step", "x search", "gap", "-micro-batches",
                                 "idle", "-planned in"});
    for (int32_t i = 0; i < WAYS; i++) {
        const hbp_plan_summary *s = &ways[i].summary;
        table_add(&t, "%s", ways[i].method);
        if (ways[i].failed[0]) {
            for (int k = 1; k < 8; k++)
                table_add(&t, "-");
            continue;
        }
        double ns = (double)s->predicted_ns;
        table_add_text(&t, show_settings(&ways[i]));
        table_add_text(&t, show_compared_time(ns));
        table_add_text(&t, show_real("%.3f", ns / (double)ways[0].summary.predicted_ns));
        table_add_text(&t, bound_ns > 0 ? show_share(ns / (double)bound_ns - 1) : show_real("-", 0));
        table_add_text(&t, show_count(s->micro_batches));
        table_add_text(&t, show_share(ways[i].idle));
        table_add_text(&t, show_time(ways[i].seconds * 1e9));
    }
    table_end(&t);
    for (int32_t i = 0; i < WAYS; i++)
        if (ways[i].failed[0])
            say("  %s: %s\n", ways[i].method, ways[i].failed);
    int is_swept = 0;
    for (int32_t i = 0; i < WAYS; i++)
        is_swept |= ways[i].tokens_per_rank > 0;
    if (is_swept)
        say("\nbest settings: swept were tokens a rank by all methods but search%s, static-sp's degree "
            "and the least degree "
            "of hybrid-cp and dynamic-cp%s.\n",
            is_exact ? " and flexsp" : "",
            is_exact ? "; flexsp has 16 buckets, as published"
                     : "; of flexsp also its buckets: 16 as published, 64 and none");
    if (bound_ns > 0)
        say("\nNo plan of this step takes less than %s %s.\n", show_compared_time((double)bound_ns).s,
            show_conditions(&ways[0].summary).s);
}

static int compare(cli *c, hbp_step_options *options)
{
    way ways[WAYS] = {{0}};
    job_part parts[WAYS + 1] = {{0}};
    for (int i = 0; i < WAYS; i++)
        parts[i] = (job_part){cli_value_name("HBP_STEP_METHODS", i), 1, i ? NULL : "step 100"};
    progress_begin(parts);
    for (int i = 0; i < WAYS; i++) {
        progress_part(i);
        options->method = cli_value_name("HBP_STEP_METHODS", i);
        options->exact =
            c->exact && (i == 0 || strcmp(options->method, "flexsp") == 0); /* others have none */
        hbp_status status = measure(c, options, 1, &ways[i]);
        hbp_plan_free(c->plan);
        c->plan = NULL;
        if (i == 0)
            CLI_TRY(c, cli_as_options(c, status, plan_one, options));
        if (status == HBP_E_CANCELLED)
            return cli_failed(c);
    }
    int64_t bound_ns = ways[0].summary.bound_ns;
    cli_finish_progress();
    if (c->json)
        return print_ways_json(c, ways, bound_ns);
    print_ways(ways, bound_ns, c->exact != 0);
    return 0;
}

int cli_step(cli *c)
{
    hbp_step_options options;
    way w = {0};
    int wrong = read_options(c, &options);
    if (wrong)
        return wrong;
#ifdef HBP_COMMAND_GLPK
    if (c->exact)
        CLI_TRY(c, hbp_context_set_solver(c->context, hbp_glpk_solver()));
#else
    if (c->exact)
        return cli_error("--exact needs libhbp-glpk, and this hbp was built without it");
#endif
    static const job_part parts[] = {
        {"reading", 5, "read 100"}, {"planning", 95, "step 60, bound 40x40"}, {NULL, 0, NULL}};
    progress_begin(parts);
    CLI_TRY(c, cli_make_cost(c));
    CLI_TRY(c, cli_try_options(c, plan_one, &options));
    CLI_TRY(c, cli_read_lengths(c, c->file));
    CLI_TRY(c, cut_batch(c, &options.longest_tokens));
    if (c->compare)
        return compare(c, &options);
    progress_part(1);
    CLI_TRY(c, cli_as_options(c, measure(c, &options, 0, &w), plan_one, &options));
    if (c->output)
        CLI_TRY(c, save(c));
    cli_finish_progress();
    return c->json ? print_json(c, &w) : print_text(c, &w);
}
