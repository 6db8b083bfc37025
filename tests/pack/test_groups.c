#include "base/methods.h"
#include "hbp/pack.h"

#include "cost/cost.h"
#include "costs.h"
#include "data/packs/groups.h"
#include "failing.h"
#include "keep.h"
#include "pack/groups/hierarchy.h"

static hbp_groups *plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost, int32_t mode,
                        int32_t max_groups)
{
    hbp_groups_options options = {.struct_size = sizeof options};
    options.method = hbp__groups_name(mode);
    options.max_groups = max_groups;
    options.max_length = 65536;
    hbp_groups *groups = NULL;
    OK(context, hbp_plan_groups(context, lengths, cost, &options, &groups));
    return groups;
}

START_TEST_IN_CONTEXT(both_modes_cover_the_data_with_packs_that_fit)
{
    hbp_cost *cost = keep(test_cost(context));
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 2000, 1000 + (int64_t)seed * 3000);
        hbp_lengths_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_lengths_get_summary(context, lengths, &summary));
        for (int32_t mode = 0; mode < 2; mode++) {
            hbp_groups *groups = plan(context, lengths, cost, mode, 0);
            int64_t tokens = 0;
            for (int64_t g = 0; g < groups->count; g++) {
                /* The published groups may be longer than any sample. */
                ck_assert(g == 0 || groups->threshold[g] + mode > groups->threshold[g - 1]);
                ck_assert_int_ge(groups->pack_length[g], groups->threshold[g]);
                ck_assert_int_le(hbp_cost_predict_pack_bytes(cost, groups->sp[g], groups->recompute[g],
                                                             groups->pack_length[g], 0),
                                 INT64_C(40000000000));
                ck_assert_int_eq(groups->packs[g], 16 / groups->sp[g]);
                int64_t step = groups->packs[g] * groups->pack_length[g] * groups->micro_batches[g];
                ck_assert_int_le(step, groups->tokens_per_step);
                /* The published packs may not divide a step; a pack of the longest sample need not either. */
                if (!mode && g + 1 < groups->count)
                    ck_assert_int_ge(step, groups->tokens_per_step / 100 * 70);
                tokens += groups->tokens[g];
            }
            ck_assert_int_eq(groups->threshold[groups->count - 1] >= summary.max_length, 1);
            ck_assert_int_eq(tokens, summary.tokens);
            hbp_groups_free(groups);
        }
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(the_chosen_hierarchy_heads_the_table_and_is_never_slower_than_the_papers)
{
    hbp_cost *cost = keep(test_cost(context));
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 20; keep_release(mark), seed++) {
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 3000, 65536));
        hbp_groups *optimal = keep(plan(context, lengths, cost, HBP__GROUPS_OPTIMAL, 0));
        hbp_groups *paper = keep(plan(context, lengths, cost, HBP__GROUPS_HBP, 0));
        int64_t count = groups_view(optimal).candidates;
        const int64_t *ns = groups_view(optimal).candidate_ns;
        ck_assert_int_gt(count, 2);
        char text[HBP__CANDIDATE_TEXT];
        hbp__groups_describe(optimal->pack_length, optimal->sp, optimal->count, text);
        ck_assert_str_eq(groups_view(optimal).candidate_texts[0], text);
        /* A level must save a 1/1000: that is all the chosen one may lose to a hierarchy of more levels. */
        for (int64_t i = 1; i < count; i++) {
            ck_assert_int_le(ns[0], ns[i] + ns[i] / 1000 * HBP_MAX_GROUPS);
            ck_assert(i == 1 || ns[i - 1] <= ns[i]);
        }
        /* Under the same contract the published groups are one of those that were considered. */
        if (paper->tokens_per_step == optimal->tokens_per_step)
            ck_assert_int_le(ns[0], groups_view(paper).candidate_ns[0]);
        hbp__groups_describe(paper->pack_length, paper->sp, paper->count, text);
        ck_assert_str_eq(groups_view(paper).candidate_texts[0], text);
        /* A row can be made into groups again; no row names a level twice. */
        for (int64_t i = 0; i < count; i++) {
            hbp_groups *again = NULL;
            OK(context, hbp__groups_candidate(context, cost, optimal, i, &again));
            ck_assert_int_eq(again->tokens_per_step, optimal->tokens_per_step);
            ck_assert_int_eq(again->candidate_ns[0], ns[i]);
            hbp__groups_describe(again->pack_length, again->sp, again->count, text);
            ck_assert_str_eq(groups_view(optimal).candidate_texts[i], text);
            ck_assert_str_eq(groups_view(again).candidate_texts[0], text);
            for (int64_t g = 0; g < again->count; g++) {
                for (int64_t h = 0; h < g; h++)
                    ck_assert(again->pack_length[g] != again->pack_length[h] || again->sp[g] != again->sp[h]);
                if (i == 0) {
                    ck_assert_int_eq(again->threshold[g], optimal->threshold[g]);
                    ck_assert_int_eq(again->tokens[g], optimal->tokens[g]);
                    ck_assert_int_eq(again->packs[g], optimal->packs[g]);
                    ck_assert_int_eq(again->micro_batches[g], optimal->micro_batches[g]);
                    ck_assert_int_eq(again->recompute[g], optimal->recompute[g]);
                }
            }
            hbp_groups_free(again);
        }
    }
}
END_TEST

