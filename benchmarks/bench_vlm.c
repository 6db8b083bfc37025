/* Vision-language runs on OmniBal's length files (70,706 samples): packs under two budgets beside the
 * published fill, the published ablation, pairs of models, and the time that planning takes. GPU time is
 * predicted. */
#include <stdio.h>
#include <string.h>

#include "common.h"

enum { MANY = 1200000 };

/* A cost of `ranks` replicas that charges tokens and vision units alike. */
static hbp_cost *make_cost(hbp_context *context, int32_t ranks)
{
    const int32_t degree = 1;
    const double none = 0;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = ranks;
    terms.layers = 1;
    terms.ns_per_token = 1000;
    terms.ns_per_vision = 256000;
    terms.limit_bytes = INT64_C(1) << 40;
    terms.degrees = 1;
    terms.degree = &degree;
    terms.sp_latency_ns = terms.sp_ns_per_token = &none;
    hbp_cost *cost = NULL;
    bench_need(context, hbp_cost_create_terms(context, &terms, &cost), "cost");
    return cost;
}

typedef struct dealt {
    int64_t packs, bound;
    double seconds; /* of the fill and the deal */
    hbp_report report;
    hbp_plan_summary summary;
} dealt;

/* Packs under both budgets, dealt to 8 replicas. */
static dealt deal(hbp_context *context, const hbp_lengths *lengths, const char *method, int64_t max_vision,
                  int64_t max_tokens)
{
    const int32_t one = 1, none = 0;
    dealt d = {.report = {.struct_size = sizeof d.report}, .summary = {.struct_size = sizeof d.summary}};
    hbp_iterative_fill_options fill = {.struct_size = sizeof fill};
    hbp_balance_options balance = {.struct_size = sizeof balance};
    hbp_simulate_options simulate = {.struct_size = sizeof simulate};
    fill.method = method;
    fill.max_vision = max_vision;
    fill.max_tokens = max_tokens;
    balance.method = strcmp(method, "vector") == 0 ? "vision" : "given";
    simulate.no_bound = 1;
    hbp_cost *cost = make_cost(context, 8);
    hbp_groups *groups = NULL;
    hbp_packs *packs = NULL;
    hbp_plan *plan = NULL;
    bench_need(context,
               hbp_groups_create(context, cost, 1, &max_tokens, &one, &none, 64 * max_tokens, &groups),
               "groups");
    double start = bench_cpu();
    bench_need(context, hbp_iterative_fill(context, lengths, &fill, &packs), "fill");
    bench_need(context, hbp_balance_attention(context, packs, groups, cost, &balance, &plan), "balance");
    d.seconds = bench_cpu() - start;
    d.packs = bench_count_packs(packs);
    d.bound = bench_packs_bound(packs);
    bench_need(context, hbp_simulate(context, plan, cost, &simulate, &d.report), "simulate");
    bench_need(context, hbp_plan_get_summary(context, plan, &d.summary), "summary");
    hbp_plan_free(plan);
    hbp_packs_free(packs);
    hbp_groups_free(groups);
    hbp_cost_free(cost);
    return d;
}

static void measure_packs(hbp_context *context, const hbp_lengths *lengths)
{
    static const int64_t budgets[][2] = {{18, 6016}, {9, 4096}};
    bench_section("packs under two budgets, 8 replicas");
    printf("  %-14s %10s %10s %10s %14s %14s %10s\n", "Q_v, Q_t", "published", "packs", "bound",
           "apart: vision", "tokens", "padding");
    for (int i = 0; i < 2; i++) {
        dealt ours = deal(context, lengths, "vector", budgets[i][0], budgets[i][1]);
        dealt theirs = deal(context, lengths, "isf", budgets[i][0], budgets[i][1]);
        double padding = 1 - (double)ours.summary.tokens / (double)ours.summary.padded_tokens;
        printf("  %3lld, %6lld    %10lld %10lld %10lld %14.5f %14.5f %10.4f\n", (long long)budgets[i][0],
               (long long)budgets[i][1], (long long)theirs.packs, (long long)ours.packs,
               (long long)ours.bound, ours.report.dist_vision, ours.report.dist_tokens, padding);
        char row[64];
        snprintf(row, sizeof row, "%lld, %lld", (long long)budgets[i][0], (long long)budgets[i][1]);
        bench_metric_beside(row, "packs", BENCH_LOWER, (double)ours.packs, "packs", "bound",
                            (double)ours.packs / (double)ours.bound);
        bench_metric(row, "DistRatio of vision", BENCH_LOWER, ours.report.dist_vision, "1");
        bench_metric(row, "DistRatio of tokens", BENCH_LOWER, ours.report.dist_tokens, "1");
        bench_check(ours.packs < theirs.packs && ours.report.dist_vision <= .02 &&
                        ours.report.dist_tokens <= .02 && padding <= .01 &&
                        ours.summary.samples == BENCH_VISION_SAMPLES,
                    "fewer packs, none lost", "both <= .02", "%.5f, %.5f", ours.report.dist_vision,
                    ours.report.dist_tokens);
    }
}

typedef struct way {
    const char *name, *data, *partition, *recompute;
    int32_t order;
    double published; /* GPU-days, 0: none */
} way;

/* OmniBal, table 7, Megatron's baseline. */
static const way ways[] = {
    {"as usual", "random", "parameters", "all", -1, 61.8},
    {"+ data", "packed", "parameters", "all", 0, 51.9},
    {"+ model", "packed", "optimal", "all", 0, 29.0},
    {"+ memory", "packed", "optimal", "optimal", 0, 21.3},
    {"OmniBal as published", "isf", "omnibal", "omnibal", -1, 0},
};

enum { WAYS = sizeof ways / sizeof *ways };

