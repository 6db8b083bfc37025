#include "base/methods.h"
#include "base/options.h"
#include "batched.h"
#include "epoch/price.h"
#include "epoch/stratify.h"
#include "failing.h"
#include "keep.h"

typedef struct built {
    hbp__epoch epoch;
    hbp__batches batches;
} built;

static void open_built(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                       const hbp_epoch_options *options, built *b)
{
    b->epoch = (hbp__epoch){.context = context,
                            .lengths = lengths,
                            .cost = cost,
                            .bending = cost,
                            .step_method = HBP__STEP_SEARCH};
    OK(context,
       hbp__options_read(context, &b->epoch.options, sizeof b->epoch.options, options, "hbp_epoch_options"));
    OK(context, hbp__epoch_check(context, &b->epoch.options));
    OK(context, hbp__batches_draw(&b->epoch, INT64_MAX, &b->batches));
}

/* Against the search of the same samples and its bound: a step that was built is a plan, no shorter than the
 * bound says, and seldom much longer than what is searched for. */
START_TEST_IN_CONTEXT(built_steps_are_nearly_as_short)
{
    int64_t built_ns = 0, searched_ns = 0, count = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)TEST_ROUNDS(4); seed++) {
        int mark = keep_mark();
        hbp_cost *cost = keep(test_cost_ranks(context, seed % 2 ? 8 : 32));
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 900, 30000));
        hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 300, .seed = seed};
        built b;
        open_built(context, lengths, cost, &options, &b);
        ck_assert(hbp__batches_may_build(&b.epoch));
        for (int64_t s = 0; s < b.batches.steps; s++) {
            hbp_plan *plan = NULL, *searched = NULL;
            hbp_lengths *batch = NULL;
            OK(context, hbp__batches_subset(&b.epoch, context, &b.batches, s, &batch));
            OK(context, hbp__batches_plan_step(&b.epoch, context, &b.batches, s, &searched));
            OK(context, hbp__batches_build_step(&b.epoch, context, &b.batches, s, &plan));
            if (plan) {
                OK(context, hbp__plan_check(context, plan));
                ck_assert_int_eq(plan->samples, batch->count);
                ck_assert_int_eq(plan->step_tokens[0], batch->tokens);
                ck_assert_int_ge(plan->step_ns[0], searched->bound_ns);
                ck_assert_int_eq(plan->bound_ns, 0);
                built_ns += plan->step_ns[0];
                searched_ns += searched->step_ns[0];
                count++;
            }
            hbp_lengths_free(batch);
            hbp_plan_free(plan);
            hbp_plan_free(searched);
        }
        hbp__batches_close(&b.batches);
        keep_release(mark);
    }
    ck_assert_int_gt(count, 0);
    ck_assert_int_le(built_ns, searched_ns + searched_ns / 100);
}
END_TEST

/* From one micro-batch to dozens, of samples that need few ranks or many. */
START_TEST_IN_CONTEXT(any_number_of_micro_batches_is_built)
{
    static const int64_t count[] = {100, 243, 600, 1151, 1438}, longest[] = {30000, 120000};
    hbp_cost *cost = keep(test_cost_ranks(context, 32));
    double ratios = 0, plans = 0;
    int64_t most = 0;
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 2; k++) {
            hbp_plan *plan = NULL, *other = NULL;
            hbp_lengths *lengths = keep(test_long_tail(context, 7 + (uint64_t)i, count[i], longest[k]));
            hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = count[i]};
            built b;
            open_built(context, lengths, cost, &options, &b);
            OK(context, hbp__batches_plan_step(&b.epoch, context, &b.batches, 0, &other));
            OK(context, hbp__batches_build_step(&b.epoch, context, &b.batches, 0, &plan));
            ck_assert_ptr_nonnull(plan);
            ratios += (double)plan->step_ns[0] / (double)other->step_ns[0];
            plans += 1;
            most = hbp__max_i64(most, other->micro_batches);
            hbp_plan_free(plan);
            hbp_plan_free(other);
            hbp__batches_close(&b.batches);
        }
    ck_assert_int_gt(most, 20);
    ck_assert_double_le(ratios, plans * 1.01);
}
END_TEST

