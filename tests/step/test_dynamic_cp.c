#include "base/methods.h"
#include "golden.h"
#include "modes.h"

#define K 1024

static stepped plan_lengths(const uint32_t *length, int64_t count, int32_t ranks, int64_t tokens_per_rank,
                            int32_t min_sp)
{
    return mode_plan_lengths(length, count, ranks,
                             (hbp_step_options){.struct_size = sizeof(hbp_step_options),
                                                .method = hbp__step_name(HBP__STEP_DYNAMIC_CP),
                                                .tokens_per_rank = tokens_per_rank,
                                                .min_sp = min_sp});
}

/* Four ranks of 2K tokens: 4K on two of them is the critical path of the first micro-batch; what it leaves
 * room for is one 2K on each of the others, or on both of them; the rest shares the second. */
START_TEST(the_critical_path_is_kept_short)
{
    const uint32_t first[] = {1 * K, 4 * K, 2 * K, 1 * K, 2 * K, 1 * K, 2 * K, 1 * K};
    stepped plan = plan_lengths(first, 8, 4, 2 * K, 0);
    ck_assert_int_eq(plan.micro_batches, 2);
    ck_assert_int_eq(plan.ns, 10 * K * K);
    const uint32_t second[] = {8 * K, 1 * K, 1 * K, 2 * K, 1 * K, 2 * K, 1 * K, 1 * K};
    plan = plan_lengths(second, 8, 4, 4 * K, 0);
    ck_assert_int_eq(plan.ns, 32 * K * K + K * K / 4);
    /* The least degree being all ranks, 4K is spread over all of them. */
    plan = plan_lengths(first, 8, 4, 2 * K, 4);
    ck_assert_int_eq(plan.ns, 8 * K * K);
}
END_TEST

/* On ranks that hold 4000, 3900 needs one, but on two it stays below the 4400 on two. Each on its least
 * degree, the short one on a rank of its own, would leave too few ranks to widen all three. */
START_TEST(groups_may_be_larger_than_need_be)
{
    const uint32_t length[] = {3900, 100, 3900, 4400, 3900};
    stepped plan = plan_lengths(length, 5, 8, 4000, 0);
    ck_assert_int_eq(plan.micro_batches, 1);
    ck_assert_int_eq(plan.ns, 4400 * 4400 / 2);
}
END_TEST

/* The second 4K leaves the busiest rank as it is on one rank and on two: it takes one, 1K another, and the
 * last goes to the first 4K. */
START_TEST(ties_go_to_the_smaller_degree)
{
    const uint32_t length[] = {4 * K, 4 * K, 1 * K};
    stepped plan = plan_lengths(length, 3, 4, 4 * K, 0);
    ck_assert_int_eq(plan.micro_batches, 1);
    ck_assert_int_eq(plan.ns, 16 * K * K);
}
END_TEST

START_TEST(full_ranks_end_a_micro_batch)
{
    /* One rank that holds 4K takes 2K + 1K + 1K, then the rest. */
    const uint32_t length[] = {1 * K, 1 * K, 2 * K, 1 * K, 1 * K};
    stepped plan = plan_lengths(length, 5, 1, 4 * K, 0);
    ck_assert_int_eq(plan.micro_batches, 2);
    ck_assert_int_eq(plan.ns, (4 + 1 + 1 + 2) * K * K);
}
END_TEST

/* tests/golden/dynamic_cp.txt: the groups of the original itself, where memory never binds. */
START_TEST(the_original_makes_the_same_groups)
{
    golden_check("dynamic_cp.txt", HBP__STEP_DYNAMIC_CP, 24);
}
END_TEST

START_TEST(small_steps_are_planned)
{
    mode_plans_small_steps(HBP__STEP_DYNAMIC_CP, 400);
}
END_TEST

START_TEST(any_degree_is_planned)
{
    mode_plans_any_degree(HBP__STEP_DYNAMIC_CP);
}
END_TEST

START_TEST(failures_leave_nothing)
{
    mode_fails_cleanly(HBP__STEP_DYNAMIC_CP, 120, 0);
}
END_TEST

TEST_MAIN("dynamic_cp", the_critical_path_is_kept_short, groups_may_be_larger_than_need_be,
          ties_go_to_the_smaller_degree, full_ranks_end_a_micro_batch, the_original_makes_the_same_groups,
          small_steps_are_planned, any_degree_is_planned, failures_leave_nothing)
