#include "failing.h"

#include <math.h>

#include "keep.h"
#include "packs_measured.h"

START_TEST_IN_CONTEXT(exact_measurements_give_the_truth_back)
{
    static table t;
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = keep(make(context, 1, &want));
    hbp_cost *prior = keep(make(context, 1.7, &have));
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    measure(&t, &rng, truth, 60, 4, 0);
    hbp_measurements m = view(&t, 1);
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    MAKES(context, cost, hbp_cost_fit(context, prior, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
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
}
END_TEST

START_TEST_IN_CONTEXT(noise_leaves_small_errors)
{
    static table t;
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = keep(make(context, 1, &want));
    /* Latencies are others, so that the prior scaled is not as good. */
    static const second_terms others = {.3, .28, 30, 140000};
    hbp_cost *prior = keep(make_with(context, .6, &others, &have));
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    measure(&t, &rng, truth, 2000, 4, .05);
    hbp_measurements m = view(&t, 1);
    hbp_cost *cost = NULL;
    hbp_fit_report report = {.struct_size = sizeof report};
    MAKES(context, cost, hbp_cost_fit(context, prior, &m, &cost, &report));
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
                                                            (double)t.squares[i], 0);
        double error = fabs(predicted - (double)t.time_ns[i]) / (double)t.time_ns[i];
        largest = error > largest ? error : largest;
    }
    ck_assert_double_eq(report.max_time_error, largest);
}
END_TEST

START_TEST_IN_CONTEXT(what_was_not_measured_stays_the_priors)
{
    static table t;
    hbp_cost_terms want;
    hbp_cost_terms have;
    hbp_cost *truth = keep(make(context, 1, &want));
    hbp_cost *prior = keep(make(context, 2, &have));
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
                hbp_cost_predict_pack_ns(truth, t.sp[i], same[k], t.tokens[i], (double)t.squares[i], 0);
            t.bytes[i] = hbp_cost_predict_pack_bytes(truth, t.sp[i], same[k], t.tokens[i], 0);
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
}
END_TEST

START_TEST_IN_CONTEXT(terms_that_look_alike_are_named)
{
    static table t;
    hbp_cost_terms want;
    hbp_cost *truth = keep(make(context, 1, &want));
    hbp__rng rng = hbp__rng_make(10, 0, 0);
    hbp_cost *cost = NULL;
    hbp_measurements m;
    /* Every pack of documents of one length. */
    measure(&t, &rng, truth, 50, 1, 0);
    for (int64_t i = 0; i < t.count; i++) {
        t.recompute[i] = 0;
        t.tokens[i] = 1024 * (1 + (int64_t)hbp__rng_below(&rng, 16));
        t.squares[i] = t.tokens[i] * 1024;
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, 1, 0, t.tokens[i], (double)t.squares[i], 0);
    }
    m = view(&t, 0);
    FAILS(context, HBP_E_INFEASIBLE, "50 packs cannot separate ns_per_token and ns_per_token_squared",
          hbp_cost_fit(context, truth, &m, &cost, NULL));
    ck_assert_ptr_null(cost);
    /* Every rank holds the same number of tokens: refused only where squares are alike, too. */
    measure(&t, &rng, truth, 50, 4, 0);
    for (int64_t i = 0; i < t.count; i++) {
        t.recompute[i] = 2;
        t.tokens[i] = 4096 * t.sp[i];
        t.squares[i] = t.tokens[i] * (1 + (int64_t)hbp__rng_below(&rng, 4096));
        if (i % 2)
            t.tokens[i] = t.squares[i] = t.sp[i];
        t.time_ns[i] = hbp_cost_predict_pack_ns(truth, t.sp[i], 2, t.tokens[i], (double)t.squares[i], 0);
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
    FAILS(context, HBP_E_INFEASIBLE, "ns_per_token", hbp_cost_fit(context, truth, &m, &cost, NULL));
    ck_assert_ptr_null(cost);
    /* Fewer packs than terms. */
    measure(&t, &rng, truth, 2, 1, 0);
    m = view(&t, 0);
    FAILS(context, HBP_E_INFEASIBLE, "2 packs cannot separate",
          hbp_cost_fit(context, truth, &m, &cost, NULL));
    ck_assert_ptr_null(cost);
}
END_TEST

