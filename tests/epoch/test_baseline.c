#include "hbp/plan.h"
#include "keep.h"
#include "methods.h"
#include "planned.h"

START_TEST_IN_CONTEXT(every_baseline_is_a_sound_plan)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 4, 1500, 50000));
    hbp_epoch_options options = {
        .struct_size = sizeof options, .max_length = 32768, .over_long = HBP_OVERLONG_DROP, .seed = 1};
    int64_t ns[HBP__EPOCH_METHOD_COUNT];
    for (int32_t b = HBP__EPOCH_HBP; b < HBP__EPOCH_METHOD_COUNT; b++) {
        hbp_plan *plan = NULL;
        OK(context, test_plan_by(context, lengths, cost, b, &options, &plan));
        planned_check(context, plan, lengths);
        hbp_plan_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_plan_get_summary(context, plan, &summary));
        ns[b] = summary.predicted_ns;
        if (b >= HBP__EPOCH_NO_PACKING && b < HBP__EPOCH_FLEXSP)
            for (int64_t p = 1; p < plan->packs; p++)
                ck_assert_int_eq(plan->pack_sp[p], plan->pack_sp[0]);
        if (b == HBP__EPOCH_NO_PACKING || b == HBP__EPOCH_SORTED)
            for (int64_t p = 0; p < plan->packs; p++)
                ck_assert_int_le(plan->pack_offsets[p + 1] - plan->pack_offsets[p], 1);
        hbp_report report = {.struct_size = sizeof report};
        OK(context, hbp_simulate(context, plan, cost, NULL, &report));
        ck_assert(report.padding == 0); /* nothing is a multiple of anything */
        ck_assert_ptr_nonnull(hbp__epoch_name(b));
        hbp_plan_free(plan);
    }
    ck_assert_int_lt(ns[HBP__EPOCH_SORTED], ns[HBP__EPOCH_NO_PACKING]);
    ck_assert_int_lt(ns[HBP__EPOCH_BEST_FIT_DECREASING], ns[HBP__EPOCH_SORTED]);
    ck_assert_int_lt(ns[HBP__EPOCH_HOMOGENEOUS_SP], ns[HBP__EPOCH_NEXT_FIT]);
}
END_TEST

/* Step for step what hbp_plan_step makes of the samples that the default's steps hold. */
START_TEST_IN_CONTEXT(steps_are_those_of_the_step_planner)
{
    static const int32_t mode[] = {HBP__STEP_FLEXSP, HBP__STEP_HYBRID_CP, HBP__STEP_DYNAMIC_CP};
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 5, 400, 40000));
    for (int contract = 0; contract < 3; contract++)
        for (int k = 0; k < 3; k++) {
            hbp_epoch_options options = {.struct_size = sizeof options,
                                         .seed = 7,
                                         .composition = contract == 1 ? HBP_COMPOSITION_STRATIFIED
                                                                      : HBP_COMPOSITION_RANDOM,
                                         .tokens_per_step = contract == 2 ? 100000 : 0,
                                         .samples_per_step = contract < 2 ? 64 : 0,
                                         .tokens_per_rank = k ? 9000 : 0};
            hbp_step_options step = {.struct_size = sizeof step,
                                     .method = hbp__step_name(mode[k]),
                                     .tokens_per_rank = options.tokens_per_rank};
            if (k == 1)
                options.sequence_tokens_per_rank = step.sequence_tokens_per_rank = 5000;
            hbp_plan *ours = NULL, *plan = NULL;
            OK(context, hbp_plan_epoch(context, lengths, cost, &options, &ours));
            OK(context, test_plan_by(context, lengths, cost, HBP__EPOCH_FLEXSP + k, &options, &plan));
            planned_check(context, plan, lengths);
            ck_assert_int_eq(plan->steps, ours->steps);
            ck_assert_int_eq(plan->composition, ours->composition);
            ck_assert_int_eq(plan->bound_ns, 0);
            for (int64_t s = 0; s < plan->steps; s++) {
                uint32_t batch[400];
                uint8_t held[400] = {0};
                int64_t count = 0;
                const hbp_plan *of[] = {ours, plan};
                for (int i = 0; i < 2; i++)
                    for (int64_t m = of[i]->step_offsets[s]; m < of[i]->step_offsets[s + 1]; m++)
                        for (int64_t p = of[i]->micro_batch_offsets[m]; p < of[i]->micro_batch_offsets[m + 1];
                             p++)
                            for (int64_t j = of[i]->pack_offsets[p]; j < of[i]->pack_offsets[p + 1]; j++)
                                held[of[i]->sample_ids[j]] |= (uint8_t)(1 << i);
                for (int64_t i = 0; i < 400; i++) {
                    ck_assert(held[i] == 0 || held[i] == 3);
                    if (held[i])
                        batch[count++] = (uint32_t)hbp_lengths_get_length(lengths, i);
                }
                hbp_lengths *own = NULL;
                hbp_plan *single = NULL;
                OK(context, hbp_lengths_create_u32(context, batch, count, NULL, &own));
                OK(context, hbp_plan_step(context, own, cost, &step, &single));
                ck_assert_int_eq(plan->step_ns[s], single->step_ns[0]);
                hbp_plan_free(single);
                hbp_lengths_free(own);
            }
            hbp_plan_free(plan);
            hbp_plan_free(ours);
        }
}
END_TEST

