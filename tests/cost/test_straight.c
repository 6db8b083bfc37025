/* Costs whose time bends, and the linear ones that stand for them. */
#include <math.h>

#include "costs.h"
#include "keep.h"

#include "cost/parts.h"
#include "cost/straight.h"

static hbp_cost *bent(hbp_context *context, double traffic, double overlap, double least)
{
    hbp_cost *plain = test_cost_vision(context, 16, 5e6, 10), *cost = NULL;
    hbp_cost_terms terms = plain->terms;
    terms.traffic_ns = traffic;
    terms.compute_overlap = overlap;
    terms.least_compute_ns = least;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

static hbp__load draw(hbp__rng *rng)
{
    const double tokens = 1 + hbp__rng_below(rng, 9000);
    return (hbp__load){.tokens = (int64_t)tokens,
                       .squares = tokens * (1 + hbp__rng_below(rng, (uint64_t)tokens)),
                       .vision = hbp__rng_below(rng, 3)};
}

static double time_of(const hbp_cost *cost, int32_t row, int32_t recompute, hbp__load load)
{
    return hbp__cost_ns(cost, row, recompute, (double)load.tokens, load.squares, (double)load.vision);
}

/* T = max(C, (1 - w) C + G) and what is neither, and the best linear cost meets it from below. */
START_TEST_IN_CONTEXT(time_is_the_greater_of_two_lines)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int trial = 0; trial < 400; trial++) {
        const double traffic = 1e5 * hbp__rng_below(&rng, 400), overlap = hbp__rng_below(&rng, 5) / 4.;
        const double least = trial % 4 ? 0 : 1e6 * hbp__rng_below(&rng, 60);
        hbp_cost *cost = bent(context, traffic, overlap, least);
        const hbp_cost plain = hbp__cost_tried(cost, HBP__STRAIGHT_TRIES - 1);
        for (int i = 0; i < 20; i++) {
            const hbp__load load = draw(&rng);
            const int32_t row = (int32_t)hbp__rng_below(&rng, TEST_DEGREES);
            const int32_t recompute = (int32_t)hbp__rng_below(&rng, 9);
            const double sum = time_of(&plain, row, recompute, load), t = time_of(cost, row, recompute, load);
            const double exchange = hbp__cost_all_to_all_ns(cost, row, recompute, (double)load.tokens);
            const double lines = sum - exchange - cost->terms.pack_ns; /* compute */
            const double compute = fmax(lines, least), rest = exchange + cost->terms.pack_ns - traffic;
            ck_assert_double_eq_tol(t, rest + fmax(compute, (1 - overlap) * compute + traffic), 1e-6 * t);
            double best = 0;
            for (int32_t h = 0; h < HBP__STRAIGHT_BOUNDS; h++) {
                const hbp_cost below = hbp__cost_below(cost, h);
                const double ns = time_of(&below, row, recompute, load);
                ck_assert_double_le(ns, t * (1 + 1e-12));
                ck_assert(!hbp__cost_bends(&below.terms));
                best = fmax(best, ns);
            }
            if (least == 0)
                ck_assert_double_eq_tol(best, t, 1e-9 * t);
            const hbp_pack_parts p = hbp__cost_pack_parts(cost, row, recompute, load);
            ck_assert_int_eq(p.compute_ns + p.vision_ns + p.all_to_all_ns + p.fixed_ns,
                             hbp__cost_pack_ns(cost, row, recompute, load));
            ck_assert_double_eq_tol((double)p.fixed_ns,
                                    cost->terms.pack_ns - fmin(traffic, overlap * compute), .501);
        }
        /* A padding pack has no compute to hide traffic behind. */
        ck_assert_int_eq(hbp__cost_pack_ns(cost, 0, 0, (hbp__load){0}), 40000000);
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(one_is_enough_for_a_linear_cost)
{
    hbp_cost *cost = keep(test_cost(context));
    ck_assert_int_eq(hbp__cost_bounds(cost), 1);
    ck_assert_int_eq(hbp__cost_tries(cost), 1);
    const hbp_cost below = hbp__cost_below(cost, 0), tried = hbp__cost_tried(cost, 0);
    ck_assert_mem_eq(&below.terms, &cost->terms, sizeof cost->terms);
    ck_assert_mem_eq(&tried.terms, &cost->terms, sizeof cost->terms);
    hbp_cost *hiding = keep(bent(context, 1e7, 1, 0));
    const hbp_cost first = hbp__cost_below(hiding, 0), same = hbp__cost_tried(hiding, 0);
    ck_assert_mem_eq(&first.terms, &same.terms, sizeof first.terms);
    ck_assert_double_eq(first.terms.pack_ns, 3e7);
}
END_TEST

START_TEST_IN_CONTEXT(a_plan_is_timed_anew)
{
    hbp_lengths *lengths = keep(test_long_tail(context, 9, 300, 9000));
    hbp_cost *cost = keep(bent(context, 3e7, 1, 0)), *plain = NULL;
    const hbp_cost tried = hbp__cost_tried(cost, 3);
    OK(context, hbp_cost_create_terms(context, &tried.terms, &plain));
    keep(plain);
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, plain, NULL, &plan));
    keep(plan);
    OK(context, hbp_plan_validate(context, plan, lengths, plain));
    const int64_t before = hbp__plan_ns(plan);
    plan->bound_ns = plan->free_bound_ns = 0; /* of the other cost */
    OK(context, hbp__cost_time_plan(context, cost, plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    ck_assert_int_lt(hbp__plan_ns(plan), before);
    OK(context, hbp__cost_time_plan(context, plain, plan));
    ck_assert_int_eq(hbp__plan_ns(plan), before);
}
END_TEST

START_TEST_IN_CONTEXT(bad_terms_are_named)
{
    hbp_cost *plain = keep(test_cost(context)), *cost = NULL;
    hbp_cost_terms terms = plain->terms;
#define REFUSED(field, value, says)                                                                          \
    terms = plain->terms;                                                                                    \
    terms.field = value;                                                                                     \
    FAILS(context, HBP_E_INVALID, says, hbp_cost_create_terms(context, &terms, &cost))
    REFUSED(compute_overlap, 1.5, "compute_overlap is 1.5; it is a share, at most 1");
    REFUSED(compute_overlap, -.5, "compute_overlap is -0.5; it must be finite and at least 0");
    REFUSED(traffic_ns, 5e7, "traffic_ns is 5e+07; it is a part of pack_ns, at most 4e+07");
    REFUSED(least_compute_ns, (double)NAN, "least_compute_ns is nan");
}
END_TEST

TEST_MAIN("straight", time_is_the_greater_of_two_lines, one_is_enough_for_a_linear_cost, a_plan_is_timed_anew,
          bad_terms_are_named)
