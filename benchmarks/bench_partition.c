/* The plain call: seconds and distance from the bound, beside the rule of the longest processing time written
 * plainly (Graham 1969) for a given number of parts, and beside a radix sort for packs. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { WIKIPEDIA = 1, RUNS = 9, MILLION = 1000000, LONGEST = 16384 };

static int compare_down(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The heaviest part by the plain rule: the longest first, each into the lightest part, which is looked for.
 */
static int64_t plain_rule(const int64_t *length, int64_t count, int64_t parts)
{
    int64_t *down = bench_allocate(count, sizeof *down), *weight = bench_allocate(parts, sizeof *weight),
            most = 0;
    for (int64_t i = 0; i < count; i++)
        down[i] = length[i];
    qsort(down, (size_t)count, sizeof *down, compare_down);
    for (int64_t k = 0; k < parts; k++)
        weight[k] = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t lightest = 0;
        for (int64_t k = 1; k < parts; k++)
            if (weight[k] < weight[lightest])
                lightest = k;
        weight[lightest] += down[i];
        most = weight[lightest] > most ? weight[lightest] : most;
    }
    free(down);
    free(weight);
    return most;
}

/* Median seconds of the call; the view of its last partition. */
static double time_call(const int64_t *length, int64_t count, const hbp_partition_options *options, int runs,
                        hbp_partition_view *view)
{
    double seconds[RUNS];
    char why[256];
    for (int i = 0; i < runs; i++) {
        hbp_partition *made;
        double start = bench_cpu();
        if (hbp_partition_samples(length, count, options, &made, why, sizeof why) < 0) {
            fprintf(stderr, "bench_partition: %s\n", why);
            exit(1);
        }
        seconds[i] = bench_cpu() - start;
        *view = (hbp_partition_view){.struct_size = sizeof *view};
        hbp_partition_get_view(made, view);
        hbp_partition_free(made);
    }
    return bench_median(seconds, runs);
}

/* A percentage of the bound. */
static double past(int64_t value, int64_t bound)
{
    return 100.0 * ((double)value / (double)bound - 1);
}

static void run_given(const int64_t *length)
{
    static const struct {
        int64_t count, parts;
        double most; /* seconds */
    } cases[] = {{16, 4, 1e-4}, {128, 8, 1e-3}, {1024, 64, 1e-3}, {4096, 64, 1e-2}};
    bench_section("A given number of parts, beside the plain rule of the longest processing time");
    printf("%8s %6s %12s %10s %12s %10s %12s\n", "samples", "parts", "s", "over bound", "equal s",
           "over bound", "plain rule");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        hbp_partition_options options = {.struct_size = sizeof options, .parts = cases[k].parts};
        hbp_partition_view free_view, equal_view;
        double free_s = time_call(length, cases[k].count, &options, RUNS, &free_view);
        options.equal_count = 1;
        double equal_s = time_call(length, cases[k].count, &options, RUNS, &equal_view);
        int64_t plain = plain_rule(length, cases[k].count, cases[k].parts);
        printf("%8lld %6lld %12.6f %9.3f%% %12.6f %9.3f%% %11.3f%%\n", (long long)cases[k].count,
               (long long)cases[k].parts, free_s, past(free_view.heaviest, free_view.bound), equal_s,
               past(equal_view.heaviest, equal_view.bound), past(plain, free_view.bound));
        char row[64];
        snprintf(row, sizeof row, "%lld samples into %lld", (long long)cases[k].count,
                 (long long)cases[k].parts);
        bench_metric_beside(row, "heaviest part", BENCH_LOWER, (double)free_view.heaviest, "tokens", "bound",
                            (double)free_view.heaviest / (double)free_view.bound);
        bench_check(free_s <= cases[k].most && equal_s <= cases[k].most, row,
                    cases[k].most < 1e-3   ? "<= .1 ms"
                    : cases[k].most < 1e-2 ? "<= 1 ms"
                                           : "<= 10 ms",
                    "%.3f ms", 1e3 * (free_s > equal_s ? free_s : equal_s));
    }
}

static void run_packs(const int64_t *length, const uint32_t *narrow)
{
    static const int64_t capacities[] = {8192, 32768};
    bench_section(
        "A million lengths into packs; longer samples are cut, then split; then cut, into a multiple of "
        "eight packs of at most 256, balanced in time");
    printf("%9s %10s %10s %10s %10s %10s %12s\n", "capacity", "packs", "bound", "s", "split s", "eights s",
           "sort s");
    for (int k = 0; k < 2; k++) {
        hbp_partition_options options = {
            .struct_size = sizeof options, .capacity = capacities[k], .over_long = HBP_OVERLONG_TRUNCATE};
        hbp_partition_view view, split;
        double seconds = time_call(length, MILLION, &options, 3, &view);
        options.over_long = HBP_OVERLONG_SPLIT;
        double split_s = time_call(length, MILLION, &options, 3, &split);
        options = (hbp_partition_options){.struct_size = sizeof options,
                                          .capacity = capacities[k],
                                          .over_long = HBP_OVERLONG_TRUNCATE,
                                          .multiple_of = 8,
                                          .max_samples = 256,
                                          .linear = 24576,
                                          .square = 1};
        hbp_partition_view even;
        double even_s = time_call(length, MILLION, &options, 3, &even);
        double sort_s = bench_sort(narrow, MILLION);
        printf("%9lld %10lld %10lld %10.3f %10.3f %10.3f %12.4f\n", (long long)capacities[k],
               (long long)view.parts, (long long)view.least_parts, seconds, split_s, even_s, sort_s);
        char row[64];
        snprintf(row, sizeof row, "a million at %lld", (long long)capacities[k]);
        bench_metric_beside(row, "packs", BENCH_LOWER, (double)view.parts, "packs", "bound",
                            (double)view.parts / (double)view.least_parts);
        bench_metric_beside(row, "time", BENCH_LOWER, seconds, "s", "radix sort", seconds / sort_s);
        bench_metric_beside(row, "time in eights", BENCH_LOWER, even_s, "s", "radix sort", even_s / sort_s);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "usage: bench_partition\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    bench_data data;
    if (bench_data_open(context, WIKIPEDIA, &data)) {
        int64_t *length = bench_allocate(MILLION, sizeof *length);
        uint32_t *narrow = bench_allocate(MILLION, sizeof *narrow);
        for (int64_t i = 0; i < MILLION; i++) {
            narrow[i] = data.length[i % data.count];
            length[i] = narrow[i] < LONGEST ? narrow[i] : LONGEST;
        }
        run_given(length);
        run_packs(length, narrow);
        free(length);
        free(narrow);
        bench_data_close(&data);
    }
    hbp_context_free(context);
    return bench_end();
}
