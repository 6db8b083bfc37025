/* Planning single steps under FlexSP's own constants: how long it takes, how far the plan may be from
 * optimal, and what it gains over the published planner and over one degree for all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "flexsp.h"

enum { SETS = 3, MOST_BATCHES = 1000, MOST_DRAWS = 100 };

/* In the order of bench_data_open. */
static const int set_index[SETS] = {1, 5, 2};
static bench_data set[SETS];

/* A family of batches and how they are planned. */
typedef struct setting {
    const char *model;
    int data; /* in `set` */
    int limit_k;
    int32_t ranks;
    int32_t effort;
    int32_t mode;
    int32_t is_single; /* one micro-batch */
    int64_t batch;
    int64_t batches;
    uint64_t seed;
    int32_t is_verbose;
} setting;

/* What became of its batches, one entry for each that was planned. */
typedef struct outcome {
    int64_t count;
    int64_t failed; /* batches that found no plan */
    int64_t ns[MOST_BATCHES];
    double gap[MOST_BATCHES];
    double seconds[MOST_BATCHES];
    double micro_batches[MOST_BATCHES];
} outcome;

static int64_t padded(int64_t length, int64_t multiple)
{
    return (length + multiple - 1) / multiple * multiple;
}

static void name_setting(const setting *s, char text[64])
{
    snprintf(text, 64, "%s %s %dK, %d GPUs x %lld", s->model, set[s->data].name, s->limit_k, (int)s->ranks,
             (long long)s->batch);
}

/* Draws batch `index`: with replacement, samples past the limit or past what all ranks hold left out. Single
 * micro-batches are drawn again until they fill at most .95 of the memory; 0 when none does. */
static int draw(const setting *s, const hbp_cost *cost, int64_t index, uint32_t *length)
{
    const bench_data *data = &set[s->data];
    int64_t multiple = 2 * (int64_t)s->ranks, room = hbp_cost_predict_capacity(cost, s->ranks, 0);
    int64_t most = room < s->limit_k * 1000 - multiple ? room : s->limit_k * 1000 - multiple;
    uint64_t state = s->seed << 32 ^ (uint64_t)index << 16 ^ (uint64_t)s->batch;
    for (int draws = 0; draws < MOST_DRAWS; draws++) {
        int64_t tokens = 0, k = 0;
        for (int64_t tries = 0; k < s->batch && tries < 100 * s->batch; tries++) {
            uint32_t drawn = data->length[bench_random(&state) % (uint64_t)data->count];
            if (padded(drawn, multiple) > most)
                continue;
            length[k++] = drawn;
            tokens += padded(drawn, multiple);
        }
        if (k < s->batch)
            return 0;
        if (!s->is_single || (double)tokens <= .95 * (double)room)
            return 1;
    }
    return 0;
}

static void plan_batch(hbp_context *context, const setting *s, const hbp_cost *cost, int64_t index,
                       const uint32_t *length, outcome *o)
{
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    hbp_step_options options;
    hbp_step_options_init(&options, sizeof options);
    options.mode = s->mode;
    options.effort = s->effort;
    options.max_micro_batches = s->is_single;
    options.sequence_multiple = 2 * (int64_t)s->ranks;
    bench_need(context, hbp_lengths_create_u32(context, length, s->batch, NULL, &lengths), "lengths");
    double start = bench_cpu();
    hbp_status status = hbp_plan_step(context, lengths, cost, &options, &plan);
    double seconds = bench_cpu() - start;
    if (status == HBP_E_INFEASIBLE) {
        if (s->is_verbose)
            printf("  %4lld: %s\n", (long long)index, hbp_context_message(context));
        o->failed++;
        hbp_lengths_free(lengths);
        return;
    }
    char name[64], what[96];
    name_setting(s, name);
    snprintf(what, sizeof what, "%s, batch %lld", name, (long long)index);
    bench_need(context, status, what);
    bench_need(context, hbp_plan_validate(context, plan, lengths, cost), "the plan");
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "the plan");
    int64_t i = o->count++;
    o->ns[i] = summary.predicted_ns;
    o->gap[i] = summary.gap;
    o->seconds[i] = seconds;
    o->micro_batches[i] = (double)summary.micro_batches;
    if (s->is_verbose)
        printf("  %4lld: K %lld  M %lld  ns %lld  bound %lld  gap %.3f %%  %.2f ms\n", (long long)index,
               (long long)s->batch, (long long)summary.micro_batches, (long long)summary.predicted_ns,
               (long long)summary.bound_ns, 100 * summary.gap, 1e3 * seconds);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
}

static void plan_all(hbp_context *context, const setting *s, outcome *o)
{
    memset(o, 0, sizeof *o);
    hbp_cost *cost = flexsp_cost(context, s->model, s->limit_k, 0, s->ranks);
    if (!cost)
        bench_need(context, HBP_E_INVALID, s->model);
    uint32_t *length = bench_allocate(s->batch, sizeof *length);
    for (int64_t b = 0; b < s->batches; b++)
        if (draw(s, cost, b, length))
            plan_batch(context, s, cost, b, length, o);
    free(length);
    hbp_cost_free(cost);
}

/* Of some values: the middle one, the one that a share of .95 does not exceed, the largest. */
typedef struct spread {
    double median, p95, most;
} spread;

/* Sorts `values`, at least one. */
static spread spread_of(double *values, int64_t count)
{
    double median = bench_median(values, count);
    int64_t at = (int64_t)(.95 * (double)count);
    return (spread){median, values[at], values[count - 1]};
}

