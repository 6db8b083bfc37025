#include "solve/chain/chain.h"

#include "solve/chains.h"

#define MOST_LISTED 12

/* The best partitions of all, by value and then by earlier cuts. */
static void list_all(hbp_context *context, const hbp__chain *chain, int32_t room, hbp__cut_list *list)
{
    int32_t cuts[CHAIN_PARTS + 1];
    OK(context, hbp__cut_list_open(context, chain->parts, room, list));
    chain_first(chain, cuts);
    do {
        if (chain_keeps(chain, cuts))
            hbp__cut_list_add(list, cuts, chain_value(chain, cuts));
    } while (chain_next(chain, cuts));
}

static void compare_lists(const hbp__cut_list *got, const hbp__cut_list *want)
{
    ck_assert_int_eq(got->count, want->count);
    for (int32_t i = 0; i < want->count; i++) {
        ck_assert_int_eq(got->value[i], want->value[i]);
        for (int32_t p = 0; p <= want->parts; p++)
            ck_assert_int_eq(hbp__cut_list_get(got, i)[p], hbp__cut_list_get(want, i)[p]);
    }
}

START_TEST(equals_every_partition_tried)
{
    static chain_data d;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int infeasible = 0, several = 0;
    for (int trial = 0; trial < 6000; trial++) {
        int32_t items = (int32_t)chain_draw(&rng, 1, 14), most = items < 5 ? items : 5;
        chain_make(&rng, items, (int32_t)chain_draw(&rng, 1, most), &d);
        int32_t room = trial % 2 ? 1 : (int32_t)chain_draw(&rng, 2, MOST_LISTED);
        hbp__cut_list want, got;
        list_all(context, &d.chain, room, &want);
        OK(context, hbp__cut_list_open(context, d.chain.parts, room, &got));
        int64_t work = INT64_MAX, bound = -1;
        hbp_status status = hbp__cut_chain(context, &d.chain, &work, &got, &bound);
        ck_assert_int_eq(status, want.count ? HBP_OK : HBP_E_INFEASIBLE);
        int32_t first[CHAIN_PARTS + 1], earliest[CHAIN_PARTS + 1];
        ck_assert_int_eq(hbp__chain_first(context, &d.chain, first), want.count > 0);
        for (chain_first(&d.chain, earliest); want.count && !chain_keeps(&d.chain, earliest);)
            ck_assert(chain_next(&d.chain, earliest));
        for (int32_t p = 0; p <= d.chain.parts && want.count; p++)
            ck_assert_int_eq(first[p], earliest[p]);
        compare_lists(&got, &want);
        infeasible += !want.count;
        several += want.count > 1;
        if (want.count)
            ck_assert_int_eq(bound, hbp__cut_list_worst(&want));
        for (int32_t i = 0; i < got.count; i++)
            ck_assert_int_eq(hbp__chain_value(&d.chain, hbp__cut_list_get(&got, i), NULL), got.value[i]);
        hbp__cut_list_close(&want);
        hbp__cut_list_close(&got);
    }
    ck_assert_int_gt(infeasible, 50);
    ck_assert_int_gt(several, 1000);
    hbp_context_free(context);
}
END_TEST

/* Ends at any point with partitions that are as they say and a bound that holds. */
START_TEST(a_limit_of_work_leaves_a_bound)
{
    static chain_data d;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    int early = 0;
    for (int trial = 0; trial < 400; trial++) {
        chain_make(&rng, 30, 4, &d);
        d.chain.reach = NULL;
        int64_t best, bound, work = INT64_MAX;
        hbp__cut_list list;
        OK(context, hbp__cut_list_open(context, 4, 1, &list));
        OK(context, hbp__cut_chain(context, &d.chain, &work, &list, &bound));
        best = list.value[0];
        ck_assert_int_eq(bound, best);
        hbp__cut_list_close(&list);
        for (int64_t limit = 1; limit < 4000; limit *= 3) {
            work = limit;
            OK(context, hbp__cut_list_open(context, 4, 1, &list));
            OK(context, hbp__cut_chain(context, &d.chain, &work, &list, &bound));
            ck_assert_int_eq(list.count, 1);
            ck_assert_int_le(bound, best);
            ck_assert_int_ge(list.value[0], best);
            ck_assert_int_eq(chain_value(&d.chain, hbp__cut_list_get(&list, 0)), list.value[0]);
            early += bound < best;
            hbp__cut_list_close(&list);
        }
    }
    ck_assert_int_gt(early, 50);
    hbp_context_free(context);
}
END_TEST

