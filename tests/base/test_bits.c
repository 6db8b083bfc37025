#include "base/bits.h"

#include "test.h"

START_TEST(finds_every_bit)
{
    for (int64_t high = 0; high < 64; high++) {
        ck_assert_int_eq(hbp__only_bit(UINT64_C(1) << high), high);
        for (int64_t low = 0; low <= high; low++) {
            uint64_t word = UINT64_C(1) << high | UINT64_C(1) << low;
            ck_assert_int_eq(hbp__lowest_bit(word), low);
            ck_assert_int_eq(hbp__highest_bit(word), high);
            uint64_t all = ~UINT64_C(0) >> (63 - high) & ~UINT64_C(0) << low;
            ck_assert_int_eq(hbp__lowest_bit(all), low);
            ck_assert_int_eq(hbp__highest_bit(all), high);
        }
    }
}
END_TEST

TEST_MAIN("bits", finds_every_bit)
