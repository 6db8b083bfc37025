#include "solve/packing/tight_parts.h"

#include "pack_oracle.h"

START_TEST(rows_cover_the_classes)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(18, 0, 0);
    for (int trial = 0; trial < 500; trial++) {
        oracle_mix mix;
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 300), 1, 2000, 50);
        mix.number[hbp__rng_below(&rng, (uint64_t)mix.classes.count)] = 0;
        int64_t wanted = 1 + hbp__rng_below(&rng, 40), items = 0, next = 0;
        hbp__coarse coarse;
        OK(context, hbp__coarse_open(context, &mix.classes, mix.number, wanted, &coarse));
        ck_assert_int_le(coarse.rows.count, wanted);
        for (int64_t r = 0; r < coarse.rows.count; r++) {
            int64_t held = 0;
            ck_assert_int_eq(coarse.size[r], mix.size[coarse.top[r]]);
            for (; next <= coarse.top[r]; next++)
                held += mix.number[next];
            ck_assert_int_eq(held, coarse.number[r]);
            items += held;
        }
        for (int64_t c = 0; c < mix.classes.count; c++)
            items -= mix.number[c];
        ck_assert_int_eq(items, 0);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(draws_items_as_long_as_they_last)
{
    hbp_context *context = test_context();
    int64_t size[] = {10, 11, 12, 30}, number[] = {2, 3, 4, 5};
    hbp__classes classes = {4, size, number, NULL};
    hbp__coarse coarse;
    hbp__patterns patterns;
    hbp__patterns_open(context, &patterns);
    OK(context, hbp__coarse_open(context, &classes, number, 2, &coarse));
    ck_assert_int_eq(coarse.rows.count, 2);
    ck_assert_int_eq(coarse.size[0], 12);
    ck_assert_int_eq(coarse.number[0], 9);
    int64_t used;
    /* Two of the small row and one of 30: four times, then one small item is left. */
    OK(context,
       hbp__coarse_use(context, &coarse, 9, (hbp__run[]){{1, 1}, {0, 2}}, 2, number, &patterns, &used));
    ck_assert_int_eq(used, 4);
    ck_assert_int_eq(patterns.packs, 4);
    ck_assert_int_eq(number[0] + number[1] + number[2], 1);
    ck_assert_int_eq(number[0], 1);
    ck_assert_int_eq(number[3], 1);
    int64_t packed[] = {1, 3, 4, 4};
    hbp__classes held = {4, size, packed, NULL};
    OK(context, hbp__patterns_check(context, &patterns, &held, (hbp__room){54, INT64_MAX}));
    hbp__patterns_close(&patterns);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("coarse", rows_cover_the_classes, draws_items_as_long_as_they_last)
