#include "base/methods.h"
#include "epoch/mend.h"
#include "failing.h"
#include "keep.h"
#include "planned.h"

/* The piece that row i of the plan is, by trying each. */
static int64_t search(const hbp_lengths *lengths, const hbp_plan *plan, int64_t i)
{
    int64_t found = -1;
    for (int64_t k = 0; k < lengths->count; k++) {
        int64_t id = lengths->origin ? lengths->origin[k] : k;
        int64_t first = lengths->first ? lengths->first[k] : 0;
        if (id != plan->sample_ids[i] || (plan->sample_first_tokens && first != plan->sample_first_tokens[i]))
            continue;
        ck_assert_int_eq(found, -1);
        found = k;
    }
    return found;
}

/* Samples as they are, dropped, cut off and split. */
START_TEST_IN_CONTEXT(rows_are_pieces)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *all = keep(test_long_tail(context, 3, 300, 9000));
    for (int32_t policy = HBP_OVERLONG_ERROR; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *lengths = NULL;
        hbp_plan *plan = NULL;
        uint32_t *piece = NULL;
        OK(context,
           hbp_lengths_limit(context, all, policy == HBP_OVERLONG_ERROR ? 9000 : 700, policy, &lengths));
        OK(context, hbp_plan_epoch(context, lengths, cost, NULL, &plan));
        hbp__epoch epoch = {context, lengths, cost, cost, NULL, {.seed = 0}, HBP__STEP_SEARCH};
        OK(context, hbp__epoch_pieces(&epoch, plan, &piece));
        ck_assert_int_gt(plan->samples, 0);
        for (int64_t i = 0; i < plan->samples; i++)
            ck_assert_int_eq(piece[i], search(lengths, plan, i));
        hbp__scratch_release(context, 0);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    planned_inputs in = {keep(test_long_tail(context, 1, 9, 9000)),
                         keep(test_cost(context)),
                         {.struct_size = sizeof in.options,
                          .composition = HBP_COMPOSITION_HIERARCHY,
                          .max_length = 4000,
                          .over_long = HBP_OVERLONG_SPLIT}};
    failing_sweep(planned_once, &in);
}
END_TEST

TEST_MAIN("pieces", rows_are_pieces, nothing_is_left_behind)
