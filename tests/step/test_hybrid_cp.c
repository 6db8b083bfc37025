#include "base/methods.h"
#include "golden.h"
#include "keep.h"
#include "modes.h"

#define K 1024

static stepped plan_lengths(const uint32_t *length, int64_t count, int32_t ranks, int64_t per_rank,
                            int32_t max_sp)
{
    return mode_plan_lengths(length, count, ranks,
                             (hbp_step_options){.struct_size = sizeof(hbp_step_options),
                                                .method = hbp__step_name(HBP__STEP_HYBRID_CP),
                                                .sequence_tokens_per_rank = per_rank,
                                                .max_sp = max_sp});
}

/* 4K needs two ranks, 8 of work for each. The other two have 2K each, 4 of work; then the third 2K, and 1K
 * four times, to the less loaded one each: 8 and 4 + 4. */
START_TEST(each_sequence_takes_its_least_degree)
{
    const uint32_t length[] = {1 * K, 4 * K, 2 * K, 1 * K, 2 * K, 1 * K, 2 * K, 1 * K};
    stepped plan = plan_lengths(length, 8, 4, 2 * K, 0);
    ck_assert_int_eq(plan.micro_batches, 1);
    ck_assert_int_eq(plan.ns, 8 * K * K);
    ck_assert_int_eq(plan.dummies, 0);
}
END_TEST

/* Two ranks that hold 16K: 8K on one, all others on the other: 64 of work against 36 + 16 + 4 + 4. */
START_TEST(the_least_loaded_group_is_filled)
{
    const uint32_t length[] = {2 * K, 4 * K, 8 * K, 6 * K, 2 * K};
    stepped plan = plan_lengths(length, 5, 2, 16 * K, 0);
    ck_assert_int_eq(plan.micro_batches, 1);
    ck_assert_int_eq(plan.ns, 64 * K * K);
}
END_TEST

/* 4K | 3K, then 3K to the second: 16 | 18; the third 3K to the first: 25 | 18. Without it the ranks are
 * closer, so it waits, and gets both ranks. */
START_TEST(the_busiest_group_is_trimmed)
{
    const uint32_t length[] = {4 * K, 3 * K, 3 * K, 3 * K};
    stepped plan = plan_lengths(length, 4, 2, 16 * K, 0);
    ck_assert_int_eq(plan.micro_batches, 2);
    ck_assert_int_eq(plan.ns, 18 * K * K + 9 * K * K / 2);
}
END_TEST

/* Ranks of 1000: 1700 | 1700, then 1700 | 1200; the second 1700 goes and then the 1200. They and 100 are a
 * round with an idle rank: 1700 and then 1200 on two ranks, as an idle rank is no rank to come closer to. */
START_TEST(an_idle_rank_ends_the_trimming)
{
    const uint32_t length[] = {1700, 1700, 1200, 100, 1700};
    stepped plan = plan_lengths(length, 5, 4, 1000, 0);
    ck_assert_int_eq(plan.micro_batches, 2);
    ck_assert_int_eq(plan.ns, 1700 * 1700 / 2 + 1700 * 1700 / 2 + 1200 * 1200 / 2);
}
END_TEST

/* On ranks that hold 4000: 4400 on two of them, 9.68 million of work each, and 3111 on each of the
 * others, 9.678. That is within 5 %, and a smaller degree than the first was used: the short ones are a round
 * of their own. */
START_TEST(balance_ends_a_round)
{
    const uint32_t length[] = {100, 3111, 4400, 3111, 100};
    stepped plan = plan_lengths(length, 5, 4, 4000, 0);
    ck_assert_int_eq(plan.micro_batches, 2);
    ck_assert_int_eq(plan.ns, 4400 * 4400 / 2 + 100 * 100 / 2);
}
END_TEST

/* Idle ranks join the smallest group, as far as degrees go. */
START_TEST(idle_ranks_widen_groups)
{
    const uint32_t one[] = {1 * K}, three[] = {4 * K, 1 * K, 1 * K};
    stepped plan = plan_lengths(one, 1, 8, 2 * K, 0);
    ck_assert_int_eq(plan.ns, K * K / 8);
    ck_assert_int_eq(plan.dummies, 0);
    plan = plan_lengths(one, 1, 8, 2 * K, 4);
    ck_assert_int_eq(plan.ns, K * K / 4);
    ck_assert_int_eq(plan.dummies, 4);
    /* 2 + 1 + 1 of 8: the first 1K to 2, the second to 2, then the first of the three twos to 4. */
    plan = plan_lengths(three, 3, 8, 2 * K, 0);
    ck_assert_int_eq(plan.ns, 16 * K * K / 4);
    ck_assert_int_eq(plan.dummies, 0);
}
END_TEST

