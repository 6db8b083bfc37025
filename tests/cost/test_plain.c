/* The cost of plain packing: what it says, and that fill and balance need nothing else. */
#include "base/methods.h"
#include "costs.h"
#include "keep.h"

START_TEST_IN_CONTEXT(time_is_squares_and_memory_has_no_limit)
{
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_plain(context, 12, &cost));
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(context, hbp_cost_get_terms(context, cost, &t));
    static const int32_t divisors[] = {1, 2, 3, 4, 6, 12};
    ck_assert_int_eq(t.degrees, 6);
    ck_assert_mem_eq(t.degree, divisors, sizeof divisors);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 1, 0, 300, 50000, 0), 50000);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(cost, 4, 0, 300, 50000, 0), 12500);
    ck_assert_int_eq(hbp_cost_predict_capacity(cost, 1, 0), HBP_MAX_LENGTH);
    ck_assert_str_eq(hbp_cost_get_source(cost, "ns_per_token"), "plain packing");
    hbp_cost *out = NULL;
    FAILS(context, HBP_E_INVALID, "`ranks` is 0; it must be in 1..262144",
          hbp_cost_create_plain(context, 0, &out));
    FAILS(context, HBP_E_INVALID, "`ranks` is 262145", hbp_cost_create_plain(context, 262145, &out));
    MAKES(context, out, hbp_cost_create_plain(context, HBP_MAX_RANKS, &out));
}
END_TEST

/* Packs of one length on every rank: as even in squares as sorting them makes them (HBP, Algorithm 7). */
START_TEST_IN_CONTEXT(packs_are_balanced_in_squares)
{
    uint32_t tokens[2000];
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int i = 0; i < 2000; i++)
        tokens[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 20) ? 500 : 4000);
    static const int64_t pack_length = 4096;
    static const int32_t sp = 1;
    hbp_cost *cost = NULL;
    MAKES(context, cost, hbp_cost_create_plain(context, 4, &cost));
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_groups_create(context, cost, 1, &pack_length, &sp, NULL, 0, &groups));
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths, hbp_lengths_create_u32(context, tokens, 2000, NULL, &lengths));
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp_greedy_fill(context, lengths, groups, NULL, &packs));
    int64_t imbalance[2] = {0, 0};
    for (int32_t given = 0; given < 2; given++) {
        hbp_balance_options options = {
            .struct_size = sizeof options,
            .method = hbp__balance_name(given ? HBP__BALANCE_RANDOM : HBP__BALANCE_TIME)};
        hbp_plan *plan = NULL;
        OK(context, hbp_balance_attention(context, packs, groups, cost, &options, &plan));
        OK(context, hbp_plan_validate(context, plan, lengths, cost));
        hbp_plan_view v = {.struct_size = sizeof v};
        hbp_plan_get_view(plan, &v);
        for (int64_t m = 0; m < v.micro_batches; m++)
            for (int64_t p = v.micro_batch_offsets[m]; p < v.micro_batch_offsets[m + 1]; p++)
                imbalance[given] += v.micro_batch_ns[m] - v.pack_squares[p];
        hbp_plan_free(plan);
    }
    ck_assert_int_lt(imbalance[0], imbalance[1]);
}
END_TEST

TEST_MAIN("plain", time_is_squares_and_memory_has_no_limit, packs_are_balanced_in_squares)
