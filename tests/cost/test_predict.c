#include "traps.h"

#include "flexsp.h"
#include "keep.h"

#include <math.h>

#include "base/rng.h"
#include "cost/cost.h"
#include "hbp/lengths.h"

static hbp_cost *make(hbp_context *context, const hbp_cost_terms *terms)
{
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, terms, &cost));
    return cost;
}

/* FlexSP's 7B at 192K on 64 GPUs, "4k seq" bandwidths, without the time of a micro-batch. */
static hbp_cost *flexsp_7b(hbp_context *context)
{
    hbp_cost *cost = flexsp_cost(context, "7B", 192, 1, 64);
    ck_assert_ptr_nonnull(cost);
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    terms.pack_ns = 0;
    hbp_cost *bare = make(context, &terms);
    hbp_cost_free(cost);
    return bare;
}

static double seconds(const hbp_cost *cost, int32_t sp, int64_t tokens, double squares)
{
    return (double)hbp_cost_predict_pack_ns(cost, sp, 0, tokens, squares, 0) / 1e9;
}

START_TEST_IN_CONTEXT(flexsp_figure_1_comes_out)
{
    hbp_cost *cost = keep(flexsp_7b(context));
    double k = 1024;
    ck_assert_double_eq_tol(seconds(cost, 32, 100 * 1024, 100 * k * 100 * k), 2.877, .001);
    ck_assert_double_eq_tol(seconds(cost, 32, INT64_C(4) * 48 * 1024, 4 * 48 * k * 48 * k), 3.846, .001);
    ck_assert_double_eq_tol(seconds(cost, 8, 48 * 1024, 48 * k * 48 * k), 2.806, .001);
}
END_TEST

/* Table 1 of FlexSP, rebuilt: 64 GPUs, 256K tokens a step in sequences of one length. Seconds and the share
 * of the all-to-all in percent; zero seconds: out of memory. */
START_TEST_IN_CONTEXT(flexsp_table_1_comes_out)
{
    static const int32_t degree[] = {64, 32, 16, 8, 4, 2, 1};
    static const struct {
        int64_t length;
        double seconds[7];
        double percent[7];
    } rows[] = {
        {4096, {1.89, 1.62, 1.25, .92, .92, .91, .84}, {55.7, 48.1, 32.8, 9.2, 8.6, 7.5, 0}},
        {8192, {1.98, 1.70, 1.33, 1.01, 1.00, .99, 0}, {53.3, 45.7, 30.7, 8.4, 7.8, 6.9, 0}},
        {32768, {2.50, 2.22, 1.85, 1.53, 0, 0, 0}, {42.2, 35.0, 22.1, 5.6, 0, 0, 0}},
        {131072, {4.56, 4.28, 0, 0, 0, 0, 0}, {23.1, 18.2, 0, 0, 0, 0, 0}},
        {262144, {7.31, 0, 0, 0, 0, 0, 0}, {14.4, 0, 0, 0, 0, 0, 0}},
    };
    hbp_cost *cost = keep(flexsp_7b(context));
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int d = 0; d < 7; d++) {
            int64_t each = rows[i].length;
            if (rows[i].seconds[d] == 0) {
                ck_assert_int_eq(hbp_cost_predict_recompute(cost, degree[d], each), -1);
                continue;
            }
            ck_assert_int_eq(hbp_cost_predict_recompute(cost, degree[d], each), 0);
            int64_t tokens = 262144 / 64 * degree[d]; /* of one group */
            double step = seconds(cost, degree[d], tokens, (double)tokens * (double)each);
            double sent = terms.sp_ns_per_token[6 - d] * (double)tokens / 1e9;
            ck_assert_double_eq_tol(step, rows[i].seconds[d], .02);
            ck_assert_double_eq_tol(100 * sent / step, rows[i].percent[d], .5);
        }
}
END_TEST

