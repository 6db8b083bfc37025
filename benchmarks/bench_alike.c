/* Micro-batches of packs alike in vision units, tokens and time, beside the same packs in the order drawn and
 * balanced by time alone; and what an order of modalities costs in dummies, with exchanges and without. The
 * data are vlm_tokens and vlm_images, as they are and 17 times over. Times are predicted by plain terms: 25
 * us a token, .6 ns a token squared, 3 ms a tile. Seconds are of the CPU, one thread. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

enum { TIMES = 17, KINDS = 3 };

static hbp_cost *plain_cost(hbp_context *context, int32_t ranks)
{
    const int32_t degree = 1;
    const double none = 0;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = ranks;
    terms.layers = 1;
    terms.ns_per_token = 25000;
    terms.ns_per_token_squared = 0.6;
    terms.ns_per_vision = 3e6;
    terms.limit_bytes = 1;
    terms.degrees = 1;
    terms.degree = &degree;
    terms.sp_latency_ns = terms.sp_ns_per_token = &none;
    hbp_cost *cost = NULL;
    bench_need(context, hbp_cost_create_terms(context, &terms, &cost), "cost");
    return cost;
}

static hbp_packs *fill(hbp_context *context, const hbp_lengths *lengths, int64_t vision, int64_t tokens)
{
    hbp_iterative_fill_options options = {.struct_size = sizeof options};
    options.max_vision = vision;
    options.max_tokens = tokens;
    hbp_packs *packs = NULL;
    bench_need(context, hbp_iterative_fill(context, lengths, &options, &packs), "fill");
    return packs;
}

static void balance(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                    const hbp_cost *cost, const char *method, const char *name)
{
    hbp_balance_options options = {.struct_size = sizeof options};
    options.method = method;
    hbp_plan *plan = NULL;
    double start = bench_cpu();
    bench_need(context, hbp_balance_attention(context, packs, groups, cost, &options, &plan), "balance");
    double seconds = bench_cpu() - start;
    hbp_simulate_options simulate = {.struct_size = sizeof simulate};
    simulate.no_bound = 1;
    hbp_report report = {.struct_size = sizeof report};
    bench_need(context, hbp_simulate(context, plan, cost, &simulate, &report), "simulate");
    bench_line(name, "DistRatio of vision %.6f, of tokens %.6f; idle %.3f %%; %.3f s", report.dist_vision,
               report.dist_tokens, 100 * report.idle, seconds);
    bench_metric(name, "DistRatio of vision", BENCH_LOWER, report.dist_vision, "1");
    bench_metric(name, "DistRatio of tokens", BENCH_LOWER, report.dist_tokens, "1");
    bench_metric(name, "idle", BENCH_LOWER, 100 * report.idle, "%");
    bench_metric(name, "planning", BENCH_LOWER, seconds, "s");
    hbp_plan_free(plan);
}

static void compare(hbp_context *context, const hbp_lengths *lengths, int64_t vision, int64_t tokens,
                    int32_t ranks)
{
    const int32_t sp = 1;
    hbp_packs *packs = fill(context, lengths, vision, tokens);
    hbp_cost *cost = plain_cost(context, ranks);
    hbp_groups *groups = NULL;
    int64_t count = bench_count_packs(packs);
    bench_need(context, hbp_groups_create(context, cost, 1, &tokens, &sp, NULL, 0, &groups), "groups");
    bench_section("%lld packs of at most %lld tiles and %lld tokens on %d ranks", (long long)count,
                  (long long)vision, (long long)tokens, (int)ranks);
    balance(context, packs, groups, cost, "given", "in the order drawn");
    balance(context, packs, groups, cost, "time", "by time");
    balance(context, packs, groups, cost, "vision", "alike in all sizes");
    hbp_groups_free(groups);
    hbp_cost_free(cost);
    hbp_packs_free(packs);
}

/* Text, images of 1 to 5 tiles and films of 1 to 10, a third each. */
static hbp_lengths *draw_kinds(hbp_context *context, int64_t count)
{
    uint64_t state = 1;
    uint32_t *t = bench_allocate(count, sizeof *t), *v = bench_allocate(count, sizeof *v);
    int32_t *kind = bench_allocate(count, sizeof *kind);
    for (int64_t i = 0; i < count; i++) {
        kind[i] = (int32_t)(bench_random(&state) % KINDS);
        v[i] = kind[i] ? 1 + (uint32_t)(bench_random(&state) % (5 * (uint64_t)kind[i])) : 0;
        t[i] = 100 + (uint32_t)(bench_random(&state) % (kind[i] ? 2400 : 4000)) + 20 * v[i];
    }
    return bench_lengths_of(context, t, v, kind, count);
}

static int64_t count_dummies(hbp_context *context, hbp_plan *plan, int64_t *packs)
{
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    bench_need(context, hbp_plan_get_summary(context, plan, &summary), "summary");
    *packs = summary.packs - summary.padding_packs;
    hbp_plan_free(plan);
    return summary.padding_packs;
}

static void order(hbp_context *context, int64_t count, int32_t ranks)
{
    const int64_t vision = 18, tokens = 6016;
    const int32_t sp = 1;
    hbp_lengths *lengths = draw_kinds(context, count);
    hbp_cost *cost = plain_cost(context, ranks);
    hbp_packs *packs = fill(context, lengths, vision, tokens);
    hbp_groups *groups = NULL;
    bench_need(context, hbp_groups_create(context, cost, 1, &tokens, &sp, NULL, 0, &groups), "groups");
    hbp_balance_options balance = {.struct_size = sizeof balance};
    balance.method = "vision";
    balance.modality_order = 1;
    hbp_plan *plan = NULL;
    bench_need(context, hbp_balance_attention(context, packs, groups, cost, &balance, &plan), "balance");
    int64_t rows, before = count_dummies(context, plan, &rows);
    hbp_epoch_options epoch = {.struct_size = sizeof epoch};
    epoch.max_vision = vision;
    epoch.max_length = tokens;
    epoch.modality_order = 1;
    bench_need(context, hbp_plan_epoch(context, lengths, cost, &epoch, &plan), "epoch");
    int64_t after = count_dummies(context, plan, &rows), least = (ranks - rows % ranks) % ranks;
    char name[64];
    snprintf(name, sizeof name, "%lld packs on %d ranks", (long long)rows, (int)ranks);
    bench_line(name, "%lld dummies without exchanges, %lld with; %lld without an order", (long long)before,
               (long long)after, (long long)least);
    hbp_groups_free(groups);
    hbp_packs_free(packs);
    hbp_cost_free(cost);
    hbp_lengths_free(lengths);
}

int main(void)
{
    hbp_context *context = bench_context(NULL);
    hbp_lengths *lengths = bench_vision_lengths(context, BENCH_VISION_SAMPLES);
    for (int32_t ranks = 8; lengths && ranks <= 64; ranks *= 8) {
        compare(context, lengths, 18, 6016, ranks);
        compare(context, lengths, 9, 4096, ranks);
    }
    hbp_lengths_free(lengths);
    lengths = bench_vision_lengths(context, TIMES * BENCH_VISION_SAMPLES);
    if (lengths)
        compare(context, lengths, 18, 6016, 8);
    hbp_lengths_free(lengths);
    bench_section("Dummies of an order of %d kinds", (int)KINDS);
    for (int64_t count = 2000; count <= 70000; count = count == 2000 ? 10000 : 7 * count)
        for (int32_t ranks = 8; ranks <= 128; ranks *= 4)
            order(context, count, ranks);
    hbp_context_free(context);
    return bench_end();
}
