/* Predicted time, idleness, unused capacity and mixture of whole epochs: the published rule, the library's
 * own way, and the bound that no plan beats. All times are predictions of the cost model for H100 nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mixed.h"

static const char *const models[] = {"llama-3.1-8b", "llama-3.1-70b", "qwen2.5-32b", "deepseek-v2"};
static const int32_t nodes[] = {4, 32};
enum { MODELS = 4, MACHINES = 2 };

typedef struct outcome {
    hbp_status status;
    char failed[200];
    double seconds; /* on the CPU, planning alone */
    double unused;  /* capacity */
    hbp_report report;
} outcome;

/* Groups of one method, in text, and the tokens of a step. */
static hbp_status describe_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                  const char *method, char text[256], int64_t *tokens_per_step)
{
    hbp_groups_options options = {.struct_size = sizeof options};
    options.method = method;
    hbp_groups *groups = NULL;
    hbp_status status = hbp_plan_groups(context, lengths, cost, &options, &groups);
    if (status < 0)
        return status;
    hbp_groups_view view = {.struct_size = sizeof view};
    (void)hbp_groups_get_view(groups, &view);
    snprintf(text, 256, "%s", view.candidate_texts[0]);
    *tokens_per_step = bench_tokens_per_step(groups);
    hbp_groups_free(groups);
    return HBP_OK;
}

/* HBP's PR: what capacities leave free, dummies included. */
static double unused_capacity(const hbp_plan *plan)
{
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    int64_t packs = view.packs;
    double room = 0, held = 0;
    for (int64_t p = 0; p < packs; p++) {
        room += (double)view.pack_capacity[p];
        held += (double)view.pack_tokens[p];
    }
    return room > 0 ? 1 - held / room : 0;
}

/* Plans an epoch and replays it. Steps carry tokens_per_step whatever the method. */
static void measure(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                    const char *method, int64_t tokens_per_step, outcome *o)
{
    hbp_epoch_options options = {.struct_size = sizeof options};
    options.method = method;
    options.tokens_per_step = tokens_per_step;
    hbp_plan *plan = NULL;
    memset(o, 0, sizeof *o);
    double start = bench_cpu();
    o->status = hbp_plan_epoch(context, lengths, cost, &options, &plan);
    o->seconds = bench_cpu() - start;
    if (o->status < 0) {
        snprintf(o->failed, sizeof o->failed, "%s", hbp_context_message(context));
        return;
    }
    bench_need(context, hbp_plan_validate(context, plan, lengths, cost), "the plan");
    hbp_simulate_options simulate = {.struct_size = sizeof simulate};
    simulate.tokens_per_step = tokens_per_step;
    o->report = (hbp_report){.struct_size = sizeof o->report};
    bench_need(context, hbp_simulate(context, plan, cost, &simulate, &o->report), "the replay");
    o->unused = unused_capacity(plan);
    hbp_plan_free(plan);
}

static int within(double value, double middle, double spread)
{
    return value >= middle - spread && value <= middle + spread;
}

/* The published figures, on the stand-in for the published data. */
static void compare_published(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost)
{
    bench_section("HBP as published, on the stand-in: llama-3.1-8b, 4 nodes of 8 h100");
    char text[256];
    int64_t tokens_per_step = 0;
    outcome paper, isf;
    bench_need(context, describe_groups(context, lengths, cost, "hbp", text, &tokens_per_step), "groups");
    measure(context, lengths, cost, "hbp", tokens_per_step, &paper);
    measure(context, lengths, cost, "isf", tokens_per_step, &isf);
    bench_need(context, paper.status, "paper");
    bench_need(context, isf.status, "isf");
    const char *expected = "16384 x SP 1, 131072 x SP 8";
    bench_check(strcmp(text, expected) == 0, "groups", "16384 x SP 1, 131072 x SP 8", "%s", text);
    bench_check(within(paper.report.cr, .17, .03), "paper: CR", ".17 +- .03", "%.3f", paper.report.cr);
    bench_check(paper.report.abr_paper <= .005, "paper: ABR, at the paper's granularity", "<= .005", "%.4f",
                paper.report.abr_paper);
    bench_check(within(isf.report.abr_paper, .50, .06), "ISF: ABR", ".50 +- .06", "%.3f",
                isf.report.abr_paper);
    bench_check(isf.report.cr == 1, "ISF: CR", "1", "%.3f", isf.report.cr);
    double ratio = (double)isf.report.epoch_ns / (double)paper.report.epoch_ns;
    bench_check(within(ratio, 1.4, .1), "ISF / paper, predicted time", "1.4 +- .1", "%.3f", ratio);
    bench_line("ISF: idle, unused capacity", "%.1f %%, %.2f %%", 100 * isf.report.idle, 100 * isf.unused);
    bench_line("paper: idle, unused capacity", "%.1f %%, %.2f %%", 100 * paper.report.idle,
               100 * paper.unused);
    bench_line("paper: ABR per true SP group", "%.4f", paper.report.abr);
}

