#include "failing.h"
#include "pack_oracle.h"

static const hbp__pack_rule rules[] = {HBP__BEST_FIT, HBP__FIRST_FIT, HBP__WORST_FIT};

static int64_t pack(hbp_context *context, const hbp__classes *classes, hbp__room room, hbp__pack_rule rule)
{
    hbp__patterns patterns;
    hbp__patterns_open(context, &patterns);
    OK(context, hbp__histogram_pack(context, classes, room, rule, &patterns));
    OK(context, hbp__patterns_check(context, &patterns, classes, room));
    int64_t packs = patterns.packs;
    hbp__patterns_close(&patterns);
    return packs;
}

START_TEST(equals_the_packer_of_single_items)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    static const int64_t top[] = {1, 2, 3, 5, 10};
    for (int trial = 0; trial < 1500; trial++) {
        oracle_mix mix;
        int64_t capacity = 10 + hbp__rng_below(&rng, trial % 2 ? 50 : 3000);
        int64_t high = capacity / top[hbp__rng_below(&rng, 5)];
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 30), 1 + hbp__rng_below(&rng, (uint64_t)high), high,
                    trial % 3 ? 4 : 40);
        for (int r = 0; r < 3; r++)
            ck_assert_int_eq(pack(context, &mix.classes, (hbp__room){capacity, INT64_MAX}, rules[r]),
                             oracle_fit(&mix.classes, capacity, rules[r]));
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(keeps_a_cap_on_weight)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    for (int trial = 0; trial < 300; trial++) {
        oracle_mix mix;
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 20), 1, 60, 30);
        for (int64_t c = 0; c < mix.classes.count; c++)
            mix.weight[c] = 1 + hbp__rng_below(&rng, 3);
        if (trial % 2)
            mix.classes.weight = mix.weight;
        hbp__room room = {60 + hbp__rng_below(&rng, 100), 3 + hbp__rng_below(&rng, 5)};
        for (int r = 0; r < 3; r++)
            pack(context, &mix.classes, room, rules[r]);
    }
    /* Ten items of size 1, three a pack. */
    int64_t size = 1, number = 10;
    hbp__classes classes = {1, &size, &number, NULL};
    for (int r = 0; r < 3; r++)
        ck_assert_int_eq(pack(context, &classes, (hbp__room){100, 3}, rules[r]), 4);
    hbp_context_free(context);
}
END_TEST

START_TEST(costs_nothing_for_more_of_the_same)
{
    hbp_context *context = test_context();
    int64_t size[] = {100, 300}, number[] = {INT64_C(4000000000), INT64_C(1000000000)};
    hbp__classes classes = {2, size, number, NULL};
    hbp__room room = {1000, INT64_MAX};
    for (int r = 0; r < 3; r++) {
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        OK(context, hbp__histogram_pack(context, &classes, room, rules[r], &patterns));
        OK(context, hbp__patterns_check(context, &patterns, &classes, room));
        ck_assert_int_eq(patterns.packs, 700000000);
        ck_assert_int_lt(patterns.count, 10);
        hbp__patterns_close(&patterns);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(refuses_what_fits_no_pack)
{
    hbp_context *context = test_context();
    int64_t size[] = {5, 11}, number[] = {1, 1}, weight[] = {7, 1};
    hbp__patterns patterns;
    hbp__patterns_open(context, &patterns);
    hbp__classes classes = {2, size, number, NULL};
    FAILS(context, HBP_E_INFEASIBLE, "size 11 fits no pack of capacity 10",
          hbp__histogram_pack(context, &classes, (hbp__room){10, INT64_MAX}, HBP__BEST_FIT, &patterns));
    classes.weight = weight;
    FAILS(context, HBP_E_INFEASIBLE, "weight 7 fits no pack of weight 6",
          hbp__histogram_pack(context, &classes, (hbp__room){20, 6}, HBP__BEST_FIT, &patterns));
    number[1] = 0;
    weight[0] = 1;
    OK(context, hbp__histogram_pack(context, &classes, (hbp__room){10, 6}, HBP__BEST_FIT, &patterns));
    hbp__patterns_close(&patterns);
    hbp_context_free(context);
}
END_TEST

static hbp_status pack_once(hbp_context *context, void *user)
{
    const oracle_mix *mix = user;
    hbp__patterns patterns;
    hbp__patterns_open(context, &patterns);
    hbp_status status =
        hbp__histogram_pack(context, &mix->classes, (hbp__room){4000, INT64_MAX}, HBP__BEST_FIT, &patterns);
    hbp__patterns_close(&patterns);
    return status;
}

START_TEST(survives_failing_allocations)
{
    oracle_mix mix;
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    oracle_draw(&mix, &rng, 300, 1, 4000, 20);
    failing_sweep(pack_once, &mix);
}
END_TEST

TEST_MAIN("histogram_pack", equals_the_packer_of_single_items, keeps_a_cap_on_weight,
          costs_nothing_for_more_of_the_same, refuses_what_fits_no_pack, survives_failing_allocations)
