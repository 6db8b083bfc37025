#include "base/mt19937.h"

#include "base/rng.h"

#include "test.h"

/* numpy 2.4: RandomState(seed).randint(0, 2**32, size=4, dtype=uint64) and .permutation(10). */
static const struct {
    uint32_t seed;
    uint32_t word[4];
    uint64_t order[10];
} golden[] = {
    {0, {0x8c7f0aac, 0x97c4aa2f, 0xb716a675, 0xd821ccc0}, {2, 8, 4, 9, 1, 6, 7, 3, 0, 5}},
    {1, {0x6ac1f425, 0xff4780eb, 0xb8672f8c, 0xeebc1448}, {2, 9, 6, 4, 0, 3, 1, 7, 8, 5}},
    {5489, {0xd091bb5c, 0x22ae9ef6, 0xe7e1faee, 0xd5c31f79}, {4, 9, 0, 7, 8, 3, 2, 1, 5, 6}},
    {1024, {0xa5cf17bb, 0x6ccb2391, 0xff35ba61, 0xb3ed89ec}, {2, 3, 7, 0, 6, 8, 5, 4, 9, 1}},
    {4294967295, {0x18fe69a3, 0x1c924122, 0xe991ec0c, 0x900cac47}, {6, 9, 5, 1, 8, 0, 7, 4, 2, 3}},
};
enum { GOLDEN = sizeof golden / sizeof *golden };

static uint64_t *ascending(uint64_t count)
{
    uint64_t *values = malloc((count + 1) * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (uint64_t i = 0; i < count; i++)
        values[i] = i;
    return values;
}

static uint64_t *permutation(uint32_t seed, uint64_t count)
{
    uint64_t *values = ascending(count);
    hbp__mt19937 mt;
    hbp__mt_seed(&mt, seed);
    hbp__mt_shuffle_u64(&mt, values, count, 0);
    return values;
}

START_TEST(words_are_numpys)
{
    hbp__mt19937 mt;
    for (int g = 0; g < GOLDEN; g++) {
        hbp__mt_seed(&mt, golden[g].seed);
        for (int i = 0; i < 4; i++)
            ck_assert_uint_eq(hbp__mt_next(&mt), golden[g].word[i]);
    }
    /* The 10,000th output of the default seed, as the C++ standard states it for std::mt19937. */
    hbp__mt_seed(&mt, 5489);
    for (int i = 1; i < 10000; i++)
        hbp__mt_next(&mt);
    ck_assert_uint_eq(hbp__mt_next(&mt), UINT32_C(4123659995));
}
END_TEST

START_TEST(short_permutations_are_numpys)
{
    for (int g = 0; g < GOLDEN; g++) {
        uint64_t *values = permutation(golden[g].seed, 10);
        ck_assert_mem_eq(values, golden[g].order, sizeof golden[g].order);
        free(values);
    }
    static const uint64_t seventeen[] = {8, 6, 14, 4, 15, 13, 7, 10, 2, 3, 11, 0, 16, 9, 5, 12, 1};
    static const uint64_t three[] = {2, 1, 0}, two[] = {0, 1};
    uint64_t *values = permutation(1024, 17);
    ck_assert_mem_eq(values, seventeen, sizeof seventeen);
    free(values);
    values = permutation(7, 3);
    ck_assert_mem_eq(values, three, sizeof three);
    free(values);
    values = permutation(7, 2);
    ck_assert_mem_eq(values, two, sizeof two);
    free(values);
}
END_TEST

START_TEST(long_permutations_are_numpys)
{
    /* hash = hash * 6364136223846793005 + value + 1 over RandomState(seed).permutation(count) */
    static const struct {
        uint32_t seed;
        uint64_t count, hash;
    } longer[] = {{0, 1, 1},
                  {0, 1000, UINT64_C(0x4e575bfa0765c9e4)},
                  {1024, 70706, UINT64_C(0x7da52c0f5457fe2f)},
                  {3, 65536, UINT64_C(0xdccdba583c68b7c4)},
                  {3, 65537, UINT64_C(0x00e9d58848928e2d)},
                  {9, 200000, UINT64_C(0x7336bc833b066d54)}};
    for (size_t l = 0; l < sizeof longer / sizeof *longer; l++) {
        uint64_t *values = permutation(longer[l].seed, longer[l].count), hash = 0;
        for (uint64_t i = 0; i < longer[l].count; i++)
            hash = hash * UINT64_C(6364136223846793005) + values[i] + 1;
        ck_assert_uint_eq(hash, longer[l].hash);
        free(values);
    }
}
END_TEST

/* The definition, one draw after another. */
static void shuffle_plainly(hbp__mt19937 *mt, uint64_t *values, uint64_t count)
{
    for (uint64_t i = count; i-- > 1;) {
        uint32_t mask = 0, j;
        while (mask < i)
            mask = mask << 1 | 1;
        do
            j = hbp__mt_next(mt) & mask;
        while (j > i);
        uint64_t other = values[i];
        values[i] = values[j];
        values[j] = other;
    }
}

START_TEST(every_count_draws_as_the_definition_says)
{
    for (uint64_t count = 0; count < 2100; count += count < 70 ? 1 : 29) {
        hbp__mt19937 mt;
        uint64_t *expected = ascending(count), *values = permutation((uint32_t)count, count);
        hbp__mt_seed(&mt, (uint32_t)count);
        shuffle_plainly(&mt, expected, count);
        if (count)
            ck_assert_mem_eq(values, expected, count * sizeof *values);
        free(values);
        free(expected);
    }
}
END_TEST

START_TEST(a_shuffle_in_parts_is_the_shuffle)
{
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    for (int trial = 0; trial < 60; trial++) {
        uint64_t count = 1 + hbp__rng_below(&rng, 5000), end = count;
        uint64_t *expected = ascending(count), *values = ascending(count);
        hbp__mt19937 mt, parted;
        hbp__mt_seed(&mt, (uint32_t)trial);
        parted = mt;
        shuffle_plainly(&mt, expected, count);
        while (end) {
            uint64_t stop = end - 1 - hbp__rng_below(&rng, end);
            hbp__mt_shuffle_u64(&parted, values, end, stop);
            end = stop;
        }
        ck_assert_mem_eq(values, expected, count * sizeof *values);
        /* Both have drawn as much. */
        ck_assert_uint_eq(hbp__mt_next(&mt), hbp__mt_next(&parted));
        free(values);
        free(expected);
    }
}
END_TEST

TEST_MAIN("mt19937", words_are_numpys, short_permutations_are_numpys, long_permutations_are_numpys,
          every_count_draws_as_the_definition_says, a_shuffle_in_parts_is_the_shuffle)