START_TEST_IN_CONTEXT(a_rank_may_hold_too_little)
{
    hbp_cost *cost = keep(mode_square_cost(context, 4));
    hbp_lengths *lengths = NULL;
    const uint32_t length[] = {10, 401, 20};
    hbp_step_options o = {.struct_size = sizeof o,
                          .method = hbp__step_name(HBP__STEP_HYBRID_CP),
                          .sequence_tokens_per_rank = 100};
    hbp_plan *plan = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 3, NULL, &lengths));
    FAILS(
        context, HBP_E_INFEASIBLE,
        "sample 1 has 401 tokens with padding; the longest pack holds 400 with sequence_tokens_per_rank 100 "
        "(101 would do)",
        hbp_plan_step(context, lengths, cost, &o, &plan));
    o.tokens_per_rank = 99;
    FAILS(context, HBP_E_INFEASIBLE,
          "the longest pack holds 396 with tokens_per_rank 99 (101 would do) and with "
          "sequence_tokens_per_rank 100 (101 would do)",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    o.tokens_per_rank = 0;
    o.sequence_tokens_per_rank = -1;
    FAILS(context, HBP_E_INVALID, "`sequence_tokens_per_rank` is -1; it must be in 0..2147483647",
          hbp_plan_step(context, lengths, cost, &o, &plan));
    o.sequence_tokens_per_rank = 101;
    o.max_micro_batches = 2;
    MAKES(context, plan, hbp_plan_step(context, lengths, cost, &o, &plan));
    plan = NULL;
    o.sequence_tokens_per_rank = INT32_MAX;
    MAKES(context, plan, hbp_plan_step(context, lengths, cost, &o, &plan));
}
END_TEST

/* Ranks as balanced as can be do not end a round that used one degree alone. */
START_TEST(one_degree_goes_on)
{
    const uint32_t length[] = {1000, 1000, 10};
    stepped plan = plan_lengths(length, 3, 2, 4000, 0);
    ck_assert_int_eq(plan.micro_batches, 1);
    ck_assert_int_eq(plan.ns, 1000 * 1000 + 10 * 10);
}
END_TEST

/* 60 and 30 are 90 tokens, but a pack of 128. */
START_TEST_IN_CONTEXT(padding_counts_in_a_rank)
{
    hbp_cost *cost = keep(mode_square_cost(context, 1));
    hbp_lengths *lengths = NULL;
    const uint32_t length[] = {60, 30};
    hbp_step_options o = {.struct_size = sizeof o,
                          .method = hbp__step_name(HBP__STEP_HYBRID_CP),
                          .pack_multiple = 64,
                          .tokens_per_rank = 100};
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 2, NULL, &lengths));
    ck_assert_int_eq(stepped_plan(context, lengths, cost, &o).micro_batches, 2);
    o.tokens_per_rank = 128;
    ck_assert_int_eq(stepped_plan(context, lengths, cost, &o).micro_batches, 1);
}
END_TEST

/* A rank of 4 that takes 2K of a sequence runs packs of 2K in the groups that it forms without a cap, which
 * only cuts them: 4K on two ranks; 2K and then 2K on one of the others; 2K, two of 1K and two of 1K. */
START_TEST_IN_CONTEXT(a_cap_cuts_the_groups)
{
    hbp_cost *cost = keep(mode_square_cost(context, 4));
    hbp_lengths *lengths = NULL;
    const uint32_t length[] = {1 * K, 4 * K, 2 * K, 1 * K, 2 * K, 1 * K, 2 * K, 1 * K};
    hbp_step_options o = {.struct_size = sizeof o,
                          .method = hbp__step_name(HBP__STEP_HYBRID_CP),
                          .sequence_tokens_per_rank = 2 * K};
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 8, NULL, &lengths));
    ck_assert_int_eq(stepped_plan(context, lengths, cost, &o).micro_batches, 1);
    o.tokens_per_rank = 2 * K;
    stepped plan = stepped_plan(context, lengths, cost, &o);
    ck_assert_int_eq(plan.micro_batches, 3);
    ck_assert_int_eq(plan.ns, 8 * K * K + 4 * K * K + 2 * K * K);
    o.tokens_per_rank = 8 * K;
    ck_assert_int_eq(stepped_plan(context, lengths, cost, &o).micro_batches, 1);
}
END_TEST

/* Four sequences of 400 on one rank that holds 1000: one after the other without a bound, so two packs. */
START_TEST_IN_CONTEXT(a_group_has_several_packs)
{
    hbp_cost *square = keep(mode_square_cost(context, 1)), *cost = NULL;
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_lengths *lengths = NULL;
    const uint32_t length[] = {400, 400, 400, 400};
    hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(HBP__STEP_HYBRID_CP)};
    OK(context, hbp_cost_get_terms(context, square, &t));
    t.limit_bytes = 1000;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 4, NULL, &lengths));
    stepped plan = stepped_plan(context, lengths, cost, &o);
    ck_assert_int_eq(plan.micro_batches, 2);
    ck_assert_int_eq(plan.ns, 4 * 400 * 400);
    o.max_samples = 1;
    plan = stepped_plan(context, lengths, cost, &o);
    ck_assert_int_eq(plan.micro_batches, 4);
}
END_TEST

