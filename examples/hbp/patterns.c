/* Plans by patterns: planned, shown, checked, and written with their samples listed. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "hbp/io.h"

/* What a group's packs come to. */
typedef struct group {
    int64_t patterns, packs, samples, tokens, padded_tokens;
    double gpu_ns; /* of all packs, each on all of its GPUs */
} group;

static group count_group(const hbp_pattern_plan_view *v, int64_t g)
{
    group sum = {.patterns = v->group_first_patterns[g + 1] - v->group_first_patterns[g]};
    for (int64_t p = v->group_first_patterns[g]; p < v->group_first_patterns[g + 1]; p++) {
        const int64_t packs = v->pattern_first_packs[p + 1] - v->pattern_first_packs[p];
        sum.packs += packs;
        sum.tokens += packs * v->pattern_tokens[p];
        sum.padded_tokens += packs * v->pattern_padded_tokens[p];
        sum.gpu_ns += (double)packs * (double)v->pattern_ns[p] * (double)v->group_sp[g];
        for (int64_t r = v->pattern_offsets[p]; r < v->pattern_offsets[p + 1]; r++)
            sum.samples += packs * v->run_numbers[r];
    }
    return sum;
}

static json_t *groups_json(const hbp_pattern_plan_view *v)
{
    json_t *list = json_array();
    for (int64_t g = 0; g < v->groups; g++) {
        const group sum = count_group(v, g);
        json_array_append_new(
            list, json_pack("{s:I,s:i,s:i,s:I,s:I,s:I,s:I,s:I}", "capacity",
                            (json_int_t)v->group_pack_lengths[g], "sp", (int)v->group_sp[g], "recompute",
                            (int)v->group_recompute[g], "patterns", (json_int_t)sum.patterns, "packs",
                            (json_int_t)sum.packs, "samples", (json_int_t)sum.samples, "tokens",
                            (json_int_t)sum.tokens, "padded_tokens", (json_int_t)sum.padded_tokens));
    }
    return list;
}

static json_t *plan_json(const hbp_plan_summary *s, const hbp_pattern_plan_view *v)
{
    json_t *object = json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:I,s:I,s:o}", "digest",
        show_digest(s->digest).s, "lengths_digest", show_digest(s->lengths_digest).s, "ranks",
        (json_int_t)s->ranks, "steps", (json_int_t)s->steps, "micro_batches", (json_int_t)s->micro_batches,
        "packs", (json_int_t)s->packs, "padding_packs", (json_int_t)s->padding_packs, "samples",
        (json_int_t)s->samples, "dropped", (json_int_t)s->dropped, "tokens", (json_int_t)s->tokens,
        "padded_tokens", (json_int_t)s->padded_tokens, "loss_tokens", (json_int_t)s->loss_tokens,
        "overlong_samples", (json_int_t)s->overlong_samples, "overlong_tokens",
        (json_int_t)s->overlong_tokens, "distinct_lengths", (json_int_t)v->distinct_lengths, "patterns",
        (json_int_t)v->patterns, "predicted_ns", (json_int_t)s->predicted_ns, "bound_ns",
        json_known(s->bound_ns), "gap", json_number(s->gap), "seed", (json_int_t)s->seed, "epoch",
        (json_int_t)s->epoch, "groups", groups_json(v));
    json_add_contract(object, s);
    return object;
}

static void print_plan(const hbp_plan_summary *s, const hbp_pattern_plan_view *v)
{
    table t;
    if (s->bound_ns > 0)
        say("no %s takes less than %s %s: this plan is %s above it\n", show_rivals(s).s,
            show_time((double)s->bound_ns).s, show_conditions(s).s, show_share(s->gap).s);
    print_price(s, s->bound_ns);
    if (s->overlong_samples)
        say("%s over-long, %s left out\n", show_number(s->overlong_samples, "sample").s,
            show_number(s->overlong_tokens, "token").s);
    say("%s of %s; seed %llu, epoch %llu", show_number(v->patterns, "pattern").s,
        show_number(v->distinct_lengths, "length").s, (unsigned long long)s->seed,
        (unsigned long long)s->epoch);
    if (s->dropped)
        say("; %s dropped", show_number(s->dropped, "sample").s);
    say("\n\n");
    table_begin(&t, 8,
                (const char *[]){"pack", "SP", "-recomputed layers", "-patterns", "packs", "samples",
                                 "filled", "GPU time"});
    for (int64_t g = 0; g < v->groups; g++) {
        const group sum = count_group(v, g);
        table_add_text(&t, show_length(v->group_pack_lengths[g]));
        table_add(&t, "%d", (int)v->group_sp[g]);
        table_add(&t, "%d", (int)v->group_recompute[g]);
        table_add_text(&t, show_count(sum.patterns));
        table_add_text(&t, show_count(sum.packs));
        table_add_text(&t, show_count(sum.samples));
        table_add_text(&t, sum.packs ? show_share((double)sum.tokens /
                                                  ((double)sum.packs * (double)v->group_pack_lengths[g]))
                                     : show_real("-", 0));
        table_add_text(&t, show_time(sum.gpu_ns));
    }
    table_end(&t);
}

