/* Packs timed by a cost that a test knows, for fits to find again. */
#ifndef HBP_TESTS_PACKS_MEASURED_H
#define HBP_TESTS_PACKS_MEASURED_H

#include <math.h>

#include "base/rng.h"
#include "hbp/cost.h"
#include "test.h"

#define MOST 2000

/* Measurements under construction. */
typedef struct table {
    int64_t count;
    int32_t sp[MOST];
    int32_t recompute[MOST];
    int64_t tokens[MOST];
    int64_t squares[MOST];
    int64_t time_ns[MOST];
    int64_t bytes[MOST];
} table;

static inline hbp_measurements view(const table *t, int with_bytes)
{
    return (hbp_measurements){.struct_size = sizeof(hbp_measurements),
                              .count = t->count,
                              .sp = t->sp,
                              .recompute = t->recompute,
                              .tokens = t->tokens,
                              .sum_squares = t->squares,
                              .time_ns = t->time_ns,
                              .peak_bytes = with_bytes ? t->bytes : NULL};
}

static const int32_t degrees[] = {1, 2, 4, 8};
static const double latencies[] = {0, 1e6, 1e6, 2e6};

/* What a fit changes only where the packs show it. */
typedef struct second_terms {
    double linear;
    double attention;
    double latency; /* times that of `latencies` */
    double working;
} second_terms;

static const second_terms usual = {.3, .28, 1, 140000};

/* `scale` bends every term that a fit changes. */
static inline hbp_cost *make_with(hbp_context *context, double scale, const second_terms *second,
                                  hbp_cost_terms *read)
{
    double slopes[] = {0, 2000 * scale, 1500 * scale, 1000 * scale};
    double latency[4];
    for (int i = 0; i < 4; i++)
        latency[i] = second->latency * latencies[i];
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 8;
    t.layers = 16;
    t.ns_per_token = 110000 * scale;
    t.ns_per_token_squared = 2.5 * scale;
    t.recompute_linear = second->linear;
    t.recompute_attention = second->attention;
    t.recompute_communication = .5;
    t.pack_ns = 4e7 * scale;
    t.step_ns = 1e7;
    t.static_bytes = 6e9 * scale;
    t.activation_bytes = 140000 * scale;
    t.recomputed_bytes = 8000 * scale;
    t.working_bytes = second->working;
    t.logits_bytes = 1000000;
    t.sp_buffer_bytes = 20000;
    t.limit_bytes = INT64_C(80000000000);
    t.degrees = 4;
    t.degree = degrees;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = slopes;
    t.ns_per_vision = 7e6 * scale;
    t.recompute_vision = .33;
    t.vision_bytes = 5e7;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    *read = (hbp_cost_terms){.struct_size = sizeof *read};
    OK(context, hbp_cost_get_terms(context, cost, read));
    return cost;
}

static inline hbp_cost *make(hbp_context *context, double scale, hbp_cost_terms *read)
{
    return make_with(context, scale, &usual, read);
}

/* `count` packs of random lengths on the degrees [kinds], timed by `truth` with noise of +-`noise`. */
static inline void measure(table *t, hbp__rng *rng, const hbp_cost *truth, int64_t count, int kinds,
                           double noise)
{
    t->count = count;
    for (int64_t i = 0; i < count; i++) {
        t->sp[i] = degrees[hbp__rng_below(rng, (uint64_t)kinds)];
        t->recompute[i] = (int32_t)hbp__rng_below(rng, 17);
        t->tokens[i] = 1000 + hbp__rng_below(rng, 60000);
        int64_t documents = 1 + hbp__rng_below(rng, 50);
        t->squares[i] = t->tokens[i] * (t->tokens[i] / documents);
        double factors[2];
        for (int k = 0; k < 2; k++)
            factors[k] = 1 + noise * (2. * hbp__rng_below(rng, 1 << 20) / (1 << 20) - 1);
        double ns = (double)hbp_cost_predict_pack_ns(truth, t->sp[i], t->recompute[i], t->tokens[i],
                                                     (double)t->squares[i], 0);
        double bytes = (double)hbp_cost_predict_pack_bytes(truth, t->sp[i], t->recompute[i], t->tokens[i], 0);
        t->time_ns[i] = (int64_t)(ns * factors[0]);
        t->bytes[i] = (int64_t)(bytes * factors[1]);
    }
}

/* Standard normal, nearly: twelve uniforms. */
static inline double normal(hbp__rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)hbp__rng_below(rng, 1 << 20) / (1 << 20);
    return sum;
}

/* Noise of 2 % and, for one pack in fifty, a hiccup of three times as long. */
static inline void disturb(table *t, hbp__rng *rng)
{
    for (int64_t i = 0; i < t->count; i++) {
        double factor = 1 + .02 * normal(rng);
        if (hbp__rng_below(rng, 50) == 0)
            factor *= 3;
        t->time_ns[i] = (int64_t)((double)t->time_ns[i] * factor);
    }
}

/* To rounding, and to what noise leaves, of terms `have` and `want`. */
#define NEAR(term)  ck_assert_double_eq_tol(have.term, want.term, 1e-6 * want.term)
#define CLOSE(term) ck_assert_double_eq_tol(have.term, want.term, .03 * want.term)

#endif
