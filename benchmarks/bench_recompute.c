/* What recomputation adds to a micro-batch, chosen by least time and by the published rule, on predicted
 * columns of vision-language models; and how long the choice takes, also on layers that all differ. Seconds
 * are of the CPU, one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "hbp/hbp.h"

enum { STAGES = 4, MICRO_BATCHES = 32, MOST_LAYERS = 1000, REPEATS = 100 };

/* Kept free on every GPU, as the published rule has it. */
#define RESERVE INT64_C(5000000000)

static void check(hbp_context *context, hbp_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", hbp_status_name(status), hbp_context_message(context));
    exit(EXIT_FAILURE);
}

/* Cuts whose slowest stage is as fast as can be: the bottleneck by bisection. */
static void balance(const hbp_layers *layers, int32_t *cuts)
{
    hbp_layers_view view = {.struct_size = sizeof view};
    (void)hbp_layers_get_view(layers, &view);
    const int64_t *forward = view.forward_ns, *backward = view.backward_ns;
    int64_t count = view.layers, low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t ns = forward[i] + backward[i];
        low = ns > low ? ns : low;
        high += ns;
    }
    while (low <= high) {
        int64_t most = low + (high - low) / 2, filled = 0;
        int32_t made[STAGES + 1] = {0}, stage = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t ns = forward[i] + backward[i];
            if (filled + ns > most) {
                if (++stage == STAGES)
                    break;
                made[stage] = (int32_t)i;
                filled = 0;
            }
            filled += ns;
        }
        if (stage == STAGES) {
            low = most + 1;
            continue;
        }
        high = most - 1;
        while (stage < STAGES) /* stages left over are not seen in these models */
            made[++stage] = (int32_t)count;
        for (int32_t s = 0; s <= STAGES; s++)
            cuts[s] = made[s];
    }
}

typedef struct outcome {
    hbp_status status;
    hbp_recompute_report report;
    double microseconds;
} outcome;

static outcome choose(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                      const hbp_pipeline_options *pipeline, const char *method, int32_t selective,
                      int32_t repeats)
{
    static int32_t choices[MOST_LAYERS];
    hbp_recompute_options options = {.struct_size = sizeof options};
    options.method = method;
    options.selective = selective;
    outcome o = {0};
    o.report = (hbp_recompute_report){.struct_size = sizeof o.report};
    clock_t begin = clock();
    for (int32_t i = 0; i < repeats; i++)
        o.status = hbp_choose_recompute(context, layers, cuts, pipeline, &options, choices, &o.report);
    o.microseconds = (double)(clock() - begin) / CLOCKS_PER_SEC * 1e6 / repeats;
    if (o.status != HBP_E_INFEASIBLE)
        check(context, o.status);
    return o;
}

static void print_row(const char *name, const outcome *o, int64_t paper_ns)
{
    if (o->status < 0) {
        printf("    %-28s does not fit\n", name);
        return;
    }
    printf("    %-28s %3d whole, %3d in part; %8.1f ms added", name, (int)o->report.recomputed,
           (int)o->report.selective, (double)o->report.recompute_ns / 1e6);
    if (paper_ns)
        printf(", x %.3f", (double)o->report.recompute_ns / (double)paper_ns);
    printf("; %.2f GiB left; %.0f us%s\n", (double)o->report.slack_bytes / (1 << 30), o->microseconds,
           o->report.proven ? ", proven" : "");
}

/* What the least time adds, beside the published rule where it has something to add. */
static void note(const char *row, const outcome *o, int64_t paper_ns)
{
    double ms = 1e-6 * (double)o->report.recompute_ns;
    if (paper_ns)
        bench_metric_beside(row, "added", BENCH_LOWER, ms, "predicted ms", "the published rule",
                            (double)o->report.recompute_ns / (double)paper_ns);
    else
        bench_metric(row, "added", BENCH_LOWER, ms, "predicted ms");
    bench_metric(row, "choosing", BENCH_LOWER, o->microseconds, "us");
}