START_TEST_IN_CONTEXT(a_step_costs_the_median_of_steps)
{
    static table t;
    static const int64_t step_ns[] = {900, 0, 700000, 300};
    hbp_cost_terms want, have = {.struct_size = sizeof have};
    hbp_cost *truth = keep(make(context, 1, &want));
    hbp_cost *cost = NULL;
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    hbp_fit_report report = {.struct_size = sizeof report};
    measure(&t, &rng, truth, 60, 4, 0);
    hbp_measurements m = view(&t, 1);
    m.steps = 4;
    m.step_ns = step_ns;
    MAKES(context, cost, hbp_cost_fit(context, truth, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_eq(have.step_ns, 300); /* of four the lower middle one */
    ck_assert_str_eq(hbp_cost_get_source(cost, "step_ns"), "median of 4 steps");
    const int32_t with = report.terms_fitted;
    m.steps = 0;
    MAKES(context, cost, hbp_cost_fit(context, truth, &m, &cost, &report));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_eq(have.step_ns, want.step_ns);
    ck_assert_int_eq(with, report.terms_fitted + 1);
}
END_TEST

/* Where all compute hides behind traffic, or takes its least time, no pack says what it costs. */
START_TEST_IN_CONTEXT(compute_that_does_not_show)
{
    static table t;
    hbp_cost_terms terms, have = {.struct_size = sizeof have};
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    hbp_cost *plain = keep(make(context, 1, &terms)), *hidden = NULL, *short_packs = NULL, *cost = NULL;
    hbp_measurements m;
    terms.pack_ns = terms.traffic_ns = 1e12;
    terms.compute_overlap = 1;
    MAKES(context, hidden, hbp_cost_create_terms(context, &terms, &hidden));
    measure(&t, &rng, hidden, 40, 1, .01);
    m = view(&t, 0);
    FAILS(context, HBP_E_INFEASIBLE, "in none of 40 packs does compute show",
          hbp_cost_fit(context, hidden, &m, &cost, NULL));
    /* Half of the packs are at a floor, which is the prior's: the others say what compute costs. */
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    terms.least_compute_ns = 110000 * 30000.;
    MAKES(context, short_packs, hbp_cost_create_terms(context, &terms, &short_packs));
    measure(&t, &rng, short_packs, 200, 1, .01);
    m = view(&t, 0);
    terms.ns_per_token *= 1.5;
    MAKES(context, hidden, hbp_cost_create_terms(context, &terms, &hidden));
    MAKES(context, cost, hbp_cost_fit(context, hidden, &m, &cost, NULL));
    OK(context, hbp_cost_get_terms(context, cost, &have));
    ck_assert_double_eq_tol(have.ns_per_token, 110000, 5000);
    ck_assert_double_eq(have.least_compute_ns, terms.least_compute_ns);
}
END_TEST

START_TEST_IN_CONTEXT(bad_rows_are_named)
{
    static table t;
    hbp_cost_terms want;
    hbp_cost *truth = keep(make(context, 1, &want));
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
    REFUSES("recompute[4] is 17; it must be in 0..16", t.recompute[4] = 17);
    REFUSES("recompute[4] is -1", t.recompute[4] = -1);
    REFUSES("tokens[5] is 0; it must be in 1..", t.tokens[5] = 0);
    REFUSES("sum_squares[6] is 0; documents in 10 tokens have 1 to 100",
            (t.tokens[6] = 10, t.squares[6] = 0));
    REFUSES("sum_squares[6] is 101", (t.tokens[6] = 10, t.squares[6] = 101));
    REFUSES("time_ns[0] is 0", t.time_ns[0] = 0);
    REFUSES("peak_bytes[19] is -1", t.bytes[19] = -1);
    REFUSES("`count` is 0; it must be in 1..4294967294", m.count = 0);
    REFUSES("measurements.sp is NULL", m.sp = NULL);
    REFUSES("measurements.time_ns is NULL", m.time_ns = NULL);
    REFUSES("measurements.step_ns is NULL", m.steps = 2);
    REFUSES("step_ns[1] is -3; it must be at least 0", (m.steps = 2, m.step_ns = (const int64_t[]){0, -3}));
    REFUSES("`steps` is -1; it must be in 0..", m.steps = -1);
    measure(&t, &rng, truth, 60, 4, 0);
    m = view(&t, 1);
    t.squares[6] = t.tokens[6] / 2; /* padding counts as tokens and squares nothing */
    OK(context, hbp_cost_fit(context, truth, &m, &cost, NULL));
    hbp_cost_free(cost);
    cost = NULL;
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

START_TEST_IN_CONTEXT(every_allocation_and_report_may_fail)
{
    static table t;
    hbp_cost_terms want;
    hbp_cost *truth = keep(make(context, 1, &want));
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    measure(&t, &rng, truth, 100, 4, .02);
    hbp_measurements m = view(&t, 1);
    hbp_cost *prior = NULL;
    want.ns_per_token_squared *= 3; /* so that no scale of it is better than a fit */
    OK(context, hbp_cost_create_terms(context, &want, &prior));
    job j = {keep(prior), &m};
    failing_sweep(fit_and_free, &j);
    ck_assert_int_ge(cancel_sweep(fit_and_free, &j), 5);
}
END_TEST

TEST_MAIN("fit", exact_measurements_give_the_truth_back, noise_leaves_small_errors,
          what_was_not_measured_stays_the_priors, terms_that_look_alike_are_named,
          a_step_costs_the_median_of_steps, compute_that_does_not_show, bad_rows_are_named,
          every_allocation_and_report_may_fail)
