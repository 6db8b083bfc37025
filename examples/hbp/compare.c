#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "epoch_settings.h"
#include "options.h"

/* One way of batching, at its best settings, and what it came to; `failed` keeps the library's message. */
typedef struct way {
    const char *name;
    char failed[256];
    double seconds; /* to plan, the sweep included */
    epoch_setting setting;
    hbp_plan_summary summary;
    hbp_report report;
} way;

/* FlexSP takes some 75 ms for a step of 512 samples on 32 GPUs. */
#define FLEXSP_STEPS 512

#define ONE(id, name, paper, text) +1
enum { WAYS = HBP_EPOCH_METHODS(ONE), COLUMNS = 11 };
#undef ONE

/* Plans the epoch by the options' method, at its best settings unless it is this library's, and measures it.
 */
static hbp_status measure(cli *c, const hbp_epoch_options *options, way *w)
{
    double start = cli_now();
    hbp_status status =
        strcmp(options->method, "search") == 0
            ? cli_plan_epoch(c, options)
            : epoch_settings_plan(c->context, c->lengths, c->cost, options, &w->setting, &c->plan);
    w->seconds = cli_now() - start;
    w->report = (hbp_report){.struct_size = sizeof w->report};
    w->summary.struct_size = sizeof w->summary;
    if (status >= 0)
        status = hbp_plan_get_summary(c->context, c->plan, &w->summary);
    if (status >= 0) {
        hbp_simulate_options simulate = {.struct_size = sizeof simulate};
        simulate.no_bound = 1;
        status = hbp_simulate(c->context, c->plan, c->cost, &simulate, &w->report);
    }
    hbp_plan_free(c->plan);
    c->plan = NULL;
    if (status < 0)
        snprintf(w->failed, sizeof w->failed, "%s", cli_message(c));
    return status;
}

static json_t *setting_json(const epoch_setting *s)
{
    return json_pack("{s:I,s:i,s:i,s:I,s:i}", "pack_length", (json_int_t)s->pack_length, "sp", (int)s->sp,
                     "recompute", (int)s->recompute, "tokens_per_rank", (json_int_t)s->tokens_per_rank,
                     "min_sp", (int)s->min_sp);
}

/* "131,072 SP 8 c 12", "9,600 a rank"; "-" for what chooses for itself. */
static shown show_setting(const epoch_setting *s)
{
    shown text = {"-"};
    if (s->pack_length)
        snprintf(text.s, sizeof text.s, "%.20s SP %d c %d", show_count(s->pack_length).s, (int)s->sp,
                 (int)s->recompute);
    else if (s->tokens_per_rank && s->min_sp > 1)
        snprintf(text.s, sizeof text.s, "SP >= %d, %.12s a rank", (int)s->min_sp,
                 show_count(s->tokens_per_rank).s);
    else if (s->tokens_per_rank)
        snprintf(text.s, sizeof text.s, "%.20s a rank", show_count(s->tokens_per_rank).s);
    return text;
}

static int print_json(cli *c, const way *ways, int64_t bound_ns)
{
    json_t *list = json_array();
    for (int i = 0; i < WAYS; i++) {
        const hbp_report *r = &ways[i].report;
        if (ways[i].failed[0]) {
            json_array_append_new(list,
                                  json_pack("{s:s,s:s}", "method", ways[i].name, "failed", ways[i].failed));
            continue;
        }
        double bound = bound_ns > 0 ? (double)r->epoch_ns / (double)bound_ns - 1 : 0;
        json_t *one = json_pack(
            "{s:s,s:I,s:o,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:f}", "method", ways[i].name, "epoch_ns",
            (json_int_t)r->epoch_ns, "ratio",
            json_number((double)r->epoch_ns / (double)ways[0].report.epoch_ns), "gap", json_number(bound),
            "steps", (json_int_t)r->steps, "padding", json_number(r->padding), "idle", json_number(r->idle),
            "abr", json_number(r->abr), "abr_paper", json_number(r->abr_paper), "dbr", json_number(r->dbr),
            "cr", json_number(r->cr), "tokens_per_s_per_gpu", json_number(r->tokens_per_s_per_gpu),
            "peak_bytes", (json_int_t)r->peak_bytes, "planning_seconds", ways[i].seconds);
        json_add_steps(one, r);
        if (one)
            json_object_set_new(one, "setting", setting_json(&ways[i].setting));
        json_array_append_new(list, one);
    }
    c->result = json_pack("{s:o,s:o}", "bound_ns", json_known(bound_ns), "methods", list);
    return cli_print_json(c);
}