static void model(hbp_context *context, const char *name, const char *gpu, double vision, double tokens,
                  int32_t data_parallel, int32_t gib)
{
    hbp_vlm *vlm = NULL;
    hbp_machine *machine = NULL;
    hbp_layers *layers = NULL;
    check(context, hbp_vlm_create_preset(context, name, &vlm));
    check(context, hbp_machine_create_preset(context, gpu, &machine));
    hbp_vlm_layers_options o = {.struct_size = sizeof o};
    o.tensor_parallel = 4;
    o.data_parallel = data_parallel;
    o.vision = vision;
    o.tokens = tokens;
    check(context, hbp_vlm_create_layers(context, vlm, machine, &o, &layers));

    int32_t cuts[STAGES + 1];
    int64_t limit[STAGES], ns = 0;
    balance(layers, cuts);
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    pipeline.stages = STAGES;
    pipeline.micro_batches = MICRO_BATCHES;
    pipeline.limit_bytes = limit;
    for (int32_t s = 0; s < STAGES; s++)
        limit[s] = ((int64_t)gib << 30) - RESERVE;
    hbp_layers_view view = {.struct_size = sizeof view};
    (void)hbp_layers_get_view(layers, &view);
    for (int64_t i = 0; i < view.layers; i++)
        ns += view.forward_ns[i] + view.backward_ns[i];
    printf("  %s, %g units and %g tokens, %d replicas, %d GiB; a micro-batch %.1f ms\n", name, vision, tokens,
           (int)data_parallel, (int)gib, (double)ns / 1e6);
    static const struct {
        const char *name, *method;
        int32_t selective;
    } ways[] = {{"all", "all", 0},
                {"published rule", "omnibal", 0},
                {"least time, whole layers", "optimal", -1},
                {"least time", "optimal", 0},
                {"none", "none", 0}};
    int64_t paper = choose(context, layers, cuts, &pipeline, "omnibal", 0, 1).report.recompute_ns;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        outcome made = choose(context, layers, cuts, &pipeline, ways[w].method, ways[w].selective, REPEATS);
        print_row(ways[w].name, &made, paper);
        if (!strcmp(ways[w].method, "optimal") && !ways[w].selective && made.status >= 0) {
            char row[64];
            snprintf(row, sizeof row, "%s, %g units, %d GiB", name, vision, (int)gib);
            note(row, &made, paper);
        }
    }
    hbp_layers_free(layers);
    hbp_machine_free(machine);
    hbp_vlm_free(vlm);
}

/* Numbers below 2^31 that look random and are the same everywhere (Knuth's MMIX generator). */
static int64_t draw(uint64_t *state, int64_t most)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*state >> 33) % (uint64_t)(most + 1));
}

/* One stage of layers that all differ, with a share of the memory that they need. */
static void random_layers(hbp_context *context, int32_t count, int32_t percent)
{
    enum { COLUMNS = 7, MOST = 1000000000 };
    static int64_t column[COLUMNS][MOST_LAYERS];
    uint64_t state = (uint64_t)percent;
    int64_t all = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t bytes = draw(&state, MOST);
        all += bytes;
        column[0][i] = draw(&state, MOST);
        column[1][i] = bytes;
        column[2][i] = bytes / 10;
        column[3][i] = bytes * 2 / 5;
        column[4][i] = draw(&state, MOST / 2);
        column[5][i] = bytes / 2;
        column[6][i] = draw(&state, MOST / 2);
    }
    hbp_layer_columns c = {.struct_size = sizeof c};
    c.count = count;
    c.forward_ns = column[0];
    c.activation_bytes = column[1];
    c.recomputed_bytes = column[2];
    c.attention_bytes = column[3];
    c.attention_ns = column[4];
    c.mlp_bytes = column[5];
    c.mlp_ns = column[6];
    hbp_layers *layers = NULL;
    check(context, hbp_layers_create(context, &c, &layers));
    int32_t cuts[2] = {0, count};
    int64_t limit = all / 100 * percent;
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline};
    pipeline.stages = 1;
    pipeline.micro_batches = 1;
    pipeline.limit_bytes = &limit;
    printf("  %d layers that all differ, %d %% of what they keep\n", (int)count, (int)percent);
    outcome paper = choose(context, layers, cuts, &pipeline, "omnibal", 0, 1);
    outcome best = choose(context, layers, cuts, &pipeline, "optimal", 0, 5);
    print_row("published rule", &paper, paper.report.recompute_ns);
    print_row("least time", &best, paper.report.recompute_ns);
    char row[64];
    snprintf(row, sizeof row, "%d layers that differ, %d %%", (int)count, (int)percent);
    note(row, &best, paper.report.recompute_ns);
    hbp_layers_free(layers);
}

int main(void)
{
    hbp_context *context = NULL;
    if (hbp_context_create(NULL, &context) < 0)
        return EXIT_FAILURE;
    bench_section("Recomputation, %d stages of 4 GPUs, %d micro-batches; x: against the published rule",
                  STAGES, MICRO_BATCHES);
    model(context, "internvl-1.5-26b", "a100-80:16", 9, 4096, 1, 80);
    model(context, "internvl-1.5-26b", "a100-80:16", 18, 6016, 2, 40);
    model(context, "internvl-1.5-26b", "a100-80:16", 24, 8192, 8, 40);
    model(context, "internvl-1.2-plus-40b", "a100-80:16", 18, 6016, 1, 80);
    model(context, "internvl-1.2-plus-40b", "a100-80:16", 36, 12288, 8, 80);
    model(context, "eva-clip-llama-3-8b", "a100-80:16", 36, 12288, 8, 40);
    model(context, "qwen2-vl-7b", "a100-80:16", 16384, 32768, 8, 40);
    for (int32_t percent = 30; percent <= 90; percent += 30)
        random_layers(context, MOST_LAYERS, percent);
    hbp_context_free(context);
    return bench_end();
}
