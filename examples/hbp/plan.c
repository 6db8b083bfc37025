#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"

static int print_json(cli *c, const hbp_plan_summary *s, const hbp_report *r,
                      const hbp_lengths_summary *lengths, double seconds)
{
    c->result = json_pack(
        "{s:o,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:b,s:f,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:"
        "I}",
        "path", json_path(c->output), "digest", show_digest(s->digest).s, "lengths_digest",
        show_digest(s->lengths_digest).s, "ranks", (json_int_t)s->ranks, "steps", (json_int_t)s->steps,
        "micro_batches", (json_int_t)s->micro_batches, "packs", (json_int_t)s->packs, "padding_packs",
        (json_int_t)s->padding_packs, "samples", (json_int_t)s->samples, "dropped", (json_int_t)s->dropped,
        "tokens", (json_int_t)s->tokens, "overlong_samples", (json_int_t)s->overlong_samples,
        "overlong_tokens", (json_int_t)s->overlong_tokens, "complete", (int)s->complete, "proven",
        (int)s->proven, "planning_seconds", seconds, "epoch_ns", (json_int_t)r->epoch_ns, "bound_ns",
        json_known(r->bound_ns), "gap", json_number(r->gap), "padding", json_number(r->padding), "idle",
        json_number(r->idle), "abr", json_number(r->abr), "cr", json_number(r->cr), "tokens_per_s_per_gpu",
        json_number(r->tokens_per_s_per_gpu), "peak_bytes", (json_int_t)r->peak_bytes);
    json_object_set_new(c->result, "column", cli_column_json(c, lengths));
    json_add_contract(c->result, s);
    json_add_steps(c->result, r);
    if (s->vision >= 0) {
        json_object_set_new(c->result, "vision", json_integer((json_int_t)s->vision));
        json_object_set_new(c->result, "dist_vision", json_number(r->dist_vision));
        json_object_set_new(c->result, "dist_tokens", json_number(r->dist_tokens));
        json_object_set_new(c->result, "vision_padding", json_number(r->vision_padding));
    }
    return cli_print_json(c);
}

/* Steps that are not what was asked for, where no other kept to the tokens or the windows. */
static void print_other_composition(const cli *c, const hbp_plan_summary *s)
{
    if (!c->batches_file && c->composition && s->composition && s->composition != c->composition)
        say("note: composition %s was asked for; the steps are %s, since none that are %s keep to the other "
            "options\n",
            hbp_composition_name((int32_t)c->composition), hbp_composition_name(s->composition),
            hbp_composition_name((int32_t)c->composition));
}

static void print_text(cli *c, const hbp_plan_summary *s, const hbp_report *r, double seconds)
{
    shown contract = show_contract(s, c->tokens_per_step && s->tokens_per_step > c->tokens_per_step
                                          ? " (more than asked for)"
                                      : c->tokens_per_step  ? " (asked for)"
                                      : c->samples_per_step ? " (by the average of as many samples)"
                                                            : " (chosen)");
    say("planned in %.2f s: %s%s%s %s, %s on %s\n", seconds, show_number(s->steps, "step").s, contract.s,
        contract.s[0] ? ";" : ",", show_number(s->micro_batches, "micro-batch").s,
        show_number(s->packs, "pack").s, show_gpus(s).s);
    print_other_composition(c, s);
    print_steps(r);
    cli_print_fullness(c, s);
    print_hierarchy(s);
    say("predicted epoch %s, ", show_time((double)r->epoch_ns).s);
    if (r->bound_ns > 0)
        say("%s above what no %s can beat %s, ", show_share(r->gap).s, show_rivals(s).s,
            show_conditions(s).s);
    say("%s tokens/s per GPU\n", show_count((int64_t)r->tokens_per_s_per_gpu).s);
    print_price(s, r->bound_ns);
    say("padding %s, idle %s, tokens in packs with SP > 1: %s, peak memory %s\n", show_share(r->padding).s,
        show_share(r->idle).s, show_share(r->cr).s, show_bytes((double)r->peak_bytes).s);
    if (s->vision >= 0)
        say("%s; ranks differ by %s in them and by %s in padded tokens (DistRatio)\n",
            show_number(s->vision, "vision unit").s, show_share(r->dist_vision).s,
            show_share(r->dist_tokens).s);
    if (r->vision_padding > 0)
        say("%s of the capacity for vision units is left free\n", show_share(r->vision_padding).s);
    if (s->overlong_samples)
        say("%s over-long, %s left out\n", show_number(s->overlong_samples, "sample").s,
            show_number(s->overlong_tokens, "token").s);
    if (s->dropped)
        say("%s in no pack\n", show_number(s->dropped, "sample").s);
    if (c->output)
        say("wrote %s, digest %s\n", show_name(c->output).s, show_digest(s->digest).s);
    else
        say("digest %s; -o FILE writes the plan\n", show_digest(s->digest).s);
}