static hbp_vlm_plan_summary plan_run(hbp_context *context, const hbp_lengths *lengths, const char *model,
                                     const way *w, int32_t tensor_parallel, int32_t stages, double *seconds)
{
    hbp_vlm *vlm = NULL;
    hbp_machine *machine = NULL;
    hbp_vlm_plan *plan = NULL;
    hbp_vlm_options options = {.struct_size = sizeof options};
    hbp_vlm_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_vlm_create_preset(context, model, &vlm), model);
    bench_need(context, hbp_machine_create_preset(context, "a100-80:8", &machine), "a100-80");
    options.tensor_parallel = tensor_parallel;
    options.pipeline_stages = stages;
    options.data_method = w->data;
    options.partition_method = w->partition;
    options.recompute_method = w->recompute;
    options.keep_order = w->order < 0;
    double start = bench_cpu();
    bench_need(context, hbp_plan_vlm(context, lengths, vlm, machine, &options, &plan), w->name);
    *seconds = bench_cpu() - start;
    bench_need(context, hbp_vlm_plan_get_summary(context, plan, &summary), "summary");
    hbp_vlm_plan_free(plan);
    hbp_machine_free(machine);
    hbp_vlm_free(vlm);
    return summary;
}

static void ablate(hbp_context *context, const hbp_lengths *lengths)
{
    bench_section(
        "published ablation: InternViT-6B + InternLM2-20B, 64 A100-80, TP 4, 4 stages, 128 samples a step");
    printf("  %-22s %10s %10s %8s %8s %14s %10s\n", "", "GPU-days", "over bound", "idle", "padding",
           "recomputed", "CPU s");
    double before = 0;
    for (int i = 0; i < WAYS; i++) {
        double seconds;
        hbp_vlm_plan_summary s = plan_run(context, lengths, "internvl-1.5-26b", &ways[i], 4, 4, &seconds);
        printf("  %-22s %10.3f %8.2f %% %6.2f %% %6.2f %% %14d %10.3f\n", ways[i].name, s.gpu_days,
               100 * ((double)s.epoch_ns / (double)s.packs_bound_ns - 1), 100 * s.bubble, 100 * s.padding,
               (int)(s.recomputed + s.selective), seconds);
        bench_metric_beside(ways[i].name, "run", BENCH_LOWER, s.gpu_days, "predicted GPU-days",
                            "bound for its packs", (double)s.epoch_ns / (double)s.packs_bound_ns);
        bench_metric(ways[i].name, "planning", BENCH_LOWER, seconds, "s");
        if (i && ways[i].published > 0) {
            double published = ways[i].published / ways[i - 1].published, ours = s.gpu_days / before;
            char target[64];
            snprintf(target, sizeof target, "%.3f within 25 %%", published);
            bench_check(ours / published < 1.25 && ours / published > .75, ways[i].name, target,
                        "%.3f of the one before, %+.1f %%", ours, 100 * (ours / published - 1));
        }
        before = s.gpu_days;
    }
}

static void compare_models(hbp_context *context, const hbp_lengths *lengths)
{
    static const struct {
        const char *model;
        int32_t tensor_parallel, stages;
    } runs[] = {{"internvl-1.5-26b", 4, 4},
                {"internvl-1.2-plus-40b", 8, 4},
                {"eva-clip-llama-3-8b", 2, 4},
                {"qwen2-vl-7b", 2, 4}};
    bench_section("as usual / balanced in data, model and memory, 64 A100-80");
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        double seconds;
        hbp_vlm_plan_summary usual = plan_run(context, lengths, runs[i].model, &ways[0],
                                              runs[i].tensor_parallel, runs[i].stages, &seconds);
        hbp_vlm_plan_summary ours = plan_run(context, lengths, runs[i].model, &ways[3],
                                             runs[i].tensor_parallel, runs[i].stages, &seconds);
        bench_line(runs[i].model, "TP %d, %d stages: %.3f / %.3f GPU-days = %.2fx, %d layers recomputed",
                   (int)runs[i].tensor_parallel, (int)runs[i].stages, usual.gpu_days, ours.gpu_days,
                   usual.gpu_days / ours.gpu_days, (int)(ours.recomputed + ours.selective));
        bench_metric_beside(runs[i].model, "run", BENCH_LOWER, ours.gpu_days, "predicted GPU-days",
                            "as usual", ours.gpu_days / usual.gpu_days);
    }
}

static void time_many(hbp_context *context)
{
    hbp_lengths *lengths = bench_vision_lengths(context, MANY);
    bench_section("1.2M samples, one thread");
    dealt d = deal(context, lengths, "vector", 18, 6016);
    bench_check(d.seconds < 2, "default data plan, 18 / 6016", "< 2 s", "%.2f s of CPU, %lld packs",
                d.seconds, (long long)d.packs);
    double seconds;
    hbp_vlm_plan_summary s = plan_run(context, lengths, "internvl-1.5-26b", &ways[3], 4, 4, &seconds);
    bench_line("hbp_plan_vlm, budgets chosen", "%.2f s of CPU, %.2f GPU-days in %lld steps", seconds,
               s.gpu_days, (long long)s.steps);
    bench_metric("", "default data plan", BENCH_LOWER, d.seconds, "s");
    bench_metric("", "hbp_plan_vlm, budgets chosen", BENCH_LOWER, seconds, "s");
    hbp_lengths_free(lengths);
}

int main(void)
{
    hbp_context *context = bench_context(NULL);
    hbp_lengths *lengths = bench_vision_lengths(context, BENCH_VISION_SAMPLES);
    if (!lengths) {
        hbp_context_free(context);
        return 0;
    }
    measure_packs(context, lengths);
    ablate(context, lengths);
    compare_models(context, lengths);
    time_many(context);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
    return bench_end();
}