int cli_plan_patterns(cli *c, const hbp_epoch_options *options)
{
    hbp_plan_summary s = {.struct_size = sizeof s};
    hbp_pattern_plan_view view = {.struct_size = sizeof view};
    hbp_lengths_summary lengths = {.struct_size = sizeof lengths};
    const double start = cli_now();
    progress_part(1);
    CLI_TRY(c, hbp_plan_patterns(c->context, c->lengths, c->cost, options, &c->pattern_plan));
    const double seconds = cli_now() - start;
    CLI_TRY(c, hbp_pattern_plan_get_summary(c->context, c->pattern_plan, &s));
    CLI_TRY(c, hbp_lengths_get_summary(c->context, c->lengths, &lengths));
    (void)hbp_pattern_plan_get_view(c->pattern_plan, &view);
    if (c->output)
        CLI_TRY(c, hbp_pattern_plan_save(c->context, c->pattern_plan, c->output));
    cli_finish_progress();
    if (c->json) {
        c->result = plan_json(&s, &view);
        json_object_set_new(c->result, "path", json_path(c->output));
        json_object_set_new(c->result, "planning_seconds", json_real(seconds));
        json_object_set_new(c->result, "column", cli_column_json(c, &lengths));
        return cli_print_json(c);
    }
    cli_print_column(c, &lengths);
    say("planned in %.2f s: %s%s; %s, %s on %s\n", seconds, show_number(s.steps, "step").s,
        show_contract(&s, c->tokens_per_step ? " (asked for)" : " (chosen)").s,
        show_number(s.micro_batches, "micro-batch").s, show_number(s.packs, "pack").s, show_gpus(&s).s);
    say("predicted epoch %s\n", show_time((double)s.predicted_ns).s);
    print_plan(&s, &view);
    if (c->output)
        say("wrote %s, digest %s\n", show_name(c->output).s, show_digest(s.digest).s);
    else
        say("digest %s; -o FILE writes the plan\n", show_digest(s.digest).s);
    return 0;
}

static hbp_status load_plan(cli *c)
{
    return hbp_pattern_plan_load(c->context, c->file, &c->pattern_plan);
}

/* The index of --lengths. The samples of a histogram are in order of length as they are: it has none, and is
 * held against the plan instead. */
static hbp_status read_index(cli *c)
{
    hbp_status status = cli_read_lengths(c, c->lengths_file);
    if (status < 0)
        return status;
    status = hbp_length_index_create(c->context, c->lengths, &c->length_index);
    return status == HBP_E_INVALID ? hbp_pattern_plan_validate(c->context, c->pattern_plan, c->lengths, NULL)
                                   : status;
}

/* c->plan: these steps, with the samples of --lengths where given. */
static hbp_status list_steps(cli *c, int64_t first, int64_t steps)
{
    hbp_status status = c->lengths_file ? read_index(c) : HBP_OK;
    if (status < 0)
        return status;
    status = hbp_pattern_plan_expand(c->context, c->pattern_plan, c->length_index, first, steps, &c->plan);
    if ((status == HBP_E_NO_MEMORY || status == HBP_E_OVERFLOW) && steps > 1)
        return cli_own_failure("%s; --steps A:B lists a part", cli_message(c));
    return status;
}

static void print_numbering(const cli *c)
{
    if (!c->length_index)
        say("samples are numbered in order of length, the shortest first%s\n",
            c->lengths_file ? "" : "; --lengths FILE names those of a data set");
}

static int show_one_step(cli *c, const hbp_plan_summary *s)
{
    const int64_t step = c->step < 0 ? 0 : c->step;
    int failed = cli_check_place(c, s, step);
    if (failed)
        return failed;
    CLI_TRY(c, list_steps(c, step, 1));
    failed = cli_print_step(c, s, step);
    if (!failed && !c->json && c->rank >= 0) {
        say("\n");
        print_numbering(c);
    }
    return failed;
}

static int show_plan(cli *c)
{
    hbp_plan_summary s = {.struct_size = sizeof s};
    hbp_pattern_plan_view view = {.struct_size = sizeof view};
    CLI_TRY(c, hbp_pattern_plan_get_summary(c->context, c->pattern_plan, &s));
    (void)hbp_pattern_plan_get_view(c->pattern_plan, &view);
    if (c->step >= 0 || c->rank >= 0)
        return show_one_step(c, &s);
    if (c->lengths_file)
        return cli_usage("--lengths names the samples of a step; add --step K or --rank R");
    cli_finish_progress();
    if (c->json) {
        c->result = plan_json(&s, &view);
        return cli_print_json(c);
    }
    say("%s: a plan by patterns, %s on %s, %s, %s, predicted %s\n", show_name(c->file).s,
        show_number(s.steps, "step").s, show_gpus(&s).s, show_number(s.samples, "sample").s,
        show_number(s.tokens, "token").s, show_time((double)s.predicted_ns).s);
    say("steps%s\n", show_contract(&s, "").s);
    print_plan(&s, &view);
    say("\ndigest %s; --step K lists a step, hbp expand all of them\n", show_digest(s.digest).s);
    return 0;
}

