#include "costs.h"
#include "keep.h"
#include "pack/groups/level_list.h"

/* The oracle: all ways to choose `left` levels, none of them used[], for the items up to threshold `j`, by
 * recursion; -1: none. */
static double best_of(const hbp__estimator *e, const hbp__level_list *list, int left, int64_t j, char *used)
{
    if (!j)
        return 0;
    if (!left)
        return -1;
    double best = -1;
    for (int64_t l = 0; l < list->levels; l++) {
        if (list->level[l].pack_length < list->threshold[j] || used[l])
            continue;
        used[l] = 1;
        for (int64_t i = 0; i < j; i++) {
            double rest = best_of(e, list, left - 1, i, used), share;
            double ns = hbp__level_ns(e, &list->level[l], list->bin[i], list->bin[j], &share);
            double total = ns + share * rest;
            if (i > 0 && share <= 0)
                continue; /* fills up with all that the shorter levels have */
            if (rest >= 0 && (best < 0 || total < best))
                best = total;
        }
        used[l] = 0;
    }
    return best;
}

static void check(hbp_context *context, const hbp__estimator *e, const hbp__level_limits *limits, int groups,
                  uint64_t seed)
{
    hbp__level_list *list = malloc(sizeof *list);
    hbp__hierarchy found[20];
    int64_t count = 20;
    hbp__level_list_make(e, limits, list);
    ck_assert_int_ge(list->levels, 1);
    ck_assert_int_eq(list->bin[list->thresholds - 1], e->bins);
    OK(context, hbp__groups_optimal(context, e, limits, groups, found, &count));
    ck_assert_int_ge(count, 1);
    char used[HBP__MAX_LEVELS] = {0};
    double expected = best_of(e, list, groups, list->thresholds - 1, used), best = (double)found[0].epoch_ns;
    ck_assert_msg(best >= expected * (1 - 1e-9) - 1 && best <= expected * (1 + 1e-9) + 1,
                  "seed %d: %.0f, best is %.0f", (int)seed, best, expected);
    for (int64_t i = 0; i < count; i++) {
        hbp__hierarchy again = found[i];
        hbp__hierarchy_estimate(e, &again);
        ck_assert_int_eq(again.epoch_ns, found[i].epoch_ns);
        ck_assert_int_le(found[i].count, groups);
        ck_assert(!i || found[i - 1].epoch_ns <= found[i].epoch_ns);
        for (int64_t k = 0; k < i; k++)
            ck_assert(!hbp__hierarchy_equals(&found[i], &found[k]));
        for (int64_t g = 0; g < found[i].count; g++)
            for (int64_t h = 0; h < g; h++)
                ck_assert(found[i].level[g].sp != found[i].level[h].sp ||
                          found[i].level[g].pack_length != found[i].level[h].pack_length);
    }
    free(list);
}

START_TEST_IN_CONTEXT(equals_every_choice_of_levels)
{
    for (uint64_t seed = 0; seed < 16; seed++) {
        hbp_cost *cost = test_cost_ranks(context, seed % 2 ? 4 : 8);
        hbp_lengths *lengths = test_long_tail(context, seed, 300, 16384);
        hbp__estimator e;
        OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
        hbp__level_limits limits = {65536, seed % 5 ? 1 : 64,        seed % 3 ? 25 : 0,
                                    6000,  seed % 4 ? 65536 : 16384, INT64_MAX};
        check(context, &e, &limits, 3, seed);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(equals_every_choice_of_levels_for_linked_samples)
{
    for (uint64_t seed = 0; seed < TEST_FEW(16, 4); seed++) {
        hbp_cost *cost = test_cost_ranks(context, 8);
        hbp__rng rng = hbp__rng_make(seed, 0, 0);
        uint32_t length[200];
        int64_t link[200];
        for (int i = 0; i < 200; i++) {
            length[i] = 1 + hbp__rng_below(&rng, hbp__rng_below(&rng, 4) ? 1000 : 9000);
            link[i] = hbp__rng_below(&rng, 3) ? i / 2 : -1;
        }
        hbp_lengths_options options = {.struct_size = sizeof options};
        options.links = link;
        hbp_lengths *lengths = NULL;
        OK(context, hbp_lengths_create_u32(context, length, 200, &options, &lengths));
        hbp__estimator e;
        OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
        hbp__level_limits limits = {131072, 1, 25, 4000, 65536, INT64_MAX};
        check(context, &e, &limits, 3, seed);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
}
END_TEST

START_TEST_IN_CONTEXT(nothing_is_found_where_no_pack_holds_the_longest)
{
    hbp_cost *cost = keep(test_cost_ranks(context, 8));
    hbp_lengths *lengths = keep(test_long_tail(context, 1, 300, 16384));
    hbp__estimator e;
    OK(context, hbp__estimator_open(context, lengths, cost, 1, &e));
    hbp__level_limits limits = {65536, 1, 25, 1000, 2000, INT64_MAX};
    hbp__hierarchy found[4];
    int64_t count = 4;
    OK(context, hbp__groups_optimal(context, &e, &limits, 3, found, &count));
    ck_assert_int_eq(count, 0);
}
END_TEST

TEST_MAIN("groups_optimal", equals_every_choice_of_levels, equals_every_choice_of_levels_for_linked_samples,
          nothing_is_found_where_no_pack_holds_the_longest)
