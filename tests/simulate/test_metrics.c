#include "simulate/metrics.h"

#include <math.h>

#include "simulate/small.h"

static hbp_report measure(hbp_context *context, const small_plan *from, int32_t ranks)
{
    hbp_plan *plan = small_make(from, ranks);
    hbp_report report;
    hbp_report_init(&report, sizeof report);
    OK(context, hbp__measure_steps(context, plan, &report));
    hbp_plan_free(plan);
    return report;
}

START_TEST(steps_of_one_kind_are_compared_with_each_other)
{
    hbp_context *context = test_context();
    small_plan plan;
    small_init(&plan);
    /* 4 samples of 1 token, 6 of 2 or 3, 8 of 4: 4, 13 and 32 tokens, each step in a length class of its own.
     */
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 16, 2, 1, 1);
    small_pack(&plan, 1, 1, 0, 16, 2, 1, 1);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 2, 0, 32, 2, 3, 17);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 16, 6, 2, 2, 2, 2, 2, 3);
    small_pack(&plan, 1, 1, 0, 16, 0);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 16, 4, 4, 4, 4, 4);
    small_pack(&plan, 1, 1, 0, 16, 4, 4, 4, 4, 4);
    hbp_report report = measure(context, &plan, 2);
    ck_assert_double_eq_tol(report.samples_cv, sqrt(8.0 / 3) / 6, 1e-15);
    /* (1 - 4/49) + (1 - 13/49) + (1 - 32/49) = 2, and 0 for the step on SP 2. */
    ck_assert_double_eq_tol(report.mixture_distance, 2.0 / 4, 1e-15);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_smallest_capacity_is_the_shortest_group)
{
    hbp_context *context = test_context();
    small_plan plan;
    small_init(&plan);
    /* Capacity 8 on SP 2 and on SP 1: the lower degree is the shorter group. Capacity 9 is not. */
    int samples[] = {1, 3, 5, 2, 2, 4};
    int32_t tokens[] = {1, 1, 1, 1, 1};
    for (int s = 0; s < 6; s++) {
        small_step(&plan);
        small_micro_batch(&plan);
        small_pack_array(&plan, 0, s < 2 ? 2 : 1, 0, s < 4 ? 8 : 9, samples[s], tokens);
    }
    hbp_report report = measure(context, &plan, 2);
    ck_assert_double_eq_tol(report.samples_cv, 1.5 / 3.5, 1e-15);
    ck_assert_double_eq(report.mixture_distance, 0);
    hbp_context_free(context);
}
END_TEST

START_TEST(steps_that_mix_degrees_are_one_kind_and_come_last)
{
    hbp_context *context = test_context();
    small_plan plan;
    small_init(&plan);
    for (int s = 0; s < 2; s++) {
        small_step(&plan);
        small_micro_batch(&plan);
        small_pack(&plan, 0, 2, 0, 64, 1, s ? 8 : 16);
        small_pack(&plan, 2, 1, 0, 8 + s, 2, 1, 1);
        small_pack(&plan, 3, 1, 0, 8 + s, s, 1);
    }
    /* Dummies alone are of no kind. */
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 4, 0, 1, 0);
    hbp_report report = measure(context, &plan, 4);
    ck_assert_double_eq_tol(report.samples_cv, 0.5 / 3.5, 1e-15);
    /* Tokens by class: {2 of 1, 16 of 16} and {3 of 1, 8 of 8}; together 5, 8, 16 of 29. */
    double first = fabs(2.0 / 18 - 5.0 / 29) + 8.0 / 29 + fabs(16.0 / 18 - 16.0 / 29);
    double second = fabs(3.0 / 11 - 5.0 / 29) + fabs(8.0 / 11 - 8.0 / 29) + 16.0 / 29;
    ck_assert_double_eq_tol(report.mixture_distance, (first + second) / 4, 1e-15);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 999, 1, 5);
    report = measure(context, &plan, 4);
    ck_assert_double_eq(report.samples_cv, 0);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_plan_without_samples_measures_zero)
{
    hbp_context *context = test_context();
    small_plan plan;
    small_init(&plan);
    hbp_report report = measure(context, &plan, 1);
    ck_assert_double_eq(report.samples_cv, 0);
    ck_assert_double_eq(report.mixture_distance, 0);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 4, 0);
    report = measure(context, &plan, 1);
    ck_assert_double_eq(report.samples_cv, 0);
    ck_assert_double_eq(report.mixture_distance, 0);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("metrics", steps_of_one_kind_are_compared_with_each_other,
          the_smallest_capacity_is_the_shortest_group, steps_that_mix_degrees_are_one_kind_and_come_last,
          a_plan_without_samples_measures_zero)