/* What is in the list to begin with stays when it is among the best, and does not change the rest. */
START_TEST(a_list_may_begin_with_some)
{
    static chain_data d;
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    for (int trial = 0; trial < 500; trial++) {
        chain_make(&rng, 12, 4, &d);
        hbp__cut_list want, got;
        list_all(context, &d.chain, 6, &want);
        OK(context, hbp__cut_list_open(context, 4, 6, &got));
        for (int32_t i = 0; i < want.count; i += 2)
            hbp__cut_list_add(&got, hbp__cut_list_get(&want, i), want.value[i]);
        int64_t work = INT64_MAX, bound;
        if (want.count)
            OK(context, hbp__cut_chain(context, &d.chain, &work, &got, &bound));
        compare_lists(&got, &want);
        hbp__cut_list_close(&want);
        hbp__cut_list_close(&got);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(lists_keep_the_best_in_order)
{
    hbp_context *context = test_context();
    hbp__cut_list list;
    OK(context, hbp__cut_list_open(context, 3, 2, &list));
    ck_assert_int_eq(hbp__cut_list_worst(&list), INT64_MAX);
    const int32_t a[] = {0, 1, 4, 9}, b[] = {0, 1, 5, 9}, c[] = {0, 2, 3, 9};
    hbp__cut_list_add(&list, c, 7);
    hbp__cut_list_add(&list, b, 7);
    hbp__cut_list_add(&list, b, 7);
    ck_assert_int_eq(list.count, 2);
    ck_assert_mem_eq(hbp__cut_list_get(&list, 0), b, sizeof b);
    ck_assert_mem_eq(hbp__cut_list_get(&list, 1), c, sizeof c);
    hbp__cut_list_add(&list, a, 8);
    ck_assert_mem_eq(hbp__cut_list_get(&list, 1), c, sizeof c);
    hbp__cut_list_add(&list, a, 7);
    ck_assert_mem_eq(hbp__cut_list_get(&list, 0), a, sizeof a);
    ck_assert_mem_eq(hbp__cut_list_get(&list, 1), b, sizeof b);
    hbp__cut_list_add(&list, c, 6);
    ck_assert_mem_eq(hbp__cut_list_get(&list, 0), c, sizeof c);
    ck_assert_int_eq(hbp__cut_list_worst(&list), 7);
    hbp__cut_list_close(&list);
    hbp_context_free(context);
}
END_TEST

static hbp_status cut(hbp_context *context, void *user)
{
    const hbp__chain *chain = user;
    hbp__cut_list list;
    int64_t work = INT64_MAX, bound;
    HBP__TRY(hbp__cut_list_open(context, chain->parts, 3, &list));
    hbp_status status = hbp__cut_chain(context, chain, &work, &list, &bound);
    hbp__cut_list_close(&list);
    return status;
}

START_TEST(failing_allocations_and_cancelling_leave_nothing)
{
    static chain_data d;
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    chain_make(&rng, 40, 5, &d);
    d.chain.reach = NULL;
    d.chain.weight = 3;
    failing_sweep(cut, &d.chain);
    ck_assert_int_gt(cancel_sweep(cut, &d.chain), 5);
}
END_TEST

TEST_MAIN("chain_cuts", equals_every_partition_tried, a_limit_of_work_leaves_a_bound,
          a_list_may_begin_with_some, lists_keep_the_best_in_order,
          failing_allocations_and_cancelling_leave_nothing)
