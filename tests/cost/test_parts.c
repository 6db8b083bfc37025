/* The parts of a pack's time against the formula of cost.h, term by term. */
#include "costs.h"
#include "keep.h"

#include <math.h>

#include "cost/parts.h"

static int64_t sum_of(const hbp_pack_parts *p)
{
    return p->compute_ns + p->vision_ns + p->all_to_all_ns + p->fixed_ns;
}

START_TEST_IN_CONTEXT(parts_add_up_to_the_time)
{
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        hbp_cost *cost =
            test_cost_vision(context, 16, trial % 3 ? (double)hbp__rng_below(&rng, 90000) / 7 : 0, 10);
        const hbp_cost_terms *t = &cost->terms;
        const int32_t row = (int32_t)hbp__rng_below(&rng, TEST_DEGREES);
        const int32_t recompute = (int32_t)hbp__rng_below(&rng, 9);
        const hbp__load load = {.tokens = 1 + hbp__rng_below(&rng, 9000),
                                .squares = (double)hbp__rng_below(&rng, 100000000),
                                .vision = hbp__rng_below(&rng, 20)};
        const double share = recompute / 8., degree = cost->degree[row], tokens = (double)load.tokens;
        const hbp_pack_parts p = hbp__cost_pack_parts(cost, row, recompute, load);
        ck_assert_int_eq(sum_of(&p), hbp_cost_predict_pack_ns(cost, cost->degree[row], recompute, load.tokens,
                                                              load.squares, load.vision));
        hbp_pack_parts asked = {.struct_size = sizeof asked};
        OK(context, hbp_cost_predict_pack_parts(context, cost, cost->degree[row], recompute, load.tokens,
                                                load.squares, load.vision, &asked));
        ck_assert_mem_eq(&asked.compute_ns, &p.compute_ns, sizeof p - offsetof(hbp_pack_parts, compute_ns));
        ck_assert_double_le(
            fabs((double)p.all_to_all_ns -
                 (cost->sp_latency_ns[row] + cost->sp_ns_per_token[row] * tokens) * (1 + .5 * share)),
            .501);
        ck_assert_double_le(
            fabs((double)p.vision_ns - t->ns_per_vision * (double)load.vision * (1 + .25 * share) / degree),
            .501);
        ck_assert_int_eq(p.fixed_ns, 40000000);
        /* The rest takes what rounding the others left. */
        ck_assert_double_le(
            fabs((double)p.compute_ns -
                 (t->ns_per_token * tokens * (1 + t->recompute_linear * share) +
                  t->ns_per_token_squared * load.squares * (1 + t->recompute_attention * share)) /
                     degree),
            2);
        hbp_cost_free(cost);
    }
}
END_TEST

/* Where rounding leaves less than the terms that are not compute, no part is negative. */
START_TEST_IN_CONTEXT(no_part_is_negative)
{
    hbp_cost *plain = keep(test_cost(context)), *cost;
    hbp_cost_terms terms = plain->terms;
    const double latency[TEST_DEGREES] = {.5, .5, .5, .5}, none[TEST_DEGREES] = {0};
    terms.ns_per_token = terms.ns_per_token_squared = 0;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = none;
    terms.ns_per_vision = .5;
    for (int halves = 0; halves < 4; halves++) {
        terms.pack_ns = halves * .5;
        OK(context, hbp_cost_create_terms(context, &terms, &cost));
        const hbp_pack_parts p = hbp__cost_pack_parts(cost, 0, 0, (hbp__load){.tokens = 1, .vision = 1});
        ck_assert_int_eq(sum_of(&p), hbp_cost_predict_pack_ns(cost, 1, 0, 1, 0, 1));
        ck_assert(p.compute_ns >= 0 && p.vision_ns >= 0 && p.all_to_all_ns >= 0 && p.fixed_ns >= 0);
        hbp_cost_free(cost);
    }
}
END_TEST

/* A padding pack is all fixed; one that may be skipped is nothing. */
START_TEST_IN_CONTEXT(padding_has_no_other_part)
{
    hbp_cost *plain = keep(test_cost(context)), *uneven;
    hbp_cost_terms terms = plain->terms;
    hbp_pack_parts p = hbp__cost_pack_parts(plain, 0, 0, (hbp__load){0});
    ck_assert(p.fixed_ns == 40000000 && sum_of(&p) == 40000000);
    terms.lockstep_ranks = 1;
    terms.uneven_micro_batches = 1;
    OK(context, hbp_cost_create_terms(context, &terms, &uneven));
    p = hbp__cost_pack_parts(uneven, 0, 0, (hbp__load){0});
    ck_assert_int_eq(sum_of(&p), 0);
    ck_assert_int_eq(p.fixed_ns, 0);
    hbp_cost_free(uneven);
}
END_TEST

START_TEST_IN_CONTEXT(no_such_pack)
{
    const hbp_cost *cost = keep(test_cost(context));
    hbp_pack_parts p = {.struct_size = sizeof p};
#define REFUSED(says, ...)                                                                                   \
    FAILS(context, HBP_E_INVALID, says, hbp_cost_predict_pack_parts(context, __VA_ARGS__, &p))
    REFUSED("cost is NULL", NULL, 1, 0, 1, 1, 0);
    REFUSED("`sp` is 3; the cost has the SP degrees 1, 2, 4, 8", cost, 3, 0, 1, 1, 0);
    REFUSED("`recompute` is 9; it must be in 0..8", cost, 1, 9, 1, 1, 0);
    REFUSED("`tokens` is -1", cost, 1, 0, -1, 1, 0);
    REFUSED("`vision` is -1", cost, 1, 0, 1, 1, -1);
    REFUSED("`sum_squares` is nan", cost, 1, 0, 1, (double)NAN, 0);
#undef REFUSED
}
END_TEST

TEST_MAIN("parts", parts_add_up_to_the_time, no_part_is_negative, padding_has_no_other_part, no_such_pack)
