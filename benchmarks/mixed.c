/* Mixed layouts beside the hierarchy, beside steps planned one by one, and over the bound. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mixed.h"

enum { BATCHES = 48, LARGE_BATCHES = 6, SLACK_SAMPLES = 50000 };

/* Thousandths, for data sets of at most SLACK_SAMPLES. */
static const int32_t slacks[] = {10, 20, 60};

typedef struct outcome {
    hbp_report report;
    double seconds; /* on the CPU */
} outcome;

static void plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost, int32_t composition,
                 int32_t slack, int64_t tokens_per_step, outcome *o)
{
    hbp_epoch_options options = {.struct_size = sizeof options};
    options.composition = composition;
    options.mixture_slack = slack;
    options.tokens_per_step = tokens_per_step;
    memset(o, 0, sizeof *o);
    hbp_plan *made = NULL;
    double start = bench_cpu();
    bench_need(context, hbp_plan_epoch(context, lengths, cost, &options, &made), "the epoch");
    o->seconds = bench_cpu() - start;
    bench_need(context, hbp_plan_validate(context, made, lengths, cost), "the plan");
    hbp_simulate_options simulate = {.struct_size = sizeof simulate};
    simulate.tokens_per_step = tokens_per_step;
    o->report = (hbp_report){.struct_size = sizeof o->report};
    bench_need(context, hbp_simulate(context, made, cost, &simulate, &o->report), "the replay");
    hbp_plan_free(made);
}

static double work_of(const hbp_cost_terms *t, double tokens)
{
    return tokens * (t->ns_per_token + t->ns_per_token_squared * tokens);
}

/* Predicted ns of the epoch when batches of `tokens_per_step` tokens, drawn at random, are planned one by
 * one: from a few of them, by the work that they have of all work. */
static double plan_steps(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                         int64_t tokens_per_step, int batches)
{
    hbp_lengths_summary summary = {.struct_size = sizeof summary};
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    bench_need(context, hbp_lengths_get_summary(context, lengths, &summary), "summary");
    bench_need(context, hbp_cost_get_terms(context, cost, &terms), "terms");
    int64_t *length = bench_allocate(summary.samples, sizeof *length);
    double ns = 0, work = 0, all_work = 0;
    uint64_t state = 1;
    for (int64_t i = 0; i < summary.samples; i++)
        all_work += work_of(&terms, (double)hbp_lengths_get_length(lengths, i));
    for (int b = 0; b < batches; b++) {
        int64_t count = 0, held = 0;
        for (; count < summary.samples; count++) {
            int64_t drawn = (int64_t)(bench_random(&state) % (uint64_t)summary.samples);
            length[count] = hbp_lengths_get_length(lengths, drawn);
            if (count && held + length[count] > tokens_per_step)
                break;
            held += length[count];
            work += work_of(&terms, (double)length[count]);
        }
        hbp_lengths *batch = NULL;
        hbp_plan *step = NULL;
        bench_need(context, hbp_lengths_create_i64(context, length, count, NULL, &batch), "a batch");
        bench_need(context, hbp_plan_step(context, batch, cost, NULL, &step), "a step");
        hbp_plan_view view = {.struct_size = sizeof view};
        (void)hbp_plan_get_view(step, &view);
        ns += (double)view.step_ns[0];
        hbp_plan_free(step);
        hbp_lengths_free(batch);
    }
    free(length);
    return ns / work * all_work;
}

static void print_outcome(const char *name, const char *way, int64_t tokens_per_step, const outcome *o,
                          const outcome *hierarchy, double steps_ns)
{
    printf("%-18s %-10s %8.1f %7lld %9.5f %8.4f %6.2f %6.3f %6.3f %7.2f\n", name, way,
           (double)tokens_per_step * 1e-6, (long long)o->report.steps,
           (double)o->report.epoch_ns / (double)hierarchy->report.epoch_ns,
           (double)o->report.epoch_ns / steps_ns, 100 * o->report.gap, o->report.mixture_distance,
           o->report.samples_cv, o->seconds);
    fflush(stdout);
}

typedef struct tally {
    int plans, slower, slower_than_steps, near;
    double farthest, distance, hierarchy_distance;
} tally;