/* What packing without a hierarchy takes is in the table: on each degree that holds the longest packs. */
START_TEST_IN_CONTEXT(the_table_has_a_single_level_of_each_degree)
{
    hbp_cost *cost = keep(test_cost(context));
    const hbp_cost_terms *t = &cost->terms;
    int64_t narrow = 0;
    int mark = keep_mark();
    for (uint64_t seed = 0; seed < 60; keep_release(mark), seed++) {
        hbp_groups_options options = {.struct_size = sizeof options};
        options.max_length = 4096 << seed % 5;
        options.method = hbp__groups_name(seed % 2 ? HBP__GROUPS_OPTIMAL : HBP__GROUPS_HBP);
        hbp_lengths *lengths = keep(test_long_tail(context, seed, 3000, options.max_length >> seed % 3));
        hbp_groups *groups = NULL;
        MAKES(context, groups, hbp_plan_groups(context, lengths, cost, &options, &groups));
        for (int32_t j = 0; j < t->degrees; j++) {
            int32_t sp = t->degree[j];
            char text[HBP__CANDIDATE_TEXT];
            int found = 0;
            hbp__groups_describe(&options.max_length, &sp, 1, text);
            for (int64_t i = 0; i < groups_view(groups).candidates; i++)
                found += strcmp(groups_view(groups).candidate_texts[i], text) == 0;
            ck_assert_msg(found == (hbp_cost_predict_capacity(cost, sp, t->layers) >= options.max_length &&
                                    t->ranks / sp * options.max_length <= groups->tokens_per_step),
                          "data set %d: %s is %d times in the table", (int)seed, text, found);
            narrow += sp == 1 && found;
        }
    }
    ck_assert_int_gt(narrow, 0);
}
END_TEST

