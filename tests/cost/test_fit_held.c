/* A fit is kept where packs held out say that it is better than its prior. */
#include <math.h>

#include "cost/fit.h"
#include "keep.h"
#include "packs_measured.h"
#include "solve/relative_errors.h"

/* The median error of `cost` on fresh packs that `truth` times without noise. */
static double error_on(hbp_context *context, const hbp_cost *truth, const hbp_cost *cost, uint64_t seed)
{
    static table t;
    hbp__rng rng = hbp__rng_make(seed, 9, 0);
    hbp__relative_errors e;
    measure(&t, &rng, truth, 500, 4, 0);
    ck_assert(hbp__relative_errors_begin(&context->memory, t.count, &e));
    for (int64_t i = 0; i < t.count; i++)
        hbp__relative_errors_add(&e,
                                 (double)hbp_cost_predict_pack_ns(cost, t.sp[i], t.recompute[i], t.tokens[i],
                                                                  (double)t.squares[i], 0),
                                 (double)t.time_ns[i]);
    OK(context, hbp__relative_errors_sort(context, &e, "errors"));
    const double median = hbp__relative_errors_quantile(&e, 50);
    hbp__relative_errors_end(&context->memory, &e);
    return median;
}

/* Twenty packs, one third of them up to ten times too long: what is kept is not worse than the prior on
 * others, but for what twenty packs cannot know. */
START_TEST_IN_CONTEXT(a_busy_machine)
{
    static table t;
    hbp_cost_terms terms;
    hbp_cost *truth = keep(make(context, 1, &terms));
    static const double scales[3] = {1.6, 1, 1.05};
    int kept[3] = {0};
    int worse = 0;
    double most = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        hbp_cost *prior = make(context, scales[seed % 3], &terms), *cost = NULL;
        hbp__rng rng = hbp__rng_make(seed, 4, 0);
        measure(&t, &rng, truth, 20, 4, .05);
        for (int64_t i = 0; i < t.count; i++)
            if (hbp__rng_below(&rng, 3) == 0)
                t.time_ns[i] += t.time_ns[i] * (int64_t)hbp__rng_below(&rng, 10);
        const hbp_measurements m = view(&t, 0);
        hbp_fit_report r = {.struct_size = sizeof r};
        const hbp_status status = hbp_cost_fit(context, prior, &m, &cost, &r);
        if (status == HBP_OK) {
            kept[r.times]++;
            const double over = error_on(context, truth, cost, seed) - error_on(context, truth, prior, seed);
            worse += over > .02;
            most = fmax(most, over);
            ck_assert(r.held_out_time_error > 0 || r.held_out_time_error == -1);
            if (r.times == HBP_FIT_PRIOR) {
                ck_assert_double_eq(cost->terms.ns_per_token, prior->terms.ns_per_token);
                ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_token"), "given");
                ck_assert_int_eq(r.terms_fitted, 0);
                ck_assert_double_eq(r.median_time_error, r.prior_median_time_error);
            }
            if (r.times == HBP_FIT_SCALED)
                ck_assert_str_eq(hbp_cost_get_source(cost, "pack_ns"), "prior scaled by a fit of 20 packs");
        } else
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
        hbp_cost_free(cost);
        hbp_cost_free(prior);
    }
    ck_assert_int_le(worse, 4);
    ck_assert_double_le(most, .1);
    ck_assert_int_ge(kept[HBP_FIT_SCALED], 20);
    ck_assert_int_ge(kept[HBP_FIT_PRIOR], 3);
    ck_assert_int_le(kept[HBP_FIT_PACKS], 15);
}
END_TEST

/* Without a fit that is worse all stays as it was: good measurements are fitted. */
START_TEST_IN_CONTEXT(good_packs_are_fitted)
{
    static table t;
    static const second_terms other = {.5, .3, 1, 140000};
    hbp_cost_terms terms;
    hbp_cost *truth = keep(make(context, 1, &terms));
    hbp_cost *prior = keep(make_with(context, 1.4, &other, &terms)), *cost = NULL;
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    measure(&t, &rng, truth, 100, 4, .02);
    const hbp_measurements m = view(&t, 0);
    hbp_fit_report r = {.struct_size = sizeof r};
    OK(context, hbp_cost_fit(context, prior, &m, &cost, &r));
    ck_assert_int_eq(r.times, HBP_FIT_PACKS);
    ck_assert_double_le(r.held_out_time_error, .03);
    ck_assert_double_ge(r.scaled_time_error, r.held_out_time_error);
    ck_assert_double_le(error_on(context, truth, cost, 1), .01);
    hbp_cost_free(cost);
    /* A handful of packs holds none out. */
    hbp_measurements few = m;
    few.count = 9;
    r = (hbp_fit_report){.struct_size = sizeof r};
    if (hbp_cost_fit(context, prior, &few, &cost, &r) == HBP_OK) {
        ck_assert_int_eq(r.times, HBP_FIT_PACKS);
        ck_assert_double_eq(r.held_out_time_error, 0);
        hbp_cost_free(cost);
    }
}
END_TEST

/* Where traffic hides, a fit finds out for which packs it does. */
START_TEST_IN_CONTEXT(hidden_traffic)
{
    static table t;
    for (int overlap = 1; overlap <= 2; overlap++) {
        hbp_cost_terms terms;
        hbp_cost *plain = keep(make(context, 1, &terms)), *truth = NULL, *prior = NULL, *cost = NULL;
        terms.traffic_ns = 3.5e8;
        terms.pack_ns = 4e8;
        terms.compute_overlap = overlap / 2.;
        ck_assert_ptr_nonnull(plain);
        OK(context, hbp_cost_create_terms(context, &terms, &truth));
        hbp_cost_terms off = terms;
        off.ns_per_token *= 1.5;
        off.ns_per_token_squared *= .6;
        off.pack_ns *= 1.2;
        off.traffic_ns *= 1.2;
        OK(context, hbp_cost_create_terms(context, &off, &prior));
        hbp__rng rng = hbp__rng_make(5, 0, 0);
        measure(&t, &rng, truth, 300, 4, 0);
        const hbp_measurements m = view(&t, 0);
        hbp_fit_report r = {.struct_size = sizeof r};
        OK(context, hbp_cost_fit(context, keep(prior), &m, &cost, &r));
        ck_assert_double_le(r.median_time_error, .002);
        ck_assert_double_eq_tol(cost->terms.traffic_ns / cost->terms.pack_ns, 3.5 / 4, 1e-9);
        ck_assert_double_eq_tol(cost->terms.ns_per_token, terms.ns_per_token, .02 * terms.ns_per_token);
        ck_assert_double_le(error_on(context, keep(truth), cost, 1), .005);
        hbp_cost_free(cost);
    }
}
END_TEST

TEST_MAIN("fit_held", a_busy_machine, good_packs_are_fitted, hidden_traffic)
