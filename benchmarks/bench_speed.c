/* Speed and memory of planning on the stand-in, one thread, beside a radix sort of the same lengths in the
 * same run. Seconds are of the CPU. Every run allocates afresh, the sort as well as the plan: large arrays
 * then come from the system page by page, which is half of the sort's time. With --warm malloc keeps what was
 * freed, as in a process that plans again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { PAIRS = 5 };

static const char *memory_note = "";

/* What one run of planning took, by stage. */
typedef struct stages {
    double lengths; /* check, digest and histogram of a borrowed array */
    double groups;
    double fill;
    double balance; /* and building the plan */
    int64_t packs;
    int64_t steps;
    uint64_t digest;
} stages;

static double total(const stages *s)
{
    return s->lengths + s->groups + s->fill + s->balance;
}

/* The four moves that hbp_plan_epoch makes of a large data set, one by one, so that each has its time. */
static stages time_plan(hbp_context *context, const uint32_t *length, int64_t count, const hbp_cost *cost)
{
    stages s = {0};
    hbp_lengths *lengths = NULL;
    hbp_groups *groups = NULL;
    hbp_packs *packs = NULL;
    hbp_plan *plan = NULL;
    hbp_lengths_options borrow = {.struct_size = sizeof borrow};
    borrow.borrow = 1;
    double start = bench_cpu();
    bench_need(context, hbp_lengths_create_u32(context, length, count, &borrow, &lengths), "lengths");
    s.lengths = bench_cpu() - start;
    start = bench_cpu();
    bench_need(context, hbp_plan_groups(context, lengths, cost, NULL, &groups), "groups");
    s.groups = bench_cpu() - start;
    start = bench_cpu();
    bench_need(context, hbp_greedy_fill(context, lengths, groups, NULL, &packs), "fill");
    s.fill = bench_cpu() - start;
    start = bench_cpu();
    bench_need(context, hbp_balance_attention(context, packs, groups, cost, NULL, &plan), "balance");
    s.balance = bench_cpu() - start;
    s.packs = bench_count_packs(packs);
    hbp_plan_view view = {.struct_size = sizeof view};
    (void)hbp_plan_get_view(plan, &view);
    s.steps = view.steps;
    s.digest = bench_digest(context, plan);
    hbp_plan_free(plan);
    hbp_packs_free(packs);
    hbp_groups_free(groups);
    hbp_lengths_free(lengths);
    return s;
}

/* The one call, lengths included. */
static double time_epoch(hbp_context *context, const uint32_t *length, int64_t count, const hbp_cost *cost,
                         uint64_t *digest)
{
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    hbp_lengths_options borrow = {.struct_size = sizeof borrow};
    borrow.borrow = 1;
    double start = bench_cpu();
    bench_need(context, hbp_lengths_create_u32(context, length, count, &borrow, &lengths), "lengths");
    bench_need(context, hbp_plan_epoch(context, lengths, cost, NULL, &plan), "plan");
    double seconds = bench_cpu() - start;
    *digest = bench_digest(context, plan);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    return seconds;
}

/* Peak bytes of the library's allocator per sample. The caller's array, borrowed, is not among them. */
static double peak_per_sample(const uint32_t *length, int64_t count, const hbp_cost *cost)
{
    bench_memory memory = {0, 0};
    hbp_context *context = bench_context(&memory);
    time_plan(context, length, count, cost);
    hbp_context_free(context);
    if (memory.live != 0)
        fprintf(stderr, "%lld bytes were not given back\n", (long long)memory.live);
    return (double)memory.peak / (double)count;
}