/* 7B on 64 GPUs at 28 GB: 5992 and 5950 tokens a GPU. */
START_TEST_IN_CONTEXT(flexsp_memory_comes_out)
{
    for (int four_k = 0, mark = keep_mark(); four_k < 2; keep_release(mark), four_k++) {
        hbp_cost *short_cost = keep(flexsp_cost(context, "7B", 192, four_k, 64));
        hbp_cost *long_cost = keep(flexsp_cost(context, "7B", 384, four_k, 64));
        ck_assert_int_eq(hbp_cost_predict_capacity(short_cost, 1, 0), 5992);
        ck_assert_int_eq(hbp_cost_predict_capacity(long_cost, 1, 0), 5950);
        /* Recomputation gains nothing. */
        ck_assert_int_eq(hbp_cost_predict_capacity(long_cost, 1, 32), 5950);
    }
    ck_assert_ptr_null(flexsp_cost(context, "8B", 192, 0, 64));
    ck_assert_ptr_null(flexsp_cost(context, "7B", 192, 0, 48));
}
END_TEST

/* Random terms in which nothing is special. */
static hbp_cost *random_cost(hbp_context *context, hbp__rng *rng, hbp_cost_terms *t)
{
    static const int32_t degree[] = {1, 2, 4};
    static double latency[3];
    static double slope[3];
#define RANDOM(n) ((double)hbp__rng_below(rng, n))
    *t = (hbp_cost_terms){.struct_size = sizeof *t};
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

START_TEST_IN_CONTEXT(time_follows_the_formula)
{
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
        int64_t predicted = hbp_cost_predict_pack_ns(cost, t.degree[row], c, tokens, q, 0);
        ck_assert_double_eq_tol((double)predicted, expected, .5 + expected * 1e-12);
        ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, t.degree[row], c, 0, 0, 0), (int64_t)t.pack_ns);
        double bytes =
            t.static_bytes + s / t.degree[row] *
                                 (t.activation_bytes * (t.layers - c) + t.recomputed_bytes * c +
                                  (c ? t.working_bytes : 0) + t.logits_bytes + (row ? t.sp_buffer_bytes : 0));
        ck_assert_double_eq_tol((double)hbp_cost_predict_pack_bytes(cost, t.degree[row], c, tokens, 0), bytes,
                                .5 + bytes * 1e-12);
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(vision_units_add_their_terms)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int round = 0; round < 5000; round++) {
        hbp_cost_terms t;
        hbp_cost_free(random_cost(context, &rng, &t));
        t.ns_per_vision = round % 5 ? (double)hbp__rng_below(&rng, 1000000) : 0;
        t.recompute_vision = hbp__rng_below(&rng, 100) / 100.;
        t.vision_bytes = round % 7 ? (double)hbp__rng_below(&rng, 100000) : 0;
        hbp_cost *cost = NULL;
        OK(context, hbp_cost_create_terms(context, &t, &cost));
        int32_t sp = t.degree[hbp__rng_below(&rng, 3)];
        int32_t c = (int32_t)hbp__rng_below(&rng, (uint64_t)t.layers + 1);
        int64_t tokens = 1 + hbp__rng_below(&rng, 100000), units = hbp__rng_below(&rng, 5000);
        double q = (double)tokens * 100, v = (double)units;
        int64_t ns = hbp_cost_predict_pack_ns(cost, sp, c, tokens, q, 0);
        int64_t bytes = hbp_cost_predict_pack_bytes(cost, sp, c, tokens, 0);
        double more = t.ns_per_vision * v * (1 + t.recompute_vision * c / t.layers) / sp;
        double room = t.vision_bytes * v / sp;
        ck_assert_double_eq_tol((double)(hbp_cost_predict_pack_ns(cost, sp, c, tokens, q, units) - ns), more,
                                1 + 1e-12 * (double)ns);
        ck_assert_double_eq_tol((double)(hbp_cost_predict_pack_bytes(cost, sp, c, tokens, units) - bytes),
                                room, 1 + 1e-12 * (double)bytes);
        /* Units that cost nothing change no bit. */
        if (round % 5 == 0)
            ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, sp, c, tokens, q, units), ns);
        if (round % 7 == 0)
            ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, sp, c, tokens, units), bytes);
        hbp_cost_free(cost);
    }
}
END_TEST

