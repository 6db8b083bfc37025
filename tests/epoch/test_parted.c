#include "base/methods.h"
#include "epoch/stratify.h"

#include "failing.h"
#include "keep.h"
#include "planned.h"

typedef struct inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
    hbp_groups *groups;
    int64_t longest;
} inputs;

static const hbp_fill_options fill = {.struct_size = sizeof fill};
static const hbp_balance_options balance = {.struct_size = sizeof balance, .micro_batch_multiple = 1};

static inputs inputs_open(hbp_context *context, uint64_t seed, int64_t count)
{
    inputs in = {test_long_tail(context, seed, count, 32768), test_cost(context), NULL, 9000};
    OK(context, hbp_groups_create(context, in.cost, 2, (int64_t[]){4096, 32768}, (int32_t[]){1, 8}, NULL, 0,
                                  &in.groups));
    return in;
}

static void inputs_close(inputs *in)
{
    hbp_groups_free(in->groups);
    hbp_lengths_free(in->lengths);
    hbp_cost_free(in->cost);
}

/* Parts an epoch, plans the rest with the groups as well, and joins both. */
static hbp_status part_once(hbp_context *context, const inputs *in, hbp_plan **out)
{
    hbp__epoch epoch = {context, in->lengths, in->cost, in->cost, NULL, {.seed = 4}, HBP__STEP_SEARCH};
    hbp__parted parted;
    hbp_plan *rest = NULL;
    hbp_status status = hbp__parted_open(&epoch, in->groups, &fill, &balance, in->longest, &parted);
    if (status < 0)
        return status;
    ck_assert(parted.longs && parted.rest);
    /* No sample longer than the cut is left. */
    ck_assert_int_le(parted.rest->bin_length[parted.rest->bins - 1], in->longest);
    hbp_epoch_options options = {.struct_size = sizeof options, .groups = in->groups};
    status = hbp_plan_epoch(context, parted.rest, in->cost, &options, &rest);
    if (status >= 0)
        status = hbp__parted_join(&epoch, &parted, rest, out);
    hbp_plan_free(rest);
    hbp__parted_close(&parted);
    return status;
}

START_TEST_IN_CONTEXT(both_parts_make_the_epoch)
{
    for (uint64_t seed = 0; seed < TEST_ROUNDS(6u); seed++)
        for (int64_t cut = 0; cut < 4; cut++) {
            inputs in = inputs_open(context, seed, 2000);
            in.longest = (int64_t[]){2500, 4096, 9000, 20000}[cut];
            hbp_plan *plan = NULL;
            OK(context, part_once(context, &in, &plan));
            OK(context, hbp_plan_validate(context, plan, in.lengths, in.cost));
            planned_check(context, plan, in.lengths);
            ck_assert_uint_eq(plan->seed, 4);
            hbp_plan_free(plan);
            inputs_close(&in);
        }
}
END_TEST

START_TEST_IN_CONTEXT(a_part_without_samples_is_no_part)
{
    inputs in = inputs_open(context, 1, 500);
    hbp__epoch epoch = {context, in.lengths, in.cost, in.cost, NULL, {.seed = 4}, HBP__STEP_SEARCH};
    hbp__parted parted;
    OK(context, hbp__parted_open(&epoch, in.groups, &fill, &balance, 32768, &parted));
    ck_assert(!parted.longs && !parted.rest);
    inputs_close(&in);
}
END_TEST

static hbp_status sweep_once(hbp_context *context, void *user)
{
    hbp_plan *plan = NULL;
    hbp_status status = part_once(context, user, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    inputs in = inputs_open(context, 1, 300);
    failing_sweep(sweep_once, &in);
    ck_assert_int_gt(cancel_sweep(sweep_once, &in), 3);
    inputs_close(&in);
}
END_TEST

TEST_MAIN("parted", both_parts_make_the_epoch, a_part_without_samples_is_no_part, nothing_is_left_behind)
