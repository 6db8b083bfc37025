/* Layers over pipeline stages: 1,000 layers on 64 stages against a plain recurrence for the bottleneck alone,
 * and a vision-language model on 4 stages against the ways that other systems cut. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { LAYERS = 1000, STAGES = 64, MOST_BATCHES = 512 };

/* What an instance of 1,000 layers is like, or-ed. */
enum { RANDOM = 1, TWO_KINDS = 2, LINKS = 4, SPEEDS = 8, LIMITS = 16, UNEVEN = 32 };

static const char *const methods[] = {"optimal", "balanced", "parameters", "uniform", "omnibal"};

static int64_t draw(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(bench_random(state) % (uint64_t)(high - low + 1));
}

/* The recurrence that everybody writes: least largest stage, nothing else. O(stages layers^2). */
static int64_t plain_bottleneck(const int64_t *sum)
{
    static int64_t least[LAYERS + 1], next[LAYERS + 1];
    for (int b = 0; b <= LAYERS; b++)
        least[b] = sum[b];
    for (int s = 1; s < STAGES; s++) {
        for (int b = 0; b <= LAYERS; b++) {
            next[b] = INT64_MAX;
            for (int a = s; a < b; a++) {
                int64_t part = sum[b] - sum[a], most = part > least[a] ? part : least[a];
                next[b] = most < next[b] ? most : next[b];
            }
        }
        for (int b = 0; b <= LAYERS; b++)
            least[b] = next[b];
    }
    return least[LAYERS];
}

typedef struct instance {
    int64_t forward[LAYERS], sum[LAYERS + 1], state[LAYERS], activation[LAYERS], cut[LAYERS];
    int32_t type[LAYERS];
    double vision[MOST_BATCHES], tokens[MOST_BATCHES], speed[STAGES];
    int64_t limit[STAGES];
    hbp_layers *layers;
    hbp_pipeline_options pipeline;
} instance;

static void make(hbp_context *context, int what, int32_t micro_batches, instance *d)
{
    uint64_t state = (uint64_t)what + 1;
    int64_t bytes = 0;
    d->sum[0] = 0;
    for (int i = 0; i < LAYERS; i++) {
        int vision = what & TWO_KINDS && i < LAYERS / 3;
        d->type[i] = vision ? HBP_LAYER_VISION : HBP_LAYER_LANGUAGE;
        d->forward[i] = what & RANDOM ? draw(&state, 500000, 1500000) : vision ? 700000 : 1000000;
        d->sum[i + 1] = d->sum[i] + 3 * d->forward[i];
        d->state[i] = draw(&state, 1 << 28, 1 << 29);
        d->activation[i] = draw(&state, 1 << 22, 1 << 24);
        d->cut[i] = vision ? 59040000 : what & RANDOM ? draw(&state, 20000000, 80000000) : 50331648;
        if (what & TWO_KINDS && i == LAYERS / 3)
            d->cut[i] = 28311552;
        bytes += d->state[i] + d->activation[i] * STAGES / 2;
    }
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = LAYERS;
    columns.forward_ns = d->forward;
    columns.type = d->type;
    columns.state_bytes = d->state;
    columns.activation_bytes = d->activation;
    columns.cut_bytes = d->cut;
    bench_need(context, hbp_layers_create(context, &columns, &d->layers), "layers");
    for (int m = 0; m < micro_batches; m++) {
        d->vision[m] = 0.5 + (double)draw(&state, 0, 1000) / 1000;
        d->tokens[m] = 0.5 + (double)draw(&state, 0, 1000) / 1000;
    }
    for (int s = 0; s < STAGES; s++) {
        d->speed[s] = 0.75 + 0.05 * (double)draw(&state, 0, 10);
        d->limit[s] = bytes / STAGES + bytes / STAGES / 5;
    }
    hbp_pipeline_options *p = &d->pipeline;
    *p = (hbp_pipeline_options){.struct_size = sizeof *p};
    p->stages = STAGES;
    p->micro_batches = micro_batches;
    if (what & LINKS) {
        p->link_bytes_per_s = 25e9;
        p->link_latency_ns = 10000;
        p->link_overlap = 0.5;
    }
    p->speed = what & SPEEDS ? d->speed : NULL;
    p->limit_bytes = what & LIMITS ? d->limit : NULL;
    p->vision_scale = what & UNEVEN ? d->vision : NULL;
    p->token_scale = what & UNEVEN ? d->tokens : NULL;
}

static hbp_layer_partition_summary partition(hbp_context *context, const hbp_layers *layers,
                                             const hbp_pipeline_options *pipeline, const char *method,
                                             int32_t candidates, int32_t order, double *seconds,
                                             hbp_status *status)
{
    hbp_layer_partition_options options = {.struct_size = sizeof options};
    options.method = method;
    options.candidates = candidates;
    options.order = order;
    hbp_layer_partition *made = NULL;
    double start = bench_cpu();
    *status = hbp_partition_layers(context, layers, pipeline, &options, &made);
    bench_need(context, *status, "a partition");
    *seconds = bench_cpu() - start;
    hbp_layer_partition_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_layer_partition_get_summary(context, made, &summary), "summary");
    hbp_layer_partition_free(made);
    return summary;
}

