#include "base/rng.h"

#include "test.h"

START_TEST(the_sequence_is_fixed_and_streams_differ)
{
    /* splitmix64 from state 0, as its authors publish it. */
    uint64_t state = 0;
    ck_assert_uint_eq(hbp__splitmix64(&state), UINT64_C(0xe220a8397b1dcdaf));
    ck_assert_uint_eq(hbp__splitmix64(&state), UINT64_C(0x6e789e6aa1b965f4));
    hbp__rng a = hbp__rng_make(1, 2, 3), b = a, c = hbp__rng_make(1, 3, 2), d = hbp__rng_make(2, 1, 3);
    for (int i = 0; i < 100; i++) {
        uint64_t x = hbp__rng_next(&a);
        ck_assert_uint_eq(x, hbp__rng_next(&b));
        ck_assert_uint_ne(x, hbp__rng_next(&c));
        ck_assert_uint_ne(x, hbp__rng_next(&d));
    }
}
END_TEST

START_TEST(below_is_in_range_and_even)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    int64_t counts[7] = {0};
    for (int i = 0; i < 70000; i++)
        counts[hbp__rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++)
        ck_assert_msg(counts[i] > 9500 && counts[i] < 10500, "%d came %d times of 10000", i, (int)counts[i]);
    ck_assert_uint_eq(hbp__rng_below(&rng, 1), 0);
    uint32_t largest = 0;
    for (int i = 0; i < 100; i++) {
        uint32_t x = hbp__rng_below(&rng, UINT64_C(4294967296));
        largest = x > largest ? x : largest;
    }
    ck_assert_uint_gt(largest, UINT32_MAX / 2);
}
END_TEST

START_TEST(a_shuffle_moves_everything_everywhere)
{
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    int at[5][5] = {{0}};
    for (int trial = 0; trial < 50000; trial++) {
        uint32_t values[5] = {0, 1, 2, 3, 4};
        hbp__rng_shuffle_u32(&rng, values, 5);
        unsigned seen = 0;
        for (int i = 0; i < 5; i++) {
            at[values[i]][i]++;
            seen |= 1u << values[i];
        }
        ck_assert_uint_eq(seen, 31);
    }
    for (int v = 0; v < 5; v++)
        for (int i = 0; i < 5; i++)
            ck_assert_msg(at[v][i] > 9500 && at[v][i] < 10500, "%d at %d: %d of 10000", v, i, at[v][i]);
}
END_TEST

TEST_MAIN("rng", the_sequence_is_fixed_and_streams_differ, below_is_in_range_and_even,
          a_shuffle_moves_everything_everywhere)