START_TEST_IN_CONTEXT(the_published_rule_is_followed)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 3, 3000, 65536));
    hbp_groups *groups = keep(plan(context, lengths, cost, HBP__GROUPS_HBP, 0));
    /* The rule again, from hbp_choose_sp alone. */
    double tokens = 0, squares = 0;
    for (int64_t i = 0; i < 3000; i++) {
        double length = (double)hbp_lengths_get_length(lengths, i);
        tokens += length <= 8192 ? length : 0;
        squares += length <= 8192 ? length * length : 0;
    }
    hbp_sp_options options = {.struct_size = sizeof options};
    options.tokens_per_step = groups->tokens_per_step;
    options.squares_per_token = squares / tokens;
    int64_t best = 0, best_ns = INT64_MAX, wanted[4], count = 0;
    hbp_sp_choice choice = {.struct_size = sizeof choice}, best_choice = choice, longest = choice;
    for (int64_t length = 8192; length <= 65536; length *= 2) {
        if (hbp_choose_sp(context, cost, length, &options, &choice) < 0)
            continue;
        if (choice.step_ns < best_ns) {
            best = length;
            best_ns = choice.step_ns;
            best_choice = choice;
        }
        longest = choice;
    }
    wanted[count++] = 65536;
    if (best != 65536)
        wanted[count++] = best;
    if (best_choice.sp > 1)
        wanted[count++] = best / best_choice.sp;
    int64_t second = 65536 / longest.sp;
    if (longest.sp > 1 && second >= best && second != best)
        wanted[count++] = second;
    ck_assert_int_eq(groups->count, count);
    for (int64_t g = 0; g < groups->count; g++) {
        int found = 0;
        for (int64_t i = 0; i < count; i++)
            found += wanted[i] == groups->pack_length[g];
        ck_assert_int_eq(found, 1);
    }
}
END_TEST

START_TEST_IN_CONTEXT(groups_made_by_hand_are_checked)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_groups *groups = NULL;
    const int64_t length[] = {4096, 65536};
    const int32_t sp[] = {1, 8}, recompute[] = {0, 8};
    MAKES(context, groups, hbp_groups_create(context, cost, 2, length, sp, recompute, 0, &groups));
    ck_assert_int_eq(groups->tokens_per_step, 2 * 65536);
    ck_assert_int_eq(groups->recompute[1], 8);
    ck_assert_int_eq(groups->micro_batches[0], 2);
    ck_assert_int_eq(groups->step_ns[0] > 0, 1);
    FAILS(
        context, HBP_E_INVALID, "group 1: pack length 65536 is not above",
        hbp_groups_create(context, cost, 2, (int64_t[]){65536, 65536}, (int32_t[]){8, 8}, NULL, 0, &groups));
    ck_assert_ptr_null(groups);
    FAILS(context, HBP_E_INVALID, "group 0: SP degree 3",
          hbp_groups_create(context, cost, 2, length, (int32_t[]){3, 8}, NULL, 0, &groups));
    FAILS(context, HBP_E_INVALID, "group 1: 9 layers to recompute of 8",
          hbp_groups_create(context, cost, 2, length, sp, (int32_t[]){0, 9}, 0, &groups));
    FAILS(context, HBP_E_INFEASIBLE, "group 1: a pack of 65536 tokens does not fit on 1 rank",
          hbp_groups_create(context, cost, 2, length, (int32_t[]){1, 1}, NULL, 0, &groups));
    FAILS(context, HBP_E_INFEASIBLE, "group 0: a pack of 20000 tokens needs",
          hbp_groups_create(context, cost, 1, (int64_t[]){20000}, sp, (int32_t[]){0}, 0, &groups));
    MAKES(context, groups, hbp_groups_create(context, cost, 2, length, sp, recompute, INT64_MAX, &groups));
    ck_assert_int_eq(groups->step_ns[0], INT64_MAX); /* saturated, not wrapped */
    groups = NULL;
    FAILS(context, HBP_E_INVALID,
          "group 1: 2 packs of 65536 tokens in a micro-batch; tokens_per_step is 131071",
          hbp_groups_create(context, cost, 2, length, sp, recompute, 131071, &groups));
    /* A step without a number holds the largest micro-batch: 16 packs of 16,384. */
    MAKES(context, groups,
          hbp_groups_create(context, cost, 2, (int64_t[]){16384, 65536}, sp, NULL, 0, &groups));
    ck_assert_int_eq(groups->tokens_per_step, 16 * 16384);
    groups = NULL;
    FAILS(context, HBP_E_INVALID, "0 groups",
          hbp_groups_create(context, cost, 0, length, sp, NULL, 0, &groups));
    FAILS(context, HBP_E_INVALID, "group 0: pack length 0",
          hbp_groups_create(context, cost, 1, (int64_t[]){0}, sp, NULL, 0, &groups));
}
END_TEST

