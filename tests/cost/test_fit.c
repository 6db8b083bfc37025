#include "failing.h"

#include <math.h>

#include "base/rng.h"
#include "cost/cost.h"

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

static hbp_measurements view(const table *t, int with_bytes)
{
    return (hbp_measurements){
        sizeof(hbp_measurements),    t->count, t->sp, t->recompute, t->tokens, t->squares, t->time_ns,
        with_bytes ? t->bytes : NULL};
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
static hbp_cost *make_with(hbp_context *context, double scale, const second_terms *second,
                           hbp_cost_terms *read)
{
    double slopes[] = {0, 2000 * scale, 1500 * scale, 1000 * scale};
    double latency[4];
    for (int i = 0; i < 4; i++)
        latency[i] = second->latency * latencies[i];
    hbp_cost_terms t;
    hbp_cost_terms_init(&t, sizeof t);
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
    hbp_cost_terms_init(read, sizeof *read);
    OK(context, hbp_cost_get_terms(context, cost, read));
    return cost;
}

static hbp_cost *make(hbp_context *context, double scale, hbp_cost_terms *read)
{
    return make_with(context, scale, &usual, read);
}

/* `count` packs of random lengths on the degrees [kinds], timed by `truth` with noise of +-`noise`. */
static void measure(table *t, hbp__rng *rng, const hbp_cost *truth, int64_t count, int kinds, double noise)
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
                                                     (double)t->squares[i]);
        double bytes = (double)hbp_cost_predict_pack_bytes(truth, t->sp[i], t->recompute[i], t->tokens[i]);
        t->time_ns[i] = (int64_t)(ns * factors[0]);
        t->bytes[i] = (int64_t)(bytes * factors[1]);
    }
}

