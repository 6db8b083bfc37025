#include "base/digest.h"

#include "test.h"

static uint64_t digest_of(const int64_t *values, int64_t count)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_column_i64(&digest, values, count);
    return hbp__digest_end(&digest);
}

START_TEST(a_column_equals_its_values_one_by_one)
{
    int64_t values[41];
    int32_t narrow[41];
    for (int64_t i = 0; i < 41; i++)
        narrow[i] = (int32_t)(values[i] = i * i - 500);
    for (int64_t skip = 0; skip < 5; skip++)
        for (int64_t count = 0; count < 41; count++) {
            hbp__digest wide = hbp__digest_begin(), thin = wide, single = wide;
            for (int64_t i = 0; i < skip; i++) {
                hbp__digest_u64(&wide, 7);
                hbp__digest_u64(&thin, 7);
                hbp__digest_u64(&single, 7);
            }
            hbp__digest_column_i64(&wide, values, count);
            hbp__digest_column_i32(&thin, narrow, count);
            hbp__digest_u64(&single, (uint64_t)count);
            for (int64_t i = 0; i < count; i++)
                hbp__digest_u64(&single, (uint64_t)values[i]);
            ck_assert_uint_eq(hbp__digest_end(&wide), hbp__digest_end(&single));
            ck_assert_uint_eq(hbp__digest_end(&thin), hbp__digest_end(&single));
        }
}
END_TEST

START_TEST(every_change_changes_the_digest)
{
    int64_t values[64] = {0};
    uint64_t base = digest_of(values, 64);
    for (int i = 0; i < 64; i++)
        for (int bit = 0; bit < 64; bit++) {
            values[i] = (int64_t)(UINT64_C(1) << bit);
            uint64_t changed = digest_of(values, 64);
            ck_assert_uint_ne(changed, base);
            int differ = __builtin_popcountll(changed ^ base);
            ck_assert_msg(differ >= 12 && differ <= 52, "value %d bit %d: %d bits of the digest differ", i,
                          bit, differ);
            values[i] = 0;
        }
    for (int64_t count = 0; count < 64; count++)
        ck_assert_uint_ne(digest_of(values, count), base);
    values[3] = 1, values[4] = 2;
    uint64_t one = digest_of(values, 64);
    values[3] = 2, values[4] = 1;
    ck_assert_uint_ne(digest_of(values, 64), one);
    values[3] = 0, values[7] = 2, values[4] = 1;
    ck_assert_uint_ne(digest_of(values, 64), one);
}
END_TEST

/* Fixed for ever: plans and files carry it. */
START_TEST(the_digest_is_the_same_in_every_version)
{
    int64_t values[] = {1, -1, INT64_MAX, INT64_MIN, 131072};
    ck_assert_uint_eq(digest_of(values, 5), UINT64_C(0xab0436e94ac1ab51));
    ck_assert_uint_eq(digest_of(NULL, 5), digest_of(values, 0));
}
END_TEST

TEST_MAIN("digest", a_column_equals_its_values_one_by_one, every_change_changes_the_digest,
          the_digest_is_the_same_in_every_version)
