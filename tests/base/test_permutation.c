#include "base/permutation.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

static hbp__permutation make(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t stream)
{
    return hbp__permutation_make(count, hbp__permutation_key(seed, epoch), stream);
}

/* Every element has one place. */
static void check_permutation(uint64_t count, uint64_t seed)
{
    const hbp__permutation p = make(count, seed, 1, 2);
    uint8_t *seen = calloc(count, 1);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t place = hbp__permutation_place(&p, i);
        ck_assert_uint_lt(place, count);
        ck_assert_int_eq(seen[place]++, 0);
    }
    uint32_t *range = malloc(count * sizeof *range);
    hbp__permutation_range(&p, (uint32_t)(count / 3), (int64_t)(count - count / 3), range);
    for (uint64_t i = count / 3; i < count; i++)
        ck_assert_uint_eq(range[i - count / 3], hbp__permutation_place(&p, i));
    free(range);
    free(seen);
}

START_TEST(every_place_is_taken_once)
{
    for (uint64_t count = 1; count <= 300; count++)
        check_permutation(count, count);
    for (int i = 0; i < TEST_ROUNDS(20); i++)
        check_permutation(UINT64_C(1) + (uint64_t)i * 7919, (uint64_t)i);
}
END_TEST

static const uint64_t large[] = {(UINT64_C(1) << 31) - 1, UINT64_C(1) << 31,     UINT64_C(1) << 32,
                                 (UINT64_C(1) << 32) + 1, UINT64_C(10000000000), UINT64_C(1) << 40,
                                 (UINT64_C(1) << 62) - 1, UINT64_C(1) << 62};

START_TEST(large_ranges_stay_inside)
{
    for (size_t k = 0; k < sizeof large / sizeof *large; k++) {
        const hbp__permutation p = make(large[k], 3, 4, k);
        for (uint64_t i = 0; i < 1000; i++) {
            const uint64_t index = i * UINT64_C(0x9e3779b97f4a7c15) % large[k];
            const uint64_t place = hbp__permutation_place(&p, index);
            ck_assert_uint_lt(place, large[k]);
            uint32_t range[2];
            if (large[k] > UINT32_MAX)
                continue;
            hbp__permutation_range(&p, (uint32_t)large[k] - 2, 2, range);
            ck_assert_uint_eq(range[1], hbp__permutation_place(&p, large[k] - 1));
        }
    }
}
END_TEST

START_TEST(many_at_once_go_where_each_does)
{
    enum { MOST = 1000 };
    static uint64_t count[MOST], stream[MOST], place[MOST], index[MOST];
    const uint64_t key = hbp__permutation_key(5, 6);
    uint64_t state = 1;
    for (int64_t number = 0; number <= MOST; number += 1 + number / 3) {
        for (int64_t i = 0; i < number; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            count[i] = i % 7 == 0 ? large[state >> 61] : 1 + (state >> 32) % (i % 2 ? 40 : 100000);
            stream[i] = state >> 60;
            place[i] = index[i] = (state >> 7) % count[i];
        }
        hbp__permutation_places(key, count, stream, number, place);
        for (int64_t i = 0; i < number; i++) {
            const hbp__permutation p = hbp__permutation_make(count[i], key, stream[i]);
            ck_assert_uint_eq(place[i], hbp__permutation_place(&p, index[i]));
        }
    }
}
END_TEST

/* Each element comes to each place as often, and neighbours part. */
START_TEST(draws_are_even)
{
    enum { MOST = 64, TRIALS = 60000 };
    for (uint64_t count = 2; count <= MOST; count += 1 + count / 8) {
        static int at[MOST][MOST];
        int next = 0;
        for (int i = 0; i < MOST * MOST; i++)
            at[i / MOST][i % MOST] = 0;
        for (uint64_t trial = 0; trial < TRIALS; trial++) {
            const hbp__permutation p = make(count, 1, trial, 7);
            for (uint64_t i = 0; i < count; i++)
                at[i][hbp__permutation_place(&p, i)]++;
            next += hbp__permutation_place(&p, 1) == (hbp__permutation_place(&p, 0) + 1) % count;
        }
        const double even = (double)TRIALS / (double)count, far = 5.5 * sqrt(even);
        for (uint64_t i = 0; i < count; i++)
            for (uint64_t k = 0; k < count; k++)
                ck_assert_msg(fabs(at[i][k] - even) < far, "%d of %d came to %d %d times of %g", (int)i,
                              (int)count, (int)k, at[i][k], even);
        const double pairs = (double)TRIALS / (double)(count - 1);
        ck_assert_msg(fabs(next - pairs) < 5.5 * sqrt(pairs) + pairs / sqrt((double)count),
                      "of %d, 1 follows 0 %d times of %g", (int)count, next, pairs);
    }
}
END_TEST

START_TEST(seeds_epochs_and_streams_are_unlike)
{
    enum { COUNT = 1000 };
    const hbp__permutation p[] = {make(COUNT, 0, 0, 0), make(COUNT, 1, 0, 0), make(COUNT, 0, 1, 0),
                                  make(COUNT, 0, 0, 1)};
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++) {
            int equal = 0;
            for (uint64_t i = 0; i < COUNT; i++)
                equal += hbp__permutation_place(&p[a], i) == hbp__permutation_place(&p[b], i);
            ck_assert_int_lt(equal, 12); /* 1 on average */
        }
}
END_TEST

TEST_MAIN("permutation", every_place_is_taken_once, large_ranges_stay_inside, many_at_once_go_where_each_does,
          draws_are_even, seeds_epochs_and_streams_are_unlike)
