/* Steps that take long are worth more planning: the same step with all times a thousand times as long is
 * planned no worse, and some are better; more effort is still no worse. */
#include "costs.h"
#include "failing.h"
#include "keep.h"

/* A power of two, so that doubles stay what they are but for their exponents. */
#define LONGER 1024

static hbp_cost *longer_cost(hbp_context *context, int32_t ranks)
{
    hbp_cost *plain = test_cost_ranks(context, ranks), *cost = NULL;
    hbp_cost_terms t = {.struct_size = sizeof t};
    double latency[16], per_token[16];
    OK(context, hbp_cost_get_terms(context, plain, &t));
    for (int32_t j = 0; j < t.degrees; j++) {
        latency[j] = LONGER * t.sp_latency_ns[j];
        per_token[j] = LONGER * t.sp_ns_per_token[j];
    }
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    t.ns_per_token *= LONGER;
    t.ns_per_token_squared *= LONGER;
    t.pack_ns *= LONGER;
    t.step_ns *= LONGER;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    hbp_cost_free(plain);
    return cost;
}

static hbp_plan_summary plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             int32_t effort)
{
    hbp_plan *made = NULL;
    hbp_step_options o = {.struct_size = sizeof o, .effort = effort};
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    OK(context, hbp_plan_step(context, lengths, cost, &o, &made));
    OK(context, hbp_plan_validate(context, made, lengths, cost));
    OK(context, hbp_plan_get_summary(context, made, &summary));
    ck_assert_int_le(summary.bound_ns, summary.predicted_ns);
    hbp_plan_free(made);
    return summary;
}

START_TEST_IN_CONTEXT(long_steps_are_planned_better)
{
    int64_t better = 0, near = 0; /* the first few seeds hold steps of both kinds */
    for (uint64_t seed = 14; seed < 14 + (uint64_t)TEST_FEW(TEST_ROUNDS(40), 5); seed++) {
        int32_t ranks = seed % 2 ? 16 : 64;
        hbp_cost *plain = test_cost_ranks(context, ranks), *longer = longer_cost(context, ranks);
        hbp_lengths *lengths = test_long_tail(context, seed, 100 + (int64_t)(seed % 7) * 40, 60000);
        hbp_plan_summary is = plan(context, lengths, plain, 0), was = plan(context, lengths, longer, 0);
        int64_t rounding = LONGER * (is.packs + 1); /* a ns a pack, of the shorter */
        ck_assert_int_le(was.predicted_ns, LONGER * is.predicted_ns + rounding);
        if (is.gap < 0.0199) {
            ck_assert_int_ge(was.predicted_ns, LONGER * is.predicted_ns - rounding);
            near++;
        }
        better += was.predicted_ns < LONGER * is.predicted_ns - rounding;
        hbp_lengths_free(lengths);
        hbp_cost_free(longer);
        hbp_cost_free(plain);
    }
    ck_assert_int_gt(better, 0);
    ck_assert_int_gt(near, 0);
}
END_TEST

START_TEST_IN_CONTEXT(more_effort_is_never_slower)
{
    int64_t shorter = 0;
    for (uint64_t seed = 0; seed < TEST_ROUNDS(16); seed++) {
        hbp_cost *longer = longer_cost(context, 16);
        hbp_lengths *lengths = test_long_tail(context, 100 + seed, 120 + (int64_t)(seed % 5) * 30, 60000);
        int64_t last = INT64_MAX;
        for (int32_t effort = 1; effort <= 3; effort++) {
            int64_t ns = plan(context, lengths, longer, effort).predicted_ns;
            ck_assert_int_le(ns, last);
            shorter += effort > 1 && ns < last;
            last = ns;
        }
        hbp_lengths_free(lengths);
        hbp_cost_free(longer);
    }
    ck_assert_int_gt(shorter, 0);
}
END_TEST

TEST_MAIN("value", long_steps_are_planned_better, more_effort_is_never_slower)
