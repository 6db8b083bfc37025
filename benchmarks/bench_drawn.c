/* Steps of samples drawn at random, as a shuffled sampler gives them: how far the plans are from their
 * bounds, and how long planning takes. Times of steps are predictions of the cost model for H100 nodes;
 * seconds are of the CPU, one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { MODELS = 2, SETS = 5, MOST_BATCHES = 100, MOST_ROWS = 100000 };

static const char *const models[MODELS] = {"llama-3.1-8b", "llama-3.1-70b"};

/* In the order of bench_data_open. */
static const int set_index[SETS] = {1, 3, 4, 5, 2};

static bench_data set[SETS];

/* What to plan; 0 and NULL: every value. */
typedef struct chosen {
    const char *model;
    const char *data;
    int32_t nodes;
    int64_t per_rank;
    int64_t batches;
    int32_t effort;
    int is_verbose;
} chosen;

/* Figures of the batches of one setting or of several. */
typedef struct rows {
    int64_t count;
    double gap[MOST_ROWS];
    double seconds[MOST_ROWS];
    double micro_batches[MOST_ROWS];
} rows;

static rows of_model[MODELS], all_of[MODELS];

static void draw(const bench_data *data, int64_t index, uint32_t *length, int64_t count)
{
    uint64_t state = (uint64_t)index << 32 ^ (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        uint32_t drawn = data->length[bench_random(&state) % (uint64_t)data->count];
        length[i] = drawn < BENCH_LONGEST ? drawn : BENCH_LONGEST;
    }
}

static void plan_one(hbp_context *context, const hbp_cost *cost, const chosen *c, const uint32_t *length,
                     int64_t count, rows *r)
{
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    hbp_step_options options = {.struct_size = sizeof options};
    options.effort = c->effort;
    bench_need(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths), "lengths");
    double start = bench_cpu();
    bench_need(context, hbp_plan_step(context, lengths, cost, &options, &plan), "the step");
    double seconds = bench_cpu() - start;
    bench_need(context, hbp_plan_validate(context, plan, lengths, cost), "the plan");
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "the summary");
    if (c->is_verbose)
        printf("  M %lld  ns %lld  bound %lld  gap %.3f %%  %.2f ms\n", (long long)summary.micro_batches,
               (long long)summary.predicted_ns, (long long)summary.bound_ns, 100 * summary.gap,
               1e3 * seconds);
    r->gap[r->count] = summary.gap;
    r->seconds[r->count] = seconds;
    r->micro_batches[r->count++] = (double)summary.micro_batches;
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
}

static double part_of(double *values, int64_t count, double part)
{
    bench_median(values, count); /* sorts */
    int64_t at = (int64_t)(part * (double)count);
    return values[at < count ? at : count - 1];
}

static void print(const char *name, rows *r)
{
    if (!r->count)
        return;
    double gap = part_of(r->gap, r->count, .5), p95 = part_of(r->gap, r->count, .95);
    double seconds = part_of(r->seconds, r->count, .5);
    bench_line(name, "%7.3f %7.3f %7.3f %%  %8.2f %8.2f ms  %6.1f  of %lld", 100 * gap, 100 * p95,
               100 * r->gap[r->count - 1], 1e3 * seconds, 1e3 * r->seconds[r->count - 1],
               part_of(r->micro_batches, r->count, .5), (long long)r->count);
    bench_metric(name, "gap, median", BENCH_LOWER, 100 * gap, "%");
    bench_metric(name, "gap, 95th percentile", BENCH_LOWER, 100 * p95, "%");
    bench_metric(name, "planning, median", BENCH_LOWER, 1e3 * seconds, "ms");
}

static void append(rows *to, const rows *from)
{
    for (int64_t i = 0; i < from->count && to->count < MOST_ROWS; i++) {
        to->gap[to->count] = from->gap[i];
        to->seconds[to->count] = from->seconds[i];
        to->micro_batches[to->count++] = from->micro_batches[i];
    }
}

