/* Steps whose ranks meet in smaller lockstep sets than all of them: idle, time and planning beside the same
 * batches with all ranks in lockstep, under the same cost otherwise. Times of steps are predictions of the
 * cost model for H100 nodes; seconds are of the CPU, one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { BATCHES = 5, PER_RANK = 16, WAYS = 4, MOST_DEGREES = 64 };

typedef struct way {
    const char *name;
    int32_t set; /* 0: all ranks */
    int32_t uneven;
} way;

static const way ways[WAYS] = {{"all", 0, 0}, {"sets of 32", 32, 0}, {"1, equal", 1, 0}, {"1, uneven", 1, 1}};

/* What came of a way, by batch. */
typedef struct figures {
    double ns[BATCHES];
    double idle[BATCHES];
    double seconds[BATCHES];
    double gap[BATCHES];
} figures;

/* The cost of ZeRO-1; degrees end at the model's 32 heads. */
static hbp_cost *make_cost(hbp_context *context, int32_t nodes, const way *w)
{
    hbp_model *model = NULL;
    hbp_machine *machine = bench_nodes(context, "h100", nodes);
    hbp_cost *cost = NULL;
    hbp_cost_options options = {.struct_size = sizeof options};
    options.zero_stage = HBP_ZERO_1;
    options.lockstep_ranks = w->set;
    options.uneven_micro_batches = w->uneven;
    bench_need(context, hbp_model_create_preset(context, "llama-3.1-8b", &model), "the model");
    bench_need(context, hbp_cost_create(context, model, machine, &options, &cost), "the cost");
    hbp_machine_free(machine);
    hbp_model_free(model);
    return cost;
}

static void plan(hbp_context *context, const hbp_cost *cost, const hbp_lengths *lengths, int batch,
                 figures *f)
{
    hbp_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_report report = {.struct_size = sizeof report};
    double start = bench_cpu();
    bench_need(context, hbp_plan_step(context, lengths, cost, NULL, &plan), "the step");
    f->seconds[batch] = bench_cpu() - start;
    bench_need(context, hbp_plan_validate(context, plan, lengths, cost), "the plan");
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "the summary");
    bench_need(context, hbp_simulate(context, plan, cost, NULL, &report), "the replay");
    f->ns[batch] = (double)summary.predicted_ns;
    f->gap[batch] = summary.gap;
    f->idle[batch] = report.idle;
    hbp_plan_free(plan);
}

static double largest(const double *values)
{
    double most = values[0];
    for (int i = 1; i < BATCHES; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

/* The longest sample that the machine holds, or of all data sets. */
static uint32_t find_longest(hbp_context *context, int32_t nodes)
{
    hbp_cost *cost = make_cost(context, nodes, &ways[0]);
    hbp_cost_terms t = {.struct_size = sizeof t};
    bench_need(context, hbp_cost_get_terms(context, cost, &t), "the terms");
    int64_t most = hbp_cost_predict_capacity(cost, t.degree[t.degrees - 1], t.layers);
    hbp_cost_free(cost);
    return most < BENCH_LONGEST ? (uint32_t)most : BENCH_LONGEST;
}

static void run(hbp_context *context, const bench_data *data, int32_t nodes)
{
    figures all[WAYS];
    const int64_t count = (int64_t)PER_RANK * 8 * nodes;
    const uint32_t longest_sample = find_longest(context, nodes);
    uint32_t *length = bench_allocate(count, sizeof *length);
    char name[80];
    for (int batch = 0; batch < BATCHES; batch++) {
        hbp_lengths *lengths = NULL;
        uint64_t state = (uint64_t)batch << 32 ^ (uint64_t)count;
        for (int64_t i = 0; i < count; i++) {
            uint32_t drawn = data->length[bench_random(&state) % (uint64_t)data->count];
            length[i] = drawn < longest_sample ? drawn : longest_sample;
        }
        bench_need(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths), "lengths");
        for (int w = 0; w < WAYS; w++) {
            if (ways[w].set >= 8 * nodes)
                continue;
            hbp_cost *cost = make_cost(context, nodes, &ways[w]);
            plan(context, cost, lengths, batch, &all[w]);
            hbp_cost_free(cost);
        }
        hbp_lengths_free(lengths);
    }
    free(length);
    for (int w = 0; w < WAYS; w++) {
        figures *f = &all[w];
        if (ways[w].set >= 8 * nodes)
            continue;
        double ratio[BATCHES], most_idle = largest(f->idle), most_gap = largest(f->gap);
        for (int b = 0; b < BATCHES; b++)
            ratio[b] = f->ns[b] / all[0].ns[b];
        double longest = largest(ratio);
        snprintf(name, sizeof name, "%s, %d GPUs, %s", data->name, 8 * (int)nodes, ways[w].name);
        double idle = bench_median(f->idle, BATCHES), seconds = bench_median(f->seconds, BATCHES);
        double time = bench_median(ratio, BATCHES), gap = bench_median(f->gap, BATCHES);
        bench_metric(name, "idle, median", BENCH_LOWER, 100 * idle, "%");
        bench_metric(name, "time / that of all in lockstep, median", BENCH_LOWER, time, "x");
        bench_metric(name, "gap, median", BENCH_LOWER, 100 * gap, "%");
        bench_metric(name, "planning, median", BENCH_LOWER, 1e3 * seconds, "ms");
        if (ways[w].set == 1)
            bench_check(most_idle <= .005 && longest <= 1, name, "idle .5 %, time 1",
                        "idle %5.3f %% (%5.3f)  time %.4f (%.4f)  gap %5.2f %% (%5.2f)  %6.1f ms", 100 * idle,
                        100 * most_idle, time, longest, 100 * gap, 100 * most_gap, 1e3 * seconds);
        else
            bench_line(name, "idle %5.3f %% (%5.3f)  time %.4f (%.4f)  gap %5.2f %% (%5.2f)  %6.1f ms",
                       100 * idle, 100 * most_idle, time, longest, 100 * gap, 100 * most_gap, 1e3 * seconds);
    }
    fflush(stdout);
}

int main(int arguments, char **argument)
{
    int quick = arguments == 2 && !strcmp(argument[1], "--quick");
    if (arguments > 2 || (arguments == 2 && !quick)) {
        fprintf(stderr, "usage: bench_lockstep [--quick]\n--quick is two data sets on 64 GPUs.\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    bench_section("lockstep sets: llama-3.1-8b, ZeRO-1, %d samples a rank, median (most) of %d "
                  "batches; time beside all ranks in lockstep",
                  PER_RANK, BATCHES);
    for (int i = 0; i < BENCH_DATA_SETS; i++) {
        bench_data data;
        if ((quick && i != 1 && i != 3) || !bench_data_open(context, i, &data))
            continue;
        for (int32_t nodes = quick ? 8 : 1; nodes <= 32; nodes *= quick ? 64 : nodes == 1 ? 8 : 4)
            run(context, &data, nodes);
        bench_data_close(&data);
    }
    hbp_context_free(context);
    return bench_end();
}
