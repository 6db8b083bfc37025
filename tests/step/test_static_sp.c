#include "base/methods.h"
#include "modes.h"

typedef struct planned {
    hbp_status status;
    int64_t ns;
    int64_t micro_batches;
    int32_t sp; /* of the first pack */
} planned;

/* Plans on 16 ranks of test_cost that recompute nothing. */
static planned plan_lengths(const uint32_t *length, int64_t count, int64_t longest_tokens, const char *text)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    hbp_lengths *lengths = NULL;
    hbp_plan *plan = NULL;
    planned p = {.ns = 0};
    hbp_step_options o = {.struct_size = sizeof o,
                          .method = hbp__step_name(HBP__STEP_STATIC_SP),
                          .recompute = HBP_STEP_RECOMPUTE_NONE,
                          .sequence_multiple = 8,
                          .longest_tokens = longest_tokens};
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    p.status = hbp_plan_step(context, lengths, cost, &o, &plan);
    if (plan) {
        stepped s = stepped_check(context, lengths, cost, &o, plan);
        p.ns = s.ns;
        p.micro_batches = s.micro_batches;
        p.sp = plan->pack_sp[0];
        for (int64_t i = 0; i < plan->packs; i++)
            ck_assert(plan->pack_sp[i] == p.sp || plan->pack_tokens[i] == 0);
    } else {
        ck_assert_msg(strstr(hbp_context_message(context), text) != NULL, "%s", hbp_context_message(context));
    }
    hbp_plan_free(plan);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return p;
}

static int64_t capacity_of(int32_t sp)
{
    hbp_context *context = test_context();
    hbp_cost *cost = test_cost(context);
    int64_t capacity = hbp_cost_predict_capacity(cost, sp, 0);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return capacity;
}

START_TEST(the_degree_is_the_least_that_holds_the_longest)
{
    int64_t two = capacity_of(2) / 8 * 8, four = capacity_of(4) / 8 * 8;
    const uint32_t length[] = {100, (uint32_t)two, 300};
    ck_assert_int_eq(plan_lengths(length, 3, 0, "").sp, 2);
    ck_assert_int_eq(plan_lengths(length, 3, two, "").sp, 2);
    ck_assert_int_eq(plan_lengths(length, 3, two + 1, "").sp, 4); /* padded to eight more */
    ck_assert_int_eq(plan_lengths(length, 3, four, "").sp, 4);
    ck_assert_int_eq(plan_lengths(length, 3, 10, "").sp, 2); /* the batch knows better */
    /* The largest group need not hold a multiple of eight. */
    ck_assert_int_eq(plan_lengths(length, 3, capacity_of(8), "").sp, 8);
    planned p = plan_lengths(length, 3, capacity_of(8) + 1, "the largest SP group holds");
    ck_assert_int_eq(p.status, HBP_E_INFEASIBLE);
    p = plan_lengths(length, 3, 10000000, "`longest_tokens` is 10000000; the largest SP group holds");
    ck_assert_int_eq(p.status, HBP_E_INFEASIBLE);
}
END_TEST

/* Sixteen packs of each a whole rank, and one more: two micro-batches, the second of one pack. */
START_TEST(packs_fill_micro_batches)
{
    uint32_t length[40];
    int64_t whole = capacity_of(1) / 8 * 8;
    for (int i = 0; i < 34; i++)
        length[i] = (uint32_t)(whole / 16 * 8);
    planned p = plan_lengths(length, 32, 0, "");
    ck_assert_int_eq(p.sp, 1);
    ck_assert_int_eq(p.micro_batches, 1);
    planned q = plan_lengths(length, 33, 0, "");
    ck_assert_int_eq(q.micro_batches, 2);
    /* What the odd one takes alone. */
    planned r = plan_lengths(length, 1, 0, "");
    ck_assert_int_eq(q.ns, p.ns + r.ns);
}
END_TEST

START_TEST(small_steps_are_planned)
{
    mode_plans_small_steps(HBP__STEP_STATIC_SP, 400);
}
END_TEST

START_TEST(any_degree_is_planned)
{
    mode_plans_any_degree(HBP__STEP_STATIC_SP);
}
END_TEST

START_TEST(failures_leave_nothing)
{
    mode_fails_cleanly(HBP__STEP_STATIC_SP, 120, 0);
}
END_TEST

TEST_MAIN("static_sp", the_degree_is_the_least_that_holds_the_longest, packs_fill_micro_batches,
          small_steps_are_planned, any_degree_is_planned, failures_leave_nothing)
