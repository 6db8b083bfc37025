/* Planning single steps under FlexSP's own constants: how long it takes beside a radix sort of a million
 * lengths, how far the plan may be from optimal, and what it gains over the published planner and over the
 * other ways. Seconds are of the CPU, one thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/flexsp.h"
#include "batches.h"

enum { SETS = BENCH_BATCH_SETS, LIMITS = 2, SETTINGS = FLEXSP_MODELS * SETS * LIMITS, MOST_BATCHES = 1000 };

#define NAME(id, name, paper, text) name,
static const char *const methods[] = {HBP_STEP_METHODS(NAME)};
enum { METHODS = sizeof methods / sizeof *methods };

static bench_data set[SETS];

/* Seconds of a radix sort in this run. */
static double sort_seconds;

/* A family of batches and how they are planned. */
typedef struct setting {
    const char *model;
    int data; /* in `set` */
    int limit_k;
    int32_t ranks;
    int32_t effort;
    const char *method; /* NULL: the default */
    int32_t is_single;  /* one micro-batch */
    int64_t batch;
    int64_t batches;
    uint64_t seed;
    int32_t is_verbose;
    int32_t is_compared; /* with the other ways */
    int32_t recomputes;  /* H100 presets on seven data sets */
} setting;

/* What became of a batch; `ns` is 0 when there is no plan. */
typedef struct row {
    int64_t ns;
    double gap;
    double seconds;
    double micro_batches;
} row;

/* Rows of any number of settings, those with a plan. */
typedef struct pool {
    int64_t count;
    int64_t failed;
    double gap[SETTINGS * MOST_BATCHES];
    double seconds[SETTINGS * MOST_BATCHES];
    double micro_batches[SETTINGS * MOST_BATCHES];
} pool;

/* Of some values: the middle one, the one that a share of .95 does not exceed, the largest. */
typedef struct spread {
    double median, p95, most;
} spread;

/* Sorts `values`, at least one. */
static spread spread_of(double *values, int64_t count)
{
    double median = bench_median(values, count);
    return (spread){median, values[(int64_t)(.95 * (double)count)], values[count - 1]};
}

static void name_setting(const setting *s, char text[64])
{
    snprintf(text, 64, "%s %s %dK, %d GPUs x %lld", s->model, set[s->data].name, s->limit_k, (int)s->ranks,
             (long long)s->batch);
}

static bench_batches batches_of(const setting *s)
{
    return (bench_batches){&set[s->data], s->limit_k, s->ranks, s->is_single, s->batch, s->seed};
}

static void plan_lengths(hbp_context *context, const setting *s, const hbp_cost *cost, int64_t index,
                         const hbp_step_options *options, const uint32_t *length, const char *name, row *r)
{
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    bench_need(context, hbp_lengths_create_u32(context, length, s->batch, NULL, &lengths), "lengths");
    double start = bench_cpu();
    hbp_status status = hbp_plan_step(context, lengths, cost, options, &plan);
    r->seconds = bench_cpu() - start;
    if (status == HBP_E_INFEASIBLE) {
        if (s->is_verbose)
            printf("  %4lld: %s\n", (long long)index, hbp_context_message(context));
        hbp_lengths_free(lengths);
        return;
    }
    char what[96];
    snprintf(what, sizeof what, "%s, batch %lld", name, (long long)index);
    bench_need(context, status, what);
    bench_need(context, hbp_plan_validate(context, plan, lengths, cost), what);
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), what);
    r->ns = summary.predicted_ns;
    r->gap = summary.gap;
    r->micro_batches = (double)summary.micro_batches;
    if (s->is_verbose)
        printf("  %4lld: K %lld  M %lld  ns %lld  bound %lld  gap %.3f %%  %.2f ms\n", (long long)index,
               (long long)s->batch, (long long)summary.micro_batches, (long long)summary.predicted_ns,
               (long long)summary.bound_ns, 100 * summary.gap, 1e3 * r->seconds);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
}

static void plan_batch(hbp_context *context, const setting *s, const hbp_cost *cost, int64_t index,
                       const uint32_t *length, row *r)
{
    char name[64];
    bench_batches batches = batches_of(s);
    hbp_step_options options = {.struct_size = sizeof options};
    options.method = s->method;
    options.effort = s->effort;
    options.max_micro_batches = s->is_single;
    options.sequence_multiple = bench_batches_multiple(s->ranks);
    options.longest_tokens = bench_batches_longest(&batches, cost);
    name_setting(s, name);
    plan_lengths(context, s, cost, index, &options, length, name, r);
}