static int validate_plan(cli *c)
{
    hbp_plan_summary s = {.struct_size = sizeof s};
    if (c->machine_text && !c->model_text)
        return cli_usage("--machine needs --model: they go together");
    CLI_TRY(c, cli_check_cut(c, 0));
    if (c->lengths_file)
        CLI_TRY(c, cli_read_lengths(c, c->lengths_file));
    if (c->model_text || c->cost_file)
        CLI_TRY(c, cli_make_cost(c));
    CLI_TRY(c, hbp_pattern_plan_get_summary(c->context, c->pattern_plan, &s));
    const hbp_status status = hbp_pattern_plan_validate(c->context, c->pattern_plan, c->lengths, c->cost);
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:b,s:s,s:s,s:b,s:b}", "valid", status >= 0, "message", cli_message(c),
                              "digest", show_digest(s.digest).s, "against_lengths", c->lengths != NULL,
                              "against_cost", c->cost != NULL);
        const int printed = cli_print_json(c);
        return printed ? printed : status < 0;
    }
    if (status < 0)
        return cli_failed(c);
    say("%s keeps every promise%s%s, digest %s\n", show_name(c->file).s,
        c->lengths ? ", is of the data set's lengths" : "", c->cost ? ", fits the machine" : "",
        show_digest(s.digest).s);
    return 0;
}

/* What takes plans whose samples are listed. */
static hbp_status refuse(const cli *c)
{
    return cli_own_usage("%s lists no samples; hbp expand %s --lengths LENGTHS -o FILE writes a plan that "
                         "hbp %s takes, with --steps 0:20 one of 20 steps",
                         c->file, c->file, c->command);
}

static int trace_plan(cli *c)
{
    CLI_TRY(c, refuse(c));
    return 0;
}

static int report_of_patterns(cli *c, json_t *page, struct report_columns *columns)
{
    (void)page;
    (void)columns;
    return trace_plan(c);
}

static hbp_status dump_plan(const cli *c, const char *path)
{
    (void)path;
    return refuse(c);
}

const cli_object cli_pattern_object = {
    "hbp-patterns", "a plan by patterns", CLI_TAKES_PLACE,    load_plan, show_plan,
    validate_plan,  trace_plan,           report_of_patterns, dump_plan};

static int print_listed(cli *c, const hbp_plan_summary *s)
{
    cli_finish_progress();
    if (c->json) {
        c->result = json_pack("{s:o,s:s,s:I,s:I,s:I,s:b}", "path", json_path(c->output), "digest",
                              show_digest(s->digest).s, "first_step", (json_int_t)s->first_step, "steps",
                              (json_int_t)s->steps, "samples", (json_int_t)s->samples, "by_length",
                              c->length_index == NULL);
        return cli_print_json(c);
    }
    say("%s from step %lld on: %s\n", show_number(s->steps, "step").s, (long long)s->first_step,
        show_number(s->samples, "sample").s);
    print_numbering(c);
    say("wrote %s, digest %s\n", show_name(c->output).s, show_digest(s->digest).s);
    return 0;
}

int cli_expand(cli *c)
{
    static const job_part parts[] = {{"reading", 20, "load 50, read 50"},
                                     {"listing", 60, NULL},
                                     {"writing", 20, "save 100"},
                                     {NULL, 0, NULL}};
    hbp_plan_summary s = {.struct_size = sizeof s};
    int64_t first = 0, end;
    int wrong = cli_check_steps(c);
    if (wrong)
        return wrong;
    progress_begin(parts);
    const cli_object *object = cli_find_object(c);
    if (object != &cli_pattern_object && (object || cli_is_plan(c->file)))
        return cli_usage("%s is %s; hbp expand takes a plan by patterns", c->file,
                         object ? object->what : "a plan whose samples are listed already");
    CLI_TRY(c, load_plan(c));
    CLI_TRY(c, hbp_pattern_plan_get_summary(c->context, c->pattern_plan, &s));
    wrong = cli_find_steps(c, 0, s.steps, &first, &end);
    if (wrong)
        return wrong;
    CLI_TRY(c, list_steps(c, first, end - first));
    CLI_TRY(c, hbp_plan_get_summary(c->context, c->plan, &s));
    progress_part(2);
    const hbp_plan_save_options save = {.struct_size = sizeof save, .note = c->note};
    CLI_TRY(c, hbp_plan_save(c->context, c->plan, c->output, &save));
    return print_listed(c, &s);
}