/* Whether any way pads: without multiples none does. */
static int any_pads(const way *ways)
{
    int pads = 0;
    for (int i = 0; i < WAYS; i++)
        pads = pads || (!ways[i].failed[0] && ways[i].report.padding > 0);
    return pads;
}

/* The epoch that fills a bar: the longest, but no more than twice the shortest, past which all are far off.
 */
static double full_bar(const way *ways)
{
    double longest = 1, shortest = INFINITY;
    for (int i = 0; i < WAYS; i++) {
        double ns = (double)ways[i].report.epoch_ns;
        if (ways[i].failed[0])
            continue;
        longest = ns > longest ? ns : longest;
        shortest = ns < shortest ? ns : shortest;
    }
    return longest < 2 * shortest ? longest : 2 * shortest;
}

static void print_steps_of(const way *ways)
{
    table t;
    say("\nA step holds (5 %% of the steps, the median, 95 %%)\n\n");
    table_begin(&t, 8, (const char *[]){"<method", "samples", "", "", "tokens", "", "", "mixture"});
    for (int i = 0; i < WAYS; i++) {
        const hbp_report *r = &ways[i].report;
        if (ways[i].failed[0])
            continue;
        table_add(&t, "%s", ways[i].name);
        table_add_text(&t, show_count(r->step_samples_p5));
        table_add_text(&t, show_count(r->step_samples_median));
        table_add_text(&t, show_count(r->step_samples_p95));
        table_add_text(&t, show_count(r->step_tokens_p5));
        table_add_text(&t, show_count(r->step_tokens_median));
        table_add_text(&t, show_count(r->step_tokens_p95));
        table_add_text(&t, show_real("%.3f", r->mixture_distance));
    }
    table_end(&t);
}

static void print_text(const way *ways, int64_t fewest, int64_t bound_ns, const hbp_epoch_options *asked)
{
    char bar_header[32] = "#> 2 x";
    if (bound_ns > 0)
        snprintf(bar_header, sizeof bar_header, "#%s bound, > 2 x", bar_mark());
    const char *const headers[COLUMNS] = {
        "<method", "-<best settings", "epoch",  bar_header, "x this", "gap", "idle", "-ABR",
        "-CR",     "tokens/s/GPU",    "padding"};
    double full = full_bar(ways);
    table t;
    int pads = any_pads(ways), columns = COLUMNS - !pads;
    table_begin(&t, columns, headers);
    for (int i = 0; i < WAYS; i++) {
        const hbp_report *r = &ways[i].report;
        table_add(&t, "%s", ways[i].name);
        if (ways[i].failed[0]) {
            for (int k = 1; k < columns; k++)
                table_add(&t, "-");
            continue;
        }
        table_add_text(&t, show_setting(&ways[i].setting));
        table_add_text(&t, show_compared_time((double)r->epoch_ns));
        table_add_bar(&t, (double)r->epoch_ns / full, bound_ns > 0 ? (double)bound_ns / full : -1);
        table_add_text(&t, show_real("%.2f", (double)r->epoch_ns / (double)ways[0].report.epoch_ns));
        table_add_text(&t, bound_ns > 0 ? show_share((double)r->epoch_ns / (double)bound_ns - 1)
                                        : show_real("-", 0));
        table_add_text(&t, show_share(r->idle));
        table_add_text(&t, show_real("%.3f", r->abr));
        table_add_text(&t, show_real("%.3f", r->cr));
        table_add_text(&t, show_count((int64_t)r->tokens_per_s_per_gpu));
        if (pads)
            table_add_text(&t, show_share(r->padding));
    }
    table_end(&t);
    print_steps_of(ways);
    double slowest = 0;
    for (int i = 0; i < WAYS; i++) {
        slowest = i && ways[i].seconds > slowest ? ways[i].seconds : slowest;
        if (ways[i].failed[0])
            say("  %s: %s\n", ways[i].name, ways[i].failed);
    }
    say("\n");
    if (bound_ns > 0)
        say("No plan of these samples in %s or more takes less than %s on %s under this cost.\n",
            show_number(fewest, "step").s, show_compared_time((double)bound_ns).s,
            show_gpus(&ways[0].summary).s);
    say("This plan was made in %.2f s, the others, with the search for their best settings, in at most "
        "%.2f s.\n",
        ways[0].seconds, slowest);
    say("best settings: of packs their length, SP degree and recomputed layers (c), swept over all degrees; "
        "of hybrid-cp and dynamic-cp tokens a rank and the least SP degree; flexsp is as published, with "
        "16 buckets.\n"
        "idle: share of GPU time %s; ABR: attention balance ratio;\n"
        "CR: share of tokens in packs with sequence parallelism;\n"
        "mixture: how far a step's mixture of lengths is from the epoch's, 0 to 1.\n",
        ways[0].summary.lockstep_ranks ? "in steps without a pack"
                                       : "spent waiting for the slowest of a micro-batch");
    if (asked->samples_per_step || asked->batches)
        say("Only this plan, flexsp, hybrid-cp and dynamic-cp hold as many samples in each step as are asked "
            "for; the others hold about as many tokens, in whole packs and micro-batches.\n");
    if (asked->batches || asked->composition || asked->window_samples || asked->curriculum_steps ||
        asked->micro_batches_per_step || asked->equal_samples)
        say("A method that does not keep one of these options is planned without it "
            "(docs/explanation/contract.md).\n");
    if (pads)
        say("padding: share of the tokens computed that only fill up multiples.\n");
}