/* Fills rows[batches]. */
static void plan_all(hbp_context *context, const setting *s, row *rows)
{
    memset(rows, 0, (size_t)s->batches * sizeof *rows);
    hbp_cost *cost = flexsp_cost(context, s->model, s->limit_k, 0, s->ranks);
    if (!cost)
        bench_need(context, HBP_E_INVALID, s->model);
    uint32_t *length = bench_allocate(s->batch, sizeof *length);
    bench_batches batches = batches_of(s);
    for (int64_t b = 0; b < s->batches; b++)
        if (bench_batches_draw(&batches, cost, b, length))
            plan_batch(context, s, cost, b, length, &rows[b]);
    free(length);
    hbp_cost_free(cost);
}

static void add(pool *p, const row *rows, int64_t count)
{
    for (int64_t b = 0; b < count; b++) {
        if (!rows[b].ns) {
            p->failed += rows[b].seconds > 0;
            continue;
        }
        p->gap[p->count] = rows[b].gap;
        p->seconds[p->count] = rows[b].seconds;
        p->micro_batches[p->count++] = rows[b].micro_batches;
    }
}

static void print_pool(const char *name, pool *p)
{
    char failed[64] = "";
    if (p->failed)
        snprintf(failed, sizeof failed, "; %lld without a plan", (long long)p->failed);
    if (!p->count) {
        bench_line(name, "no batch%s", failed);
        return;
    }
    spread gap = spread_of(p->gap, p->count), seconds = spread_of(p->seconds, p->count);
    bench_line(name, "%6.3f %6.3f %6.3f %%  %8.2f %8.2f ms  %5.1f  of %lld%s", 100 * gap.median,
               100 * gap.p95, 100 * gap.most, 1e3 * seconds.median, 1e3 * seconds.most,
               bench_median(p->micro_batches, p->count), (long long)p->count, failed);
    bench_metric(name, "gap, median", BENCH_LOWER, 100 * gap.median, "%");
    bench_metric(name, "gap, 95th percentile", BENCH_LOWER, 100 * gap.p95, "%");
    if (sort_seconds > 0)
        bench_metric_beside(name, "planning, median", BENCH_LOWER, 1e3 * seconds.median, "ms",
                            "radix sort of 1M lengths", seconds.median / sort_seconds);
    else
        bench_metric(name, "planning, median", BENCH_LOWER, 1e3 * seconds.median, "ms");
}

/* Setting `k` of all; 0 when `chosen` wants another. */
static int take_setting(const setting *chosen, int k, setting *s)
{
    *s = *chosen;
    s->model = flexsp_model[k / (SETS * LIMITS)].name;
    s->data = k / LIMITS % SETS;
    s->limit_k = 192 * (1 + k % LIMITS);
    return (!chosen->model || !strcmp(chosen->model, s->model)) &&
           (chosen->data < 0 || chosen->data == s->data) &&
           (!chosen->limit_k || chosen->limit_k == s->limit_k);
}

/* Every setting that `chosen` leaves open, into `all`; a line for each when `lines`. */
static void plan_open(hbp_context *context, const setting *chosen, int lines, pool *all)
{
    static row rows[MOST_BATCHES];
    static pool one;
    memset(all, 0, sizeof *all);
    for (int k = 0; k < SETTINGS; k++) {
        setting s;
        if (!take_setting(chosen, k, &s))
            continue;
        plan_all(context, &s, rows);
        add(all, rows, s.batches);
        if (!lines)
            continue;
        char name[64];
        name_setting(&s, name);
        memset(&one, 0, sizeof one);
        add(&one, rows, s.batches);
        print_pool(name, &one);
    }
}

static const char *const columns = "gap median, p95, most; time median, most; micro-batches";