START_TEST(exact_measurements_give_the_truth_back)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make(context, 1, &want);
    hbp_cost *prior = make(context, 1.7, &have);
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    measure(&t, &rng, truth, 60, 4, 0);
    hbp_measurements m = view(&t, 1);
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
#define NEAR(term) ck_assert_double_eq_tol(have.term, want.term, 1e-6 * want.term)
    NEAR(ns_per_token);
    NEAR(ns_per_token_squared);
    NEAR(pack_ns);
    NEAR(static_bytes);
    NEAR(activation_bytes);
    NEAR(recomputed_bytes);
    for (int i = 1; i < 4; i++)
        NEAR(sp_ns_per_token[i]);
    /* Vision units are not measured: their terms stay the prior's. */
    ck_assert_double_eq(have.ns_per_vision, 7e6 * 1.7);
    ck_assert_double_eq(have.recompute_vision, .33);
    ck_assert_double_eq(have.vision_bytes, 5e7);
    ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_vision"), "given");
    ck_assert_int_eq(report.terms_fitted, 9);
    ck_assert_double_lt(report.max_time_error, 1e-6);
    ck_assert_double_lt(report.max_bytes_error, 1e-6);
    ck_assert_double_gt(report.prior_median_time_error, .5);
    ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_token"), "fit of 60 packs");
    ck_assert_str_eq(hbp_cost_get_source(cost, "static_bytes"), "fit of 60 packs");
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_ns_per_token"), "fit of 60 packs at SP 2, 4, 8");
    ck_assert_str_eq(hbp_cost_get_source(cost, "logits_bytes"), "given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "step_ns"), "given");
    hbp_cost_free(cost);
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

START_TEST(noise_leaves_small_errors)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make(context, 1, &want);
    hbp_cost *prior = make(context, .6, &have);
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    measure(&t, &rng, truth, 2000, 4, .05);
    hbp_measurements m = view(&t, 1);
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_eq_tol(have.ns_per_token, want.ns_per_token, .02 * want.ns_per_token);
    ck_assert_double_eq_tol(have.ns_per_token_squared, want.ns_per_token_squared,
                            .02 * want.ns_per_token_squared);
    ck_assert_double_eq_tol(have.activation_bytes, want.activation_bytes, .02 * want.activation_bytes);
    /* Uniform noise of 5 %: half the errors below 2.5 %, 95 % below 4.75 %. */
    ck_assert_double_eq_tol(report.median_time_error, .025, .003);
    ck_assert_double_eq_tol(report.p95_time_error, .0475, .003);
    ck_assert_double_lt(report.max_time_error, .06);
    ck_assert_double_eq_tol(report.median_bytes_error, .025, .003);
    /* The report is about the cost that was returned. */
    double largest = 0;
    for (int64_t i = 0; i < t.count; i++) {
        double predicted = (double)hbp_cost_predict_pack_ns(cost, t.sp[i], t.recompute[i], t.tokens[i],
                                                            (double)t.squares[i]);
        double error = fabs(predicted - (double)t.time_ns[i]) / (double)t.time_ns[i];
        largest = error > largest ? error : largest;
    }
    ck_assert_double_eq(report.max_time_error, largest);
    hbp_cost_free(cost);
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

START_TEST(what_was_not_measured_stays_the_priors)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make(context, 1, &want);
    hbp_cost *prior = make(context, 2, &have);
    hbp__rng rng = hbp__rng_make(9, 0, 0);
    measure(&t, &rng, truth, 50, 2, 0);
    hbp_measurements m = view(&t, 0);
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_fit(context, prior, &m, &cost, NULL));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    NEAR(ns_per_token);
    NEAR(sp_ns_per_token[1]);
    ck_assert_double_eq(have.sp_ns_per_token[2], 2 * want.sp_ns_per_token[2]);
    ck_assert_double_eq(have.static_bytes, 2 * want.static_bytes);
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_ns_per_token"), "fit of 50 packs at SP 2; given");
    ck_assert_str_eq(hbp_cost_get_source(cost, "static_bytes"), "given");
    hbp_cost_free(cost);

    /* One number of recomputed layers: kept and act are one column, kept stays. With all recomputed, act
     * stays. */
    static const int32_t same[] = {3, 16};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < t.count; i++) {
            t.recompute[i] = same[k];
            t.time_ns[i] =
                hbp_cost_predict_pack_ns(truth, t.sp[i], same[k], t.tokens[i], (double)t.squares[i]);
            t.bytes[i] = hbp_cost_predict_pack_bytes(truth, t.sp[i], same[k], t.tokens[i]);
        }
        m = view(&t, 1);
        hbp_fit_report report = {.struct_size = sizeof report};
        OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
        OK(context, hbp_cost_get_terms(context, cost, &have));
        ck_assert_int_eq(report.terms_fitted, 6);
        ck_assert_double_lt(report.max_bytes_error, 1e-6);
        NEAR(static_bytes);
        if (k) {
            NEAR(recomputed_bytes);
            ck_assert_double_eq(have.activation_bytes, 2 * want.activation_bytes);
            ck_assert_str_eq(hbp_cost_get_source(cost, "activation_bytes"), "given");
        } else {
            ck_assert_double_eq(have.recomputed_bytes, 2 * want.recomputed_bytes);
            ck_assert_str_eq(hbp_cost_get_source(cost, "recomputed_bytes"), "given");
        }
        hbp_cost_free(cost);
    }
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

/* Standard normal, nearly: twelve uniforms. */
static double normal(hbp__rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)hbp__rng_below(rng, 1 << 20) / (1 << 20);
    return sum;
}

/* Noise of 2 % and, for one pack in fifty, a hiccup of three times as long. */
static void disturb(table *t, hbp__rng *rng)
{
    for (int64_t i = 0; i < t->count; i++) {
        double factor = 1 + .02 * normal(rng);
        if (hbp__rng_below(rng, 50) == 0)
            factor *= 3;
        t->time_ns[i] = (int64_t)((double)t->time_ns[i] * factor);
    }
}

START_TEST(hiccups_hardly_matter)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make(context, 1, &want);
    hbp_cost *prior = make(context, 1.7, &have);
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp__rng rng = hbp__rng_make(30 + seed, 0, 0);
        measure(&t, &rng, truth, 2000, 4, 0);
        disturb(&t, &rng);
        hbp_measurements m = view(&t, 0);
        hbp_cost *cost = NULL;
        hbp_fit_report report = {.struct_size = sizeof report};
        OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
        OK(context, hbp_cost_get_terms(context, cost, &have));
        ck_assert_double_le(report.median_time_error, .025);
