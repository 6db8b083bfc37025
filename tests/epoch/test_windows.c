#include "planned.h"

START_TEST(steps_hold_the_samples_asked_for)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 1, 2500, 30000);
    hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 300, .seed = 5};
    hbp_plan *plan = NULL, *again = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    planned_check(context, plan, lengths);
    ck_assert_int_eq(plan->steps, 9);
    for (int64_t s = 0; s < 8; s++)
        ck_assert_int_eq(plan->step_samples[s], 300);
    ck_assert_int_eq(plan->step_samples[8], 100);
    ck_assert_uint_eq(plan->lengths_digest, lengths->digest);
    ck_assert_uint_eq(plan->seed, 5);
    /* The draw is random: the first step is not the first 300 samples, and another seed draws others. */
    int64_t early = 0;
    for (int64_t i = 0; i < 300; i++)
        early += plan->sample_ids[i] < 300;
    ck_assert_int_lt(early, 100);
    options.seed = 6;
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &again));
    ck_assert_uint_ne(plan->digest, again->digest);
    hbp_plan_free(plan);
    hbp_plan_free(again);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(samples_stay_in_their_window)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 2, 3000, 20000);
    hbp_epoch_options options = {.struct_size = sizeof options, .window_samples = 700, .curriculum_steps = 3};
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    planned_check(context, plan, lengths);
    /* Windows come one after the other: the sample in row i is of window i / 700. */
    for (int64_t i = 0; i < plan->samples; i++)
        ck_assert_int_eq(plan->sample_ids[i] / 700, i / 700);
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(dropped_samples_of_all_windows_are_listed)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 3, 2000, 30000);
    hbp_epoch_options options = {.struct_size = sizeof options,
                                 .window_samples = 500,
                                 .drop_last = 1,
                                 .tokens_per_step = 40000,
                                 .max_length = 15000,
                                 .over_long = HBP_OVERLONG_DROP};
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_epoch(context, lengths, cost, &options, &plan);
    if (status != HBP_E_INFEASIBLE) {
        OK(context, status);
        planned_check(context, plan, lengths);
        ck_assert_int_eq(plan->samples + plan->dropped, 2000);
    }
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("windows", steps_hold_the_samples_asked_for, samples_stay_in_their_window,
          dropped_samples_of_all_windows_are_listed)
