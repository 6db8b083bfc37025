#include "test.h"

#include <math.h>

#include "base/number.h"
#include "base/rng.h"

static double parsed(const char *text)
{
    double value = NAN;
    ck_assert_msg(hbp__parse_decimal(text, (int64_t)strlen(text), &value), "%s", text);
    return value;
}

START_TEST(numbers_are_exact)
{
    static const char *const texts[] = {"0",
                                        "1",
                                        "-1",
                                        "+7",
                                        "0.45",
                                        "32.16",
                                        ".5",
                                        "5.",
                                        "1e3",
                                        "1E-3",
                                        "1.5e+2",
                                        "989e12",
                                        "00012.50",
                                        "1e22",
                                        "1e-22",
                                        "-0.0625",
                                        "123456789012345",
                                        "4611686018427387904",
                                        "0e99999"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_double_eq(parsed(texts[i]), strtod(texts[i], NULL));
    ck_assert(signbit(parsed("-0")));
}
END_TEST

START_TEST(random_numbers_are_those_of_the_c_library)
{
    hbp__rng rng = hbp__rng_make(1, 2, 3);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        int decimals = (int)hbp__rng_below(&rng, 16);
        snprintf(text, sizeof text, "%08u%07u", hbp__rng_below(&rng, 100000000),
                 hbp__rng_below(&rng, 10000000));
        text[15 - decimals] = '.';
        double want = strtod(text, NULL);
        ck_assert_double_eq(parsed(text), want);
        snprintf(text, sizeof text, "%.19ge%d", want, (int)hbp__rng_below(&rng, 500) - 250);
        want = strtod(text, NULL);
        double got = parsed(text);
        ck_assert_msg(fabs(got - want) <= 1e-14 * want, "%s: %.17g", text, got);
    }
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    static const char *const texts[] = {"",      "-",    ".",   "+.",    "e5",  "1e",   "1e+",
                                        "1.2.3", "0x10", " 1",  "1 ",    "N/A", "inf",  "nan",
                                        "1,5",   "--1",  "+-1", "1e999", "1f",  "1e400"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value = 3;
        ck_assert_msg(!hbp__parse_decimal(texts[i], (int64_t)strlen(texts[i]), &value), "%s", texts[i]);
        ck_assert_double_eq(value, 3);
    }
    double value;
    ck_assert(!hbp__parse_decimal("1\0", 2, &value));
    ck_assert(hbp__parse_decimal("17", 1, &value));
    ck_assert_double_eq(value, 1);
}
END_TEST

START_TEST(long_numbers_keep_their_size)
{
    char text[2002];
    memset(text, '0', sizeof text);
    text[0] = '1';
    text[300] = 'e';
    double value = 0;
    ck_assert(hbp__parse_decimal(text, 500, &value)); /* 10^299 e000 */
    ck_assert_double_eq_tol(value, 1e299, 1e285);
    text[300] = '0';
    ck_assert(!hbp__parse_decimal(text, 1000, &value));
    text[1000] = 'e';
    text[1001] = '-';
    memcpy(text + 1002, "999", 3);
    ck_assert(hbp__parse_decimal(text, 1005, &value));
    ck_assert_double_eq_tol(value, 1, 1e-13);
    memset(text, '0', sizeof text);
    text[1] = '.';
    text[1500] = '7';
    ck_assert(hbp__parse_decimal(text, 2000, &value));
    ck_assert_double_eq(value, 0);
}
END_TEST

START_TEST(whole_numbers_fit_64_bits)
{
    uint64_t value = 7;
    ck_assert(hbp__parse_unsigned("18446744073709551615", 20, 10, &value));
    ck_assert_uint_eq(value, UINT64_MAX);
    ck_assert(!hbp__parse_unsigned("18446744073709551616", 20, 10, &value));
    ck_assert(hbp__parse_unsigned("10dE", 4, 16, &value));
    ck_assert_uint_eq(value, 0x10de);
    ck_assert(hbp__parse_unsigned("ffffffffffffffff", 16, 16, &value));
    ck_assert(!hbp__parse_unsigned("10000000000000000", 17, 16, &value));
    ck_assert(!hbp__parse_unsigned("", 0, 10, &value));
    ck_assert(!hbp__parse_unsigned("1a", 2, 10, &value));
    ck_assert(!hbp__parse_unsigned("-1", 2, 10, &value));
    ck_assert(!hbp__parse_unsigned("1g", 2, 16, &value));
}
END_TEST

TEST_MAIN("number", numbers_are_exact, random_numbers_are_those_of_the_c_library,
          what_is_no_number_is_refused, long_numbers_keep_their_size, whole_numbers_fit_64_bits)