#define CLOSE(term) ck_assert_double_eq_tol(have.term, want.term, .03 * want.term)
        CLOSE(ns_per_token);
        CLOSE(ns_per_token_squared);
        CLOSE(pack_ns);
        hbp_cost_free(cost);
    }
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

START_TEST(second_terms_are_fitted_where_they_show)
{
    static table t;
    hbp_context *context = test_context();
    static const second_terms other = {.55, .6, 30, 400000};
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make_with(context, 1, &other, &want);
    hbp_cost *prior = make(context, 1.4, &have);
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    measure(&t, &rng, truth, 400, 4, 0);
    hbp_measurements m = view(&t, 1);
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    NEAR(recompute_linear);
    NEAR(recompute_attention);
    NEAR(working_bytes);
    for (int i = 1; i < 4; i++)
        NEAR(sp_latency_ns[i]);
    NEAR(pack_ns);
    NEAR(activation_bytes);
    ck_assert_double_lt(report.max_time_error, 1e-6);
    ck_assert_double_lt(report.max_bytes_error, 1e-6);
    ck_assert_int_eq(report.terms_fitted, 6 + 5 + 3 + 1);
    ck_assert_str_eq(hbp_cost_get_source(cost, "recompute_linear"), "fit of 400 packs");
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_latency_ns"), "fit of 400 packs at SP 2, 4, 8");
    ck_assert_str_eq(hbp_cost_get_source(cost, "working_bytes"), "fit of 400 packs");
    ck_assert_str_eq(hbp_cost_get_source(cost, "sp_buffer_bytes"), "given");
    hbp_cost_free(cost);
    /* Under noise, too. */
    disturb(&t, &rng);
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_le(report.median_time_error, .025);
    ck_assert_double_eq_tol(have.recompute_linear, .55, .05);
    hbp_cost_free(cost);
    /* All packs recompute as many layers: nothing says what that costs, and nothing is lost. */
    for (int64_t i = 0; i < t.count; i++) {
        t.recompute[i] = 8;
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, t.sp[i], 8, t.tokens[i], (double)t.squares[i]);
    }
    m = view(&t, 0);
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_eq(have.recompute_linear, .3);
    ck_assert_double_eq(have.recompute_attention, .28);
    ck_assert_str_eq(hbp_cost_get_source(cost, "recompute_linear"), "given");
    ck_assert_double_lt(report.max_time_error, 1e-6);
    hbp_cost_free(cost);
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

/* A few packs: as good as least squares is, so far off as that may be. */
START_TEST(few_packs_do_no_harm)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make(context, 1, &want);
    hbp_cost *prior = make(context, 1.7, &have);
    int fits = 0;
    int better = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        hbp__rng rng = hbp__rng_make(50 + seed, 0, 0);
        measure(&t, &rng, truth, 4 + (int64_t)(seed % 7), 1, .02);
        hbp_measurements m = view(&t, 0);
        hbp_cost *cost = NULL;
        if (hbp_cost_fit(context, prior, &m, &cost, NULL) < 0)
            continue;
        fits++;
        /* On packs that it has not seen, without noise. */
        measure(&t, &rng, truth, 200, 1, 0);
        double off[2] = {0, 0};
        for (int64_t i = 0; i < t.count; i++) {
            const hbp_cost *costs[2] = {cost, prior};
            for (int k = 0; k < 2; k++) {
                double ns = (double)hbp_cost_predict_pack_ns(costs[k], 1, t.recompute[i], t.tokens[i],
                                                             (double)t.squares[i]);
                off[k] += fabs(ns / (double)t.time_ns[i] - 1) / (double)t.count;
            }
        }
        better += off[0] < off[1] / 4;
        hbp_cost_free(cost);
    }
    ck_assert_int_ge(fits, 60);
    ck_assert_int_ge(better, fits * 9 / 10);
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