/* Against trying every number of layers and every neighbour of the capacity. */
START_TEST_IN_CONTEXT(recompute_and_capacity_are_exact)
{
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
            if (hbp_cost_predict_pack_bytes(cost, sp, c, tokens, 0) <= t.limit_bytes)
                fewest = c;
        ck_assert_int_eq(hbp_cost_predict_recompute(cost, sp, tokens), fewest);
        seen_none += fewest < 0;
        seen_gap += fewest == 0 && hbp_cost_predict_pack_bytes(cost, sp, 1, tokens, 0) > t.limit_bytes;
        int32_t c = (int32_t)hbp__rng_below(&rng, (uint64_t)t.layers + 1);
        int64_t capacity = hbp_cost_predict_capacity(cost, sp, c);
        ck_assert(capacity == 0 || hbp_cost_predict_pack_bytes(cost, sp, c, capacity, 0) <= t.limit_bytes);
        ck_assert(capacity == HBP_MAX_LENGTH ||
                  hbp_cost_predict_pack_bytes(cost, sp, c, capacity + 1, 0) > t.limit_bytes);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(seen_gap, 0); /* the working set outweighs what one layer saves */
    ck_assert_int_gt(seen_none, 0);
}
END_TEST

START_TEST_IN_CONTEXT(what_is_not_allowed_is_minus_one)
{
    hbp_cost *cost = keep(flexsp_7b(context));
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 3, 0, 10, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 0, 0, 10, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 33, 10, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, -1, 10, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, -1, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, 10, -1, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, 10, NAN, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(NULL, 1, 0, 10, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 128, 0, 10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 1, 0, -10, 0), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 3, 0, 10, 10, 1), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, 10, 10, -1), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(NULL, 1, 0, 10, 10, 1), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 1, 0, 10, -1), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 1, 0, -10, 1), -1);
    ck_assert_int_eq(hbp_cost_predict_pack_bytes(cost, 128, 0, 10, 1), -1);
    ck_assert_int_eq(hbp_cost_predict_capacity(cost, 5, 0), 0);
    ck_assert_int_eq(hbp_cost_predict_capacity(cost, 1, 33), 0);
    ck_assert_int_eq(hbp_cost_predict_recompute(cost, 5, 10), -1);
    ck_assert_int_eq(hbp_cost_predict_recompute(cost, 1, -10), -1);
    ck_assert_int_eq(hbp_cost_predict_recompute(NULL, 1, 10), -1);
}
END_TEST

/* A capped copy holds what memory and cap both hold, and a cap only falls. */
START_TEST_IN_CONTEXT(a_cap_of_tokens_per_rank_is_kept)
{
    hbp_cost *cost = keep(flexsp_7b(context));
    const int64_t caps[] = {0, 1, 1000, 4096, 100000, HBP_MAX_LENGTH};
    for (int i = 0; i < 6; i++) {
        hbp_cost capped = hbp__cost_capped(cost, caps[i]), twice = hbp__cost_capped(&capped, 4096);
        int64_t least = caps[i] && caps[i] < 4096 ? caps[i] : 4096;
        for (int32_t sp = 1; sp <= 64; sp *= 2) {
            int64_t memory = hbp_cost_predict_capacity(cost, sp, 0),
                    most = caps[i] ? caps[i] * sp : INT64_MAX;
            ck_assert_int_eq(hbp_cost_predict_capacity(&capped, sp, 0), memory < most ? memory : most);
            ck_assert_int_eq(hbp_cost_predict_capacity(&twice, sp, 0),
                             memory < least * sp ? memory : least * sp);
            if (most < HBP_MAX_LENGTH) {
                ck_assert_int_eq(hbp_cost_predict_recompute(&capped, sp, most),
                                 hbp_cost_predict_recompute(cost, sp, most));
                ck_assert_int_eq(hbp_cost_predict_recompute(&capped, sp, most + 1), -1);
            }
        }
    }
}
END_TEST

TEST_MAIN_WITH("predict", traps_on, NULL, flexsp_figure_1_comes_out, flexsp_table_1_comes_out,
               flexsp_memory_comes_out, time_follows_the_formula, vision_units_add_their_terms,
               recompute_and_capacity_are_exact, what_is_not_allowed_is_minus_one,
               a_cap_of_tokens_per_rank_is_kept)