START_TEST_IN_CONTEXT(senseless_requests_are_named)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 100, 30000));
    hbp_groups *groups = (hbp_groups *)1;
    hbp_groups_options options = {.struct_size = sizeof options};
    options.max_length = 1000;
    FAILS(context, HBP_E_INVALID, "longer than max_length, 1000 tokens",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    ck_assert_ptr_null(groups);
    options.max_length = 1 << 20;
    options.method = hbp__groups_name(HBP__GROUPS_HBP);
    FAILS(context, HBP_E_INFEASIBLE, "1048576", hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.method = hbp__groups_name(HBP__GROUPS_OPTIMAL);
    options.max_length = -1;
    FAILS(context, HBP_E_INVALID, "`max_length` is -1; it must be in 0..1125899906842624",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.max_length = 0;
    options.max_groups = 17;
    FAILS(context, HBP_E_INVALID, "`max_groups` is 17; it must be in 0..16",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.max_groups = 0;
    options.method = "hpb";
    FAILS(context, HBP_E_INVALID, "`method` is 'hpb'; did you mean 'hbp'? It must be one of optimal, hbp",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.method = hbp__groups_name(0);
    options.step_slack = 100;
    FAILS(context, HBP_E_INVALID, "`step_slack` is 100; it must be in -1..99",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.step_slack = 0;
    options.max_pack_length = -1;
    FAILS(context, HBP_E_INVALID, "`max_pack_length` is -1; it must be in 0..1125899906842624",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.max_pack_length = 999;
    for (int32_t method = 0; method < 2; method++) {
        options.method = hbp__groups_name(method);
        FAILS(context, HBP_E_INFEASIBLE, "with padding; max_pack_length is 999",
              hbp_plan_groups(context, lengths, cost, &options, &groups));
    }
    options.max_pack_length = 0;
    options.tokens_per_rank = 100;
    options.method = hbp__groups_name(0);
    FAILS(context, HBP_E_INFEASIBLE, "pack of", hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.tokens_per_step = 1 << 20;
    FAILS(context, HBP_E_INFEASIBLE, "with tokens_per_rank 100 (",
          hbp_plan_groups(context, lengths, cost, &options, &groups));
    options.tokens_per_rank = 0;
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_plan_groups(context, lengths, NULL, NULL, &groups));
}
END_TEST

/* Tokens of a full micro-batch never pass a step; where none can be had, the least step is named, and it is
 * enough. */
START_TEST_IN_CONTEXT(packs_past_every_length_name_what_asks_for_them)
{
    static const uint32_t length[] = {3, INT32_MAX, 5};
    static const int64_t links[] = {0, 0, -1};
    hbp_cost *cost = keep(test_cost(context));
    for (int i = 0; i < 3; i++) {
        hbp_lengths_options linked = {.struct_size = sizeof linked, .links = i == 1 ? links : NULL};
        hbp_groups_options options = {.struct_size = sizeof options,
                                      .max_length = i == 2 ? INT64_C(2147483648) : 0};
        static const char *const texts[] = {"sample 1 has 2147483647 tokens", "linked samples",
                                            "max_length is 2147483648, which takes packs"};
        hbp_lengths *lengths = NULL;
        hbp_groups *groups = NULL;
        OK(context, hbp_lengths_create_u32(context, length, 3, &linked, &lengths));
        ck_assert_int_eq(hbp_plan_groups(context, lengths, cost, &options, &groups), HBP_E_INVALID);
        ck_assert_msg(strstr(hbp_context_message(context), texts[i]), "%s", hbp_context_message(context));
        ck_assert_ptr_null(groups);
        hbp_lengths_free(lengths);
    }
}
END_TEST

START_TEST_IN_CONTEXT(no_step_passes_what_it_may_hold)
{
    hbp_cost *cost = keep(test_cost(context));
    int refused = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 2, 0);
        hbp_lengths *lengths = test_long_tail(context, seed, 500, 30000);
        int64_t longest = lengths->bin_length[lengths->bins - 1];
        hbp_groups_options options = {.struct_size = sizeof options};
        options.method = hbp__groups_name((int32_t)(seed % 2));
        options.tokens_per_step = 1 + hbp__rng_below(&rng, seed % 3 ? 150000 : 1000000);
        hbp_groups *groups = NULL;
        hbp_status status = hbp_plan_groups(context, lengths, cost, &options, &groups);
        if (status == HBP_OK) {
            for (int64_t g = 0; g < groups->count; g++)
                ck_assert_int_le(groups->packs[g] * groups->pack_length[g] * groups->micro_batches[g],
                                 options.tokens_per_step);
        } else if (!hbp__groups_method(options.method)) {
            /* Two packs of SP 8, the largest degree. */
            refused++;
            ck_assert_int_eq(status, HBP_E_INFEASIBLE);
            ck_assert_int_lt(options.tokens_per_step, 2 * longest);
            char least[64];
            snprintf(least, sizeof least, "holds at least %lld", (long long)(2 * longest));
            ck_assert_ptr_nonnull(strstr(hbp_context_message(context), least));
            options.tokens_per_step = 2 * longest;
            OK(context, hbp_plan_groups(context, lengths, cost, &options, &groups));
        }
        hbp_groups_free(groups);
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(refused, 0);
}
END_TEST

START_TEST_IN_CONTEXT(packs_may_be_longer_than_samples_up_to_what_is_asked)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = keep(test_long_tail(context, 5, 20000, 3000));
    hbp_groups_options options = {.struct_size = sizeof options};
    hbp_groups *groups = NULL;
    MAKES(context, groups, hbp_plan_groups(context, lengths, cost, &options, &groups));
    ck_assert_int_gt(groups->pack_length[groups->count - 1], 3000);
    ck_assert_int_le(groups->threshold[groups->count - 1], 3000);
    int64_t free_ns = groups_view(groups).candidate_ns[0];
    options.tokens_per_step = groups->tokens_per_step;
    options.max_pack_length = 3500;
    MAKES(context, groups, hbp_plan_groups(context, lengths, cost, &options, &groups));
    for (int64_t g = 0; g < groups->count; g++)
        ck_assert_int_le(groups->pack_length[g], 3500);
    ck_assert_int_gt(groups_view(groups).candidate_ns[0], free_ns);
    options.max_pack_length = 0;
    options.tokens_per_rank = 1000;
    MAKES(context, groups, hbp_plan_groups(context, lengths, cost, &options, &groups));
    for (int64_t g = 0; g < groups->count; g++)
        ck_assert_int_le(groups->pack_length[g], 1000 * groups->sp[g]);
}
END_TEST

START_TEST_IN_CONTEXT(pairs_are_planned_wherever_the_published_rule_plans_them)
{
    int planned = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        hbp_cost *cost = test_cost_ranks(context, seed % 3 ? 8 : 16);
        hbp__rng rng = hbp__rng_make(seed, 3, 0);
        uint32_t length[1000];
        int64_t link[1000];
        uint32_t most = 2000 << seed % 5;
        for (int i = 0; i < 1000; i++) {
            length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 5) ? most / 8 : most);
            link[i] = i / 2;
        }
        hbp_lengths_options lengths_options = {.struct_size = sizeof lengths_options};
        lengths_options.links = link;
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, length, 1000, &lengths_options, &lengths));
        hbp_groups *groups = NULL;
        hbp_groups_options options = {.struct_size = sizeof options};
        options.method = hbp__groups_name(HBP__GROUPS_HBP);
        hbp_status paper = hbp_plan_groups(context, lengths, cost, &options, &groups);
        hbp_groups_free(groups);
        options.method = hbp__groups_name(HBP__GROUPS_OPTIMAL);
        hbp_status optimal = hbp_plan_groups(context, lengths, cost, &options, &groups);
        if (paper == HBP_OK)
            ck_assert_int_eq(optimal, HBP_OK);
        if (optimal == HBP_OK) {
            hbp_packs *packs = NULL;
            OK(context, hbp_greedy_fill(context, lengths, groups, NULL, &packs));
            planned++;
            hbp_packs_free(packs);
        }
        hbp_groups_free(groups);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    ck_assert_int_gt(planned, 10);
}
END_TEST

