#include "data/plan/plan.h"

#include "base/rng.h"
#include "failing.h"
#include "keep.h"

/* A plan of one pack a step, step i of samples[i] samples: as much of it as its mixture is measured by. */
static hbp_plan *make(hbp_context *context, int64_t steps, const int64_t *samples, const int32_t *tokens)
{
    int64_t all = 0;
    for (int64_t s = 0; s < steps; s++)
        all += samples[s];
    hbp_plan *plan = hbp__plan_new(&context->memory, steps, steps, steps, all, 0, 0);
    ck_assert_ptr_nonnull(plan);
    for (int64_t i = 0; i < steps; i++) {
        plan->step_offsets[i + 1] = plan->micro_batch_offsets[i + 1] = i + 1;
        plan->pack_offsets[i + 1] = plan->pack_offsets[i] + samples[i];
    }
    memcpy(plan->sample_tokens, tokens, (size_t)all * sizeof *tokens);
    return plan;
}

static double distance_of(hbp_context *context, const hbp_plan *plan)
{
    double distance = -1;
    OK(context, hbp__plan_mixture(context, plan, &distance));
    return distance;
}

START_TEST_IN_CONTEXT(distance_to_the_epoch)
{
    hbp_plan *plan = keep(make(context, 2, (int64_t[]){3, 3}, (int32_t[]){4, 4, 8, 6, 6, 4}));
    /* Step 0: 8 and 8 of 16; step 1: 16 and 0. All: 24 and 8. */
    ck_assert_double_eq_tol(distance_of(context, plan), 0.25, 1e-12);
    plan->sample_tokens[5] = 12;
    /* Step 0: 1/2, 1/2; step 1: 12 and 12 of 24. */
    ck_assert_double_eq_tol(distance_of(context, plan), 0, 1e-12);
}
END_TEST

START_TEST_IN_CONTEXT(classes_are_powers_of_two)
{
    /* 4 to 7 are one class, 1 is another, and so is the longest there can be. */
    hbp_plan *plan = keep(make(context, 2, (int64_t[]){1, 2}, (int32_t[]){7, 4, 5}));
    ck_assert_double_eq(distance_of(context, plan), 0);
    plan = keep(make(context, 2, (int64_t[]){1, 1}, (int32_t[]){3, 4}));
    ck_assert_double_eq_tol(distance_of(context, plan), (4.0 / 7 + 3.0 / 7) / 2, 1e-15);
    plan = keep(make(context, 2, (int64_t[]){1, 1}, (int32_t[]){1, INT32_MAX}));
    ck_assert_double_eq_tol(distance_of(context, plan), 0.5, 1e-15);
}
END_TEST

START_TEST_IN_CONTEXT(steps_without_tokens_are_left_out)
{
    hbp_plan *plan = keep(make(context, 3, (int64_t[]){1, 0, 1}, (int32_t[]){2, 16}));
    ck_assert_double_eq_tol(distance_of(context, plan), (16.0 / 18 + 2.0 / 18) / 2, 1e-15);
    plan = keep(make(context, 1, (int64_t[]){0}, (int32_t[]){0}));
    ck_assert_double_eq(distance_of(context, plan), 0);
}
END_TEST

/* Half the L1 distance of shares is what they do not have in common. */
static double expected(const hbp_plan *plan)
{
    double sum = 0;
    int64_t all = 0, measured = 0;
    for (int64_t i = 0; i < plan->samples; i++)
        all += plan->sample_tokens[i];
    for (int64_t s = 0; s < plan->steps; s++) {
        int64_t mine = 0;
        for (int64_t i = plan->pack_offsets[s]; i < plan->pack_offsets[s + 1]; i++)
            mine += plan->sample_tokens[i];
        double common = 0;
        for (int64_t low = 1; low <= INT32_MAX && mine; low *= 2) {
            int64_t here = 0, there = 0;
            for (int64_t i = 0; i < plan->samples; i++)
                if (plan->sample_tokens[i] >= low && plan->sample_tokens[i] < 2 * low) {
                    there += plan->sample_tokens[i];
                    if (i >= plan->pack_offsets[s] && i < plan->pack_offsets[s + 1])
                        here += plan->sample_tokens[i];
                }
            double a = (double)here / (double)mine, b = (double)there / (double)all;
            common += a < b ? a : b;
        }
        sum += mine ? 1 - common : 0;
        measured += mine > 0;
    }
    return measured ? sum / (double)measured : 0;
}

START_TEST_IN_CONTEXT(as_counted_class_by_class)
{
    for (uint64_t seed = 0; seed < TEST_ROUNDS(200); seed++) {
        hbp__rng rng = hbp__rng_make(seed, 0, 0);
        int64_t samples[24], steps = 1 + hbp__rng_below(&rng, 24), all = 0;
        int32_t tokens[24 * 8];
        for (int64_t s = 0; s < steps; s++)
            all += samples[s] = hbp__rng_below(&rng, 8);
        for (int64_t i = 0; i < all; i++)
            tokens[i] = (int32_t)(1 + hbp__rng_below(&rng, INT64_C(1) << hbp__rng_below(&rng, 31)));
        hbp_plan *plan = make(context, steps, samples, tokens);
        ck_assert_double_eq_tol(distance_of(context, plan), expected(plan), 1e-12);
        hbp_plan_free(plan);
    }
}
END_TEST

static hbp_status measure_once(hbp_context *context, void *user)
{
    double distance;
    return hbp__plan_mixture(context, user, &distance);
}

START_TEST_IN_CONTEXT(it_may_be_cancelled)
{
    int64_t samples[600];
    int32_t tokens[600];
    for (int i = 0; i < 600; i++) {
        samples[i] = 1;
        tokens[i] = 1 + i;
    }
    hbp_plan *plan = keep(make(context, 600, samples, tokens));
    /* Every 256 steps in both passes. */
    ck_assert_int_eq(cancel_sweep(measure_once, plan), 6);
}
END_TEST

TEST_MAIN("plan_mixture", distance_to_the_epoch, classes_are_powers_of_two, steps_without_tokens_are_left_out,
          as_counted_class_by_class, it_may_be_cancelled)
