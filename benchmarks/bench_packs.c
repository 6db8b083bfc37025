/* The number of packs: the tight fill beside best fit decreasing and the bound, on one group and nothing
 * else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { WIKIPEDIA = 1 }; /* of the data sets */

/* One rank that holds anything, so that packing is all there is to plan. */
static hbp_cost *one_rank(hbp_context *context)
{
    static const int32_t degree[] = {1};
    static const double zero[] = {0};
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = 1;
    terms.domain_ranks = 1;
    terms.layers = 1;
    terms.ns_per_token = 1;
    terms.activation_bytes = 1;
    terms.limit_bytes = INT64_C(1) << 40;
    terms.degrees = 1;
    terms.degree = degree;
    terms.sp_latency_ns = zero;
    terms.sp_ns_per_token = zero;
    hbp_cost *cost = NULL;
    bench_need(context, hbp_cost_create_terms(context, &terms, &cost), "the cost");
    return cost;
}

static int64_t count_best_fit(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              int64_t capacity, double *seconds)
{
    hbp_epoch_options options = {.struct_size = sizeof options};
    options.max_length = capacity;
    options.tokens_per_step = capacity;
    options.method = "best-fit-decreasing";
    hbp_plan *plan = NULL;
    double start = bench_cpu();
    bench_need(context, hbp_plan_epoch(context, lengths, cost, &options, &plan), "best fit decreasing");
    *seconds = bench_cpu() - start;
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "summary");
    hbp_plan_free(plan);
    return summary.packs - summary.padding_packs;
}

static int64_t count_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          int64_t capacity, const char *method, int32_t max_samples, int64_t *bound,
                          double *seconds)
{
    int32_t sp = 1, recompute = 0;
    hbp_groups *groups = NULL;
    hbp_packs *packs = NULL;
    bench_need(context, hbp_groups_create(context, cost, 1, &capacity, &sp, &recompute, 0, &groups),
               "groups");
    hbp_fill_options options = {.struct_size = sizeof options};
    options.method = method;
    options.effort = 1;
    options.max_samples = max_samples;
    double start = bench_cpu();
    bench_need(context, hbp_greedy_fill(context, lengths, groups, &options, &packs), "fill");
    *seconds = bench_cpu() - start;
    int64_t count = bench_count_packs(packs);
    *bound = bench_packs_bound(packs);
    hbp_packs_free(packs);
    hbp_groups_free(groups);
    return count;
}

/* Documents cut at 32,768 tokens, so many at most in a pack: short samples have to be spread over packs of
 * long ones. */
static void run_capped(hbp_context *context, const hbp_cost *cost)
{
    static const int32_t caps[] = {200, 100, 50, 40, 34, 10};
    enum { CAPS = sizeof caps / sizeof *caps, CAPACITY = 32768, MOST = 1000000 };
    bench_data data;
    if (!bench_data_open(context, WIKIPEDIA, &data))
        return;
    int64_t count = data.count < MOST ? data.count : MOST;
    uint32_t *length = bench_allocate(count, sizeof *length);
    for (int64_t i = 0; i < count; i++)
        length[i] = data.length[i] < CAPACITY ? data.length[i] : CAPACITY;
    hbp_lengths *lengths = NULL;
    bench_need(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths), "lengths");
    bench_section("A cap on the samples in a pack, beside the balanced fill; longer samples are cut");
    printf("%-18s %9s %8s %5s %9s %9s %9s %8s %8s\n", "data", "samples", "capacity", "cap", "bound", "tight",
           "balanced", "tight s", "bal s");
    int more = 0;
    for (int k = 0; k < CAPS; k++) {
        double tight_s, balanced_s;
        int64_t bound, other;
        int64_t tight = count_fill(context, lengths, cost, CAPACITY, "tight", caps[k], &bound, &tight_s);
        int64_t balanced =
            count_fill(context, lengths, cost, CAPACITY, "balanced", caps[k], &other, &balanced_s);
        printf("%-18s %9lld %8d %5d %9lld %9lld %9lld %8.3f %8.3f\n", data.name, (long long)count, CAPACITY,
               (int)caps[k], (long long)bound, (long long)tight, (long long)balanced, tight_s, balanced_s);
        fflush(stdout);
        char row[64];
        snprintf(row, sizeof row, "at most %d samples", (int)caps[k]);
        bench_metric_beside(row, "tight, packs", BENCH_LOWER, (double)tight, "packs", "packing bound",
                            (double)tight / (double)bound);
        more += tight > balanced;
    }
    bench_check(more == 0, "tight under a cap: no more packs than balanced", "all", "%d of %d", CAPS - more,
                CAPS);
    hbp_lengths_free(lengths);
    free(length);
    bench_data_close(&data);
}

int main(int argc, char **argv)
{
    (void)argv;
    static const int64_t capacities[] = {4096, 8192, 32768, 131072};
    if (argc > 1) {
        fprintf(stderr, "usage: bench_packs\n");
        return 2;
    }
    hbp_context *context = bench_context(NULL);
    hbp_cost *cost = one_rank(context);
    bench_section("Packs, beside best fit decreasing; samples over the capacity are dropped");
    printf("seconds of the CPU; best fit's include building its plan\n"
           "%-18s %9s %8s %9s %9s %9s %9s %8s %8s %8s\n",
           "data", "samples", "capacity", "bound", "best fit", "tight", "balanced", "bf s", "tight s",
           "bal s");
    int more = 0, cases = 0;
    int64_t vlm = -1;
    for (int d = 0; d < BENCH_DATA_SETS; d++) {
        bench_data data;
        if (!bench_data_open(context, d, &data))
            continue;
        for (int k = 0; k < 4; k++) {
            hbp_lengths *lengths = bench_lengths(context, &data, capacities[k]);
            hbp_lengths_summary summary = {.struct_size = sizeof summary};
            bench_need(context, hbp_lengths_get_summary(context, lengths, &summary), "summary");
            double best_s, tight_s, balanced_s;
            int64_t bound, other;
            int64_t best = count_best_fit(context, lengths, cost, capacities[k], &best_s);
            int64_t tight = count_fill(context, lengths, cost, capacities[k], "tight", 0, &bound, &tight_s);
            int64_t balanced =
                count_fill(context, lengths, cost, capacities[k], "balanced", 0, &other, &balanced_s);
            printf("%-18s %9lld %8lld %9lld %9lld %9lld %9lld %8.3f %8.3f %8.3f\n", data.name,
                   (long long)summary.samples, (long long)capacities[k], (long long)bound, (long long)best,
                   (long long)tight, (long long)balanced, best_s, tight_s, balanced_s);
            fflush(stdout);
            char row[64];
            snprintf(row, sizeof row, "%s at %lld", data.name, (long long)capacities[k]);
            bench_metric_beside(row, "tight, packs", BENCH_LOWER, (double)tight, "packs", "packing bound",
                                (double)tight / (double)bound);
            bench_metric_beside(row, "tight, time", BENCH_LOWER, tight_s, "s", "best fit decreasing",
                                tight_s / best_s);
            cases++;
            more += tight > best;
            if (strcmp(data.name, "vlm_tokens") == 0 && capacities[k] == 4096)
                vlm = tight;
            hbp_lengths_free(lengths);
        }
        bench_data_close(&data);
    }
    bench_check(more == 0, "tight: no more packs than best fit", "all", "%d of %d", cases - more, cases);
    if (vlm >= 0)
        bench_check(vlm <= 19700, "tight: vlm_tokens at 4096", "<= 19700 (best packers: 20215)", "%lld",
                    (long long)vlm);
    run_capped(context, cost);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return bench_end();
}
