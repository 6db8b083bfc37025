/* Epochs of vision-language data: a hierarchy, what auto takes, an order of modalities and windows, beside
 * packs of one group, which take the best SP degree and are alike in all sizes (OmniBal's way), in steps of
 * as many tokens; each as a ratio to the bound. Data: vlm_tokens and vlm_images, and two drawn mixes. Times
 * are the cost's (llama-3.1-8b on 16 H100, a unit 5 ms and 100 MB). Seconds are of the CPU, one thread. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { SAMPLES = 20000, TOKENS_PER_STEP = 2000000 };

static hbp_cost *unit_cost(hbp_context *context)
{
    const char *reason = NULL;
    hbp_cost *plain = bench_cost(context, "llama-3.1-8b", 2, &reason), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    bench_need(context, hbp_cost_get_terms(context, plain, &terms), "terms");
    terms.ns_per_vision = 5e6;
    terms.recompute_vision = 0.3;
    terms.vision_bytes = 1e8;
    bench_need(context, hbp_cost_create_terms(context, &terms, &cost), "cost");
    hbp_cost_free(plain);
    return cost;
}

/* Text with a long tail, and images of 256 tokens a unit: few samples with many, or most with few. */
static hbp_lengths *draw(hbp_context *context, int few)
{
    uint64_t state = 7;
    uint32_t *t = bench_allocate(SAMPLES, sizeof *t), *v = bench_allocate(SAMPLES, sizeof *v);
    int32_t *kind = bench_allocate(SAMPLES, sizeof *kind);
    for (int64_t i = 0; i < SAMPLES; i++) {
        double uniform = (double)(bench_random(&state) >> 11) * 0x1p-53;
        uint32_t images = 1 + (uint32_t)(bench_random(&state) % 24);
        if (few)
            v[i] = bench_random(&state) % 16 ? 0 : images;
        else
            v[i] = images % 5 * (bench_random(&state) % 7 ? 1 : 8);
        t[i] = (uint32_t)((few ? 60 : 240) / (1 - 0.9985 * uniform)) + 256 * v[i] + 1;
        kind[i] = v[i] > 0;
    }
    return bench_lengths_of(context, t, v, kind, SAMPLES);
}

static double epoch_ns(hbp_context *context, hbp_plan *plan, double *bound_ns)
{
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "summary");
    if (summary.bound_ns)
        *bound_ns = (double)summary.bound_ns;
    hbp_plan_free(plan);
    return (double)summary.predicted_ns;
}

/* The least time of packs of one group, over the degrees. */
static double one_group(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                        hbp_epoch_options options, int64_t length)
{
    double best = 0, bound_ns;
    for (int32_t sp = 1; sp <= 16; sp *= 2) {
        hbp_groups *groups = NULL;
        hbp_plan *plan = NULL;
        if (hbp_groups_create(context, cost, 1, &length, &sp, NULL, TOKENS_PER_STEP, &groups) < 0)
            continue;
        options.groups = groups;
        options.composition = HBP_COMPOSITION_HIERARCHY;
        if (hbp_plan_epoch(context, lengths, cost, &options, &plan) >= 0) {
            double ns = epoch_ns(context, plan, &bound_ns);
            best = best == 0 || ns < best ? ns : best;
        }
        hbp_groups_free(groups);
    }
    return best;
}

static void compare(hbp_context *context, const hbp_lengths *lengths, const char *name, int64_t length,
                    int64_t max_vision)
{
    const struct {
        const char *name;
        hbp_epoch_options options;
    } ways[] = {{"hierarchy", {.composition = HBP_COMPOSITION_HIERARCHY}},
                {"auto", {.composition = HBP_COMPOSITION_AUTO}},
                {"order of modalities", {.modality_order = 1}},
                {"windows of 5,000", {.window_samples = 5000}}};
    hbp_cost *cost = unit_cost(context);
    for (int limited = 0; limited < 2; limited++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .tokens_per_step = TOKENS_PER_STEP,
                                     .max_vision = limited ? max_vision : 0};
        double group_ns = one_group(context, lengths, cost, options, length), bound_ns = 0, steps_ns = 0;
        bench_section("%s, %s", name, limited ? "few units a pack" : "units as memory holds");
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            hbp_plan *plan = NULL;
            options.composition = ways[i].options.composition;
            options.modality_order = ways[i].options.modality_order;
            options.window_samples = ways[i].options.window_samples;
            options.tokens_per_step = ways[i].options.window_samples ? 0 : TOKENS_PER_STEP;
            double start = bench_cpu();
            bench_need(context, hbp_plan_epoch(context, lengths, cost, &options, &plan), ways[i].name);
            double seconds = bench_cpu() - start, ns = epoch_ns(context, plan, &bound_ns);
            steps_ns = i ? steps_ns : bound_ns;
            bench_line(ways[i].name, "%.3f of one group's time; %.2f %% above the bound; planned in %.2f s",
                       ns / group_ns, 100 * (ns / bound_ns - 1), seconds);
            bench_metric_beside(ways[i].name, "epoch", BENCH_LOWER, ns * 1e-9, "predicted s", "one group",
                                ns / group_ns);
            bench_metric(ways[i].name, "over the bound", BENCH_LOWER, 100 * (ns / bound_ns - 1), "%");
            bench_metric(ways[i].name, "planning", BENCH_LOWER, seconds, "s");
        }
        bench_line("one group", "%.2f %% above the bound of the same steps", 100 * (group_ns / steps_ns - 1));
    }
    hbp_cost_free(cost);
}

int main(void)
{
    hbp_context *context = bench_context(NULL);
    hbp_lengths *lengths = bench_vision_lengths(context, BENCH_VISION_SAMPLES);
    if (lengths)
        compare(context, lengths, "four public sets", 6016, 18);
    hbp_lengths_free(lengths);
    lengths = draw(context, 1);
    compare(context, lengths, "one sample in 16 has images", 65536, 48);
    hbp_lengths_free(lengths);
    lengths = draw(context, 0);
    compare(context, lengths, "most samples have images", 262144, 48);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
    return bench_end();
}