/* Whole steps of every setting against what they may take. */
static void whole_steps(hbp_context *context, int32_t ranks, int64_t batches, double most_ms, double most_gap)
{
    static pool all;
    setting s = {.data = -1, .ranks = ranks, .batch = 8 * (int64_t)ranks, .batches = batches};
    bench_section("Steps of %d GPUs x %lld: %s", (int)ranks, (long long)s.batch, columns);
    plan_open(context, &s, 1, &all);
    print_pool("all", &all);
    if (!all.count)
        return;
    spread gap = spread_of(all.gap, all.count), seconds = spread_of(all.seconds, all.count);
    char target[3][32];
    snprintf(target[0], 32, "<= %.0f ms", most_ms);
    snprintf(target[1], 32, "<= %.0f ms", 5 * most_ms);
    snprintf(target[2], 32, "<= %.0f %%", most_gap);
    bench_check(1e3 * seconds.median <= most_ms, "time to plan a step, median", target[0],
                "%.2f ms, %.3f sorts", 1e3 * seconds.median, seconds.median / sort_seconds);
    bench_check(1e3 * seconds.most <= 5 * most_ms, "the slowest", target[1], "%.2f ms, %.3f sorts",
                1e3 * seconds.most, seconds.most / sort_seconds);
    bench_check(100 * gap.median <= most_gap, "gap, median", target[2], "%.3f %%", 100 * gap.median);
}

/* 8 sequences a GPU on ever more GPUs; a model that does not fit leaves batches out. */
static void growth(hbp_context *context)
{
    static pool all;
    bench_section("Steps of 7B, 192K, 8 sequences a GPU: %s", columns);
    for (int32_t ranks = 8; ranks <= 1024; ranks *= 2) {
        setting s = {.model = "7B", .data = -1, .limit_k = 192, .ranks = ranks};
        char name[64];
        s.batch = 8 * (int64_t)ranks;
        s.batches = ranks <= 128 ? 10 : 3;
        plan_open(context, &s, 0, &all);
        snprintf(name, sizeof name, "%d GPUs x %lld", (int)ranks, (long long)s.batch);
        print_pool(name, &all);
    }
}

/* Plans the batches of one model and data set; zero when the model does not fit. */
static int plan_recomputed(hbp_context *context, const setting *s, const bench_data *data, row *rows)
{
    const char *reason = "";
    hbp_cost *cost = bench_cost(context, s->model, s->ranks / 8, &reason);
    if (!cost)
        return 0;
    hbp_cost_terms t = {.struct_size = sizeof t};
    bench_need(context, hbp_cost_get_terms(context, cost, &t), "the terms");
    int64_t most = hbp_cost_predict_capacity(cost, t.degree[t.degrees - 1], t.layers);
    uint32_t longest = most < BENCH_LONGEST ? (uint32_t)most : BENCH_LONGEST;
    uint32_t *length = bench_allocate(s->batch, sizeof *length);
    memset(rows, 0, (size_t)s->batches * sizeof *rows);
    for (int64_t b = 0; b < s->batches; b++) {
        uint64_t state = (uint64_t)b << 32 ^ (uint64_t)s->batch ^ s->seed << 48;
        for (int64_t i = 0; i < s->batch; i++) {
            uint32_t drawn = data->length[bench_random(&state) % (uint64_t)data->count];
            length[i] = drawn < longest ? drawn : longest;
        }
        hbp_step_options options = {.struct_size = sizeof options, .effort = s->effort};
        plan_lengths(context, s, cost, b, &options, length, data->name, &rows[b]);
    }
    free(length);
    hbp_cost_free(cost);
    return 1;
}

/* Whole steps of seven data sets on H100, where layers may be recomputed, against what they may take. */
static void recomputed_steps(hbp_context *context, const setting *chosen, double most_ms, double most_gap)
{
    static const char *const models[] = {"llama-3.1-8b", "llama-3.1-70b"};
    static row rows[MOST_BATCHES];
    static pool all, one;
    memset(&all, 0, sizeof all);
    bench_section("Steps with recomputation, %d H100 x %lld: %s", (int)chosen->ranks,
                  (long long)chosen->batch, columns);
    for (int model = 0; model < 2; model++)
        for (int i = 0; i < BENCH_DATA_SETS; i++) {
            setting s = *chosen;
            bench_data data;
            s.model = models[model];
            if ((chosen->model && !strstr(s.model, chosen->model)) || !bench_data_open(context, i, &data))
                continue;
            if (plan_recomputed(context, &s, &data, rows)) {
                char name[64];
                snprintf(name, sizeof name, "%s %s", s.model + 10, data.name);
                memset(&one, 0, sizeof one);
                add(&one, rows, s.batches);
                add(&all, rows, s.batches);
                print_pool(name, &one);
                fflush(stdout);
            }
            bench_data_close(&data);
        }
    print_pool("all", &all);
    if (!all.count)
        return;
    spread gap = spread_of(all.gap, all.count), seconds = spread_of(all.seconds, all.count);
    char target[2][32];
    snprintf(target[0], 32, "<= %.0f ms", most_ms);
    snprintf(target[1], 32, "<= %.0f %%", most_gap);
    bench_check(1e3 * seconds.median <= most_ms, "time to plan a step, median", target[0], "%.2f ms",
                1e3 * seconds.median);
    bench_check(100 * gap.median <= most_gap, "gap, median", target[1], "%.3f %%", 100 * gap.median);
    bench_check(100 * gap.p95 <= 5, "gap, 95th percentile", "<= 5 %", "%.3f %%", 100 * gap.p95);
}