static void compare(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost, const char *name,
                    int64_t tokens_per_step, int is_large, int with_slack, tally *t)
{
    outcome hierarchy, mixed, slack;
    double steps_ns = plan_steps(context, lengths, cost, tokens_per_step, is_large ? LARGE_BATCHES : BATCHES);
    plan(context, lengths, cost, HBP_COMPOSITION_HIERARCHY, 0, tokens_per_step, &hierarchy);
    plan(context, lengths, cost, HBP_COMPOSITION_AUTO, -1, tokens_per_step, &mixed);
    print_outcome(name, "hierarchy", tokens_per_step, &hierarchy, &hierarchy, steps_ns);
    print_outcome(name, "mixed", tokens_per_step, &mixed, &hierarchy, steps_ns);
    for (int i = 0; with_slack && i < 3; i++) {
        char way[16];
        snprintf(way, sizeof way, "slack %d", (int)slacks[i]);
        plan(context, lengths, cost, HBP_COMPOSITION_AUTO, slacks[i], tokens_per_step, &slack);
        print_outcome(name, way, tokens_per_step, &slack, &hierarchy, steps_ns);
    }
    t->plans++;
    t->slower += mixed.report.epoch_ns > hierarchy.report.epoch_ns;
    t->slower_than_steps += (double)mixed.report.epoch_ns > steps_ns;
    t->near += mixed.report.gap <= .015;
    t->farthest = fmax(t->farthest, mixed.report.gap);
    t->distance += mixed.report.mixture_distance;
    t->hierarchy_distance += hierarchy.report.mixture_distance;
}

void bench_mixed(hbp_context *context, const hbp_cost *cost, int is_quick)
{
    bench_section("Mixed layouts: llama-3.1-8b, 4 nodes of 8 h100");
    printf("tokens: millions in a step, the groups' and eight times as many; time: over the hierarchy's, and "
           "over\n"
           "that of random batches planned one by one (%d and %d of them); bound: percent over it; distance: "
           "of a step's "
           "mixture\n"
           "to the epoch's; cv: of samples, over all steps; slack: mixture_slack; planned: CPU seconds\n"
           "%-18s %-10s %8s %7s %9s %8s %6s %6s %6s %7s\n",
           BATCHES, LARGE_BATCHES, "data", "way", "tokens", "steps", "time", "by step", "bound", "dist", "cv",
           "planned");
    tally one = {0}, eight = {0};
    for (int d = 0; d < BENCH_DATA_SETS; d++) {
        bench_data data;
        if (!bench_data_open(context, d, &data))
            continue;
        hbp_lengths *lengths = bench_lengths(context, &data, BENCH_LONGEST);
        hbp_groups *groups = NULL;
        bench_need(context, hbp_plan_groups(context, lengths, cost, NULL, &groups), "groups");
        int64_t tokens = bench_tokens_per_step(groups);
        int with_slack = !is_quick && data.count <= SLACK_SAMPLES;
        compare(context, lengths, cost, data.name, tokens, 0, with_slack, &one);
        compare(context, lengths, cost, data.name, 8 * tokens, 1, 0, &eight);
        hbp_groups_free(groups);
        hbp_lengths_free(lengths);
        bench_data_close(&data);
    }
    const tally *both[] = {&one, &eight};
    for (int i = 0; i < 2; i++) {
        const tally *t = both[i];
        bench_line(i ? "eight times the tokens" : "the groups' tokens", "");
        bench_check(t->slower == 0, "mixed: no slower than the hierarchy", "all", "%d of %d",
                    t->plans - t->slower, t->plans);
        bench_check(t->slower_than_steps == 0, "mixed: no slower than steps planned one by one", "all",
                    "%d of %d", t->plans - t->slower_than_steps, t->plans);
        bench_check(t->near == t->plans, "mixed: over the bound", "all <= 1.5 %", "%d of %d, most %.2f %%",
                    t->near, t->plans, 100 * t->farthest);
        bench_line("distance to the epoch's mixture, mean", "%.3f; hierarchy %.3f", t->distance / t->plans,
                   t->hierarchy_distance / t->plans);
    }
}
