#include "simulate/plan/metrics.h"

#include <math.h>

#include "keep.h"
#include "simulate/small.h"

static hbp_report measure(hbp_context *context, const small_plan *from, int32_t ranks)
{
    hbp_plan *plan = small_make(from, ranks);
    hbp_report report = {.struct_size = sizeof report};
    OK(context, hbp__measure_steps(context, plan, &report));
    hbp_plan_free(plan);
    return report;
}

START_TEST_IN_CONTEXT(steps_are_compared_with_the_epoch)
{
    small_plan plan;
    small_init(&plan);
    /* 4 samples of 1 token, 2 of 3 and 17, 6 of 2 or 3, 8 of 4: 4, 20, 13 and 32 tokens. */
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
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 16, 4, 4, 4, 4, 4);
    hbp_report report = measure(context, &plan, 2);
    /* Samples 2, 4, 6, 8, with a variance of 5. */
    ck_assert_double_eq_tol(report.samples_cv, sqrt(5) / 5, 1e-15);
    /* Of 69 tokens 4 are in class 0, 16 in class 1, 32 in class 2, 17 in class 4; the second step has 3 / 20
     * in class 1 and 17 / 20 in class 4. What is not in common: */
    double alone = 1 - 4.0 / 69 + 1 - 16.0 / 69 + 1 - 32.0 / 69, mixed = 1 - 3.0 / 20 - 17.0 / 69;
    ck_assert_double_eq_tol(report.mixture_distance, (alone + mixed) / 4, 1e-15);
    ck_assert_int_eq(report.step_samples_p5, 2);
    ck_assert_int_eq(report.step_samples_median, 4);
    ck_assert_int_eq(report.step_samples_p95, 6);
    ck_assert_int_eq(report.step_tokens_p5, 4);
    ck_assert_int_eq(report.step_tokens_median, 13);
    ck_assert_int_eq(report.step_tokens_p95, 20);
}
END_TEST

/* Steps of one pack each, the s-th of samples[s] samples of 1 token but the last, which brings the step to
 * tokens[s]. */
static void add_steps(small_plan *plan, int steps, const int *samples, const int *tokens)
{
    for (int s = 0; s < steps; s++) {
        int32_t each[SMALL_ROWS];
        for (int i = 0; i < samples[s]; i++)
            each[i] = i + 1 < samples[s] ? 1 : tokens[s] - i;
        small_step(plan);
        small_micro_batch(plan);
        small_pack_array(plan, 0, 1, 0, 1 << 20, samples[s], each);
    }
}

START_TEST_IN_CONTEXT(quantiles_are_the_lower_of_two_neighbours)
{
    static const struct {
        int steps, p5, median, p95; /* places among the sorted */
    } expected[] = {{1, 0, 0, 0},   {2, 0, 0, 0},    {3, 0, 1, 1},    {4, 0, 1, 2},   {10, 0, 4, 8},
                    {20, 0, 9, 18}, {21, 1, 10, 19}, {22, 1, 10, 19}, {41, 2, 20, 38}};
    for (size_t e = 0; e < sizeof expected / sizeof *expected; e++) {
        int samples[41], tokens[41], steps = expected[e].steps;
        /* The s-th in order is step 7 s mod `steps` in samples, and the other way round in tokens. */
        for (int s = 0; s < steps; s++) {
            int place = steps % 7 ? 7 * s % steps : s;
            samples[place] = 1 + s / 2;
            tokens[place] = 1000 - 3 * s;
        }
        small_plan plan;
        small_init(&plan);
        add_steps(&plan, steps, samples, tokens);
        hbp_report report = measure(context, &plan, 1);
        ck_assert_int_eq(report.step_samples_p5, 1 + expected[e].p5 / 2);
        ck_assert_int_eq(report.step_samples_median, 1 + expected[e].median / 2);
        ck_assert_int_eq(report.step_samples_p95, 1 + expected[e].p95 / 2);
        int last = steps - 1;
        ck_assert_int_eq(report.step_tokens_p5, 1000 - 3 * (last - expected[e].p5));
        ck_assert_int_eq(report.step_tokens_median, 1000 - 3 * (last - expected[e].median));
        ck_assert_int_eq(report.step_tokens_p95, 1000 - 3 * (last - expected[e].p95));
    }
}
END_TEST