/* Packs as plans make them, all but full: what each costs cannot be told from what its tokens do. */
START_TEST(full_packs_leave_pack_ns_to_the_prior)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = make(context, 1, &want);
    hbp_cost *prior = make(context, 1.5, &have);
    hbp__rng rng = hbp__rng_make(22, 0, 0);
    measure(&t, &rng, truth, 60, 1, 0);
    for (int64_t i = 0; i < t.count; i++) {
        t.tokens[i] = 8192 - (int64_t)hbp__rng_below(&rng, 80);
        t.squares[i] = t.tokens[i] * (100 + (int64_t)hbp__rng_below(&rng, 8000));
        t.recompute[i] = 0;
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, 1, 0, t.tokens[i], (double)t.squares[i]);
    }
    disturb(&t, &rng);
    hbp_measurements m = view(&t, 0);
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_eq(have.pack_ns, 1.5 * want.pack_ns);
    ck_assert_str_eq(hbp_cost_get_source(cost, "pack_ns"), "given");
    ck_assert_int_eq(report.terms_fitted, 2);
    ck_assert_double_le(report.median_time_error, .025);
    ck_assert_double_eq_tol(have.ns_per_token_squared, want.ns_per_token_squared,
                            .2 * want.ns_per_token_squared);
    hbp_cost_free(cost);
    hbp_cost_free(truth);
    hbp_cost_free(prior);
    hbp_context_free(context);
}
END_TEST

START_TEST(terms_that_look_alike_are_named)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost *truth = make(context, 1, &want);
    hbp__rng rng = hbp__rng_make(10, 0, 0);
    hbp_cost *cost = NULL;
    hbp_measurements m;
    /* All of one length. */
    measure(&t, &rng, truth, 50, 1, 0);
    for (int64_t i = 0; i < t.count; i++) {
        t.recompute[i] = 0;
        t.tokens[i] = 16384;
        t.squares[i] = 16384 * (1 + (int64_t)hbp__rng_below(&rng, 16384));
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, 1, 0, 16384, (double)t.squares[i]);
    }
    m = view(&t, 0);
    FAILS(context, HBP_E_INFEASIBLE, "50 packs cannot tell ns_per_token and pack_ns apart",
          hbp_cost_fit(context, truth, &m, &cost, NULL));
    ck_assert_ptr_null(cost);
    /* All on one degree: its all-to-all grows like its compute. */
    measure(&t, &rng, truth, 50, 1, 0);
    for (int64_t i = 0; i < t.count; i++) {
        t.sp[i] = 8;
        t.recompute[i] = 0;
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, 8, 0, t.tokens[i], (double)t.squares[i]);
    }
    FAILS(context, HBP_E_INFEASIBLE, "cannot tell ns_per_token and sp_ns_per_token of SP 8 apart",
          hbp_cost_fit(context, truth, &m, &cost, NULL));
    /* Memory, with every rank holding the same number of tokens. */
    measure(&t, &rng, truth, 50, 4, 0);
    for (int64_t i = 0; i < t.count; i++) {
        t.recompute[i] = 2;
        t.tokens[i] = 4096 * t.sp[i];
        t.squares[i] = t.tokens[i] * (1 + (int64_t)hbp__rng_below(&rng, 4096));
        if (i % 2)
            t.tokens[i] = t.squares[i] = t.sp[i];
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, t.sp[i], 2, t.tokens[i], (double)t.squares[i]);
        t.bytes[i] = 7000000000;
    }
    m = view(&t, 0);
    OK(context, hbp_cost_fit(context, truth, &m, &cost, NULL));
    hbp_cost_free(cost);
    for (int64_t i = 0; i < t.count; i++)
        if (i % 2) {
            t.tokens[i] = 4096 * t.sp[i];
            t.squares[i] = t.tokens[i] * 4096;
        }
    m = view(&t, 1);
    FAILS(context, HBP_E_INFEASIBLE, "apart", hbp_cost_fit(context, truth, &m, &cost, NULL));
    /* Fewer packs than terms. */
    measure(&t, &rng, truth, 2, 1, 0);
    m = view(&t, 0);
    FAILS(context, HBP_E_INFEASIBLE, "2 packs cannot tell", hbp_cost_fit(context, truth, &m, &cost, NULL));
    ck_assert_ptr_null(cost);
    hbp_cost_free(truth);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_rows_are_named)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost *truth = make(context, 1, &want);
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    hbp_cost *cost = NULL;
    hbp_measurements m;
