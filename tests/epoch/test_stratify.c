#include "base/methods.h"
#include "base/options.h"
#include "epoch/stratify.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"

static int64_t time_of(const hbp_plan *plan)
{
    int64_t ns = 0;
    for (int64_t s = 0; s < plan->steps; s++)
        ns += plan->step_ns[s];
    return ns;
}

/* More slack: never past it, and never further from the mixture than without. */
START_TEST_IN_CONTEXT(slack_buys_mixture)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t closer = 0;
    hbp_lengths *lengths = test_long_tail(context, 2, 600, 40000);
    hbp_epoch_options options = {
        .struct_size = sizeof options, .mixture_slack = -1, .tokens_per_step = 80000, .seed = 2};
    hbp_plan *plain = keep(planned_with(context, lengths, cost, &options));
    for (int32_t slack = TEST_SANITIZED ? 1000 : 10; slack <= 1000; slack *= 10) {
        options.mixture_slack = slack;
        hbp_plan *plan = planned_with(context, lengths, cost, &options);
        double without, with;
        OK(context, hbp__plan_mixture(context, plain, &without));
        OK(context, hbp__plan_mixture(context, plan, &with));
        ck_assert_double_le(with, without);
        ck_assert_int_le(time_of(plan), time_of(plain) + time_of(plain) / 1000 * slack);
        closer += with < without;
        hbp_plan_free(plan);
    }
    hbp_lengths_free(lengths);
    ck_assert_int_gt(closer, 0);
}
END_TEST

/* A few hundred samples are worth every way's estimate: so much was measured for them. */
START_TEST_IN_CONTEXT(small_epochs_are_looked_at_closely)
{
    static const uint64_t seeds[] = {1, 2, 3, 7};
    hbp_cost *cost = keep(test_cost(context));
    int64_t ns = 0;
    for (int i = 0, mark = keep_mark(); i < 4; keep_release(mark), i++) {
        hbp_lengths *lengths = keep(test_long_tail(context, seeds[i], 150 + 25 * (int64_t)seeds[i], 30000));
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .tokens_per_step = 80000 + 40000 * (int64_t)(seeds[i] % 4),
                                     .seed = seeds[i],
                                     .mixture_slack = seeds[i] % 3 == 2 ? 20 : 0};
        hbp_plan *plan = keep(planned_with(context, lengths, cost, &options));
        ns += time_of(plan);
    }
    ck_assert_int_le(ns, INT64_C(11662373220));
}
END_TEST

/* No pack passes max_length, and what it dropped stays listed. */
START_TEST_IN_CONTEXT(limits_hold)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 7, 400, 40000));
    for (int32_t slack = 0; slack <= 1000; slack += TEST_SANITIZED ? 1000 : 500) {
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .max_length = 16384,
                                     .max_pack_length = 16384,
                                     .over_long = HBP_OVERLONG_DROP,
                                     .mixture_slack = slack};
        hbp_plan *plan = planned_with(context, lengths, cost, &options);
        ck_assert_int_gt(plan->dropped, 0);
        for (int64_t p = 0; p < plan->packs; p++)
            ck_assert_int_le(plan->pack_padded_tokens[p], 16384);
        hbp_plan_free(plan);
    }
}
END_TEST

START_TEST_IN_CONTEXT(senseless_slack_is_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 7, 9, 4000));
    hbp_plan *plan = NULL;
    hbp_epoch_options options = {.struct_size = sizeof options, .mixture_slack = -2};
    FAILS(context, HBP_E_INVALID, "`mixture_slack` is -2",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.mixture_slack = 1001;
    FAILS(context, HBP_E_INVALID, "-1..1000", hbp_plan_epoch(context, lengths, cost, &options, &plan));
}
END_TEST

/* The searches of all the steps allocate too often to fail each allocation: they have sweeps of their own. */
/* Two samples a pack, two packs a micro-batch, one micro-batch a step: many more steps than the tokens ask
 * for. */
START_TEST_IN_CONTEXT(as_many_steps_as_it_takes)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 2));
    uint32_t length[90];
    for (int i = 0; i < 90; i++)
        length[i] = 1500 + 10 * (uint32_t)i;
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 90, NULL, &lengths));
    hbp_epoch_options options = {.struct_size = sizeof options,
                                 .tokens_per_step = 300000,
                                 .max_samples = 2,
                                 .micro_batches_per_step = 1};
    hbp_plan *plan = keep(planned_with(context, lengths, cost, &options));
    ck_assert_int_ge(plan->steps, 23);
    ck_assert_int_eq(plan->micro_batches, plan->steps);
}
END_TEST

