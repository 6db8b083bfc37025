/* Plans by patterns beside the default epoch on the same lengths: seconds of the CPU, one thread, of epochs
 * by the clock; memory that
 * the library held at most beside the input; how near the bound, and how like the epoch the steps are. The
 * stand-in's lengths; past ten million the same ten million again and again, streamed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum {
    PIECE = 10000000,
    STEPS = 101,
    LISTED = 100000000,
    COMPARED = 10000000,
    MANY = 1000000000,
    ROUNDS = 5
};

typedef struct run {
    hbp_context *context;
    const hbp_cost *cost;
    const uint32_t *piece; /* [PIECE] */
    int64_t count;
    bench_memory memory;
} run;

/* How often each length occurs, as one pass counts them. */
static hbp_lengths *count_lengths(const run *r, double *seconds)
{
    enum { TABLE = BENCH_LONGEST + 1 };
    int64_t *count = bench_allocate(TABLE, sizeof *count), *length = bench_allocate(TABLE, sizeof *length);
    hbp_lengths *histogram = NULL;
    memset(count, 0, TABLE * sizeof *count);
    const double start = bench_cpu();
    for (int64_t done = 0; done < r->count; done += PIECE) {
        const int64_t part = r->count - done < PIECE ? r->count - done : PIECE;
        for (int64_t i = 0; i < part; i++)
            count[r->piece[i]]++;
    }
    for (int64_t i = 0; i < TABLE; i++)
        length[i] = i;
    bench_need(r->context, hbp_lengths_create_histogram(r->context, length, count, TABLE, &histogram),
               "the histogram");
    *seconds = bench_cpu() - start;
    free(count);
    free(length);
    return histogram;
}

static hbp_length_index *index_lengths(const run *r, const hbp_lengths *histogram, double *seconds)
{
    hbp_length_index_builder *builder = NULL;
    hbp_length_index *index = NULL;
    const double start = bench_cpu();
    bench_need(r->context, hbp_length_index_builder_create(r->context, histogram, &builder), "the index");
    for (int64_t done = 0; done < r->count; done += PIECE) {
        const int64_t part = r->count - done < PIECE ? r->count - done : PIECE;
        bench_need(r->context, hbp_length_index_builder_append(r->context, builder, r->piece, part),
                   "the index");
    }
    bench_need(r->context, hbp_length_index_builder_finish(r->context, builder, &index), "the index");
    hbp_length_index_builder_free(builder);
    *seconds = bench_cpu() - start;
    return index;
}

/* The median time to list one step. */
static double time_step(const run *r, const hbp_pattern_plan *plan, const hbp_length_index *index,
                        int64_t steps)
{
    double seconds[STEPS];
    for (int64_t i = 0; i < STEPS; i++) {
        hbp_plan *step = NULL;
        const double start = bench_cpu();
        bench_need(r->context, hbp_pattern_plan_expand(r->context, plan, index, steps * i / STEPS, 1, &step),
                   "a step");
        seconds[i] = bench_cpu() - start;
        hbp_plan_free(step);
    }
    return bench_median(seconds, STEPS);
}

static void report_listed(const run *r, const hbp_plan *plan, const char *name)
{
    const hbp_simulate_options options = {.struct_size = sizeof options};
    hbp_report report = {.struct_size = sizeof report};
    bench_need(r->context, hbp_simulate(r->context, plan, r->cost, &options, &report), name);
    bench_line(name, "%.3f %% above the bound, mixture distance %.4f, idle %.2f %%", 100 * report.gap,
               report.mixture_distance, 100 * report.idle);
}

static void list_all(const run *r, const hbp_pattern_plan *plan, const hbp_length_index *index, int64_t steps)
{
    hbp_plan *listed = NULL;
    const double start = bench_cpu();
    bench_need(r->context, hbp_pattern_plan_expand(r->context, plan, index, 0, steps, &listed), "the list");
    bench_line("  every sample listed", "%.3f s", bench_cpu() - start);
    report_listed(r, listed, "  by patterns");
    hbp_plan_free(listed);
}

/* Lengths and epoch of `effort`, on `threads` threads: seconds by the clock. */
static double plan_listed(const run *r, int32_t effort, int32_t threads, hbp_plan **plan)
{
    const hbp_context_options several = {.struct_size = sizeof several, .threads = threads};
    hbp_epoch_options options = {.struct_size = sizeof options, .effort = effort};
    hbp_context *context = NULL;
    hbp_lengths *lengths = NULL;
    bench_need(r->context, hbp_context_create(&several, &context), "a context");
    const double start = bench_wall();
    bench_need(context, hbp_lengths_create_u32(context, r->piece, r->count, NULL, &lengths), "lengths");
    bench_need(context, hbp_plan_epoch(context, lengths, r->cost, &options, plan), "the epoch");
    const double seconds = bench_wall() - start;
    hbp_lengths_free(lengths);
    hbp_context_free(context);
    return seconds;
}

