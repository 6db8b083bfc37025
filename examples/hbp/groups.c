#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

const char *cli_sp_reason(int32_t reason)
{
    switch (reason) {
    case HBP_SP_FEASIBLE:
        return "feasible";
    case HBP_SP_OUT_OF_MEMORY:
        return "out of memory";
    case HBP_SP_ILLEGAL_HEADS:
        return "heads do not divide";
    case HBP_SP_TOO_FEW_RANKS:
        return "ranks, or a lockstep set, do not hold it";
    default:
        return "unknown";
    }
}

hbp_status cli_list_sp_choices(cli *c, int64_t length, int64_t tokens_per_step, hbp_sp_choice **choices,
                               int64_t *count)
{
    *choices = NULL;
    hbp_sp_options options = {.struct_size = sizeof options, .tokens_per_step = tokens_per_step};
    hbp_status status =
        hbp_list_sp_choices(c->context, c->cost, length, &options, NULL, sizeof **choices, 0, count);
    if (status < 0 || *count == 0)
        return status;
    *choices = calloc((size_t)*count, sizeof **choices);
    if (!*choices) {
        *count = 0;
        return HBP_OK;
    }
    for (int64_t i = 0; i < *count; i++)
        (*choices)[i].struct_size = sizeof **choices;
    return hbp_list_sp_choices(c->context, c->cost, length, &options, *choices, sizeof **choices, *count,
                               count);
}

static json_t *candidates_json(const hbp_groups *groups)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(groups, &view);
    json_t *list = json_array();
    for (int64_t i = 0; i < view.candidates; i++)
        json_array_append_new(list, json_pack("{s:s,s:I}", "groups", view.candidate_texts[i], "epoch_ns",
                                              (json_int_t)view.candidate_ns[i]));
    return list;
}

static int print_json(cli *c, const hbp_report *report, const hbp_sp_choice *choices, int64_t choice_count)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(c->groups, &view);
    json_t *rows = json_array();
    for (int64_t i = 0; i < view.groups; i++)
        json_array_append_new(
            rows,
            json_pack("{s:I,s:I,s:i,s:i,s:I,s:I,s:I,s:I}", "pack_length", (json_int_t)view.pack_lengths[i],
                      "threshold", (json_int_t)view.thresholds[i], "sp", (int)view.sp[i], "recompute",
                      (int)view.recompute[i], "packs_per_micro_batch", (json_int_t)view.packs[i],
                      "micro_batches", (json_int_t)view.micro_batches[i], "tokens",
                      (json_int_t)view.tokens[i], "step_ns", (json_int_t)view.step_ns[i]));
    json_t *degrees = json_array();
    for (int64_t i = 0; i < choice_count; i++)
        json_array_append_new(
            degrees,
            json_pack("{s:i,s:i,s:s,s:I,s:I,s:I,s:I}", "sp", (int)choices[i].sp, "recompute",
                      (int)choices[i].recompute, "verdict", cli_sp_reason(choices[i].reason), "pack_ns",
                      (json_int_t)choices[i].pack_ns, "step_ns", (json_int_t)choices[i].step_ns, "peak_bytes",
                      (json_int_t)choices[i].peak_bytes, "limit_bytes", (json_int_t)choices[i].limit_bytes));
    c->result = json_pack("{s:I,s:b,s:o,s:o,s:o}", "tokens_per_step", (json_int_t)view.tokens_per_step,
                          "tokens_per_step_chosen", c->tokens_per_step == 0, "groups", rows, "candidates",
                          candidates_json(c->groups), "degrees_of_longest_pack", degrees);
    if (report)
        json_add_steps(c->result, report);
    return cli_print_json(c);
}

static void print_groups(const hbp_groups *groups)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(groups, &view);
    double all = 0;
    for (int64_t i = 0; i < view.groups; i++)
        all += (double)view.tokens[i];
    table t;
    table_begin(&t, 9,
                (const char *[]){"samples up to", "pack", "SP", "-recomputed layers", "-packs / micro-batch",
                                 "-micro-batches / step", "-tokens", "share", "step"});
    for (int64_t i = 0; i < view.groups; i++) {
        table_add_text(&t, show_length(view.thresholds[i]));
        table_add_text(&t, show_length(view.pack_lengths[i]));
        table_add(&t, "%d", (int)view.sp[i]);
        table_add(&t, "%d", (int)view.recompute[i]);
        table_add_text(&t, show_count(view.packs[i]));
        table_add_text(&t, show_count(view.micro_batches[i]));
        table_add_text(&t, show_count(view.tokens[i]));
        table_add_text(&t, show_share(all > 0 ? (double)view.tokens[i] / all : 0));
        table_add_text(&t, show_time((double)view.step_ns[i]));
    }
    table_end(&t);
}