static void plan_setting(hbp_context *context, const chosen *c, int model, const hbp_cost *cost, int data,
                         int32_t nodes, int64_t per_rank)
{
    rows *r = &of_model[model];
    int64_t count = per_rank * 8 * nodes;
    uint32_t *length = bench_allocate(count, sizeof *length);
    char name[80];
    r->count = 0;
    for (int64_t b = 0; b < c->batches; b++) {
        draw(&set[data], b, length, count);
        plan_one(context, cost, c, length, count, r);
    }
    free(length);
    append(&all_of[model], r);
    snprintf(name, sizeof name, "%s %s, %d GPUs x %lld", models[model] + 10, set[data].name, 8 * (int)nodes,
             (long long)count);
    print(name, r);
    fflush(stdout);
}

static void plan_all(hbp_context *context, const chosen *c)
{
    for (int model = 0; model < MODELS; model++)
        for (int32_t nodes = 1; nodes <= 32; nodes *= 2) {
            const char *reason = "";
            if ((c->model && !strstr(models[model], c->model)) || (c->nodes && c->nodes != nodes))
                continue;
            hbp_cost *cost = bench_cost(context, models[model], nodes, &reason);
            for (int data = 0; cost && data < SETS; data++)
                for (int64_t per_rank = 8; per_rank <= 64; per_rank *= 2)
                    if ((!c->data || !strcmp(set[data].name, c->data)) &&
                        (!c->per_rank || c->per_rank == per_rank))
                        plan_setting(context, c, model, cost, data, nodes, per_rank);
            hbp_cost_free(cost);
        }
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_drawn [--quick] [--model 8b|70b] [--data NAME] [--nodes 1|2|4|8|16|32]\n"
            "                   [--per-rank 8|16|32|64] [--batches COUNT] [--effort E] [-v]\n"
            "What is not given of model, data, nodes and samples a rank takes every value; --quick is one "
            "batch each of\n8 nodes.\n");
    return 2;
}

/* Reads one option; the number of arguments taken, 0 when it is none. */
static int read_option(char **argument, int left, chosen *c)
{
    if (!strcmp(argument[0], "-v"))
        return c->is_verbose = 1;
    if (!strcmp(argument[0], "--quick")) {
        c->nodes = 8;
        return (int)(c->batches = 1);
    }
    if (left < 2)
        return 0;
    long long number = strtoll(argument[1], NULL, 10);
    if (!strcmp(argument[0], "--model"))
        c->model = argument[1];
    else if (!strcmp(argument[0], "--data"))
        c->data = argument[1];
    else if (!strcmp(argument[0], "--nodes"))
        c->nodes = (int32_t)number;
    else if (!strcmp(argument[0], "--per-rank"))
        c->per_rank = number;
    else if (!strcmp(argument[0], "--batches"))
        c->batches = number < MOST_BATCHES ? number : MOST_BATCHES;
    else if (!strcmp(argument[0], "--effort"))
        c->effort = (int32_t)number;
    else
        return 0;
    return 2;
}

int main(int argc, char **argv)
{
    chosen c = {.batches = 3};
    for (int i = 1, taken; i < argc; i += taken) {
        taken = read_option(argv + i, argc - i, &c);
        if (!taken)
            return usage();
    }
    hbp_context *context = bench_context(NULL);
    for (int i = 0; i < SETS; i++)
        if (!bench_data_open(context, set_index[i], &set[i]))
            bench_need(NULL, HBP_E_SYSTEM, "the data");
    bench_section("Steps drawn at random: gap median, p95, most; time median, most; micro-batches");
    plan_all(context, &c);
    for (int model = 0; model < MODELS; model++) {
        char name[64], target[64];
        rows *r = &all_of[model];
        double most = model ? 4 : 2, most_p95 = model ? 10 : 5;
        if (!r->count)
            continue;
        snprintf(name, sizeof name, "all of %s", models[model]);
        print(name, r);
        double gap = 100 * part_of(r->gap, r->count, .5), p95 = 100 * part_of(r->gap, r->count, .95);
        snprintf(target, sizeof target, "<= %.0f %%, %.0f %%", most, most_p95);
        bench_check(gap <= most && p95 <= most_p95, "gap, median and 95th percentile", target,
                    "%.3f %%, %.3f %%", gap, p95);
    }
    for (int i = 0; i < SETS; i++)
        bench_data_close(&set[i]);
    hbp_context_free(context);
    return bench_end();
}