/* Tight, balanced and mixed in one plan. */
static void compare_aims(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost)
{
    bench_section("Tight, balanced and mixed at once, on the stand-in: default mode");
    char text[256];
    int64_t tokens_per_step = 0;
    outcome own;
    bench_need(context, describe_groups(context, lengths, cost, "optimal", text, &tokens_per_step), "groups");
    measure(context, lengths, cost, "search", tokens_per_step, &own);
    bench_need(context, own.status, "default mode");
    const hbp_report *r = &own.report;
    bench_line("groups", "%s", text);
    bench_check(own.unused <= .001, "unused capacity", "<= .1 %", "%.3f %%", 100 * own.unused);
    bench_check(r->idle <= .005, "idle", "<= .5 %", "%.3f %%", 100 * r->idle);
    bench_check(r->samples_cv <= .15, "samples per step over all steps, variation", "<= .15", "%.3f",
                r->samples_cv);
    bench_line("samples per step, 5 %, median, 95 %", "%lld, %lld, %lld", (long long)r->step_samples_p5,
               (long long)r->step_samples_median, (long long)r->step_samples_p95);
    bench_metric("", "unused capacity", BENCH_LOWER, 100 * own.unused, "%");
    bench_metric("", "idle", BENCH_LOWER, 100 * r->idle, "%");
    bench_metric("", "samples per step, variation", BENCH_LOWER, r->samples_cv, "1");
    bench_metric("", "mixture distance", BENCH_LOWER, r->mixture_distance, "1");
    bench_line("distance from the epoch's mixture", "%.3f", r->mixture_distance);
    bench_line("ABR per true SP group, at the paper's", "%.4f, %.4f", r->abr, r->abr_paper);
    bench_line("DBR, CR", "%.4f, %.3f", r->dbr, r->cr);
}

/* What the comparisons come to, over some of them. */
typedef struct tally {
    int plans, pairs, slower, infeasible;
    double least_ratio; /* paper's time over ours */
    int near, near_of;  /* data sets of 10,000 samples and more; within 5 % of the bound */
    double farthest;
    char farthest_name[64];
    double idle; /* sum over plans */
} tally;

/* `ratio` is 0 when the published rule has no plan. */
static void tally_add(tally *t, const hbp_report *r, double ratio, int is_large, const char *name)
{
    t->plans++;
    t->idle += r->idle;
    if (ratio > 0) {
        if (!t->pairs || ratio < t->least_ratio)
            t->least_ratio = ratio;
        t->pairs++;
        t->slower += ratio < 1;
    }
    if (!is_large)
        return;
    t->near_of++;
    t->near += r->gap <= .05;
    if (r->gap > t->farthest) {
        t->farthest = r->gap;
        snprintf(t->farthest_name, sizeof t->farthest_name, "%s", name);
    }
}

static void print_reason(const char *data, const char *model, int32_t count, const char *reason)
{
    printf("%-18s %-13s %4d  infeasible: %s\n", data, model, (int)count, reason);
}

/* Default and published rule on one data set, model and machine; counted in `all`, and in `reference` unless
 * it is NULL. */
static void compare_methods(hbp_context *context, const hbp_lengths *lengths, const char *data,
                            const char *model, int32_t node_count, tally *all, tally *reference)
{
    const char *reason = "";
    char text[256], paper_text[256] = "infeasible", name[64];
    int64_t tokens_per_step = 0;
    int32_t ranks = node_count * 8;
    hbp_cost *cost = bench_cost(context, model, node_count, &reason);
    hbp_status status = HBP_OK;
    if (cost)
        status = describe_groups(context, lengths, cost, "optimal", text, &tokens_per_step);
    if (!cost || status == HBP_E_INFEASIBLE) {
        print_reason(data, model, ranks, cost ? hbp_context_message(context) : reason);
        all->infeasible++;
        hbp_cost_free(cost);
        return;
    }
    bench_need(context, status, "groups");
    status = describe_groups(context, lengths, cost, "hbp", paper_text, &tokens_per_step);
    if (status != HBP_E_INFEASIBLE)
        bench_need(context, status, "groups");
    outcome own, paper;
    measure(context, lengths, cost, "search", tokens_per_step, &own);
    measure(context, lengths, cost, "hbp", tokens_per_step, &paper);
    bench_need(context, own.status, "default mode");
    if (paper.status != HBP_E_INFEASIBLE)
        bench_need(context, paper.status, "paper");
    const hbp_report *r = &own.report;
    double ratio = paper.status < 0 ? 0 : (double)paper.report.epoch_ns / (double)r->epoch_ns;
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_lengths_get_summary(context, lengths, &summary), "summary");
    printf("%-18s %-13s %4d %7lld %9.1f %8.4f %6.2f %7.3f %7.3f %5.3f %6.3f %7.2f  %s | %s\n", data, model,
           (int)ranks, (long long)r->steps, (double)r->epoch_ns * 1e-9, ratio, 100 * r->gap, 100 * r->idle,
           100 * own.unused, r->cr, r->mixture_distance, own.seconds, text, paper_text);
    fflush(stdout);
    snprintf(name, sizeof name, "%s, %s, %d gpus", data, model, (int)ranks);
    bench_metric_beside(name, "epoch", BENCH_LOWER, (double)r->epoch_ns * 1e-9, "predicted s", "bound",
                        1 + r->gap);
    bench_metric(name, "idle", BENCH_LOWER, 100 * r->idle, "%");
    bench_metric(name, "planning", BENCH_LOWER, own.seconds, "s");
    if (ratio > 0)
        bench_metric(name, "the published rule's epoch / ours", BENCH_HIGHER, ratio, "x");
    tally_add(all, r, ratio, summary.samples >= 10000, name);
    if (reference)
        tally_add(reference, r, ratio, summary.samples >= 10000, name);
    hbp_cost_free(cost);
}

