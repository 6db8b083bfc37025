#include "traps.h"

#include "test.h"

#include <math.h>

#include "base/rng.h"
#include "cost/cost.h"

/* 32 ranks, 8 layers; one token takes 1 us, one token squared 1 ns; 1 KiB a layer and token, 64 bytes
 * recomputed. */
static const int32_t degrees[] = {1, 2, 4, 8, 16};
static const double latencies[] = {0, 1000, 1000, 1000, 9000};
static const double slopes[] = {0, 100, 75, 44, 500};

static hbp_cost *some_cost(hbp_context *context, int32_t rows)
{
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 32;
    t.domain_ranks = 8;
    t.layers = 8;
    t.ns_per_token = 1000;
    t.ns_per_token_squared = 1;
    t.recompute_linear = .3;
    t.recompute_attention = .25;
    t.recompute_communication = .5;
    t.pack_ns = 5000;
    t.step_ns = 70000;
    t.static_bytes = 1000000;
    t.activation_bytes = 1024;
    t.recomputed_bytes = 64;
    t.working_bytes = 1024;
    t.limit_bytes = 10000000;
    t.degrees = rows;
    t.degree = degrees;
    t.sp_latency_ns = latencies;
    t.sp_ns_per_token = slopes;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

static hbp_sp_choice choose(hbp_context *context, const hbp_cost *cost, int64_t length,
                            const hbp_sp_options *options)
{
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    OK(context, hbp_choose_sp(context, cost, length, options, &choice));
    return choice;
}

START_TEST(a_short_pack_needs_no_group)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 5);
    hbp_sp_choice choice = choose(context, cost, 1000, NULL);
    ck_assert_int_eq(choice.sp, 1);
    ck_assert_int_eq(choice.recompute, 0);
    ck_assert_int_eq(choice.reason, HBP_SP_FEASIBLE);
    ck_assert_int_eq(choice.micro_batches, 1);
    ck_assert_int_eq(choice.pack_ns, 1000 * 1000 + 1000 * 1000 + 5000);
    ck_assert_int_eq(choice.step_ns, choice.pack_ns + 70000);
    ck_assert_int_eq(choice.peak_bytes, 1000000 + 8 * 1024 * 1000);
    ck_assert_int_eq(choice.limit_bytes, 10000000);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_long_pack_weighs_recomputation_against_communication)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 5);
    hbp_sp_options options = {.struct_size = sizeof options};
    options.tokens_per_step = 100000;
    options.squares_per_token = 500;
    hbp_sp_choice choice = choose(context, cost, 5000, &options);
    /* SP 1 recomputes 8 layers: 64 x 8 + 1024 bytes a token. */
    int64_t best = INT64_MAX;
    int32_t best_sp = 0;
    for (int i = 0; i < 5; i++) {
        int32_t c = hbp_cost_predict_recompute(cost, degrees[i], 5000);
        if (c < 0)
            continue;
        int64_t micro_batches = (20 * degrees[i] + 31) / 32;
        int64_t step =
            micro_batches * hbp_cost_predict_pack_ns(cost, degrees[i], c, 5000, 2500000, 0) + 70000;
        if (step < best) {
            best = step;
            best_sp = degrees[i];
        }
    }
    ck_assert_int_eq(choice.sp, best_sp);
    ck_assert_int_eq(choice.step_ns, best);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* Random terms: the choice is the least step_ns of the feasible entries of the listing, the first of equals.
 */
