#include "planned.h"

START_TEST(every_baseline_is_a_sound_plan)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 4, 1500, 50000);
    hbp_epoch_options options = {
        .struct_size = sizeof options, .max_length = 32768, .over_long = HBP_OVERLONG_DROP, .seed = 1};
    int64_t ns[HBP_BASELINE_COUNT];
    for (int32_t b = 0; b < HBP_BASELINE_COUNT; b++) {
        hbp_plan *plan = NULL;
        OK(context, hbp_plan_baseline(context, lengths, cost, b, &options, &plan));
        planned_check(context, plan, lengths);
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ns[b] = summary.predicted_ns;
        if (b < HBP_BASELINE_PAPER)
            for (int64_t p = 1; p < plan->packs; p++)
                ck_assert_int_eq(plan->pack_sp[p], plan->pack_sp[0]);
        if (b <= HBP_BASELINE_SORTED)
            for (int64_t p = 0; p < plan->packs; p++)
                ck_assert_int_le(plan->pack_offsets[p + 1] - plan->pack_offsets[p], 1);
        ck_assert_ptr_nonnull(hbp_baseline_name(b));
        hbp_plan_free(plan);
    }
    ck_assert_int_lt(ns[HBP_BASELINE_SORTED], ns[HBP_BASELINE_NO_PACKING]);
    ck_assert_int_lt(ns[HBP_BASELINE_BEST_FIT_DECREASING], ns[HBP_BASELINE_SORTED]);
    ck_assert_int_lt(ns[HBP_BASELINE_HOMOGENEOUS_SP], ns[HBP_BASELINE_NEXT_FIT]);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(unknown_baselines_are_named)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = test_long_tail(context, 4, 50, 5000);
    hbp_plan *plan = NULL;
    FAILS(context, HBP_E_INVALID, "baseline 9", hbp_plan_baseline(context, lengths, cost, 9, NULL, &plan));
    FAILS(context, HBP_E_INVALID, "baseline -1", hbp_plan_baseline(context, lengths, cost, -1, NULL, &plan));
    ck_assert_ptr_null(hbp_baseline_name(HBP_BASELINE_COUNT));
    ck_assert_str_eq(hbp_baseline_name(HBP_BASELINE_ISF), "isf");
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("baseline", every_baseline_is_a_sound_plan, unknown_baselines_are_named)