/* The same options for a data set of one sample. */
static hbp_status plan_one(cli *c, const hbp_lengths *one, const void *given)
{
    static const int64_t offsets[] = {0, 1}, samples[] = {0};
    hbp_epoch_options options = *(const hbp_epoch_options *)given;
    hbp_plan *plan = NULL;
    options.batches = options.batches > 0;
    options.batch_offsets = options.batches ? offsets : NULL;
    options.batch_samples = options.batches ? samples : NULL;
    hbp_status status = hbp_plan_epoch(c->context, one, c->cost, &options, &plan);
    hbp_plan_free(plan);
    return status;
}

hbp_status cli_plan_epoch(cli *c, const hbp_epoch_options *options)
{
    return cli_as_options(c, hbp_plan_epoch(c->context, c->lengths, c->cost, options, &c->plan), plan_one,
                          options);
}

/* With no contract the methods of others get steps as large as those of this library's plan. */
static int lacks_contract(const hbp_epoch_options *options)
{
    return strcmp(options->method, "search") != 0 && strcmp(options->method, "hbp") != 0 &&
           strcmp(options->method, "patterns") != 0 && !options->tokens_per_step &&
           !options->samples_per_step && !options->batches;
}

hbp_status cli_try_epoch(cli *c)
{
    hbp_epoch_options options;
    hbp_status status = cli_make_cost(c);
    cli_epoch_options(c, &options);
    options.batches = c->batches_file != NULL;
    if (lacks_contract(&options))
        options.tokens_per_step = INT32_MAX;
    return status < 0 ? status : cli_try_options(c, plan_one, &options);
}

static hbp_status make_plan(cli *c, hbp_epoch_options *options)
{
    if (lacks_contract(options)) {
        hbp_status status = cli_make_groups(c, 0);
        if (status < 0)
            return status;
        options->tokens_per_step = cli_tokens_of_groups(c);
    }
    return cli_plan_epoch(c, options);
}

/* The plan's own bound; a plan without one gets that of its samples in as many steps, unless it drops some.
 */
static hbp_status find_bound(cli *c, const hbp_plan_summary *summary, int64_t *bound_ns)
{
    *bound_ns = summary->bound_ns;
    return *bound_ns || c->drop_last
               ? HBP_OK
               : hbp_bound_epoch(c->context, c->lengths, c->cost, summary->steps, bound_ns);
}

/* Where the samples of steps are given, steps take it all; else the hierarchy comes before. Shares are of a
 * million samples on 32 GPUs. */
static void begin_progress(const cli *c)
{
    int is_stepwise = c->samples_per_step || c->batches_file;
    const job_part parts[] = {{"reading", 2, "read 100"},
                              {"planning", is_stepwise ? 95 : 83,
                               is_stepwise ? "batches 1, steps 98, check 1"
                                           : "groups 2, fill 25x16, plan 13, batches 55x8, check 5"},
                              {"replaying", 3, "simulate 30, mixture 70"},
                              {c->output ? "writing" : NULL, is_stepwise ? 2 : 12, "save 100"},
                              {NULL, 0, NULL}};
    progress_begin(parts);
}

int cli_plan(cli *c)
{
    begin_progress(c);
    CLI_TRY(c, cli_try_epoch(c));
    CLI_TRY(c, cli_read_lengths(c, c->file));
    hbp_epoch_options options;
    cli_epoch_options(c, &options);
    if (c->patterns)
        return cli_plan_patterns(c, &options);
    CLI_TRY(c, cli_read_batches(c, &options));
    double start = cli_now();
    progress_part(1);
    CLI_TRY(c, make_plan(c, &options));
    double seconds = cli_now() - start;
    hbp_report report = {.struct_size = sizeof report};
    hbp_simulate_options simulate = {.struct_size = sizeof simulate};
    simulate.no_bound = 1;
    hbp_plan_summary summary;
    summary.struct_size = sizeof summary;
    hbp_lengths_summary lengths = {.struct_size = sizeof lengths};
    CLI_TRY(c, hbp_lengths_get_summary(c->context, c->lengths, &lengths));
    CLI_TRY(c, hbp_plan_get_summary(c->context, c->plan, &summary));
    progress_part(2);
    CLI_TRY(c, hbp_simulate(c->context, c->plan, c->cost, &simulate, &report));
    CLI_TRY(c, find_bound(c, &summary, &report.bound_ns));
    report.gap = report.bound_ns > 0 ? (double)report.epoch_ns / (double)report.bound_ns - 1 : (double)NAN;
    if (c->output) {
        progress_part(3);
        hbp_plan_save_options save = {.struct_size = sizeof save};
        save.cost = c->cost;
        save.note = c->note;
        CLI_TRY(c, hbp_plan_save(c->context, c->plan, c->output, &save));
    }
    cli_finish_progress();
    if (c->json)
        return print_json(c, &summary, &report, &lengths, seconds);
    cli_print_column(c, &lengths);
    print_text(c, &summary, &report, seconds);
    return 0;
}