static void large(hbp_context *context, const char *name, int what, int32_t micro_batches)
{
    static instance d;
    char text[64];
    make(context, what, micro_batches, &d);
    hbp_status status, ignored;
    double plain = bench_cpu(), one, eight;
    int64_t bottleneck = plain_bottleneck(d.sum);
    plain = bench_cpu() - plain;
    hbp_layer_partition_summary best =
        partition(context, d.layers, &d.pipeline, "optimal", 1, 0, &one, &status);
    partition(context, d.layers, &d.pipeline, "optimal", 8, 0, &eight, &ignored);
    char against[48] = "does not fit";
    hbp_layer_partition *balanced = NULL;
    hbp_layer_partition_options options = {.struct_size = sizeof options};
    options.method = "balanced";
    if (hbp_partition_layers(context, d.layers, &d.pipeline, &options, &balanced) >= 0) {
        hbp_layer_partition_summary summary = {.struct_size = sizeof summary};
        bench_need(context, hbp_layer_partition_get_summary(context, balanced, &summary), "summary");
        snprintf(against, sizeof against, "%.3f", (double)summary.predicted_ns / (double)best.bound_ns);
    }
    hbp_layer_partition_free(balanced);
    snprintf(text, sizeof text, "%s, M %d", name, (int)micro_batches);
    bench_check(one < 1 && status == HBP_OK, text, "proven, < 1 s",
                "%s %7.1f ms (%.3f of plain), 8: %7.1f ms, balanced %s",
                status == HBP_OK ? "proven" : "open  ", 1e3 * one, one / plain, 1e3 * eight, against);
    bench_metric_beside(text, "the optimum", BENCH_LOWER, 1e3 * one, "ms", "plain recurrence", one / plain);
    bench_metric(text, "with 8 candidates", BENCH_LOWER, 1e3 * eight, "ms");
    if (what == 0 && best.bottleneck_ns != bottleneck)
        bench_line("  its bottleneck", "%lld ns; the plain one %lld", (long long)best.bottleneck_ns,
                   (long long)bottleneck);
    hbp_layers_free(d.layers);
}

/* Equal micro-batches: what running the candidates would win over the least predicted time. */
static void formula_and_run(hbp_context *context, const char *name, int what)
{
    enum { DRAWS = 200, COUNT = 100 };
    static instance d;
    int faster = 0, slower_than_balanced = 0;
    double won = 0, most = 0;
    uint64_t state = (uint64_t)what + 99;
    for (int i = 0; i < DRAWS; i++) {
        hbp_pipeline_options *p = &d.pipeline;
        make(context, what, 8, &d);
        hbp_layers_free(d.layers);
        for (int l = 0; l < COUNT; l++)
            d.forward[l] = draw(&state, 500000, 1500000);
        for (int s = 0; s < STAGES; s++)
            d.speed[s] = 0.75 + 0.05 * (double)draw(&state, 0, 10);
        hbp_layer_columns columns = {.struct_size = sizeof columns};
        columns.count = COUNT;
        columns.forward_ns = d.forward;
        columns.cut_bytes = d.cut;
        bench_need(context, hbp_layers_create(context, &columns, &d.layers), "layers");
        p->stages = (int32_t)draw(&state, 2, 8);
        p->micro_batches = p->stages * (int32_t)draw(&state, 1, 4);
        hbp_layer_partition_options options = {.struct_size = sizeof options};
        hbp_layer_partition *made = NULL;
        bench_need(context, hbp_partition_layers(context, d.layers, p, &options, &made), "a partition");
        int64_t chosen = 0, least = INT64_MAX;
        hbp_layer_partition_view view = {.struct_size = sizeof view};
        (void)hbp_layer_partition_get_view(made, &view);
        for (int64_t c = 0; c < view.candidates; c++) {
            chosen = c ? chosen : view.candidate_simulated_ns[c];
            least = view.candidate_simulated_ns[c] < least ? view.candidate_simulated_ns[c] : least;
        }
        hbp_layer_partition_free(made);
        double seconds, gain = (double)chosen / (double)least - 1;
        hbp_status status;
        hbp_layer_partition_summary balanced =
            partition(context, d.layers, p, "balanced", 0, 0, &seconds, &status);
        faster += gain > 0.001;
        slower_than_balanced += balanced.simulated_ns < chosen;
        won += gain / DRAWS;
        most = gain > most ? gain : most;
        hbp_layers_free(d.layers);
    }
    bench_line(name,
               "a candidate runs > 0.1 %% faster in %3d of %d, mean %.2f %%, most %.2f %%; balanced in %d",
               faster, DRAWS, 100 * won, 100 * most, slower_than_balanced);
}

