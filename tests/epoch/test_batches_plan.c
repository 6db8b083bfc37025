#include "base/methods.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"

START_TEST_IN_CONTEXT(steps_hold_the_samples_asked_for)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 2500, 30000));
    hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 300, .seed = 5};
    hbp_plan *plan = NULL, *again = NULL;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
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
    ck_assert_int_eq(plan->composition, HBP_COMPOSITION_RANDOM);
    ck_assert_int_eq(plan->samples_per_step, 300);
    /* No dummy while there are samples to spread; and the same plan from any number of threads. */
    hbp_plan_free(again);
    options.seed = 5;
    for (int32_t threads = 2; threads < 6; threads++) {
        options.threads = threads;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &again));
        ck_assert_uint_eq(plan->digest, again->digest);
        ck_assert_int_eq(plan->bound_ns, again->bound_ns);
        hbp_plan_free(again);
    }
}
END_TEST

/* Plans step s of a plan, whose first sample is `at`, alone. */
static int64_t bound_alone(hbp_context *context, const hbp_plan *plan, int64_t s, int64_t at,
                           const hbp_cost *cost)
{
    hbp_step_options step = {.struct_size = sizeof step, .any_degree = 1};
    int64_t length[512];
    hbp_lengths *batch = NULL;
    hbp_plan *alone = NULL;
    ck_assert_int_le(plan->step_samples[s], 512);
    for (int64_t i = 0; i < plan->step_samples[s]; i++)
        length[i] = plan->sample_tokens[at + i];
    OK(context, hbp_lengths_create_i64(context, length, plan->step_samples[s], NULL, &batch));
    OK(context, hbp_plan_step(context, batch, cost, &step, &alone));
    ck_assert_int_eq(alone->step_ns[0], plan->step_ns[s]);
    const int64_t bound_ns = alone->bound_ns;
    hbp_plan_free(alone);
    hbp_lengths_free(batch);
    return bound_ns;
}

static int64_t sum_of_bounds_alone(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost)
{
    int64_t sum_ns = 0;
    for (int64_t s = 0, at = 0; s < plan->steps; s++) {
        sum_ns += bound_alone(context, plan, s, at, cost);
        at += plan->step_samples[s];
    }
    return sum_ns;
}

/* Each step is what hbp_plan_step makes of its samples, and the bound is the sum of theirs. */
START_TEST_IN_CONTEXT(steps_are_those_of_the_step_planner)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 600, 30000));
    hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 120, .seed = 5};
    hbp_plan *plan = NULL;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    ck_assert_int_eq(plan->bound_ns, sum_of_bounds_alone(context, plan, cost));
}
END_TEST

/* Where layers are recomputed that of any steps of as many tokens may be sharper. */
START_TEST_IN_CONTEXT(the_bound_is_the_sharper_of_two)
{
    hbp_cost *cost = keep(test_cost_presets(context, "qwen3-32b", "h100:4"));
    int64_t raised = 0;
    for (uint64_t seed = 1; seed < 7; seed++) {
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 100, 60000));
        hbp_epoch_options options = {
            .struct_size = sizeof options, .composition = HBP_COMPOSITION_RANDOM, .seed = 5};
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        const int64_t sum_ns = sum_of_bounds_alone(context, plan, cost);
        ck_assert_int_ge(plan->bound_ns, sum_ns);
        ck_assert_int_le(plan->bound_ns, hbp__plan_ns(plan));
        raised += plan->bound_ns > sum_ns;
        hbp_plan_free(plan);
    }
    ck_assert_int_gt(raised, 0);
    ck_assert_int_lt(raised, 6);
}
END_TEST