/* The default, on one and two threads in turns, and with effort, which searches as well and keeps the faster
 * of very many samples. */
static void compare_default(const run *r)
{
    double seconds[2][ROUNDS];
    hbp_plan *plan = NULL;
    for (int i = 0; i < ROUNDS; i++)
        for (int32_t k = 0; k < 2; k++) {
            hbp_plan_free(plan);
            seconds[k][i] = plan_listed(r, 0, k + 1, &plan);
        }
    const double one = bench_median(seconds[0], ROUNDS), two = bench_median(seconds[1], ROUNDS);
    if (r->count == COMPARED) {
        bench_check(one <= .25, "  lengths and default epoch", "<= 0.25 s", "%.3f s", one);
        bench_check(two <= .15, "  the same on two threads", "<= 0.15 s", "%.3f s", two);
    } else {
        bench_line("  lengths and default epoch", "%.3f s; on two threads %.3f s", one, two);
    }
    report_listed(r, plan, "  default epoch");
    hbp_plan_free(plan);
    bench_line("  the same with effort 1", "%.3f s", plan_listed(r, 1, 1, &plan));
    report_listed(r, plan, "  epoch with effort 1");
    hbp_plan_free(plan);
}

static void run_one(const hbp_cost *cost, const uint32_t *piece, int64_t count)
{
    run r = {NULL, cost, piece, count, {0, 0}};
    hbp_pattern_plan *plan = NULL;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_pattern_plan_view view = {.struct_size = sizeof view};
    double counted, indexed;
    r.context = bench_context(&r.memory);
    bench_section("%lld lengths", (long long)count);
    hbp_lengths *histogram = count_lengths(&r, &counted);
    const double start = bench_cpu();
    bench_need(r.context, hbp_plan_patterns(r.context, histogram, cost, NULL, &plan), "the plan");
    const double planned = bench_cpu() - start;
    bench_need(r.context, hbp_pattern_plan_get_summary(r.context, plan, &summary), "the summary");
    hbp_pattern_plan_get_view(plan, &view);
    bench_line("  patterns", "%lld of %lld runs, %lld packs, %lld steps; %.3f %% above the bound",
               (long long)view.patterns, (long long)view.runs, (long long)summary.packs,
               (long long)summary.steps, 100 * summary.gap);
    bench_line("  held for the plan", "%.1f MB at most", (double)r.memory.peak / 1e6);
    hbp_length_index *index = index_lengths(&r, histogram, &indexed);
    bench_line("  counted, planned, indexed", "%.3f s, %.3f s, %.3f s", counted, planned, indexed);
    const double all = counted + planned + indexed;
    if (count >= MANY)
        bench_check(all <= 40, "  in all", "<= 40 s for 10^9", "%.3f s", all);
    else
        bench_line("  in all", "%.3f s", all);
    const double step = time_step(&r, plan, index, summary.steps);
    bench_check(step < 1e-3, "  one step listed", "< 1 ms", "%.3f ms", 1e3 * step);
    const double peak = (double)r.memory.peak;
    if (count >= MANY)
        bench_check(peak <= 8e9, "  held at most", "<= 8 GB for 10^9", "%.2f GB, %.2f bytes a sample",
                    peak / 1e9, peak / (double)count);
    else
        bench_line("  held at most", "%.2f GB, %.2f bytes a sample", peak / 1e9, peak / (double)count);
    if (count <= LISTED)
        list_all(&r, plan, index, summary.steps);
    if (count <= COMPARED)
        compare_default(&r);
    hbp_length_index_free(index);
    hbp_pattern_plan_free(plan);
    hbp_lengths_free(histogram);
    hbp_context_free(r.context);
}

int main(int argc, char **argv)
{
    const char *model = argc > 2 ? argv[2] : "llama-3.1-8b", *reason = NULL;
    const int32_t nodes = argc > 3 ? (int32_t)strtol(argv[3], NULL, 10) : 1;
    hbp_context *context = bench_context(NULL);
    hbp_cost *cost = bench_cost(context, model, nodes, &reason);
    if (!cost) {
        fprintf(stderr, "bench_patterns: %s\nusage: bench_patterns [COUNT [MODEL [NODES]]]\n", reason);
        return 2;
    }
    uint32_t *piece = bench_draw_standin(PIECE, 0);
    printf("%s on %d GPUs\n", model, (int)nodes * 8);
    if (argc > 1) {
        run_one(cost, piece, strtoll(argv[1], NULL, 10));
    } else {
        run_one(cost, piece, 1000000);
        run_one(cost, piece, 10000000);
    }
    free(piece);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return bench_end();
}
