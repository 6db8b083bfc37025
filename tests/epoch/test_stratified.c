#include "epoch/epoch.h"

#include "base/checked.h"
#include "failing.h"
#include "planned.h"

typedef struct inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
    int64_t steps;
    hbp_epoch_options options;
} inputs;

static hbp_status plan_once(hbp_context *context, void *user)
{
    const inputs *in = user;
    hbp__epoch epoch = {context, in->lengths, in->cost, NULL, in->options};
    hbp_plan *plan = NULL;
    int64_t ns;
    hbp_status status = hbp__strata_estimate(&epoch, in->steps, INT64_MAX, 2, &ns);
    if (status >= 0)
        status = hbp__strata_plan(&epoch, in->steps, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

/* Every promise is kept, each step has its share of the samples, and the estimate from all steps is exact. */
START_TEST(steps_are_dealt_their_share)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    for (uint64_t seed = 0; seed < 6; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 150 + 100 * (int64_t)seed, 30000);
        hbp__epoch epoch = {context, lengths, cost, NULL, {.seed = seed, .micro_batch_multiple = 2}};
        int64_t steps = 3 + (int64_t)seed, ns = 0, most = 0, sum = 0;
        hbp_plan *plan = NULL;
        OK(context, hbp__strata_plan(&epoch, steps, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        planned_check(context, plan, lengths);
        ck_assert_int_eq(plan->steps, steps);
        ck_assert_int_eq(plan->seed, seed);
        for (int64_t s = 0; s < steps; s++) {
            ck_assert_int_ge(plan->step_samples[s], lengths->count / steps);
            ck_assert_int_le(plan->step_samples[s], lengths->count / steps + 1);
            ck_assert_int_eq((plan->step_offsets[s + 1] - plan->step_offsets[s]) % 2, 0);
            most = hbp__max_i64(most, plan->step_tokens[s]);
            sum += plan->step_ns[s];
        }
        OK(context, hbp__strata_estimate(&epoch, steps, most, steps, &ns));
        ck_assert_int_le(ns > sum ? ns - sum : sum - ns, 1 + sum / 1000000);
        OK(context, hbp__strata_estimate(&epoch, steps, most - 1, steps, &ns));
        ck_assert_int_eq(ns, INT64_MAX);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(ties_share_a_pack)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    static int64_t length[300], tie[300];
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int i = 0; i < 300; i++) {
        length[i] = 1 + hbp__rng_below(&rng, 2000);
        tie[i] = i < 200 ? i / 2 : -1;
    }
    hbp_lengths_options with = {.struct_size = sizeof with, .ties = tie};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, length, 300, &with, &lengths));
    hbp__epoch epoch = {context, lengths, cost, NULL, {.sequence_multiple = 8}};
    hbp_plan *plan = NULL;
    OK(context, hbp__strata_plan(&epoch, 4, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    planned_check_ties(plan, tie, 300);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(nothing_is_left_behind)
{
    hbp_context *context = test_context();
    inputs in = {test_long_tail(context, 1, 14, 9000), test_cost_ranks(context, 2), 2, {.seed = 1}};
    failing_sweep(plan_once, &in);
    ck_assert_int_gt(cancel_sweep(plan_once, &in), 3);
    hbp_lengths_free(in.lengths);
    hbp_cost_free(in.cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("stratified", steps_are_dealt_their_share, ties_share_a_pack, nothing_is_left_behind)