START_TEST(the_choice_is_the_best_of_the_listing)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 5);
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    int feasible = 0;
    int seen[17] = {0};
    for (int round = 0; round < 5000; round++) {
        int64_t length = 1 + hbp__rng_below(&rng, 120000);
        hbp_sp_options options = {.struct_size = sizeof options};
        options.tokens_per_step = hbp__rng_below(&rng, 3000000);
        options.squares_per_token = (double)hbp__rng_below(&rng, (uint64_t)length + 1);
        for (int i = 1; i < 5; i++)
            cost->sp_ns_per_token[i] = hbp__rng_below(&rng, 3000);
        cost->terms.limit_bytes = hbp__rng_below(&rng, 40000000);
        hbp_sp_choice list[8];
        int64_t count;
        OK(context, hbp_list_sp_choices(context, cost, length, &options, list, sizeof *list, 8, &count));
        ck_assert_int_eq(count, 6);
        const hbp_sp_choice *best = NULL;
        for (int i = 0; i < 6; i++) {
            const hbp_sp_choice *e = &list[i];
            ck_assert_int_eq(e->sp, 1 << i);
            ck_assert_uint_eq(e->struct_size, sizeof *e);
            if (i == 5) {
                ck_assert_int_eq(e->reason, HBP_SP_TOO_FEW_RANKS);
                continue;
            }
            if (e->reason == HBP_SP_OUT_OF_MEMORY) {
                ck_assert_int_eq(e->recompute, 8);
                ck_assert_int_gt(e->peak_bytes, e->limit_bytes);
                continue;
            }
            ck_assert_int_eq(e->reason, HBP_SP_FEASIBLE);
            ck_assert_int_eq(e->recompute, hbp_cost_predict_recompute(cost, e->sp, length));
            ck_assert_int_le(e->peak_bytes, e->limit_bytes);
            if (options.tokens_per_step) {
                /* Enough slots for the tokens, and not a micro-batch more. */
                int64_t packs = (options.tokens_per_step + length - 1) / length;
                ck_assert_int_ge(e->micro_batches * (32 / e->sp), packs);
                ck_assert_int_lt((e->micro_batches - 1) * (32 / e->sp), packs);
            } else {
                ck_assert_int_eq(e->micro_batches, e->sp);
            }
            ck_assert_int_eq(e->step_ns, e->micro_batches * e->pack_ns + 70000);
            if (!best || e->step_ns < best->step_ns)
                best = e;
        }
        hbp_sp_choice choice = {.struct_size = sizeof choice};
        if (best) {
            OK(context, hbp_choose_sp(context, cost, length, &options, &choice));
            ck_assert_mem_eq(&choice, best, sizeof choice);
            feasible++;
            seen[choice.sp]++;
        } else {
            FAILS(context, HBP_E_INFEASIBLE, " on each of ",
                  hbp_choose_sp(context, cost, length, &options, &choice));
            ck_assert_int_eq(choice.sp, 0);
        }
    }
    ck_assert_int_gt(feasible, 1000);
    for (int i = 0; i < 5; i++)
        ck_assert_int_gt(seen[1 << i], 0);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(equal_times_go_to_the_smaller_degree)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 5);
    cost->terms.ns_per_token = 0;
    cost->terms.ns_per_token_squared = 0;
    hbp_sp_options options = {.struct_size = sizeof options};
    options.tokens_per_step = 1000; /* one micro-batch whatever the degree */
    for (int i = 0; i < 5; i++)
        cost->sp_ns_per_token[i] = cost->sp_latency_ns[i] = 0;
    ck_assert_int_eq(choose(context, cost, 1000, &options).sp, 1);
    cost->sp_ns_per_token[0] = 1;
    ck_assert_int_eq(choose(context, cost, 1000, &options).sp, 2);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(the_listing_says_why_a_degree_is_out)
{
    hbp_context *context = test_context();
    /* Qwen2.5's 28 heads, 4 kv heads, on 56 ranks in domains of 28: legal are 1, 2, 4, 28. */
    static const int32_t allowed[] = {1, 2, 4, 28};
    static const double zero[4] = {0};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 56;
    t.layers = 2;
    t.activation_bytes = 100;
    t.working_bytes = 100;
    t.limit_bytes = 30000;
    t.degrees = 4;
    t.degree = allowed;
    t.sp_latency_ns = zero;
    t.sp_ns_per_token = zero;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    cost->heads = 28;
    cost->kv_heads = 4;
    int64_t count = -1;
    OK(context, hbp_list_sp_choices(context, cost, 1000, NULL, NULL, 0, 0, &count));
    ck_assert_int_eq(count, 7);
    hbp_sp_choice list[7];
    memset(list, 0x77, sizeof list);
    OK(context, hbp_list_sp_choices(context, cost, 1000, NULL, list, sizeof *list, 6, &count));
    ck_assert_int_eq(count, 7);
    ck_assert_int_eq(list[6].sp, 0x77777777); /* past the capacity nothing is written */
    OK(context, hbp_list_sp_choices(context, cost, 1000, NULL, list, sizeof *list, 7, &count));
    static const int32_t sp[] = {1, 2, 4, 8, 16, 28, 32};
    static const int32_t reason[] = {HBP_SP_OUT_OF_MEMORY, HBP_SP_OUT_OF_MEMORY, HBP_SP_FEASIBLE,
                                     HBP_SP_ILLEGAL_HEADS, HBP_SP_ILLEGAL_HEADS, HBP_SP_FEASIBLE,
                                     HBP_SP_ILLEGAL_HEADS};
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(list[i].sp, sp[i]);
        ck_assert_int_eq(list[i].reason, reason[i]);
        ck_assert_int_eq(list[i].limit_bytes, 30000);
    }
    ck_assert_int_eq(list[2].recompute, 2); /* with one, its working set weighs as much as it saves */
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(entries_are_of_the_callers_size)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 1);
    unsigned char list[6 * 100];
    int64_t count;
    memset(list, 0x77, sizeof list);
    OK(context, hbp_list_sp_choices(context, cost, 10, NULL, (void *)list, 16, 6, &count));
    ck_assert_int_eq(count, 6);
    for (int i = 0; i < 6; i++) {
        uint32_t size;
        int32_t sp;
        memcpy(&size, list + 16 * i, 4);
        memcpy(&sp, list + 16 * i + 4, 4);
        ck_assert_uint_eq(size, 16);
        ck_assert_int_eq(sp, 1 << i);
    }
    ck_assert_int_eq(list[96], 0x77);
    OK(context, hbp_list_sp_choices(context, cost, 10, NULL, (void *)list, 100, 6, &count));
    uint32_t last;
    memcpy(&last, list + 500 + sizeof(hbp_sp_choice), 4);
    ck_assert_uint_eq(last, 0); /* what a newer caller knows and the library does not */
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_input_is_named)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 5);
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    hbp_sp_options options = {.struct_size = sizeof options};
    int64_t count = 9;
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_choose_sp(context, NULL, 1, NULL, &choice));
    FAILS(context, HBP_E_INVALID, "choice is NULL", hbp_choose_sp(context, cost, 1, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "`pack_length` is 0; it must be in 1..2147483647",
          hbp_choose_sp(context, cost, 0, NULL, &choice));
    FAILS(context, HBP_E_INVALID, "`pack_length` is 2147483648; it must be in 1..2147483647",
          hbp_choose_sp(context, cost, INT64_C(1) << 31, NULL, &choice));
    options.tokens_per_step = -5;
    FAILS(context, HBP_E_INVALID, "`tokens_per_step` is -5; it must be in 0..9223372036854775807",
          hbp_choose_sp(context, cost, 1, &options, &choice));
    options.tokens_per_step = 0;
    options.squares_per_token = NAN;
    FAILS(context, HBP_E_INVALID, "squares_per_token is ",
          hbp_choose_sp(context, cost, 1, &options, &choice));
    options.squares_per_token = 101;
    FAILS(context, HBP_E_INVALID, "squares_per_token is 101; it must be in 0..100",
          hbp_choose_sp(context, cost, 100, &options, &choice));
    options.squares_per_token = 0;
    options.tokens_per_step = INT64_MAX;
    FAILS(context, HBP_E_OVERFLOW, "tokens_per_step is 9223372036854775807; in packs of 1 tokens on SP 1",
          hbp_choose_sp(context, cost, 1, &options, &choice));
    /* The limit that the message names, and one pack of every rank more. */
    long long most = 0;
    const char *limit = strstr(hbp_context_message(context), "of more than ");
    ck_assert(limit && sscanf(limit, "of more than %lld", &most) == 1);
    options.tokens_per_step = most;
    hbp_sp_choice largest = choice;
    OK(context, hbp_choose_sp(context, cost, 1, &options, &largest));
    options.tokens_per_step = most + 16;
    FAILS(context, HBP_E_OVERFLOW, "overflow", hbp_choose_sp(context, cost, 1, &options, &choice));
    FAILS(context, HBP_E_INFEASIBLE,
          "a pack of 1000000 tokens needs 92.5 MiB on each of 16 ranks with all 8 layers recomputed; a "
          "rank has "
          "9.5 MiB, 83.0 MiB short",
          hbp_choose_sp(context, cost, 1000000, NULL, &choice));
    choice.struct_size = 3;
    FAILS(context, HBP_E_INVALID, "hbp_sp_choice.struct_size is 3",
          hbp_choose_sp(context, cost, 1, NULL, &choice));
    ck_assert_int_eq(choice.sp, 0);
    FAILS(context, HBP_E_INVALID, "count is NULL",
          hbp_list_sp_choices(context, cost, 1, NULL, &choice, sizeof choice, 1, NULL));
    FAILS(context, HBP_E_INVALID, "choices is NULL",
          hbp_list_sp_choices(context, cost, 1, NULL, NULL, sizeof choice, 1, &count));
    FAILS(context, HBP_E_INVALID, "choice_size is 2",
          hbp_list_sp_choices(context, cost, 1, NULL, &choice, 2, 1, &count));
    FAILS(context, HBP_E_INVALID, "capacity is -1",
          hbp_list_sp_choices(context, cost, 1, NULL, &choice, sizeof choice, -1, &count));
    ck_assert_int_eq(count, 0);
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

/* HBP, section 4.1: LLaMA-3.1-8B on 32 H100 packs short samples at 16K without sequence parallelism and long
 * ones at 128K on 8 ranks, 512K tokens a step. */
START_TEST(llama_8b_comes_out_as_published)
{
    hbp_context *context = test_context();
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_cost *cost = NULL;
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
    OK(context, hbp_machine_create_preset(context, "h100:4", &machine));
    OK(context, hbp_cost_create(context, model, machine, NULL, &cost));
    hbp_sp_options options = {.struct_size = sizeof options};
    options.tokens_per_step = 524288;
    options.squares_per_token = 1500;
    ck_assert_int_eq(choose(context, cost, 16384, &options).sp, 1);
    ck_assert_int_eq(choose(context, cost, 131072, &options).sp, 8);
    hbp_cost_free(cost);
    hbp_machine_free(machine);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

/* Under a capped cost the degree is large enough for it, and the cap is named when none is. */
START_TEST(a_cap_of_tokens_per_rank_is_kept)
{
    hbp_context *context = test_context();
    hbp_cost *cost = some_cost(context, 5);
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    OK(context, hbp_choose_sp(context, cost, 800, NULL, &choice));
    ck_assert_int_eq(choice.sp, 1);
    for (int64_t cap = 50; cap <= 800; cap += 50) {
        hbp_cost capped = hbp__cost_capped(cost, cap);
        OK(context, hbp_choose_sp(context, &capped, 800, NULL, &choice));
        ck_assert_int_ge(cap * choice.sp, 800);
    }
    hbp_cost capped = hbp__cost_capped(cost, 49);
    FAILS(context, HBP_E_INFEASIBLE,
          "a pack of 800 tokens passes tokens_per_rank, which is 49, on every SP degree; 50 would do",
          hbp_choose_sp(context, &capped, 800, NULL, &choice));
    hbp_cost_free(cost);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_WITH("choose_sp", traps_on, NULL, a_short_pack_needs_no_group,
               a_long_pack_weighs_recomputation_against_communication, the_choice_is_the_best_of_the_listing,
               equal_times_go_to_the_smaller_degree, the_listing_says_why_a_degree_is_out,
               a_cap_of_tokens_per_rank_is_kept, entries_are_of_the_callers_size, bad_input_is_named,
               llama_8b_comes_out_as_published)
