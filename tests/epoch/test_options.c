#include "base/methods.h"
#include "epoch/epoch.h"
#include "test.h"

/* Each option with a value of its own. */
static const hbp_epoch_options all = {.struct_size = sizeof all,
                                      .tokens_per_step = 1001,
                                      .max_length = 1002,
                                      .max_pack_length = 1003,
                                      .max_groups = 4,
                                      .step_slack = 5,
                                      .sequence_multiple = 6,
                                      .pack_multiple = 7,
                                      .sequence_multiple_per_sp = 8,
                                      .pack_multiple_per_sp = 9,
                                      .tokens_per_rank = 1010,
                                      .sequence_tokens_per_rank = 1011,
                                      .max_samples = 12,
                                      .equal_samples = 1,
                                      .micro_batch_multiple = 14,
                                      .micro_batches_per_step = 15,
                                      .curriculum_steps = 16,
                                      .drop_last = 1,
                                      .modality_order = 1,
                                      .effort = 2,
                                      .seed = 17,
                                      .epoch = 18};

START_TEST(groups_get_theirs)
{
    hbp_groups_options groups;
    hbp__epoch_groups_options(&all, &groups);
    ck_assert_int_eq(hbp__groups_method(groups.method), HBP__GROUPS_OPTIMAL);
    ck_assert_int_eq(groups.max_groups, 4);
    ck_assert_int_eq(groups.tokens_per_step, 1001);
    ck_assert_int_eq(groups.max_length, 1002);
    ck_assert_int_eq(groups.max_pack_length, 1003);
    ck_assert_int_eq(groups.step_slack, 5);
    ck_assert_int_eq(groups.sequence_multiple, 6 * 8);
    ck_assert_int_eq(groups.pack_multiple, 7 * 9);
    ck_assert_int_eq(groups.tokens_per_rank, 1010);
    hbp_epoch_options paper = {.struct_size = sizeof paper, .method = hbp__epoch_name(HBP__EPOCH_HBP)};
    hbp__epoch_groups_options(&paper, &groups);
    ck_assert_int_eq(hbp__groups_method(groups.method), HBP__GROUPS_HBP);
    ck_assert_int_eq(groups.sequence_multiple, 1);
    ck_assert_int_eq(groups.pack_multiple, 1);
}
END_TEST

START_TEST(fills_get_theirs)
{
    hbp_fill_options fill;
    hbp__epoch_fill_options(&all, &fill);
    ck_assert_int_eq(hbp__fill_method(fill.method), HBP__FILL_BALANCED);
    ck_assert_int_eq(fill.effort, 2);
    ck_assert_int_eq(fill.max_samples, 12);
    ck_assert_int_eq(fill.sequence_multiple, 6);
    ck_assert_int_eq(fill.pack_multiple, 7);
    ck_assert_uint_eq(fill.seed, 17);
    ck_assert_uint_eq(fill.epoch, 18);
    hbp_epoch_options paper = {.struct_size = sizeof paper, .method = hbp__epoch_name(HBP__EPOCH_HBP)};
    hbp__epoch_fill_options(&paper, &fill);
    ck_assert_int_eq(hbp__fill_method(fill.method), HBP__FILL_HBP);
}
END_TEST

START_TEST(balances_get_theirs)
{
    hbp_balance_options balance;
    hbp__epoch epoch = {.options = all};
    hbp__epoch_balance_options(&epoch, &balance);
    ck_assert_int_eq(hbp__balance_method(balance.method), HBP__BALANCE_TIME);
    ck_assert_int_eq(balance.micro_batch_multiple, 14);
    ck_assert_int_eq(balance.drop_last, 1);
    ck_assert_int_eq(balance.curriculum_steps, 16);
    ck_assert_int_eq(balance.tokens_per_step, 1001);
    ck_assert_int_eq(balance.modality_order, 1);
    ck_assert_uint_eq(balance.seed, 17);
    ck_assert_uint_eq(balance.epoch, 18);
    epoch.options.max_vision = 5;
    hbp__epoch_balance_options(&epoch, &balance);
    ck_assert_int_eq(hbp__balance_method(balance.method), HBP__BALANCE_VISION);
    epoch.options.method = hbp__epoch_name(HBP__EPOCH_HBP);
    hbp__epoch_balance_options(&epoch, &balance);
    ck_assert_int_eq(hbp__balance_method(balance.method), HBP__BALANCE_SORTED);
    ck_assert_int_eq(balance.tokens_per_step, 0);
}
END_TEST

START_TEST(steps_get_theirs)
{
    hbp_step_options step;
    hbp__epoch_step_options(&all, &step);
    ck_assert_int_eq(step.any_degree, 1);
    ck_assert_int_eq(step.effort, 2);
    ck_assert_int_eq(step.micro_batch_multiple, 14);
    ck_assert_int_eq(step.min_micro_batches, 15);
    ck_assert_int_eq(step.max_micro_batches, 15);
    ck_assert_int_eq(step.sequence_multiple, 6);
    ck_assert_int_eq(step.pack_multiple, 7);
    ck_assert_int_eq(step.sequence_multiple_per_sp, 8);
    ck_assert_int_eq(step.pack_multiple_per_sp, 9);
    ck_assert_int_eq(step.max_pack_length, 1003);
    ck_assert_int_eq(step.tokens_per_rank, 1010);
    ck_assert_int_eq(step.max_samples, 12);
    ck_assert_int_eq(step.equal_samples, 1);
    ck_assert_int_eq(step.sequence_tokens_per_rank, 1011);
}
END_TEST

TEST_MAIN("options", groups_get_theirs, fills_get_theirs, balances_get_theirs, steps_get_theirs)