static void compare_all(hbp_context *context, int is_quick, tally *all, tally *reference)
{
    bench_section("Default mode beside the published rule, and over the bound");
    printf("epoch: predicted seconds; paper: its time over ours, 0 without one; bound: percent over it;\n"
           "mix: distance of a step's mixture to the epoch's; planned: CPU seconds; groups: those of the "
           "estimate,\n"
           "which small data sets may better\n"
           "%-18s %-13s %4s %7s %9s %8s %6s %7s %7s %5s %6s %7s  %s\n",
           "data", "model", "gpus", "steps", "epoch", "paper", "bound", "idle %", "free %", "CR", "mix",
           "planned", "groups | the published rule's");
    for (int d = 0; d < BENCH_DATA_SETS; d++) {
        bench_data data;
        if (!bench_data_open(context, d, &data))
            continue;
        hbp_lengths *lengths = bench_lengths(context, &data, BENCH_LONGEST);
        for (int m = 0; m < (is_quick ? 1 : MODELS); m++)
            for (int n = 0; n < (is_quick ? 1 : MACHINES); n++)
                compare_methods(context, lengths, data.name, models[m], nodes[n], all,
                                m == 0 && n == 0 ? reference : NULL);
        hbp_lengths_free(lengths);
        bench_data_close(&data);
    }
}

int main(int argc, char **argv)
{
    int quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !quick) {
        fprintf(stderr, "usage: bench_quality [--quick]\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    hbp_cost *cost = bench_cost(context, models[0], nodes[0], NULL);
    bench_data data;
    bench_data_open(context, 0, &data);
    hbp_lengths *lengths = bench_lengths(context, &data, BENCH_LONGEST);
    compare_published(context, lengths, cost);
    compare_aims(context, lengths, cost);
    hbp_lengths_free(lengths);
    bench_data_close(&data);
    bench_mixed(context, cost, quick);
    hbp_cost_free(cost);
    tally all = {0}, reference = {0};
    compare_all(context, quick, &all, &reference);
    bench_section("The targets: llama-3.1-8b on 4 nodes of 8 h100");
    bench_check(reference.slower == 0, "no slower than the published rule", "all",
                "%d of %d, paper/ours >= %.4f", reference.pairs - reference.slower, reference.pairs,
                reference.least_ratio);
    bench_check(reference.near == reference.near_of, "over the bound, 10,000 samples and more", "all <= 5 %",
                "%d of %d, most %.2f %%", reference.near, reference.near_of, 100 * reference.farthest);
    double idle = reference.idle / reference.plans;
    bench_metric("", "most over the bound", BENCH_LOWER, 100 * reference.farthest, "%");
    bench_metric("", "idle, mean", BENCH_LOWER, 100 * idle, "%");
    bench_check(idle <= .005, "idle, mean", "<= .5 %", "%.3f %%", 100 * idle);
    if (!quick) {
        bench_section("All models and machines");
        bench_check(all.slower == 0, "no slower than the published rule", "all",
                    "%d of %d, paper/ours >= %.4f", all.pairs - all.slower, all.pairs, all.least_ratio);
        bench_line("over the bound by at most 5 %", "%d of %d, most %.2f %% (%s)", all.near, all.near_of,
                   100 * all.farthest, all.farthest_name);
        bench_line("idle, mean", "%.3f %%", 100 * all.idle / all.plans);
        bench_line("infeasible", "%d combinations, with their reasons above", all.infeasible);
    }
    hbp_context_free(context);
    return bench_end();
}