/* Batches that fit one micro-batch. */
static void single_micro_batches(hbp_context *context)
{
    static pool all, some;
    memset(&all, 0, sizeof all);
    bench_section("Single micro-batches of every setting: %s", columns);
    for (int32_t ranks = 32; ranks <= 64; ranks *= 2)
        for (int64_t batch = 32; batch <= 256; batch *= 2) {
            setting s = {.data = -1, .ranks = ranks, .batch = batch, .batches = 5, .is_single = 1};
            char name[64];
            plan_open(context, &s, 0, &some);
            memcpy(all.gap + all.count, some.gap, (size_t)some.count * sizeof *some.gap);
            all.count += some.count;
            snprintf(name, sizeof name, "%d GPUs x %lld", (int)ranks, (long long)batch);
            print_pool(name, &some);
        }
    spread gap = spread_of(all.gap, all.count);
    bench_check(100 * gap.median <= .3, "gap, median", "<= .3 %", "%.3f %%", 100 * gap.median);
    bench_check(100 * gap.p95 <= 2, "gap, 95th percentile", "<= 2 %", "%.3f %%", 100 * gap.p95);
}

static int find_method(const char *name)
{
    for (int way = 0; way < METHODS; way++)
        if (!strcmp(methods[way], name))
            return way;
    return METHODS;
}

/* Other ways beside the default one on the same batches, and more effort. */
static void compare_ways(hbp_context *context, const setting *chosen)
{
    enum { EFFORTS = 2, WAYS = METHODS + EFFORTS };
    static row own[MOST_BATCHES], other[MOST_BATCHES];
    static double ratio[WAYS][SETTINGS * MOST_BATCHES];
    int64_t count[WAYS] = {0}, faster[WAYS] = {0}, slower = 0;
    int flexsp = find_method("flexsp");
    bench_section("Steps of %d GPUs x %lld, time over the default's: median, p95, most; faster in",
                  (int)chosen->ranks, (long long)chosen->batch);
    for (int k = 0; k < SETTINGS; k++) {
        setting s;
        if (!take_setting(chosen, k, &s))
            continue;
        plan_all(context, &s, own);
        for (int way = 1; way < WAYS; way++) {
            setting t = s;
            t.method = way < METHODS ? methods[way] : methods[0];
            t.effort = way < METHODS ? 0 : way - METHODS + 2;
            plan_all(context, &t, other);
            for (int64_t b = 0; b < s.batches; b++)
                if (own[b].ns && other[b].ns) {
                    ratio[way][count[way]++] = (double)other[b].ns / (double)own[b].ns;
                    faster[way] += other[b].ns < own[b].ns;
                    slower += way >= METHODS && other[b].ns > own[b].ns;
                }
        }
    }
    for (int way = 1; way < WAYS; way++) {
        char name[64];
        if (way < METHODS)
            snprintf(name, sizeof name, "%s", methods[way]);
        else
            snprintf(name, sizeof name, "default, effort %d", way - METHODS + 2);
        if (!count[way])
            continue;
        spread r = spread_of(ratio[way], count[way]);
        bench_line(name, "%.4f %.4f %.4f; %lld of %lld", r.median, r.p95, r.most, (long long)faster[way],
                   (long long)count[way]);
        if (way < METHODS)
            bench_metric(name, "its time / ours, median", BENCH_HIGHER, r.median, "x");
    }
    bench_check(count[flexsp] && !faster[flexsp], "default never slower than the published way", "all",
                "%lld of %lld", (long long)(count[flexsp] - faster[flexsp]), (long long)count[flexsp]);
    bench_check(!slower, "more effort never slower", "all", "%lld slower", (long long)slower);
}