typedef struct inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
} inputs;

static hbp_status plan_once(hbp_context *context, void *user)
{
    inputs *in = user;
    hbp_groups *groups = NULL;
    hbp_status status = hbp_plan_groups(context, in->lengths, in->cost, NULL, &groups);
    ck_assert_int_eq(status == HBP_OK, groups != NULL);
    hbp_groups_free(groups);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    inputs in = {keep(test_long_tail(context, 1, 500, 60000)), keep(test_cost(context))};
    failing_sweep(plan_once, &in);
    ck_assert_int_gt(cancel_sweep(plan_once, &in), 1);
}
END_TEST

START_TEST_IN_CONTEXT(no_rank_holds_more_than_the_cap)
{
    hbp_cost *cost = keep(test_cost(context));
    int64_t felt = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_lengths *lengths = test_long_tail(context, seed, 2000, 30000);
        hbp_lengths_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_lengths_get_summary(context, lengths, &summary));
        for (int32_t mode = 0; mode < 2; mode++)
            for (int64_t cap = (summary.max_length + 7) / 8; cap < 20000; cap = cap * 2 + 1) {
                hbp_groups_options options = {.struct_size = sizeof options,
                                              .method = hbp__groups_name(mode)};
                hbp_groups *groups = NULL, *free = NULL;
                OK(context, hbp_plan_groups(context, lengths, cost, &options, &free));
                options.tokens_per_rank = cap;
                OK(context, hbp_plan_groups(context, lengths, cost, &options, &groups));
                for (int64_t g = 0; g < groups->count; g++)
                    ck_assert_int_le(groups->pack_length[g], cap * groups->sp[g]);
                ck_assert_int_ge(groups->threshold[groups->count - 1], summary.max_length);
                for (int64_t g = 0; g < free->count; g++)
                    felt += free->pack_length[g] > cap * free->sp[g];
                hbp_groups_free(free);
                hbp_groups_free(groups);
            }
        hbp_lengths_free(lengths);
    }
    ck_assert_int_gt(felt, 20);
    hbp_groups *groups = NULL;
    hbp_cost capped = hbp__cost_capped(cost, 1000);
    OK(context, hbp_groups_create(context, &capped, 1, (int64_t[]){4000}, (int32_t[]){4}, NULL, 0, &groups));
    hbp_groups_free(groups);
    FAILS(context, HBP_E_INFEASIBLE,
          "group 0: a pack of 4001 tokens on 4 ranks passes tokens_per_rank, which is 1000; 1001 would do",
          hbp_groups_create(context, &capped, 1, (int64_t[]){4001}, (int32_t[]){4}, NULL, 0, &groups));
}
END_TEST

TEST_MAIN("groups", packs_past_every_length_name_what_asks_for_them, no_step_passes_what_it_may_hold,
          packs_may_be_longer_than_samples_up_to_what_is_asked,
          pairs_are_planned_wherever_the_published_rule_plans_them,
          both_modes_cover_the_data_with_packs_that_fit,
          the_chosen_hierarchy_heads_the_table_and_is_never_slower_than_the_papers,
          the_table_has_a_single_level_of_each_degree, the_published_rule_is_followed,
          groups_made_by_hand_are_checked, no_rank_holds_more_than_the_cap, senseless_requests_are_named,
          nothing_is_left_behind)