/* Both ways: the faster of the two, with the bound of the one that was searched for. */
START_TEST_IN_CONTEXT(both_ways_keep_the_faster)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 400, 30000));
    hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 100, .seed = 3};
    built b;
    open_built(context, lengths, cost, &options, &b);
    for (int64_t s = 0; s < b.batches.steps; s++) {
        hbp_plan *plan[3] = {NULL, NULL, NULL};
        for (int32_t how = HBP__BATCHES_SEARCHED; how <= HBP__BATCHES_BOTH; how++) {
            b.batches.how = how;
            OK(context, hbp__batches_plan_step(&b.epoch, context, &b.batches, s, &plan[how]));
        }
        ck_assert_int_eq(
            plan[HBP__BATCHES_BOTH]->step_ns[0],
            hbp__min_i64(plan[HBP__BATCHES_SEARCHED]->step_ns[0], plan[HBP__BATCHES_BUILT]->step_ns[0]));
        ck_assert_int_eq(plan[HBP__BATCHES_BOTH]->bound_ns, plan[HBP__BATCHES_SEARCHED]->bound_ns);
        for (int i = 0; i < 3; i++)
            hbp_plan_free(plan[i]);
    }
    hbp__batches_close(&b.batches);
}
END_TEST

/* Options that the search's parts alone do not keep to. */
START_TEST_IN_CONTEXT(strict_options_are_searched_for)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp__epoch epoch = {.context = context, .cost = cost, .step_method = HBP__STEP_SEARCH};
    ck_assert(hbp__batches_may_build(&epoch));
    epoch.options.max_samples = 4;
    ck_assert(!hbp__batches_may_build(&epoch));
    epoch.options = (hbp_epoch_options){.micro_batches_per_step = 2};
    ck_assert(!hbp__batches_may_build(&epoch));
    epoch.options = (hbp_epoch_options){.micro_batch_multiple = 2};
    ck_assert(!hbp__batches_may_build(&epoch));
    epoch.options = (hbp_epoch_options){.equal_samples = 1};
    ck_assert(!hbp__batches_may_build(&epoch));
    epoch.options = (hbp_epoch_options){.effort = 0};
    epoch.step_method = HBP__STEP_FLEXSP;
    ck_assert(!hbp__batches_may_build(&epoch));
}
END_TEST

/* An epoch whose steps take long to search for: the plan keeps every sample, and more effort is never worse.
 */
START_TEST_IN_CONTEXT(more_effort_is_never_worse)
{
    enum { COUNT = 20000 };
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp_lengths *lengths = keep(test_long_tail(context, 5, COUNT, 30000));
    hbp_epoch_options options = {.struct_size = sizeof options, .composition = HBP_COMPOSITION_STRATIFIED};
    built b;
    options.samples_per_step = 4000;
    open_built(context, lengths, cost, &options, &b);
    hbp__batches_close(&b.batches);
    b.epoch.options.samples_per_step = 0;
    int64_t before = INT64_MAX, tokens = lengths->tokens / 100;
    ck_assert_int_gt(hbp__price_of_search(&b.epoch, tokens), hbp__price_of_steps(&b.epoch, tokens));
    for (int32_t effort = 0; effort <= (TEST_SANITIZED ? 1 : 2); effort++) {
        hbp_plan *plan = NULL;
        b.epoch.options.effort = effort;
        hbp__stratify s = {.epoch = &b.epoch, .tokens_per_step = tokens, .most_ns = INT64_MAX};
        OK(context, hbp__epoch_stratify(&s, &plan));
        planned_check(context, plan, lengths);
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        ck_assert_int_le(hbp__plan_ns(plan), before);
        before = hbp__plan_ns(plan);
        hbp_plan_free(plan);
    }
}
END_TEST

static hbp_status build_once(hbp_context *context, void *user)
{
    built b = *(built *)user;
    hbp_plan *plan = NULL;
    b.epoch.context = context;
    hbp_status status = hbp__batches_build_step(&b.epoch, context, &b.batches, 0, &plan);
    ck_assert(status == HBP_OK || !plan);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(survives_failing_allocations)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 4));
    hbp_lengths *lengths = keep(test_long_tail(context, 5, 40, 30000));
    hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 40};
    built b;
    open_built(context, lengths, cost, &options, &b);
    failing_sweep(build_once, &b);
    hbp__batches_close(&b.batches);
}
END_TEST

TEST_MAIN("batches_build", built_steps_are_nearly_as_short, any_number_of_micro_batches_is_built,
          both_ways_keep_the_faster, strict_options_are_searched_for, more_effort_is_never_worse,
          survives_failing_allocations)