static void print_candidates(const hbp_groups *groups, int all)
{
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(groups, &view);
    int64_t count = view.candidates;
    int64_t rows = !all && count > 12 ? 12 : count;
    say("\nHierarchies considered, the chosen one first; one more level must save a thousandth\n\n");
    table t;
    double slowest = 0;
    for (int64_t i = 0; i < rows; i++)
        slowest = (double)view.candidate_ns[i] > slowest ? (double)view.candidate_ns[i] : slowest;
    table_begin(&t, 4, (const char *[]){"estimated epoch", "#", "x chosen", "~groups"});
    for (int64_t i = 0; i < rows; i++) {
        table_add_text(&t, show_compared_time((double)view.candidate_ns[i]));
        table_add_bar(&t, (double)view.candidate_ns[i] / slowest, -1);
        table_add_text(&t, show_real("%.3f", (double)view.candidate_ns[i] / (double)view.candidate_ns[0]));
        table_add(&t, "%s", view.candidate_texts[i]);
    }
    table_end(&t);
    if (rows < count)
        say("  and %s more; --all shows them\n", show_count(count - rows).s);
}

static void print_choices(int64_t length, const hbp_sp_choice *choices, int64_t count)
{
    say("\nSP degrees for packs of %s\n\n", show_length(length).s);
    table t;
    table_begin(&t, 6,
                (const char *[]){"SP", "-recomputed layers", "pack", "step", "peak / limit", "<verdict"});
    for (int64_t i = 0; i < count; i++) {
        const hbp_sp_choice *choice = &choices[i];
        int timed = choice->reason == HBP_SP_FEASIBLE;
        int sized = timed || choice->reason == HBP_SP_OUT_OF_MEMORY;
        table_add(&t, "%d", (int)choice->sp);
        table_add(&t, sized ? "%d" : "-", (int)choice->recompute);
        table_add_text(&t, timed ? show_compared_time((double)choice->pack_ns) : show_real("-", 0));
        table_add_text(&t, timed ? show_compared_time((double)choice->step_ns) : show_real("-", 0));
        if (sized)
            table_add(&t, "%s / %s", show_bytes((double)choice->peak_bytes).s,
                      show_bytes((double)choice->limit_bytes).s);
        else
            table_add(&t, "-");
        table_add(&t, "%s", cli_sp_reason(choice->reason));
    }
    table_end(&t);
}

/* What steps of the groups hold: the epoch that they make, planned and replayed. Groups may be chosen where
 * no plan can be made, of vision units that the cost charges, say. */
static hbp_status plan_groups(cli *c, hbp_report *report)
{
    hbp_epoch_options options;
    hbp_simulate_options simulate = {.struct_size = sizeof simulate};
    cli_epoch_options(c, &options);
    options.groups = c->groups;
    options.composition = HBP_COMPOSITION_HIERARCHY;
    *report = (hbp_report){.struct_size = sizeof *report};
    simulate.no_bound = 1;
    hbp_status status = hbp_plan_epoch(c->context, c->lengths, c->cost, &options, &c->plan);
    return status < 0 ? status : hbp_simulate(c->context, c->plan, c->cost, &simulate, report);
}

int cli_groups(cli *c)
{
    static const job_part parts[] = {{"reading", 15, "read 100"},
                                     {"choosing groups", 10, "groups 100"},
                                     {"planning", 65, "fill 50x16, check 50"},
                                     {NULL, 0, NULL}};
    progress_begin(parts);
    CLI_TRY(c, cli_make_cost(c));
    CLI_TRY(c, cli_read_lengths(c, c->file));
    progress_part(1);
    CLI_TRY(c, cli_make_groups(c, c->method));
    progress_part(2);
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(c->groups, &view);
    int64_t longest = view.pack_lengths[view.groups - 1];
    hbp_sp_choice *choices = NULL;
    int64_t choice_count = 0;
    hbp_report report;
    hbp_status status = cli_list_sp_choices(c, longest, view.tokens_per_step, &choices, &choice_count),
               planned = status;
    if (status >= 0)
        planned = plan_groups(c, &report);
    if (planned == HBP_E_CANCELLED)
        status = planned;
    int exit_status = 0;
    cli_finish_progress();
    if (status < 0) {
        exit_status = cli_failed(c);
    } else if (c->json) {
        exit_status = print_json(c, planned < 0 ? NULL : &report, choices, choice_count);
    } else {
        say("%s per step at most, as %s\n\n", show_number(view.tokens_per_step, "token").s,
            c->tokens_per_step ? "asked for" : "chosen; --tokens-per-step asks for others");
        print_groups(c->groups);
        say("\n");
        if (planned < 0)
            say("no steps of these groups: %s\n", cli_message(c));
        else
            print_steps(&report);
        print_candidates(c->groups, c->all != 0);
        print_choices(longest, choices, choice_count);
    }
    free(choices);
    return exit_status;
}