START_TEST_IN_CONTEXT(a_group_is_the_setting_of_classic_ways)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 6, 500, 9000));
    hbp_groups *groups = NULL, *two = NULL;
    const int64_t length[] = {10000, 20000};
    const int32_t sp[] = {2, 4}, recompute[] = {0, 0};
    MAKES(context, groups, hbp_groups_create(context, cost, 1, length, sp, recompute, 80000, &groups));
    MAKES(context, two, hbp_groups_create(context, cost, 2, length, sp, recompute, 80000, &two));
    for (int32_t b = HBP__EPOCH_HBP; b < HBP__EPOCH_METHOD_COUNT; b++) {
        hbp_plan *plan = NULL;
        hbp_epoch_options options = {.struct_size = sizeof options, .groups = groups};
        int steps = b >= HBP__EPOCH_FLEXSP, own = b == HBP__EPOCH_HBP;
        OK(context, test_plan_by(context, lengths, cost, b, &options, &plan));
        planned_check(context, plan, lengths);
        for (int64_t p = 0; p < plan->packs && !steps && !own; p++) {
            ck_assert_int_eq(plan->pack_sp[p], 2);
            ck_assert_int_eq(plan->pack_capacity[p], 10000);
        }
        hbp_plan_free(plan);
        plan = NULL;
        options.groups = two;
        if (steps || own)
            continue;
        FAILS(context, HBP_E_INVALID, "groups has 2 groups;",
              test_plan_by(context, lengths, cost, b, &options, &plan));
    }
}
END_TEST

START_TEST_IN_CONTEXT(unknown_baselines_are_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 4, 50, 5000));
    hbp_plan *plan = NULL;
    hbp_epoch_options options = {.struct_size = sizeof options, .method = "next-fitt"};
    FAILS(context, HBP_E_INVALID,
          "`method` is 'next-fitt'; did you mean 'next-fit'? It must be one of search, hbp, no-packing,",
          hbp_plan_epoch(context, lengths, cost, &options, &plan));
    options.method = "";
    FAILS(context, HBP_E_INVALID, "`method` is ''", hbp_plan_epoch(context, lengths, cost, &options, &plan));
    ck_assert_ptr_null(plan);
}
END_TEST

TEST_MAIN("baseline", every_baseline_is_a_sound_plan, steps_are_those_of_the_step_planner,
          a_group_is_the_setting_of_classic_ways, unknown_baselines_are_named)
