#include "failing.h"
#include "keep.h"
#include "planned.h"

/* Idle ranks: places of a micro-batch without samples. */
static int64_t padding_packs_of(const hbp_plan *plan)
{
    int64_t dummies = 0;
    for (int64_t p = 0; p < plan->packs; p++)
        dummies += plan->pack_offsets[p] == plan->pack_offsets[p + 1];
    return dummies;
}

/* A hierarchy leaves idle ranks in the last micro-batch of each group; with samples enough in the step they
 * are spread, every promise is kept, and the time is no longer than the packs' alone. */
START_TEST_IN_CONTEXT(idle_ranks_get_samples)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t fewer = 0;
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < TEST_FEW(TEST_ROUNDS(24), 3); keep_release(mark), seed++) {
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 40 + 37 * (int64_t)seed, 30000));
        hbp_groups *groups = NULL;
        hbp_packs *packs = NULL;
        hbp_plan *raw = NULL, *plan = NULL;
        hbp_groups_options of_groups = {.struct_size = sizeof of_groups};
        MAKES(context, groups, hbp_plan_groups(context, lengths, cost, &of_groups, &groups));
        MAKES(context, packs, hbp_greedy_fill(context, lengths, groups, NULL, &packs));
        MAKES(context, raw, hbp_balance_attention(context, packs, groups, cost, NULL, &raw));
        hbp_epoch_options options = {.struct_size = sizeof options, .composition = HBP_COMPOSITION_HIERARCHY};
        MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        planned_check(context, plan, lengths);
        hbp_plan_summary before = {.struct_size = sizeof before}, after = before;
        OK(context, hbp_plan_get_summary(context, raw, &before));
        OK(context, hbp_plan_get_summary(context, plan, &after));
        ck_assert_int_le(after.predicted_ns, before.predicted_ns);
        ck_assert_int_le(after.bound_ns, after.predicted_ns);
        ck_assert_int_gt(after.bound_ns, 0);
        fewer += padding_packs_of(plan) < padding_packs_of(raw);
    }
    ck_assert_int_gt(fewer, 0);
}
END_TEST

/* Multiples of micro-batches leave idle ranks in many steps: each is mended from its own samples. */
START_TEST_IN_CONTEXT(every_step_is_mended)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t several = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 700 + 170 * (int64_t)seed, 30000);
        hbp_epoch_options options = {.struct_size = sizeof options,
                                     .composition = HBP_COMPOSITION_HIERARCHY,
                                     .tokens_per_step = 3000000,
                                     .micro_batch_multiple = 1 + (int32_t)seed % 4};
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        planned_check(context, plan, lengths);
        several += plan->steps > 2 && !padding_packs_of(plan);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(several, 6);
}
END_TEST

/* Pieces have other numbers than samples where a limit drops some. */
START_TEST_IN_CONTEXT(dropped_samples_stay_dropped)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 4, 900, 30000));
    hbp_epoch_options options = {.struct_size = sizeof options,
                                 .composition = HBP_COMPOSITION_HIERARCHY,
                                 .max_length = 9000,
                                 .over_long = HBP_OVERLONG_DROP};
    hbp_plan *plan = NULL;
    MAKES(context, plan, hbp_plan_epoch(context, lengths, cost, &options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    planned_check(context, plan, lengths);
    ck_assert_int_gt(plan->dropped, 0);
}
END_TEST

/* With fewer samples than ranks some are idle; filling them would give packs degrees of their own. */
START_TEST_IN_CONTEXT(equal_numbers_of_samples_stay_equal)
{
    hbp_cost *cost = keep(test_cost(context));
    uint32_t length[24];
    for (uint32_t i = 0; i < 24; i++)
        length[i] = 262 + i % 3;
    for (int64_t count = 1; count <= 24; count++) {
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
        hbp_epoch_options options = {.struct_size = sizeof options, .equal_samples = 1};
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_epoch(context, lengths, cost, &options, &plan));
        planned_check(context, plan, lengths);
        for (int64_t s = 0; s < plan->steps; s++) {
            int32_t degree = 0;
            int64_t end = plan->micro_batch_offsets[plan->step_offsets[s + 1]];
            for (int64_t p = plan->micro_batch_offsets[plan->step_offsets[s]]; p < end; p++) {
                if (plan->pack_offsets[p] == plan->pack_offsets[p + 1])
                    continue;
                ck_assert(!degree || plan->pack_sp[p] == degree);
                degree = plan->pack_sp[p];
            }
        }
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    planned_inputs in = {keep(test_long_tail(context, 1, 9, 9000)),
                         keep(test_cost(context)),
                         {.struct_size = sizeof in.options, .composition = HBP_COMPOSITION_HIERARCHY}};
    failing_sweep(planned_once, &in);
}
END_TEST

TEST_MAIN("mend", idle_ranks_get_samples, every_step_is_mended, dropped_samples_stay_dropped,
          equal_numbers_of_samples_stay_equal, nothing_is_left_behind)