/* Alike samples, eight a step, which nothing dealt to more steps could make faster: each step is full, be
 * there more than a thousand. */
START_TEST_IN_CONTEXT(many_steps_are_full)
{
    enum { STEPS = 1100, EACH = 8 };
    static uint32_t length[STEPS * EACH];
    hbp_cost *cost = keep(test_cost_ranks(context, 2));
    for (int i = 0; i < STEPS * EACH; i++)
        length[i] = 1024;
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, STEPS * EACH, NULL, &lengths));
    hbp__epoch epoch = {.context = context, .lengths = lengths, .cost = cost, .bending = cost};
    hbp_epoch_options given = {.struct_size = sizeof given, .composition = HBP_COMPOSITION_STRATIFIED};
    OK(context, hbp__options_read(context, &epoch.options, sizeof given, &given, "hbp_epoch_options"));
    OK(context, hbp__epoch_check(context, &epoch.options));
    hbp__stratify s = {.epoch = &epoch, .tokens_per_step = EACH * 1024, .most_ns = INT64_MAX};
    hbp_plan *plan = NULL;
    MAKES(context, plan, hbp__epoch_stratify(&s, &plan));
    ck_assert_int_eq(plan->steps, STEPS);
}
END_TEST

/* Packs of groups, an order of modalities and given batches cannot be small copies of the epoch. */
START_TEST_IN_CONTEXT(what_is_no_small_copy_is_named)
{
    static const int64_t offsets[] = {0, 9};
    static const int64_t samples[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 7, 9, 4000));
    hbp_plan *plan = NULL;
    hbp_epoch_options options = {.struct_size = sizeof options, .composition = HBP_COMPOSITION_STRATIFIED};
    options.method = hbp__epoch_name(HBP__EPOCH_HBP);
    FAILS(context, HBP_E_INVALID, "composition stratified with method hbp needs samples_per_step",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.method = hbp__epoch_name(HBP__EPOCH_SEARCH);
    options.modality_order = 1;
    FAILS(context, HBP_E_INVALID, "`modality_order` is for composition hierarchy",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.modality_order = 0;
    options.batches = 1;
    options.batch_offsets = offsets;
    options.batch_samples = samples;
    FAILS(context, HBP_E_INVALID, "composition stratified and batches exclude each other",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

/* Where memory lets a step have one micro-batch of fewer tokens than it may hold, and what a micro-batch
 * costs once is much, fewer tokens a step are faster; a plan that may hold more finds that by itself. */
START_TEST_IN_CONTEXT(steps_have_few_micro_batches)
{
    hbp_cost *cost = keep(test_cost_presets(context, "qwen3-235b-a22b", "h200:64"));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 20000, 20000));
    hbp_epoch_options options = {.struct_size = sizeof options};
    int64_t ns[2];
    for (int i = 0; i < 2; i++) {
        options.tokens_per_step = (int64_t)(i ? 32 : 28) << 20;
        hbp_plan *plan = planned_with(context, lengths, cost, &options);
        ns[i] = time_of(plan);
        hbp_plan_free(plan);
    }
    ck_assert_int_le(ns[1], ns[0] + ns[0] / 100);
}
END_TEST

START_TEST(nothing_is_left_behind)
{
    hbp_context *outer = test_context();
    planned_inputs in = {test_long_tail(outer, 3, 8, 9000),
                         test_cost_ranks(outer, 2),
                         {.struct_size = sizeof in.options, .max_groups = 1, .mixture_slack = 5}};
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t live = f.live, failed = 0;
    hbp_status status = HBP_E_NO_MEMORY;
    for (int64_t n = 0; status != HBP_OK; n += 1 + n / (TEST_SANITIZED ? 4 : 16)) {
        f.left = n;
        status = planned_once(context, &in);
        ck_assert(status == HBP_OK || status == HBP_E_NO_MEMORY);
        ck_assert_int_eq(f.live, live);
        failed += status != HBP_OK;
    }
    ck_assert_int_gt(failed, TEST_SANITIZED ? 20 : 50);
    hbp_context_free(context);
    hbp_lengths_free(in.lengths);
    hbp_cost_free(in.cost);
    hbp_context_free(outer);
}
END_TEST

TEST_MAIN("stratify", slack_buys_mixture, small_epochs_are_looked_at_closely, limits_hold,
          senseless_slack_is_named, as_many_steps_as_it_takes, what_is_no_small_copy_is_named,
          steps_have_few_micro_batches, nothing_is_left_behind, many_steps_are_full)