/* A method a part, with its share of the time that all took for a million samples on 32 GPUs; what is swept
 * plans again and again, nobody knows how often. */
static void begin_progress(const cli *c)
{
    job_part parts[WAYS + 3] = {{"reading", 1, "read 100"}, {"this plan", 3, "steps 100"}};
    int is_stepwise = c->samples_per_step || c->batches_file;
    for (int i = 1; i < WAYS; i++) {
        const char *name = cli_value_name("HBP_EPOCH_METHODS", i);
        int is_step_method = strcmp(name, "hybrid-cp") == 0 || strcmp(name, "dynamic-cp") == 0;
        int is_flexsp = strcmp(name, "flexsp") == 0;
        parts[i + 1] = (job_part){name,
                                  is_step_method ? 30
                                  : is_flexsp    ? (is_stepwise ? 10 : 1)
                                                 : 2,
                                  is_flexsp ? "steps 100" : NULL};
    }
    parts[WAYS + 1] = (job_part){"bounding", 1, "bound 100"};
    progress_begin(parts);
}

int cli_compare(cli *c)
{
    begin_progress(c);
    CLI_TRY(c, cli_try_epoch(c));
    CLI_TRY(c, cli_read_lengths(c, c->file));
    hbp_epoch_options options;
    cli_epoch_options(c, &options);
    CLI_TRY(c, cli_read_batches(c, &options));
    if (!options.samples_per_step && !options.batches && !options.tokens_per_step) {
        CLI_TRY(c, cli_make_groups(c, 0));
        options.tokens_per_step = cli_tokens_of_groups(c);
    }
    way ways[WAYS] = {{.name = "this plan"}};
    progress_part(1);
    CLI_TRY(c, measure(c, &options, &ways[0]));
    for (int i = 1; i < WAYS; i++) {
        hbp_epoch_options asked = options;
        progress_part(i + 1);
        asked.method = ways[i].name = cli_value_name("HBP_EPOCH_METHODS", i);
        if (strcmp(asked.method, "flexsp") == 0 && !c->all_methods && ways[0].report.steps > FLEXSP_STEPS) {
            snprintf(ways[i].failed, sizeof ways[i].failed,
                     "left out, for it takes minutes to plan more than %d steps; --all has it", FLEXSP_STEPS);
            continue;
        }
        /* As many tokens as the samples of a step have on average. */
        if (strcmp(asked.method, "hbp") == 0 && (options.samples_per_step || options.batches)) {
            asked.samples_per_step = asked.batches = 0;
            asked.tokens_per_step = ways[0].report.tokens / ways[0].report.steps;
        }
        if (measure(c, &asked, &ways[i]) == HBP_E_CANCELLED)
            return cli_failed(c);
    }
    progress_part(WAYS + 1);
    int64_t bound_ns = 0;
    int64_t fewest = INT64_MAX;
    for (size_t i = 0; i < WAYS; i++)
        if (!ways[i].failed[0] && ways[i].report.steps < fewest)
            fewest = ways[i].report.steps;
    if (!c->drop_last) /* each way drops samples of its own */
        CLI_TRY(c, cli_find_bound(c, options.tokens_per_step, fewest, &bound_ns));
    cli_finish_progress();
    if (c->json)
        return print_json(c, ways, bound_ns);
    print_text(ways, fewest, bound_ns, &options);
    return 0;
}
