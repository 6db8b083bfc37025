/* The published speed-ups of heterogeneous sequence parallelism (FlexSP, arXiv 2412.01523),
 * predicted with the paper's own constants on batches of Wikipedia lengths, and how the other ways to plan a
 * step fare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/flexsp.h"
#include "common.h"
#include "epoch_settings.h"

enum { RANKS = 64, BATCH = 512, PLAIN = 3, WAYS = 5, MOST_BATCHES = 1000 };

/* The last two are Megatron's, each with the tokens a rank that serve all batches best. */
static const char *const ways[WAYS] = {"flexsp", "search", "homogeneous-sp", "hybrid-cp", "dynamic-cp"};

/* Iteration times of the paper: DeepSpeed over FlexSP, DeepSpeed over BatchAda. */
typedef struct published {
    const char *model;
    int limit_k;
    double flexsp;
    double batch_ada;
} published;

static const published settings[] = {
    {"7B", 192, 1.72, 7.8 / 5.7}, {"13B", 192, 1.59, 13.6 / 10.2}, {"30B", 192, 1.64, 28.1 / 22.4},
    {"7B", 384, 1.46, 8.0 / 5.8}, {"13B", 384, 1.43, 14.2 / 11.6}, {"30B", 384, 1.53, 31.4 / 26.7},
};

/* Seconds of the batches of one setting, and the steps' makings. */
typedef struct outcome {
    double static_s;
    double seconds[WAYS];
    int64_t micro_batches[WAYS];
    int64_t per_rank[WAYS];
    int64_t static_micro_batches;
    int32_t static_sp;
    int64_t slower; /* batches on which the default is slower than the published planner */
} outcome;

static int64_t padded(int64_t length)
{
    return (length + 2 * RANKS - 1) / (2 * RANKS) * (2 * RANKS);
}

/* The longest sample that every run at this limit could meet, less where no group would hold that. Static SP
 * is to hold it; samples longer than that less 2 N are dropped, as published. */
static int64_t limit_of(const hbp_cost *cost, int limit_k)
{
    int64_t held = hbp_cost_predict_capacity(cost, RANKS, 0) / (2 * RANKS) * (2 * RANKS);
    int64_t limit = (int64_t)limit_k * 1000;
    return limit < held ? limit : held;
}

static hbp_lengths *draw(hbp_context *context, const bench_data *data, int64_t longest, uint64_t seed)
{
    uint32_t *length = bench_allocate(BATCH, sizeof *length);
    hbp_lengths *lengths = NULL;
    uint64_t state = seed;
    for (int64_t i = 0; i < BATCH;) {
        uint32_t drawn = data->length[bench_random(&state) % (uint64_t)data->count];
        if (padded(drawn) <= longest)
            length[i++] = drawn;
    }
    bench_need(context, hbp_lengths_create_u32(context, length, BATCH, NULL, &lengths), "lengths");
    free(length);
    return lengths;
}

/* Seconds of a step; counts its micro-batches. `sp` may be NULL and gets the degree of its first pack. */
static double plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost, const char *method,
                   int64_t longest, int64_t *micro_batches, int32_t *sp)
{
    hbp_plan *made = NULL;
    hbp_step_options options = {.struct_size = sizeof options};
    options.method = method;
    options.sequence_multiple = 2 * RANKS;
    options.longest_tokens = longest;
    bench_need(context, hbp_plan_step(context, lengths, cost, &options, &made), method);
    bench_need(context, hbp_plan_validate(context, made, lengths, cost), "the plan");
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, made, &summary), "the plan");
    *micro_batches += summary.micro_batches;
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(made, &view);
    if (sp)
        *sp = view.pack_sp[0];
    hbp_plan_free(made);
    return (double)summary.predicted_ns / 1e9;
}

/* Plans all batches, whose lengths are given one behind the other, in the tuned ways. */
static void plan_tuned(hbp_context *context, const int64_t *length, int64_t batches, const hbp_cost *cost,
                       outcome *o)
{
    int64_t count = batches * BATCH, *index = bench_allocate(count, sizeof *index),
            *offsets = bench_allocate(batches + 1, sizeof *offsets);
    hbp_lengths *lengths = NULL;
    hbp_epoch_options options = {.struct_size = sizeof options};
    for (int64_t i = 0; i < count; i++)
        index[i] = i;
    for (int64_t b = 0; b <= batches; b++)
        offsets[b] = b * BATCH;
    options.sequence_multiple = 2 * RANKS;
    options.batches = batches;
    options.batch_offsets = offsets;
    options.batch_samples = index;
    bench_need(context, hbp_lengths_create_i64(context, length, count, NULL, &lengths), "lengths");
    for (int m = PLAIN; m < WAYS; m++) {
        hbp_plan *made = NULL;
        epoch_setting setting;
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        options.method = ways[m];
        bench_need(context, epoch_settings_plan(context, lengths, cost, &options, &setting, &made), ways[m]);
        bench_need(context, hbp_plan_validate(context, made, lengths, cost), "the plan");
        bench_need(context, hbp_plan_get_summary(context, made, &summary), "the plan");
        o->seconds[m] = (double)summary.predicted_ns / 1e9;
        o->micro_batches[m] = summary.micro_batches;
        o->per_rank[m] = setting.tokens_per_rank;
        hbp_plan_free(made);
    }
    hbp_lengths_free(lengths);
    free(offsets);
    free(index);
}