#define REFUSES(text, change)                                                                                \
    do {                                                                                                     \
        measure(&t, &rng, truth, 20, 4, 0);                                                                  \
        m = view(&t, 1);                                                                                     \
        change;                                                                                              \
        FAILS(context, HBP_E_INVALID, text, hbp_cost_fit(context, truth, &m, &cost, NULL));                  \
        ck_assert_ptr_null(cost);                                                                            \
    } while (0)
    REFUSES("sp[3] is 6, which is not a degree of the prior", t.sp[3] = 6);
    REFUSES("recompute[4] is 17; it must lie in 0..16", t.recompute[4] = 17);
    REFUSES("recompute[4] is -1", t.recompute[4] = -1);
    REFUSES("tokens[5] is 0; it must lie in 1..", t.tokens[5] = 0);
    REFUSES("sum_squares[6] is 9; lengths that add up to 10 have between 10 and 100",
            (t.tokens[6] = 10, t.squares[6] = 9));
    REFUSES("sum_squares[6] is 101", (t.tokens[6] = 10, t.squares[6] = 101));
    REFUSES("time_ns[0] is 0", t.time_ns[0] = 0);
    REFUSES("peak_bytes[19] is -1", t.bytes[19] = -1);
    REFUSES("measurements.count is 0", m.count = 0);
    REFUSES("measurements.sp is NULL", m.sp = NULL);
    REFUSES("measurements.time_ns is NULL", m.time_ns = NULL);
    FAILS(context, HBP_E_INVALID, "measurements is NULL", hbp_cost_fit(context, truth, NULL, &cost, NULL));
    FAILS(context, HBP_E_INVALID, "prior is NULL", hbp_cost_fit(context, NULL, &m, &cost, NULL));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_cost_fit(context, truth, &m, NULL, NULL));
    measure(&t, &rng, truth, 60, 4, 0);
    m = view(&t, 1);
    hbp_fit_report report = {0};
    FAILS(context, HBP_E_INVALID, "hbp_fit_report.struct_size is 0",
          hbp_cost_fit(context, truth, &m, &cost, &report));
    ck_assert_ptr_null(cost);
    hbp_context_cancel(context);
    FAILS(context, HBP_E_CANCELLED, "fit", hbp_cost_fit(context, truth, &m, &cost, NULL));
    hbp_cost_free(truth);
    hbp_context_free(context);
}
END_TEST

typedef struct job {
    const hbp_cost *prior;
    const hbp_measurements *measured;
} job;

static hbp_status fit_and_free(hbp_context *context, void *user)
{
    const job *j = user;
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    hbp_status status = hbp_cost_fit(context, j->prior, j->measured, &cost, &report);
    ck_assert((status == HBP_OK) == (cost != NULL));
    ck_assert((status == HBP_OK) == (report.terms_fitted == 9));
    hbp_cost_free(cost);
    return status;
}

START_TEST(every_allocation_and_report_may_fail)
{
    static table t;
    hbp_context *context = test_context();
    hbp_cost_terms want;
    hbp_cost *truth = make(context, 1, &want);
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    measure(&t, &rng, truth, 100, 4, .02);
    hbp_measurements m = view(&t, 1);
    job j = {truth, &m};
    failing_sweep(fit_and_free, &j);
    ck_assert_int_ge(cancel_sweep(fit_and_free, &j), 5);
    hbp_cost_free(truth);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("fit", exact_measurements_give_the_truth_back, noise_leaves_small_errors,
          what_was_not_measured_stays_the_priors, hiccups_hardly_matter,
          second_terms_are_fitted_where_they_show, few_packs_do_no_harm,
          full_packs_leave_pack_ns_to_the_prior, terms_that_look_alike_are_named, bad_rows_are_named,
          every_allocation_and_report_may_fail)