static int find_set(const char *name)
{
    for (int i = 0; i < SETS; i++)
        if (!strcmp(set[i].name, name))
            return i;
    return SETS;
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_step [--quick]\n"
                    "       bench_step [--model 7B|13B|30B] [--data wikipedia|code_files|reasoning]\n"
                    "                  [--limit 192|384] [--ranks N] [--batch K] [--batches COUNT]\n"
                    "                  [--effort E] [--method METHOD] [--seed S] [--single]\n"
                    "                  [--pad-to-all] [-v] [--compare]\n"
                    "       bench_step --recompute [--model 8b|70b] [--ranks N] [--batch K] [...]\n"
                    "What is not given of model, data and limit takes every value.\n");
    return 2;
}

/* Reads one option; the number of arguments taken, 0 when it is none. */
static int read_option(char **argument, int left, setting *s)
{
    if (!strcmp(argument[0], "--single"))
        return s->is_single = 1;
    if (!strcmp(argument[0], "--pad-to-all"))
        return bench_batches_padded_to_all = 1;
    if (!strcmp(argument[0], "-v"))
        return s->is_verbose = 1;
    if (!strcmp(argument[0], "--recompute"))
        return s->recomputes = 1;
    if (!strcmp(argument[0], "--compare"))
        return s->is_compared = 1;
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
    else if (!strcmp(name, "--method"))
        s->method = value;
    else if (!strcmp(name, "--seed"))
        s->seed = (uint64_t)number;
    else
        return 0;
    return 2;
}

/* Some settings of the caller's choice. */
static int run_chosen(hbp_context *context, int argc, char **argv)
{
    static pool all;
    setting chosen = {.data = -1, .ranks = 64, .batches = 10};
    for (int i = 1, taken; i < argc; i += taken) {
        taken = read_option(argv + i, argc - i, &chosen);
        if (!taken)
            return usage();
    }
    if (!chosen.batch)
        chosen.batch = chosen.is_single ? chosen.ranks : 8 * (int64_t)chosen.ranks;
    int is_known = !chosen.method || find_method(chosen.method) < METHODS;
    if (!is_known || chosen.ranks < 1 || chosen.batch < 1 || chosen.batches < 1)
        return usage();
    if (chosen.recomputes) {
        recomputed_steps(context, &chosen, chosen.ranks > 64 ? 400 : 10, chosen.ranks > 64 ? 4 : 2);
        return bench_end();
    }
    if (chosen.is_compared) {
        compare_ways(context, &chosen);
        return bench_end();
    }
    bench_section("Steps: %s", columns);
    plan_open(context, &chosen, 1, &all);
    print_pool("all", &all);
    return bench_end();
}

static int run_all(hbp_context *context, int is_quick)
{
    enum { KEYS = 1000000, SORTS = 5 };
    double seconds[SORTS];
    uint32_t *length = bench_draw_standin(KEYS, 0);
    for (int i = 0; i < SORTS; i++)
        seconds[i] = bench_sort(length, KEYS);
    free(length);
    sort_seconds = bench_median(seconds, SORTS);
    bench_section("FlexSP's constants: GPT 7B, 13B, 30B on A100-40GB");
    bench_line("radix sort of 1M lengths", "%.2f ms", 1e3 * sort_seconds);
    whole_steps(context, 64, is_quick ? 2 : 20, 10, 2);
    recomputed_steps(context, &(setting){.ranks = 64, .batch = 512, .batches = is_quick ? 1 : 10}, 10, 2);
    if (is_quick)
        return bench_end();
    recomputed_steps(context, &(setting){.ranks = 1024, .batch = 8192, .batches = 1}, 400, 4);
    whole_steps(context, 1024, 3, 400, 4);
    growth(context);
    single_micro_batches(context);
    compare_ways(context, &(setting){.data = -1, .ranks = 64, .batch = 512, .batches = 5});
    return bench_end();
}

int main(int argc, char **argv)
{
    int is_quick = argc == 2 && !strcmp(argv[1], "--quick");
    hbp_context *context = bench_context(NULL);
    bench_batches_open(context, set);
    int status = argc == 1 || is_quick ? run_all(context, is_quick) : run_chosen(context, argc, argv);
    bench_batches_close(set);
    hbp_context_free(context);
    return status;
}