static void measure(hbp_context *context, const bench_data *data, const published *p, int four_k,
                    int64_t batches, outcome *o)
{
    hbp_cost *cost = flexsp_cost(context, p->model, p->limit_k, four_k, RANKS);
    bench_need(context, cost ? HBP_OK : HBP_E_INVALID, "the cost");
    int64_t longest = limit_of(cost, p->limit_k);
    int64_t *all = bench_allocate(batches * BATCH, sizeof *all);
    memset(o, 0, sizeof *o);
    for (int64_t b = 0; b < batches; b++) {
        hbp_lengths *lengths = draw(context, data, longest - 2 * RANKS, (uint64_t)b);
        o->static_s +=
            plan(context, lengths, cost, "static-sp", longest, &o->static_micro_batches, &o->static_sp);
        double seconds[PLAIN];
        for (int m = 0; m < PLAIN; m++) {
            seconds[m] = plan(context, lengths, cost, ways[m], longest, &o->micro_batches[m], NULL);
            o->seconds[m] += seconds[m];
        }
        o->slower += seconds[1] > seconds[0];
        for (int64_t i = 0; i < BATCH; i++)
            all[b * BATCH + i] = hbp_lengths_get_length(lengths, i);
        hbp_lengths_free(lengths);
    }
    plan_tuned(context, all, batches, cost, o);
    free(all);
    hbp_cost_free(cost);
}

static double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

static void report(const published *p, int64_t batches, const outcome *o)
{
    char name[64], target[64];
    double n = (double)batches, speed_up = o->static_s / o->seconds[0];
    snprintf(name, sizeof name, "%s at %dK: flexsp / static SP %d", p->model, p->limit_k, (int)o->static_sp);
    snprintf(target, sizeof target, "%.2f +- .15", p->flexsp);
    bench_metric(name, "static SP / flexsp", BENCH_HIGHER, speed_up, "x");
    bench_metric(name, "static SP / default", BENCH_HIGHER, o->static_s / o->seconds[1], "x");
    bench_check(distance(speed_up, p->flexsp) <= .15, name, target, "%.2f (%.2f s / %.2f s)", speed_up,
                o->static_s / n, o->seconds[0] / n);
    bench_check(!o->slower, "  default never slower than flexsp", "all", "%lld of %lld, %.3f times as fast",
                (long long)(batches - o->slower), (long long)batches, o->seconds[0] / o->seconds[1]);
    bench_line("  over static SP",
               "default %.2f, homogeneous %.2f (published %.2f), hybrid CP %.2f, dynamic CP %.2f",
               o->static_s / o->seconds[1], o->static_s / o->seconds[2], p->batch_ada,
               o->static_s / o->seconds[3], o->static_s / o->seconds[4]);
    bench_line("  best tokens a rank", "hybrid CP %lld, dynamic CP %lld", (long long)o->per_rank[3],
               (long long)o->per_rank[4]);
    bench_line("  micro-batches a step",
               "static %.1f, flexsp %.1f, default %.1f, homogeneous %.1f, hybrid %.1f, dynamic %.1f",
               (double)o->static_micro_batches / n, (double)o->micro_batches[0] / n,
               (double)o->micro_batches[1] / n, (double)o->micro_batches[2] / n,
               (double)o->micro_batches[3] / n, (double)o->micro_batches[4] / n);
}

int main(int argc, char **argv)
{
    int64_t batches = 20;
    int four_k = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--4k")) {
            four_k = 1;
        } else if (!strcmp(argv[i], "--batches") && i + 1 < argc) {
            batches = strtoll(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "usage: bench_flexsp [--batches COUNT] [--4k]\n");
            return 2;
        }
    }
    if (batches < 1 || batches > MOST_BATCHES)
        batches = 20;
    hbp_context *context = bench_context(NULL);
    bench_data data;
    int index = 0;
    while (index < BENCH_DATA_SETS &&
           !(bench_data_open(context, index, &data) && !strcmp(data.name, "wikipedia")))
        index++;
    bench_need(NULL, index < BENCH_DATA_SETS ? HBP_OK : HBP_E_SYSTEM, "wikipedia");
    bench_section("FlexSP's speed-ups: %lld batches of %d Wikipedia lengths on %d A100-40GB%s",
                  (long long)batches, BATCH, RANKS, four_k ? ", bandwidths taken with 4K" : "");
    bench_line("lengths", "%s", data.origin);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        outcome o;
        measure(context, &data, &settings[i], four_k, batches, &o);
        report(&settings[i], batches, &o);
    }
    bench_data_close(&data);
    hbp_context_free(context);
    return bench_end();
}