/* Sorts and plans in turn; medians over the pairs. Returns seconds a sample of fill, balance and plan. */
static double compare_sort(hbp_context *context, const uint32_t *length, int64_t count, const hbp_cost *cost,
                           int is_target)
{
    double sort[PAIRS], work[PAIRS], all[PAIRS], epoch[PAIRS], ratio[PAIRS], whole[PAIRS];
    double create[PAIRS], groups[PAIRS], fill[PAIRS], balance[PAIRS];
    stages s = {0};
    bench_section("Planning %lld samples beside sorting them, medians of %d pairs%s", (long long)count,
                  (int)PAIRS, memory_note);
    time_plan(context, length, count, cost);
    for (int k = 0; k < PAIRS; k++) {
        sort[k] = bench_sort(length, count);
        s = time_plan(context, length, count, cost);
        uint64_t digest;
        epoch[k] = time_epoch(context, length, count, cost, &digest);
        if (digest != s.digest) {
            fprintf(stderr, "the four moves and hbp_plan_epoch made different plans\n");
            exit(1);
        }
        work[k] = s.fill + s.balance;
        all[k] = total(&s);
        ratio[k] = work[k] / sort[k];
        whole[k] = epoch[k] / sort[k];
        create[k] = s.lengths;
        groups[k] = s.groups;
        fill[k] = s.fill;
        balance[k] = s.balance;
    }
    double mid_ratio = bench_median(ratio, PAIRS), mid_whole = bench_median(whole, PAIRS);
    double mid_work = bench_median(work, PAIRS);
    bench_line("radix sort", "%.3f s", bench_median(sort, PAIRS));
    bench_line("lengths, groups, fill, balance and plan", "%.3f + %.3f + %.3f + %.3f s",
               bench_median(create, PAIRS), bench_median(groups, PAIRS), bench_median(fill, PAIRS),
               bench_median(balance, PAIRS));
    bench_line("all four; lengths and hbp_plan_epoch", "%.3f s; %.3f s", bench_median(all, PAIRS),
               bench_median(epoch, PAIRS));
    bench_line("packs, steps", "%lld, %lld", (long long)s.packs, (long long)s.steps);
    bench_line("lengths and hbp_plan_epoch / sort", "%.2f (%.2f to %.2f)", mid_whole, whole[0],
               whole[PAIRS - 1]);
    double peak = peak_per_sample(length, count, cost);
    bench_metric_beside("", "fill, balance and plan", BENCH_LOWER, mid_work, "s", "radix sort", mid_ratio);
    bench_metric_beside("", "lengths and hbp_plan_epoch", BENCH_LOWER, bench_median(epoch, PAIRS), "s",
                        "radix sort", mid_whole);
    bench_metric("", "peak bytes a sample", BENCH_LOWER, peak, "bytes");
    if (is_target) {
        bench_check(mid_ratio <= 6, "fill, balance and plan / sort", "<= 6", "%.2f (%.2f to %.2f)", mid_ratio,
                    ratio[0], ratio[PAIRS - 1]);
        bench_check(peak <= 24, "peak bytes a sample, borrowed input not incl.", "<= 24", "%.1f", peak);
    } else {
        bench_line("fill, balance and plan / sort", "%.2f (%.2f to %.2f)", mid_ratio, ratio[0],
                   ratio[PAIRS - 1]);
        bench_line("peak bytes a sample, borrowed input not incl.", "%.1f", peak);
    }
    return mid_work / (double)count;
}

/* One group of 128K, as packers without a hierarchy have it. */
static void time_fill(hbp_context *context, const uint32_t *length, int64_t count, const hbp_cost *cost,
                      const char *peers)
{
    static const struct {
        const char *name, *method;
        int32_t effort;
    } fills[] = {
        {"balanced", "balanced", 0}, {"tight, effort 0", "tight", 0}, {"tight, effort 1", "tight", 1}};
    int64_t pack_length = BENCH_LONGEST;
    int32_t sp = 8, recompute = -1;
    hbp_lengths *lengths = NULL;
    hbp_groups *groups = NULL;
    hbp_lengths_options borrow = {.struct_size = sizeof borrow};
    borrow.borrow = 1;
    bench_need(context, hbp_lengths_create_u32(context, length, count, &borrow, &lengths), "lengths");
    bench_need(context,
               hbp_groups_create(context, cost, 1, &pack_length, &sp, &recompute, 4 * BENCH_LONGEST, &groups),
               "groups");
    bench_section("Packing %lld samples at 128K, one group, medians of %d%s", (long long)count, (int)PAIRS,
                  memory_note);
    for (int f = 0; f < 3; f++) {
        double seconds[PAIRS], ratio[PAIRS];
        int64_t packs_made = 0, bound = 0;
        for (int k = 0; k < PAIRS; k++) {
            hbp_fill_options options = {.struct_size = sizeof options};
            options.method = fills[f].method;
            options.effort = fills[f].effort;
            hbp_packs *packs = NULL;
            double sort = bench_sort(length, count), start = bench_cpu();
            bench_need(context, hbp_greedy_fill(context, lengths, groups, &options, &packs), "fill");
            seconds[k] = bench_cpu() - start;
            ratio[k] = seconds[k] / sort;
            packs_made = bench_count_packs(packs);
            bound = bench_packs_bound(packs);
            hbp_packs_free(packs);
        }
        bench_line(fills[f].name, "%.3f s, %.2f sorts; %lld packs, bound %lld", bench_median(seconds, PAIRS),
                   bench_median(ratio, PAIRS), (long long)packs_made, (long long)bound);
        bench_metric_beside(fills[f].name, "fill", BENCH_LOWER, bench_median(seconds, PAIRS), "s",
                            "radix sort", bench_median(ratio, PAIRS));
        bench_metric_beside(fills[f].name, "packs", BENCH_LOWER, (double)packs_made, "packs", "bound",
                            (double)packs_made / (double)bound);
    }
    bench_line("fastest packers elsewhere, measured then", "%s", peers);
    hbp_groups_free(groups);
    hbp_lengths_free(lengths);
}

