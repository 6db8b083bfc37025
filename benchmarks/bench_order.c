/* The order of a step's micro-batches: time as given, by simple rules, as searched, and the bound. Half of
 * the stages hold vision layers and half language layers; vision and token scales are lognormal, unrelated.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { STEPS = 40, MOST = 64 };

enum { GIVEN, FALLING, HILL, ORDERED, WAYS };

static double draw_normal(uint64_t *state)
{
    double u = (double)(bench_random(state) >> 11) / 9007199254740992.0;
    double v = (double)(bench_random(state) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static hbp_layers *make_layers(hbp_context *context, int32_t stages)
{
    int64_t forward[MOST];
    int32_t type[MOST];
    for (int32_t i = 0; i < stages; i++) {
        forward[i] = 4000000;
        type[i] = i < stages / 2 ? HBP_LAYER_VISION : HBP_LAYER_LANGUAGE;
    }
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = stages;
    columns.forward_ns = forward;
    columns.type = type;
    hbp_layers *layers = NULL;
    bench_need(context, hbp_layers_create(context, &columns, &layers), "layers");
    return layers;
}

/* Rows by vision and token scale together, rising. */
static void sort_rows(const hbp_pipeline_options *pipeline, int32_t *row)
{
    for (int32_t i = 0; i < pipeline->micro_batches; i++) {
        int32_t at = i;
        double own = pipeline->vision_scale[i] + pipeline->token_scale[i];
        for (; at > 0; at--) {
            if (pipeline->vision_scale[row[at - 1]] + pipeline->token_scale[row[at - 1]] <= own)
                break;
            row[at] = row[at - 1];
        }
        row[at] = i;
    }
}

static hbp_pipeline_summary simulate(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                     const hbp_pipeline_options *pipeline, const int32_t *order)
{
    hbp_pipeline_run *run = NULL;
    hbp_pipeline_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_simulate_pipeline(context, layers, cuts, pipeline, order, &run), "run");
    bench_need(context, hbp_pipeline_run_get_summary(context, run, &summary), "summary");
    hbp_pipeline_run_free(run);
    return summary;
}

static void compare(hbp_context *context, double sigma, int32_t stages, int32_t micro_batches)
{
    hbp_layers *layers = make_layers(context, stages);
    int32_t cuts[MOST + 1], row[MOST], order[MOST];
    double vision[MOST], token[MOST], over[WAYS] = {0}, faster = 0, seconds[STEPS];
    for (int32_t s = 0; s <= stages; s++)
        cuts[s] = s;
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    pipeline.stages = stages;
    pipeline.micro_batches = micro_batches;
    pipeline.vision_scale = vision;
    pipeline.token_scale = token;
    uint64_t state = 42;
    for (int step = 0; step < STEPS; step++) {
        for (int32_t m = 0; m < micro_batches; m++) {
            vision[m] = exp(sigma * draw_normal(&state));
            token[m] = exp(sigma * draw_normal(&state));
        }
        int64_t ns[WAYS];
        hbp_pipeline_summary given = simulate(context, layers, cuts, &pipeline, NULL);
        sort_rows(&pipeline, row);
        for (int32_t i = 0; i < micro_batches; i++)
            order[i] = row[micro_batches - 1 - i];
        ns[FALLING] = simulate(context, layers, cuts, &pipeline, order).total_ns;
        for (int32_t i = 0; i < micro_batches; i++)
            order[i % 2 ? micro_batches - 1 - i / 2 : i / 2] = row[i];
        ns[HILL] = simulate(context, layers, cuts, &pipeline, order).total_ns;
        double start = bench_cpu();
        bench_need(context,
                   hbp_order_micro_batches(context, layers, cuts, &pipeline, order, &ns[GIVEN], &ns[ORDERED]),
                   "order");
        seconds[step] = bench_cpu() - start;
        for (int way = 0; way < WAYS; way++)
            over[way] += (double)ns[way] / (double)given.bound_ns - 1;
        faster += (double)ns[GIVEN] / (double)ns[ORDERED] - 1;
    }
    char name[64];
    snprintf(name, sizeof name, "sigma %.1f, S %d, M %d", sigma, (int)stages, (int)micro_batches);
    bench_line(name,
               "%5.1f %% faster; over the bound: given %5.1f %%, falling %5.1f %%, hill %5.1f %%, "
               "ordered %5.1f %%; %.1f ms",
               100 * faster / STEPS, 100 * over[GIVEN] / STEPS, 100 * over[FALLING] / STEPS,
               100 * over[HILL] / STEPS, 100 * over[ORDERED] / STEPS, 1e3 * bench_median(seconds, STEPS));
    bench_metric(name, "ordered, over the bound", BENCH_LOWER, 100 * over[ORDERED] / STEPS, "%");
    bench_metric(name, "ordering", BENCH_LOWER, 1e3 * bench_median(seconds, STEPS), "ms");
    hbp_layers_free(layers);
}

int main(void)
{
    hbp_context *context = bench_context(NULL);
    bench_section("Micro-batches of a step in order: 1F1B, means over %d steps, median CPU time", STEPS);
    for (int32_t stages = 4; stages <= 8; stages *= 2)
        for (int32_t micro_batches = 8; micro_batches <= MOST; micro_batches *= 2)
            compare(context, 0.5, stages, micro_batches);
    for (int32_t stages = 4; stages <= 8; stages *= 2)
        compare(context, 0.1, stages, 16);
    hbp_context_free(context);
    return bench_end();
}