START_TEST_IN_CONTEXT(batches_may_be_given)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 500, 30000));
    int64_t offsets[] = {0, 100, 350, 500}, samples[500];
    for (int64_t i = 0; i < 500; i++)
        samples[i] = (i * 7) % 500;
    hbp_epoch_options options = {
        .struct_size = sizeof options, .batches = 3, .batch_offsets = offsets, .batch_samples = samples};
    for (int mode = HBP__EPOCH_SEARCH; mode <= HBP__EPOCH_HBP; mode++) {
        hbp_plan *plan = NULL;
        options.method = hbp__epoch_name(mode);
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        planned_check(context, plan, lengths);
        ck_assert_int_eq(plan->composition, HBP_COMPOSITION_GIVEN);
        ck_assert_int_eq(plan->steps, 3);
        for (int64_t s = 0, at = 0; s < 3; s++)
            for (int64_t i = 0; i < plan->step_samples[s]; i++, at++) {
                int64_t place = plan->sample_ids[at] * 143 % 500; /* 7 x 143 = 1 modulo 500 */
                ck_assert(place >= offsets[s] && place < offsets[s + 1]);
            }
        hbp_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(left_over_samples_are_listed)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 500, 30000));
    for (int way = 0; way < 3; way++) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .drop_last = 1,
                                     .samples_per_step = way < 2 ? 120 : 0,
                                     .tokens_per_step = way < 2 ? 0 : 100000,
                                     .composition =
                                         way == 1 ? HBP_COMPOSITION_STRATIFIED : HBP_COMPOSITION_RANDOM};
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        planned_check(context, plan, lengths);
        ck_assert_int_eq(plan->samples + plan->dropped, 500);
        ck_assert(way == 2 || plan->dropped == 20);
        for (int64_t i = 0; i < plan->dropped; i++)
            ck_assert_int_eq(plan->dropped_reasons[i], HBP_DROPPED_LEFTOVER);
        hbp_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    planned_inputs in = {keep(test_long_tail(context, 1, 30, 9000)),
                         keep(test_cost_ranks(context, 2)),
                         {.struct_size = sizeof in.options, .samples_per_step = 8, .drop_last = 1}};
    failing_sweep(planned_once, &in);
    ck_assert_int_gt(cancel_sweep(planned_once, &in), 3);
}
END_TEST

START_TEST_IN_CONTEXT(samples_stay_in_their_window)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 2, 3000, 20000));
    hbp_epoch_options options = {.struct_size = sizeof options, .window_samples = 700, .curriculum_steps = 3};
    hbp_plan *plan = NULL;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    planned_check(context, plan, lengths);
    /* Windows come one after the other: the sample in row i is of window i / 700. */
    for (int64_t i = 0; i < plan->samples; i++)
        ck_assert_int_eq(plan->sample_ids[i] / 700, i / 700);
    options.composition = HBP_COMPOSITION_HIERARCHY;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    ck_assert_int_eq(plan->composition, HBP_COMPOSITION_HIERARCHY);
}
END_TEST

/* Steps of a layout are called small copies of the epoch where they are: near its mixture, or half as far
 * from it as the hierarchy's. */
START_TEST_IN_CONTEXT(layouts_are_called_what_they_are)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 2, 3000, 20000));
    int seen[2] = {0, 0};
    for (int64_t tokens = 100000; tokens < 2000000; tokens *= 2) {
        hbp_epoch_options options = {
            .struct_size = sizeof options, .drop_last = 1, .tokens_per_step = tokens, .seed = 3};
        double near, far;
        hbp_plan *plan = NULL, *pure = NULL;
        options.composition = HBP_COMPOSITION_STRATIFIED;
        MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        options.composition = HBP_COMPOSITION_HIERARCHY;
        MAKES(context, pure, hbp_plan_epoch(context, lengths, cost, &options, &pure));
        OK(context, hbp__plan_mixture(context, plan, &near));
        OK(context, hbp__plan_mixture(context, pure, &far));
        const int is_copy = near <= .05 || near <= far / 2;
        ck_assert_int_eq(plan->composition, is_copy ? HBP_COMPOSITION_STRATIFIED : HBP_COMPOSITION_HIERARCHY);
        seen[is_copy]++;
    }
    ck_assert(seen[0] && seen[1]);
}
END_TEST

START_TEST_IN_CONTEXT(dropped_samples_of_all_windows_are_listed)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 2000, 30000));
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
}
END_TEST

TEST_MAIN("batches_plan", steps_hold_the_samples_asked_for, steps_are_those_of_the_step_planner,
          the_bound_is_the_sharper_of_two, batches_may_be_given, left_over_samples_are_listed,
          samples_stay_in_their_window, layouts_are_called_what_they_are,
          dropped_samples_of_all_windows_are_listed, nothing_is_left_behind)