/* Writes the lengths for another language to read: little-endian uint32 without a header. */
static int write_lengths(const char *path, int64_t count)
{
    uint32_t *length = bench_draw_standin(count, 0);
    FILE *file = fopen(path, "wb");
    int failed = !file || fwrite(length, sizeof *length, (size_t)count, file) != (size_t)count;
    if (file)
        failed |= fclose(file) != 0;
    free(length);
    if (failed)
        perror(path);
    return failed;
}

/* For bench_python.py: the seconds of one plan, and its digest. */
static int print_epoch(hbp_context *context, const hbp_cost *cost, int64_t count)
{
    uint32_t *length = bench_draw_standin(count, 0);
    uint64_t digest;
    double seconds = time_epoch(context, length, count, cost, &digest);
    printf("%.6f %016llx\n", seconds, (unsigned long long)digest);
    free(length);
    return 0;
}

/* Lets malloc keep what is freed; 0 where it cannot be told to. */
static int keep_memory(void)
{
#ifdef __GLIBC__
    memory_note = "; memory kept";
    return mallopt(M_MMAP_MAX, 0) && mallopt(M_TRIM_THRESHOLD, -1) && mallopt(M_TOP_PAD, 64 << 20);
#else
    return 0;
#endif
}

int main(int argc, char **argv)
{
    int is_long = argc == 2 && strcmp(argv[1], "--long") == 0;
    int is_warm = argc == 2 && strcmp(argv[1], "--warm") == 0;
    if (argc == 4 && strcmp(argv[1], "--write") == 0)
        return write_lengths(argv[3], strtoll(argv[2], NULL, 10));
    int is_epoch = argc == 3 && strcmp(argv[1], "--epoch") == 0;
    if (argc > 1 && !is_long && !is_warm && !is_epoch) {
        fprintf(stderr, "usage: bench_speed [--long | --warm | --write COUNT FILE | --epoch COUNT]\n");
        return 2;
    }
    if (is_warm && !keep_memory()) {
        printf("\n== Planning with memory kept: skipped, this malloc cannot be told to\n");
        return 0;
    }
    hbp_context *context = bench_context(NULL);
    hbp_cost *cost = bench_cost(context, "llama-3.1-8b", 4, NULL);
    if (is_epoch)
        return print_epoch(context, cost, strtoll(argv[2], NULL, 10));
    static const int64_t counts[] = {1000000, 10000000, 100000000};
    static const char *const peers[] = {".13 to .2 s", "1.5 to 2 s", "not known"};
    double per_sample[3] = {0};
    for (int k = 0; k < (is_long ? 3 : 2); k++) {
        uint32_t *length = bench_draw_standin(counts[k], 0);
        per_sample[k] = compare_sort(context, length, counts[k], cost, k == 1);
        if (k < 2)
            time_fill(context, length, counts[k], cost, peers[k]);
        free(length);
    }
    bench_section("Growth: fill, balance and plan%s", memory_note);
    for (int k = 0; k < (is_long ? 3 : 2); k++) {
        char name[32];
        snprintf(name, sizeof name, "%lld samples", (long long)counts[k]);
        bench_line(name, "%.1f ns a sample, %.2f times that of 1M", per_sample[k] * 1e9,
                   per_sample[k] / per_sample[0]);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
    return bench_end();
}