static void print_outcome(const setting *s, outcome *o)
{
    char name[64], failed[64] = "";
    name_setting(s, name);
    if (o->failed)
        snprintf(failed, sizeof failed, "; %lld without a plan", (long long)o->failed);
    if (!o->count) {
        bench_line(name, "no batch%s", failed);
        return;
    }
    spread gap = spread_of(o->gap, o->count), seconds = spread_of(o->seconds, o->count);
    bench_line(name, "gap %6.3f %6.3f %6.3f %%  %8.2f %8.2f ms  M %.1f  of %lld%s", 100 * gap.median,
               100 * gap.p95, 100 * gap.most, 1e3 * seconds.median, 1e3 * seconds.most,
               bench_median(o->micro_batches, o->count), (long long)o->count, failed);
}

/* Gaps and times of a list of settings, pooled. */
typedef struct pool {
    int64_t count;
    double gap[18 * MOST_BATCHES];
    double seconds[18 * MOST_BATCHES];
} pool;

static void add(pool *p, const outcome *o)
{
    memcpy(p->gap + p->count, o->gap, (size_t)o->count * sizeof *o->gap);
    memcpy(p->seconds + p->count, o->seconds, (size_t)o->count * sizeof *o->seconds);
    p->count += o->count;
}

static void open_data(hbp_context *context)
{
    for (int i = 0; i < SETS; i++)
        if (!bench_data_open(context, set_index[i], &set[i]))
            bench_need(NULL, HBP_E_SYSTEM, "the data");
}

static int find_set(const char *name)
{
    for (int i = 0; i < SETS; i++)
        if (!strcmp(set[i].name, name))
            return i;
    return -1;
}

static int find_mode(const char *name)
{
    for (int32_t mode = 0; hbp_step_mode_name(mode); mode++)
        if (!strcmp(hbp_step_mode_name(mode), name))
            return mode;
    return -1;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_step [--quick]\n"
                    "       bench_step [--model 7B|13B|30B] [--data wikipedia|code_files|reasoning]\n"
                    "                  [--limit 192|384] [--ranks N] [--batch K] [--batches COUNT]\n"
                    "                  [--effort E] [--mode MODE] [--seed S] [--single] [-v]\n"
                    "What is not given of model, data and limit takes every value.\n");
    return 2;
}

/* Reads one option; the number of arguments taken, 0 when it is none. */
static int read_option(char **argument, int left, setting *s)
{
    if (!strcmp(argument[0], "--single"))
        return s->is_single = 1;
    if (!strcmp(argument[0], "-v"))
        return s->is_verbose = 1;
    if (left < 2)
        return 0;
    const char *name = argument[0], *value = argument[1];
    long long number = strtoll(value, NULL, 10);
    if (!strcmp(name, "--model"))
        s->model = value;
    else if (!strcmp(name, "--data"))
        s->data = find_set(value);
    else if (!strcmp(name, "--limit"))
        s->limit_k = (int)number;
    else if (!strcmp(name, "--ranks"))
        s->ranks = (int32_t)number;
    else if (!strcmp(name, "--batch"))
        s->batch = number;
    else if (!strcmp(name, "--batches"))
        s->batches = number < MOST_BATCHES ? number : MOST_BATCHES;
    else if (!strcmp(name, "--effort"))
        s->effort = (int32_t)number;
    else if (!strcmp(name, "--mode"))
        s->mode = find_mode(value);
    else if (!strcmp(name, "--seed"))
        s->seed = (uint64_t)number;
    else
        return 0;
    return 2;
}

/* Every setting that `chosen` leaves open: a line each, and one for all. */
static void run_chosen(hbp_context *context, const setting *chosen, pool *all)
{
    static outcome o;
    all->count = 0;
    for (int m = 0; m < FLEXSP_MODELS; m++)
        for (int d = 0; d < SETS; d++)
            for (int limit_k = 192; limit_k <= 384; limit_k += 192) {
                setting s = *chosen;
                if (!s.model)
                    s.model = flexsp_model[m].name;
                if (s.data < 0)
                    s.data = d;
                if (!s.limit_k)
                    s.limit_k = limit_k;
                if (strcmp(s.model, flexsp_model[m].name) != 0 || s.data != d || s.limit_k != limit_k)
                    continue;
                plan_all(context, &s, &o);
                add(all, &o);
                print_outcome(&s, &o);
            }
    if (!all->count)
        return;
    spread gap = spread_of(all->gap, all->count), seconds = spread_of(all->seconds, all->count);
    bench_line("all", "gap %6.3f %6.3f %6.3f %%  %8.2f %8.2f ms  of %lld", 100 * gap.median, 100 * gap.p95,
               100 * gap.most, 1e3 * seconds.median, 1e3 * seconds.most, (long long)all->count);
}

int main(int argc, char **argv)
{
    static pool all;
    hbp_context *context = bench_context(NULL);
    open_data(context);
    setting chosen = {.data = -1, .ranks = 64, .batches = 10};
    for (int i = 1; i < argc;) {
        int taken = read_option(argv + i, argc - i, &chosen);
        if (!taken)
            return usage();
        i += taken;
    }
    if (!chosen.batch)
        chosen.batch = chosen.is_single ? chosen.ranks : 8 * (int64_t)chosen.ranks;
    if (chosen.mode < 0 || chosen.ranks < 1 || chosen.batch < 1 || chosen.batches < 1)
        return usage();
    bench_section("Steps: gap median, p95, most; CPU time median, most; micro-batches");
    run_chosen(context, &chosen, &all);
    for (int i = 0; i < SETS; i++)
        bench_data_close(&set[i]);
    hbp_context_free(context);
    return bench_end();
}
