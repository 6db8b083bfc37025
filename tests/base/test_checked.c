#include "base/checked.h"

#include "test.h"

START_TEST(overflow_is_told)
{
    int64_t i;
    uint64_t u;
    ck_assert(hbp__add_i64(INT64_MAX - 1, 1, &i) && i == INT64_MAX);
    ck_assert(!hbp__add_i64(INT64_MAX, 1, &i));
    ck_assert(hbp__mul_i64(INT64_C(1) << 31, INT64_C(1) << 31, &i) && i == INT64_C(1) << 62);
    ck_assert(!hbp__mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &i));
    ck_assert(!hbp__add_u64(UINT64_MAX, 1, &u));
    ck_assert(!hbp__mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &u));
}
END_TEST

START_TEST(rounding_goes_the_way_it_says)
{
    ck_assert_int_eq(hbp__percent(262144, 25), 65536);
    ck_assert_int_eq(hbp__percent(199, 50), 99);
    ck_assert_int_eq(hbp__percent(INT64_MAX, 100), INT64_MAX);
    ck_assert_int_eq(hbp__ceil_div(0, 3), 0);
    ck_assert_int_eq(hbp__ceil_div(6, 3), 2);
    ck_assert_int_eq(hbp__ceil_div(7, 3), 3);
    ck_assert_int_eq(hbp__ceil_div(INT64_MAX, 1), INT64_MAX);
    ck_assert_int_eq(hbp__round_up(17, 8), 24);
    ck_assert_int_eq(hbp__round_up(16, 8), 16);
    ck_assert_int_eq(hbp__round_up(17, 1), 17);
    ck_assert_int_eq(hbp__round_i64(2.5), 3);
    ck_assert_int_eq(hbp__round_i64(2.4), 2);
    ck_assert_int_eq(hbp__round_i64(0), 0);
    ck_assert_int_eq(hbp__round_i64(1e300), INT64_MAX);
    double nan = strtod("nan", NULL);
    ck_assert_int_eq(hbp__round_i64(nan), INT64_MAX);
}
END_TEST

TEST_MAIN("checked", overflow_is_told, rounding_goes_the_way_it_says)
