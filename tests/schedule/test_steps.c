#include "packed.h"

static void open_batches(packed *p, const hbp_balance_options *options, hbp__micro_batches *batches)
{
    OK(p->context, hbp__micro_batches_open(p->context, p->packs, p->groups, p->cost, options, batches));
}

/* Each micro-batch in one step; steps of one group, of its size but for one; multiples completed by dummies.
 */
START_TEST_IN_CONTEXT(steps_hold_every_micro_batch_once)
{
    int mark = keep_mark();
    for (int32_t multiple = 1; multiple <= 3; keep_release(mark), multiple++) {
        packed p = packed_open(context, 5, 6000);
        hbp_balance_options options = {
            .struct_size = sizeof options, .micro_batch_multiple = multiple, .seed = 9};
        hbp__micro_batches batches;
        hbp__steps steps;
        open_batches(&p, &options, &batches);
        OK(p.context, hbp__steps_open(p.context, &batches, p.groups, &options, 0, &steps));
        char *seen = calloc((size_t)batches.count, 1);
        int64_t taken = 0, odd[2] = {0};
        for (int64_t s = 0; s < steps.count; s++) {
            int64_t size = steps.first[s + 1] - steps.first[s], real = 0;
            int32_t g = batches.group[steps.micro_batch[steps.first[s]]];
            ck_assert_int_gt(size, 0);
            ck_assert_int_eq(size % multiple, 0);
            for (int64_t i = steps.first[s]; i < steps.first[s + 1]; i++) {
                uint32_t m = steps.micro_batch[i];
                if (m == HBP__PADDING_PACK)
                    continue;
                ck_assert_int_eq(batches.group[m], g);
                ck_assert_int_eq(seen[m]++, 0);
                real++;
            }
            int64_t full = (p.groups->micro_batches[g] + multiple - 1) / multiple * multiple;
            odd[g] += real != full;
            taken += real;
        }
        ck_assert_int_eq(taken, batches.count);
        ck_assert_int_le(odd[0], 1);
        ck_assert_int_le(odd[1], 1);
        free(seen);
        hbp__steps_close(&steps);
        hbp__micro_batches_close(&batches);
    }
}
END_TEST

/* No step passes the tokens that are asked for; what a multiple lacks then is dummies. */
START_TEST_IN_CONTEXT(tokens_per_step_come_before_the_multiple)
{
    int mark = keep_mark();
    for (int32_t multiple = 1; multiple <= 5; keep_release(mark), multiple++) {
        packed p = packed_open(context, 5, 6000);
        hbp_balance_options options = {.struct_size = sizeof options,
                                       .micro_batch_multiple = multiple,
                                       .tokens_per_step = 3 * 65536 + 1};
        hbp__micro_batches batches;
        hbp__steps steps;
        int64_t most = multiple > 3 ? 3 : 3 / multiple * multiple, taken = 0, full = 0;
        open_batches(&p, &options, &batches);
        OK(p.context, hbp__steps_open(p.context, &batches, p.groups, &options, 0, &steps));
        for (int64_t s = 0; s < steps.count; s++) {
            int64_t real = 0;
            for (int64_t i = steps.first[s]; i < steps.first[s + 1]; i++)
                real += steps.micro_batch[i] != HBP__PADDING_PACK;
            ck_assert_int_eq((steps.first[s + 1] - steps.first[s]) % multiple, 0);
            ck_assert_int_le(real, most);
            full += real == most;
            taken += real;
        }
        ck_assert_int_eq(taken, batches.count);
        ck_assert_int_ge(full, steps.count - 2);
        hbp__steps_close(&steps);
        hbp__micro_batches_close(&batches);
    }
}
END_TEST

/* Tokens for less than a micro-batch are a micro-batch a step. */
START_TEST_IN_CONTEXT(a_step_holds_a_micro_batch)
{
    packed p = packed_open(context, 5, 6000);
    hbp_balance_options options = {
        .struct_size = sizeof options, .micro_batch_multiple = 1, .tokens_per_step = 1};
    hbp__micro_batches batches;
    hbp__steps steps;
    open_batches(&p, &options, &batches);
    OK(p.context, hbp__steps_open(p.context, &batches, p.groups, &options, 0, &steps));
    ck_assert_int_eq(steps.count, batches.count);
    for (int64_t s = 0; s < steps.count; s++)
        ck_assert_int_eq(steps.first[s + 1] - steps.first[s], 1);
    hbp__steps_close(&steps);
    hbp__micro_batches_close(&batches);
}
END_TEST

START_TEST_IN_CONTEXT(dropping_the_last_drops_only_what_is_not_full)
{
    packed p = packed_open(context, 5, 6000);
    hbp_balance_options options = {.struct_size = sizeof options, .micro_batch_multiple = 1, .drop_last = 1};
    options.tokens_per_step = 3 * 65536;
    hbp__micro_batches batches;
    hbp__steps steps;
    open_batches(&p, &options, &batches);
    OK(p.context, hbp__steps_open(p.context, &batches, p.groups, &options, 0, &steps));
    int64_t wanted = 0;
    for (int64_t g = 0; g < 2; g++)
        wanted += (batches.group_first[g + 1] - batches.group_first[g]) / (g ? 3 : 3);
    ck_assert_int_eq(steps.count, wanted);
    for (int64_t s = 0; s < steps.count; s++)
        ck_assert_int_eq(steps.first[s + 1] - steps.first[s], 3);
    hbp__steps_close(&steps);
    /* A step larger than the data is the data: one step a group, none dropped. */
    options.tokens_per_step = INT64_MAX;
    OK(p.context, hbp__steps_open(p.context, &batches, p.groups, &options, 0, &steps));
    ck_assert_int_eq(steps.count, 2);
    hbp__steps_close(&steps);
    options.micro_batch_multiple = 50000;
    FAILS(p.context, HBP_E_INFEASIBLE, "drop_last leaves no step",
          hbp__steps_open(p.context, &batches, p.groups, &options, 0, &steps));
    hbp__steps_close(&steps);
    hbp__micro_batches_close(&batches);
}
END_TEST

START_TEST_IN_CONTEXT(one_step_takes_all)
{
    packed p = packed_open(context, 6, 1000);
    hbp_balance_options options = {.struct_size = sizeof options, .micro_batch_multiple = 4};
    hbp__micro_batches batches;
    hbp__steps steps;
    open_batches(&p, &options, &batches);
    OK(p.context, hbp__steps_open(p.context, &batches, p.groups, &options, 1, &steps));
    ck_assert_int_eq(steps.count, 1);
    ck_assert_int_eq(steps.first[1], (batches.count + 3) / 4 * 4);
    for (int64_t i = 0; i < steps.first[1]; i++)
        ck_assert_int_eq(steps.micro_batch[i] == HBP__PADDING_PACK, i >= batches.count);
    hbp__steps_close(&steps);
    hbp__micro_batches_close(&batches);
}
END_TEST

TEST_MAIN("steps", steps_hold_every_micro_batch_once, tokens_per_step_come_before_the_multiple,
          a_step_holds_a_micro_batch, dropping_the_last_drops_only_what_is_not_full, one_step_takes_all)
