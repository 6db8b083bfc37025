#include "test.h"

#include <math.h>

#include "base/rng.h"
#include "cost/cost.h"

static hbp_cost *make(hbp_context *context, const hbp_cost_terms *terms)
{
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, terms, &cost));
    return cost;
}

/* FlexSP's 7B on 64 A100-40GB, "4k seq" bandwidths, as its code has them: ms, MiB, 2^30 parameters. */
static hbp_cost *flexsp_7b(hbp_context *context)
{
    static const int32_t degree[] = {1, 2, 4, 8, 16, 32, 64};
    static const double gb_per_s[] = {0, 119.54, 104.07, 96.5, 20.01, 10.53, 7.77};
    double latency[7] = {0};
    double slope[7] = {0};
    for (int i = 1; i < 7; i++)
        slope[i] = 16.0 * 32 * 4096 / 1048576 / degree[i] / gb_per_s[i] * 1e6;
    hbp_cost_terms t;
    hbp_cost_terms_init(&t, sizeof t);
    t.ranks = 64;
    t.domain_ranks = 8;
    t.layers = 32;
    t.ns_per_token = .1839576 * 1e6;
    t.ns_per_token_squared = 5.128e-6 * 1e6;
    t.static_bytes = 7.11744690 * 16 * 1024 / 64 * 1048576;
    t.activation_bytes = 4.480441895 * 1048576 / 32;
    t.recomputed_bytes = t.activation_bytes;
    t.limit_bytes = INT64_C(28) << 30;
    t.degrees = 7;
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = slope;
    return make(context, &t);
}

static double seconds(const hbp_cost *cost, int32_t sp, int64_t tokens, double squares)
{
    return (double)hbp_cost_predict_pack_ns(cost, sp, 0, tokens, squares) / 1e9;
}

START_TEST(flexsp_figure_1_comes_out)
{
    hbp_context *context = test_context();
    hbp_cost *cost = flexsp_7b(context);
    double k = 1024;
    ck_assert_double_eq_tol(seconds(cost, 32, 100 * 1024, 100 * k * 100 * k), 2.877, .001);
    ck_assert_double_eq_tol(seconds(cost, 32, INT64_C(4) * 48 * 1024, 4 * 48 * k * 48 * k), 3.846, .001);
    ck_assert_double_eq_tol(seconds(cost, 8, 48 * 1024, 48 * k * 48 * k), 2.806, .001);
    /* 7B on 64 GPUs at 28 GB: 5992 tokens a GPU. */
    ck_assert_int_eq(hbp_cost_predict_capacity(cost, 1, 0), 5992);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* Table 1 of FlexSP, rebuilt: 64 GPUs, 256K tokens a step in packs of one sequence each. */
START_TEST(flexsp_table_1_comes_out)
{
    hbp_context *context = test_context();
    hbp_cost *cost = flexsp_7b(context);
    const struct {
        int64_t length;
        int32_t sp;
        double expected;
    } rows[] = {{4096, 64, 1.89},   {4096, 16, 1.25},  {4096, 8, .92},   {4096, 1, .84},
                {8192, 32, 1.70},   {8192, 2, .99},    {32768, 8, 1.53}, {32768, 64, 2.50},
                {131072, 32, 4.28}, {262144, 64, 7.31}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t each = rows[i].length;
        int64_t sequences = 262144 / each * rows[i].sp / 64; /* on one group */
        double step =
            seconds(cost, rows[i].sp, sequences * each, (double)sequences * (double)each * (double)each);
        ck_assert_double_eq_tol(step, rows[i].expected, .006);
    }
    ck_assert_int_eq(hbp_cost_predict_recompute(cost, 1, 8192), -1);
    ck_assert_int_eq(hbp_cost_predict_recompute(cost, 4, 32768), -1);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* Random terms in which nothing is special. */
static hbp_cost *random_cost(hbp_context *context, hbp__rng *rng, hbp_cost_terms *t)
{
    static const int32_t degree[] = {1, 2, 4};
    static double latency[3];
    static double slope[3];
#define RANDOM(n) ((double)hbp__rng_below(rng, n))
    hbp_cost_terms_init(t, sizeof *t);
    for (int i = 0; i < 3; i++) {
        latency[i] = i ? RANDOM(1000) : 0;
        slope[i] = i ? RANDOM(100) / 16 : 0;
    }
    t->ranks = 4;
    t->domain_ranks = 4;
    t->layers = 1 + (int32_t)hbp__rng_below(rng, 9);
    t->ns_per_token = RANDOM(1000) / 8;
    t->ns_per_token_squared = RANDOM(1000) / 1024;
    t->recompute_linear = RANDOM(100) / 100;
    t->recompute_attention = RANDOM(100) / 100;
    t->recompute_communication = RANDOM(100) / 100;
    t->pack_ns = RANDOM(100000);
    t->static_bytes = RANDOM(100000);
    t->activation_bytes = RANDOM(300);
    t->recomputed_bytes = RANDOM(100);
    t->working_bytes = RANDOM(400);
    t->logits_bytes = RANDOM(400);
    t->sp_buffer_bytes = RANDOM(40);
    t->limit_bytes = (int64_t)hbp__rng_below(rng, 1000000);
    t->degrees = 3;
    t->degree = degree;
    t->sp_latency_ns = latency;
    t->sp_ns_per_token = slope;
    return make(context, t);
}

START_TEST(time_follows_the_formula)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int round = 0; round < 2000; round++) {
        hbp_cost_terms t;
        hbp_cost *cost = random_cost(context, &rng, &t);
        int row = (int)hbp__rng_below(&rng, 3);
        int32_t c = (int32_t)hbp__rng_below(&rng, (uint64_t)t.layers + 1);
        int64_t tokens = 1 + hbp__rng_below(&rng, 100000);
        double s = (double)tokens;
        double q = s * (1 + hbp__rng_below(&rng, 1000));
        double r = (double)c / t.layers;
        double expected =
            (t.ns_per_token * s * (1 + t.recompute_linear * r) +
             t.ns_per_token_squared * q * (1 + t.recompute_attention * r)) /
                t.degree[row] +
            (t.sp_latency_ns[row] + t.sp_ns_per_token[row] * s) * (1 + t.recompute_communication * r) +
            t.pack_ns;
        int64_t predicted = hbp_cost_predict_pack_ns(cost, t.degree[row], c, tokens, q);
        ck_assert_double_eq_tol((double)predicted, expected, .5 + expected * 1e-12);
        ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, t.degree[row], c, 0, 0), (int64_t)t.pack_ns);
        double bytes =
            t.static_bytes + s / t.degree[row] *
                                 (t.activation_bytes * (t.layers - c) + t.recomputed_bytes * c +
                                  (c ? t.working_bytes : 0) + t.logits_bytes + (row ? t.sp_buffer_bytes : 0));
        ck_assert_double_eq_tol((double)hbp_cost_predict_pack_bytes(cost, t.degree[row], c, tokens), bytes,
                                .5 + bytes * 1e-12);
        hbp_cost_free(cost);
    }
    hbp_context_free(context);
}
END_TEST