/* A rank holds 600 tokens where nothing is recomputed, 1200 where all is, in twice the time: three packs take
 * 1,200,000 ns, one takes 2,400,000. */
START_TEST_IN_CONTEXT(packs_need_not_recompute)
{
    static const int32_t degree[] = {1};
    static const double zero[1] = {0};
    hbp_cost *cost = NULL;
    hbp_lengths *lengths = NULL;
    const uint32_t length[] = {400, 400, 400};
    hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(HBP__STEP_HYBRID_CP)};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = t.layers = t.degrees = 1;
    t.ns_per_token = 1000;
    t.recompute_linear = 1;
    t.activation_bytes = 10;
    t.recomputed_bytes = 5;
    t.limit_bytes = 6000;
    t.degree = degree;
    t.sp_latency_ns = t.sp_ns_per_token = zero;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 3, NULL, &lengths));
    stepped plan = stepped_plan(context, lengths, cost, &o);
    ck_assert_int_eq(plan.micro_batches, 3);
    ck_assert_int_eq(plan.ns, 3 * 400 * 1000);
}
END_TEST

/* tests/golden/hybrid_cp.txt: the groups of the original itself, where memory never binds. */
START_TEST(the_original_makes_the_same_groups)
{
    golden_check("hybrid_cp.txt", HBP__STEP_HYBRID_CP, 24);
}
END_TEST

/* Buffers of 3 bytes where a token takes 1: two ranks hold half of what one does. */
START_TEST_IN_CONTEXT(widened_groups_still_hold)
{
    hbp_cost *square = keep(mode_square_cost(context, 4)), *cost = NULL;
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_lengths *lengths = NULL;
    const uint32_t length[] = {800, 400};
    hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(HBP__STEP_HYBRID_CP)};
    OK(context, hbp_cost_get_terms(context, square, &t));
    t.sp_buffer_bytes = 3;
    t.limit_bytes = 1000;
    MAKES(context, cost, hbp_cost_create_terms(context, &t, &cost));
    MAKES(context, lengths, hbp_lengths_create_u32(context, length, 2, NULL, &lengths));
    stepped plan = stepped_plan(context, lengths, cost, &o);
    ck_assert_int_eq(plan.ns, 800 * 800);
    ck_assert_int_eq(plan.micro_batches, 1);
}
END_TEST

/* 250 tokens on ranks of 100: three would do, but the degrees are powers of two; where none holds it, any. */
START_TEST(degrees_are_powers_of_two)
{
    static const int32_t degree[] = {1, 2, 3, 4};
    static const double zero[4] = {0};
    for (int32_t degrees = 3; degrees <= 4; degrees++) {
        hbp_context *context = test_context();
        hbp_cost_terms t = {.struct_size = sizeof t};
        hbp_cost *cost = NULL;
        hbp_lengths *lengths = NULL;
        const uint32_t length[] = {250};
        hbp_step_options o = {
            .struct_size = sizeof o, .method = hbp__step_name(HBP__STEP_HYBRID_CP), .any_degree = 1};
        t.ranks = 12;
        t.layers = 1;
        t.ns_per_token_squared = 1;
        t.activation_bytes = t.recomputed_bytes = 1;
        t.limit_bytes = 100;
        t.degrees = degrees;
        t.degree = degree;
        t.sp_latency_ns = t.sp_ns_per_token = zero;
        OK(context, hbp_cost_create_terms(context, &t, &cost));
        OK(context, hbp_lengths_create_u32(context, length, 1, NULL, &lengths));
        ck_assert_int_eq(stepped_plan(context, lengths, cost, &o).ns, (250 * 250 + degrees / 2) / degrees);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
        hbp_context_free(context);
    }
}
END_TEST

START_TEST(small_steps_are_planned)
{
    mode_plans_small_steps(HBP__STEP_HYBRID_CP, 400);
}
END_TEST

START_TEST(any_degree_is_planned)
{
    mode_plans_any_degree(HBP__STEP_HYBRID_CP);
}
END_TEST

START_TEST(failures_leave_nothing)
{
    mode_fails_cleanly(HBP__STEP_HYBRID_CP, 120, 0);
}
END_TEST

TEST_MAIN("hybrid_cp", each_sequence_takes_its_least_degree, the_least_loaded_group_is_filled,
          the_busiest_group_is_trimmed, an_idle_rank_ends_the_trimming, balance_ends_a_round,
          idle_ranks_widen_groups, a_rank_may_hold_too_little, one_degree_goes_on, padding_counts_in_a_rank,
          a_cap_cuts_the_groups, a_group_has_several_packs, packs_need_not_recompute,
          the_original_makes_the_same_groups, widened_groups_still_hold, degrees_are_powers_of_two,
          small_steps_are_planned, any_degree_is_planned, failures_leave_nothing)
