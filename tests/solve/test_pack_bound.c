#include "solve/packing/tight_pack.h"

#include "pack_oracle.h"

/* Martello and Toth's L2 by its definition, every threshold tried. */
static int64_t martello_toth(const hbp__classes *classes, int64_t capacity)
{
    int64_t most = 0;
    for (int64_t k = 0; k <= capacity / 2; k++) {
        int64_t large = 0, over_half = 0, room = 0, small = 0;
        for (int64_t c = 0; c < classes->count; c++) {
            int64_t x = classes->size[c], number = classes->number[c];
            if (x > capacity - k) {
                large += number;
            } else if (2 * x > capacity) {
                over_half += number;
                room += number * (capacity - x);
            } else if (x >= k) {
                small += number * x;
            }
        }
        int64_t packs = large + over_half + (small > room ? (small - room + capacity - 1) / capacity : 0);
        most = packs > most ? packs : most;
    }
    return most;
}

START_TEST(never_passes_the_optimum)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int64_t met = 0, better = 0;
    for (int trial = 0; trial < 20000; trial++) {
        oracle_mix mix;
        int64_t capacity = 6 + hbp__rng_below(&rng, trial % 2 ? 20 : 200);
        int64_t low = 1 + hbp__rng_below(&rng, (uint64_t)(capacity / 2));
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 4), low, capacity, 3);
        for (int64_t c = 0; c < mix.classes.count; c++)
            mix.weight[c] = 1 + hbp__rng_below(&rng, 2);
        hbp__room room = {capacity, trial % 5 ? INT64_MAX : 2 + hbp__rng_below(&rng, 3)};
        if (trial % 10 == 0)
            mix.classes.weight = mix.weight;
        int64_t bound = hbp__pack_bound(&mix.classes, room), optimum = oracle_optimum(&mix.classes, room);
        ck_assert_int_le(bound, optimum);
        int64_t total = 0;
        for (int64_t c = 0; c < mix.classes.count; c++)
            total += mix.size[c] * mix.number[c];
        ck_assert_int_ge(bound, (total + capacity - 1) / capacity);
        ck_assert_int_ge(bound, martello_toth(&mix.classes, capacity));
        met += bound == optimum;
        better += bound > (total + capacity - 1) / capacity;
    }
    ck_assert_int_gt(met, 18000);
    ck_assert_int_gt(better, 4000);
    hbp_context_free(context);
}
END_TEST

START_TEST(sees_more_than_the_total)
{
    /* Items just over half stand alone; items just over a third go in pairs. */
    int64_t size[] = {34, 51}, number[] = {9, 4};
    hbp__classes classes = {1, size + 1, number + 1, NULL};
    ck_assert_int_eq(hbp__pack_bound(&classes, (hbp__room){100, INT64_MAX}), 4);
    classes = (hbp__classes){1, size, number, NULL};
    ck_assert_int_eq(hbp__pack_bound(&classes, (hbp__room){100, INT64_MAX}), 5);
    ck_assert_int_eq(hbp__pack_bound(&classes, (hbp__room){100000, 2}), 5);
    classes.count = 0;
    ck_assert_int_eq(hbp__pack_bound(&classes, (hbp__room){100, INT64_MAX}), 0);
}
END_TEST

START_TEST(gives_up_rather_than_overflow)
{
    int64_t size[] = {INT32_MAX - 1, INT32_MAX}, number[] = {INT64_C(1) << 31, INT64_C(1) << 31};
    hbp__classes classes = {2, size, number, NULL};
    int64_t bound = hbp__pack_bound(&classes, (hbp__room){INT32_MAX, INT64_MAX});
    ck_assert_int_le(bound, INT64_C(1) << 32);
    ck_assert_int_ge(bound, 0);
    number[1] = number[0] = INT64_C(1) << 29;
    ck_assert_int_ge(hbp__pack_bound(&classes, (hbp__room){INT32_MAX, INT64_MAX}), (INT64_C(1) << 30) - 1);
}
END_TEST

TEST_MAIN("pack_bound", never_passes_the_optimum, sees_more_than_the_total, gives_up_rather_than_overflow)