/* Against trying every number of layers and every neighbour of the capacity. */
START_TEST(recompute_and_capacity_are_exact)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    int seen_gap = 0;
    int seen_none = 0;
    for (int round = 0; round < 20000; round++) {
        hbp_cost_terms t;
        hbp_cost *cost = random_cost(context, &rng, &t);
        int32_t sp = t.degree[hbp__rng_below(&rng, 3)];
        int64_t tokens = 1 + hbp__rng_below(&rng, 2000);
        int32_t fewest = -1;
        for (int32_t c = t.layers; c >= 0; c--)
            if (hbp_cost_predict_pack_bytes(cost, sp, c, tokens) <= t.limit_bytes)
                fewest = c;
        ck_assert_int_eq(hbp_cost_predict_recompute(cost, sp, tokens), fewest);
        seen_none += fewest < 0;
        seen_gap += fewest == 0 && hbp_cost_predict_pack_bytes(cost, sp, 1, tokens) > t.limit_bytes;
        int32_t c = (int32_t)hbp__rng_below(&rng, (uint64_t)t.layers + 1);
        int64_t capacity = hbp_cost_predict_capacity(cost, sp, c);
        ck_assert(capacity == 0 || hbp_cost_predict_pack_bytes(cost, sp, c, capacity) <= t.limit_bytes);
        ck_assert(capacity == HBP_MAX_LENGTH ||
                  hbp_cost_predict_pack_bytes(cost, sp, c, capacity + 1) > t.limit_bytes);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(seen_gap, 0); /* the working set outweighs what one layer saves */
    ck_assert_int_gt(seen_none, 0);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_is_not_allowed_is_minus_one)
{
    hbp_context *context = test_context();
    hbp_cost *cost = flexsp_7b(context);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 3, 0, 10, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 0, 0, 10, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 33, 10, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, -1, 10, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, -1, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, 10, -1), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, 10, NAN), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(NULL, 1, 0, 10, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 128, 0, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 1, 0, -10), -1);
    ck_assert_int_eq(hbp_cost_predict_capacity(cost, 5, 0), 0);
    ck_assert_int_eq(hbp_cost_predict_capacity(cost, 1, 33), 0);
    ck_assert_int_eq(hbp_cost_predict_recompute(cost, 5, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_recompute(cost, 1, -10), -1);
    ck_assert_int_eq(hbp_cost_predict_recompute(NULL, 1, 10), -1);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("predict", flexsp_figure_1_comes_out, flexsp_table_1_comes_out, time_follows_the_formula,
          recompute_and_capacity_are_exact, what_is_not_allowed_is_minus_one)
