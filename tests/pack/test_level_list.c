#include "pack/groups/level_list.h"

#include "costs.h"
#include "keep.h"

static const hbp__level *find(const hbp__level_list *list, int32_t sp, int64_t length)
{
    for (int64_t i = 0; i < list->levels; i++)
        if (list->level[i].sp == sp && list->level[i].pack_length == length)
            return &list->level[i];
    return NULL;
}

START_TEST_IN_CONTEXT(levels_keep_the_limits_and_thresholds_part_the_items)
{
    hbp__level_list *list = keep(malloc(sizeof *list));
    for (uint64_t seed = 0; seed < 40; seed++) {
        hbp__rng rng = hbp__rng_make(seed, 1, 0);
        hbp_cost *cost = test_cost(context);
        int64_t longest = 100 + hbp__rng_below(&rng, 40000);
        hbp_lengths *lengths = test_long_tail(context, seed, 50 + hbp__rng_below(&rng, 5000), longest);
        hbp__estimator e;
        OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
        longest = e.size[e.bins - 1];
        hbp__level_limits limits = {.tokens_per_step = longest * 2 + hbp__rng_below(&rng, 3000000),
                                    .pack_multiple = 1 + hbp__rng_below(&rng, 100),
                                    .step_slack = hbp__rng_below(&rng, 40),
                                    .min_length = 1 + hbp__rng_below(&rng, 2000),
                                    .max_length = longest + 100 + hbp__rng_below(&rng, 200000),
                                    .tokens_per_rank = longest / 8 + 100 + hbp__rng_below(&rng, 50000)};
        hbp__level_list_make(&e, &limits, list);
        int covers = 0;
        for (int64_t i = 0; i < list->levels; i++) {
            const hbp__level *level = &list->level[i];
            int64_t micro_batch = level->packs * level->pack_length;
            ck_assert_int_eq(level->packs, 16 / level->sp);
            ck_assert_int_eq(level->pack_length % limits.pack_multiple, 0);
            ck_assert_int_le(level->pack_length, limits.max_length);
            ck_assert_int_le(hbp__ceil_div(level->pack_length, level->sp), limits.tokens_per_rank);
            ck_assert_int_le(micro_batch * level->micro_batches, limits.tokens_per_step);
            ck_assert_int_le(
                hbp_cost_predict_pack_bytes(cost, level->sp, level->recompute, level->pack_length, 0),
                cost->terms.limit_bytes);
            covers |= level->pack_length >= longest;
            ck_assert_ptr_eq(find(list, level->sp, level->pack_length), level);
        }
        ck_assert_int_eq(list->threshold[0], 0);
        ck_assert_int_eq(list->bin[0], 0);
        for (int64_t i = 1; i < list->thresholds; i++) {
            ck_assert_int_gt(list->bin[i], list->bin[i - 1]);
            ck_assert_int_eq(hbp__estimator_bin(&e, list->threshold[i]), list->bin[i]);
            ck_assert_int_le(list->threshold[i], longest);
        }
        ck_assert_int_eq(covers, list->bin[list->thresholds - 1] == e.bins);
        hbp__level full;
        int64_t rounded = hbp__round_up(longest, limits.pack_multiple);
        if (hbp__level_allow(cost, &limits, 8, rounded, 0, &full))
            ck_assert(covers);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(packs_are_longer_than_the_longest_sample)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths,
          hbp_lengths_create_histogram(context, (int64_t[]){2000}, (int64_t[]){500}, 1, &lengths));
    hbp__estimator e;
    hbp__level_list *list = keep(malloc(sizeof *list));
    OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
    hbp__level_limits limits = {16 * 13000, 1, 25, 1024, INT32_MAX, INT64_MAX};
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_nonnull(find(list, 1, 13000));
    ck_assert_ptr_nonnull(find(list, 1, 12000)); /* six samples */
    ck_assert_ptr_nonnull(find(list, 8, 104000));
    ck_assert_int_eq(list->thresholds, 2);
    ck_assert_int_eq(list->threshold[1], 2000);
    limits.max_length = 6500;
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_null(find(list, 1, 13000));
    ck_assert_ptr_nonnull(find(list, 1, 6500));
}
END_TEST

/* Powers of two are cut to three quarters: just what a step may lack. */
START_TEST_IN_CONTEXT(all_of_the_slack_may_be_used)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths,
          hbp_lengths_create_histogram(context, (int64_t[]){3072}, (int64_t[]){500}, 1, &lengths));
    hbp__estimator e;
    hbp__level_list *list = keep(malloc(sizeof *list));
    OK(context, hbp__estimator_open(context, lengths, cost, 1024, &e));
    hbp__level_limits limits = {16 * 4096, 1024, 25, 1024, INT32_MAX, INT64_MAX};
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_nonnull(find(list, 1, 3072));
    limits.step_slack = 24;
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_null(find(list, 1, 3072));
}
END_TEST

/* A micro-batch of a whole step does not fit memory, but one within the slack does. */
START_TEST_IN_CONTEXT(packs_that_memory_does_not_hold_are_cut_to_its_capacity)
{
    hbp_cost *cost = keep(test_cost(context));
    const int64_t capacity = hbp__cost_capacity(cost, 0, cost->terms.layers, 0);
    hbp_lengths *lengths = NULL;
    MAKES(context, lengths,
          hbp_lengths_create_histogram(context, (int64_t[]){7}, (int64_t[]){500}, 1, &lengths));
    hbp__estimator e;
    hbp__level_list *list = keep(malloc(sizeof *list));
    OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
    hbp__level_limits limits = {16 * (capacity + capacity / 10), 1, 25, 1024, INT32_MAX, INT64_MAX};
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_nonnull(find(list, 1, capacity));
    ck_assert_int_eq(find(list, 1, capacity)->recompute, cost->terms.layers);
    limits.pack_multiple = 100;
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_nonnull(find(list, 1, capacity / 100 * 100));
    limits.pack_multiple = 1;
    limits.max_length = capacity - 50;
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_nonnull(find(list, 1, capacity - 50));
    limits.max_length = INT32_MAX;
    limits.tokens_per_rank = capacity - 30;
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_nonnull(find(list, 1, capacity - 30));
    limits.tokens_per_rank = INT64_MAX;
    limits.step_slack = 5;
    hbp__level_list_make(&e, &limits, list);
    ck_assert_ptr_null(find(list, 1, capacity));
}
END_TEST

TEST_MAIN("level_list", levels_keep_the_limits_and_thresholds_part_the_items,
          packs_are_longer_than_the_longest_sample, all_of_the_slack_may_be_used,
          packs_that_memory_does_not_hold_are_cut_to_its_capacity)