/* OmniBal's setting: 4 GPUs share a layer, 4 stages; link and overlap are round numbers. */
static void model(hbp_context *context, const char *name, double vision, double tokens, int32_t turns,
                  int32_t micro_batches, int uneven)
{
    hbp_vlm *vlm = NULL;
    hbp_machine *machine = NULL;
    hbp_layers *layers = NULL;
    bench_need(context, hbp_vlm_create_preset(context, name, &vlm), name);
    bench_need(context, hbp_machine_create_preset(context, "a100-80:16", &machine), "a100-80");
    hbp_vlm_layers_options options = {.struct_size = sizeof options};
    options.tensor_parallel = 4;
    options.data_parallel = 8;
    options.vision = vision;
    options.tokens = tokens;
    bench_need(context, hbp_vlm_create_layers(context, vlm, machine, &options, &layers), "layers");
    double scale[2][MOST_BATCHES];
    uint64_t state = 7;
    for (int m = 0; m < micro_batches; m++) {
        scale[0][m] = 0.5 + (double)draw(&state, 0, 1000) / 1000;
        scale[1][m] = 0.5 + (double)draw(&state, 0, 1000) / 1000;
    }
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    pipeline.stages = 4;
    pipeline.virtual_stages = turns;
    pipeline.micro_batches = micro_batches;
    pipeline.link_bytes_per_s = 25e9;
    pipeline.link_overlap = 0.5;
    pipeline.vision_scale = uneven ? scale[0] : NULL;
    pipeline.token_scale = uneven ? scale[1] : NULL;
    hbp_layers_view view = {.struct_size = sizeof view};
    (void)hbp_layers_get_view(layers, &view);
    bench_section("%s, %d layers on 4 stages x %d, %d micro-batches%s", name, (int)view.layers, (int)turns,
                  (int)micro_batches, uneven ? " that differ" : "");
    for (int32_t order = 0; order <= uneven; order++)
        for (int way = 0; way < 5; way++) {
            double seconds;
            hbp_status status;
            char text[48];
            hbp_layer_partition_summary s =
                partition(context, layers, &pipeline, methods[way], 0, order, &seconds, &status);
            snprintf(text, sizeof text, "%s%s%s", methods[way], order ? ", in order" : "",
                     way || status == HBP_NOT_PROVEN ? "" : ", bound is least");
            bench_line(
                text, "run %8.3f ms, predicted %8.3f, bound %8.3f, bubble %4.1f %%, cuts %5.1f MiB, %7.1f ms",
                1e-6 * (double)s.simulated_ns, 1e-6 * (double)s.predicted_ns, 1e-6 * (double)s.bound_ns,
                100 * s.bubble, (double)s.cut_bytes / 1048576, 1e3 * seconds);
            if (!way)
                bench_metric_beside(text, "run", BENCH_LOWER, 1e-6 * (double)s.simulated_ns, "predicted ms",
                                    "bound", (double)s.simulated_ns / (double)s.bound_ns);
        }
    hbp_layers_free(layers);
    hbp_machine_free(machine);
    hbp_vlm_free(vlm);
}

int main(void)
{
    hbp_context *context = bench_context(NULL);
    bench_section(
        "1,000 layers on 64 stages: CPU time of the optimum, and with 8 candidates by each ranking run");
    static const int32_t batches[] = {8, 64, 512};
    for (int i = 0; i < 3; i++) {
        large(context, "equal layers", 0, batches[i]);
        large(context, "layers that all differ", RANDOM, batches[i]);
        large(context, "two kinds, links", TWO_KINDS | LINKS, batches[i]);
        large(context, "all differ, links", RANDOM | TWO_KINDS | LINKS, batches[i]);
        large(context, "the same, speeds differ", RANDOM | TWO_KINDS | LINKS | SPEEDS, batches[i]);
        large(context, "the same, memory limits", RANDOM | TWO_KINDS | LINKS | SPEEDS | LIMITS, batches[i]);
        large(context, "the same, micro-batches differ",
              RANDOM | TWO_KINDS | LINKS | SPEEDS | LIMITS | UNEVEN, batches[i]);
    }
    bench_section("100 layers on 2 to 8 stages, equal micro-batches: least predicted time and the run");
    formula_and_run(context, "layers that all differ", RANDOM);
    formula_and_run(context, "links", RANDOM | LINKS);
    formula_and_run(context, "speeds differ", RANDOM | SPEEDS);
    formula_and_run(context, "links, speeds differ", RANDOM | LINKS | SPEEDS);
    for (int uneven = 0; uneven < 2; uneven++) {
        model(context, "internvl-1.5-26b", 9, 4096, 1, 16, uneven);
        model(context, "internvl-1.2-plus-40b", 9, 4096, 1, 16, uneven);
        model(context, "internvl-1.5-26b", 9, 4096, 2, 16, uneven);
        model(context, "internvl-1.5-26b", 9, 4096, 4, 16, uneven);
    }
    hbp_context_free(context);
    return bench_end();
}