/* How many of `values` a value is at least, and how many are less, put it in its place. */
static int is_quantile(const int *values, int count, int percent, int64_t value)
{
    int below = 0, most = 0, place = (int)floor(percent / 100.0 * (count - 1) + 1e-9);
    for (int i = 0; i < count; i++) {
        below += values[i] < value;
        most += values[i] <= value;
    }
    return below <= place && place < most;
}

START_TEST_IN_CONTEXT(as_counted_one_by_one)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int trial = 0; trial < TEST_ROUNDS(300); trial++) {
        int samples[40], tokens[40], steps = 1 + (int)hbp__rng_below(&rng, 40);
        for (int s = 0; s < steps; s++) {
            samples[s] = (int)hbp__rng_below(&rng, 12);
            tokens[s] = samples[s] ? samples[s] + (int)hbp__rng_below(&rng, 60) : 0;
        }
        small_plan plan;
        small_init(&plan);
        add_steps(&plan, steps, samples, tokens);
        hbp_report r = measure(context, &plan, 1);
        ck_assert(is_quantile(samples, steps, 5, r.step_samples_p5));
        ck_assert(is_quantile(samples, steps, 50, r.step_samples_median));
        ck_assert(is_quantile(samples, steps, 95, r.step_samples_p95));
        ck_assert(is_quantile(tokens, steps, 5, r.step_tokens_p5));
        ck_assert(is_quantile(tokens, steps, 50, r.step_tokens_median));
        ck_assert(is_quantile(tokens, steps, 95, r.step_tokens_p95));
        double sum = 0, squares = 0;
        for (int s = 0; s < steps; s++) {
            sum += samples[s];
            squares += (double)samples[s] * samples[s];
        }
        /* The variance is the mean square less the squared mean. */
        double cv = sum > 0 ? sqrt(fmax(0, squares * steps / (sum * sum) - 1)) : 0;
        ck_assert_double_eq_tol(r.samples_cv, cv, 1e-7);
    }
}
END_TEST

START_TEST_IN_CONTEXT(steps_of_padding_count_as_steps_and_have_no_mixture)
{
    small_plan plan;
    small_init(&plan);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 4, 0);
    hbp_report report = measure(context, &plan, 1);
    ck_assert_double_eq(report.samples_cv, 0);
    ck_assert_double_eq(report.mixture_distance, 0);
    ck_assert_int_eq(report.step_samples_p95, 0);
    ck_assert_int_eq(report.step_tokens_p95, 0);
    small_step(&plan);
    small_micro_batch(&plan);
    small_pack(&plan, 0, 1, 0, 4, 2, 1, 3);
    report = measure(context, &plan, 1);
    ck_assert_double_eq(report.samples_cv, 1);
    ck_assert_double_eq(report.mixture_distance, 0);
    ck_assert_int_eq(report.step_samples_median, 0);
}
END_TEST

static hbp_status measure_once(hbp_context *context, void *user)
{
    hbp_report report = {.struct_size = sizeof report};
    return hbp__measure_steps(context, user, &report);
}

START_TEST(nothing_is_left_behind)
{
    small_plan from;
    small_init(&from);
    add_steps(&from, 3, (int[]){1, 3, 2}, (int[]){7, 5, 9});
    hbp_plan *plan = small_make(&from, 1);
    failing_sweep(measure_once, plan);
    ck_assert_int_eq(cancel_sweep(measure_once, plan), 2);
    hbp_plan_free(plan);
}
END_TEST

START_TEST_IN_CONTEXT(more_steps_than_can_be_sorted_are_named)
{
    hbp_plan plan = {.steps = (int64_t)UINT32_MAX + 1};
    hbp_report report = {.struct_size = sizeof report};
    FAILS(context, HBP_E_OVERFLOW, "4294967296 steps; at most 4294967295",
          hbp__measure_steps(context, &plan, &report));
}
END_TEST

TEST_MAIN("metrics", steps_are_compared_with_the_epoch, quantiles_are_the_lower_of_two_neighbours,
          as_counted_one_by_one, steps_of_padding_count_as_steps_and_have_no_mixture, nothing_is_left_behind,
          more_steps_than_can_be_sorted_are_named)
