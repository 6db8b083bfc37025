#include "base/number.h"

#include <math.h>

#include "base/rng.h"
#include "test.h"

static int whole(const char *text, int64_t *out)
{
    return hbp__read_whole(text, (int64_t)strlen(text), out);
}

static int decimal(const char *text, double *out)
{
    return hbp__read_decimal(text, (int64_t)strlen(text), out);
}

START_TEST(whole_numbers)
{
    int64_t n = -7;
    const char *const wrong[] = {
        "", "-1", "+1", " 1", "1 ", "1.0", "0x10", "9223372036854775808", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!whole(wrong[i], &n), "'%s'", wrong[i]);
    ck_assert_int_eq(n, -7);
    ck_assert(whole("0", &n));
    ck_assert_int_eq(n, 0);
    ck_assert(whole("0012", &n));
    ck_assert_int_eq(n, 12);
    ck_assert(whole("9223372036854775807", &n));
    ck_assert_int_eq(n, INT64_MAX);
    ck_assert(hbp__read_whole("123456", 3, &n));
    ck_assert_int_eq(n, 123);
}
END_TEST

START_TEST(what_is_no_decimal_number)
{
    double x = -7;
    const char *const wrong[] = {"",    "-",    "+",     ".",   "-.",    "e5",    "1e",
                                 "1e+", "1e5x", "1.2.3", "1,5", "nan",   "inf",   "0x1p3",
                                 "N/A", " 1",   "1 ",    "--1", "1e309", "2e308", "1e999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!decimal(wrong[i], &x), "'%s'", wrong[i]);
    ck_assert_double_eq(x, -7);
}
END_TEST

START_TEST(decimal_numbers)
{
    double x;
#define IS(text, value)                                                                                      \
    ck_assert_msg(decimal(text, &x), "%s", text);                                                            \
    ck_assert_double_eq(x, value)
    IS("0", 0.0);
    IS("-0.0", 0.0);
    IS("12", 12.0);
    IS("+12.5", 12.5);
    IS("-.5", -.5);
    IS("5.", 5.0);
    IS("0.1", 0.1);
    IS("123.456", 123.456);
    IS("1e-5", 1e-5);
    IS("1.5E+10", 1.5e10);
    IS("000000000000000000000000012.25", 12.25);
    IS("0.0000000000000000000000001", 1e-25);
    IS("0e99999999999", 0.0);
    IS("1e-99999999999", 0.0);
    IS("100000000000000000000000", 1e23);
    ck_assert(decimal("1.7976931348623157e308", &x));
}
END_TEST

START_TEST(it_agrees_with_the_c_library)
{
    hbp__rng rng = hbp__rng_make(3, 1, 4);
    for (int i = 0; i < 200000; i++) {
        char text[64];
        int64_t mantissa = (int64_t)(hbp__rng_next(&rng) % UINT64_C(1000000000000000));
        int point = (int)hbp__rng_below(&rng, 15);
        snprintf(text, sizeof text, "%.*f", point, (double)mantissa / pow(10, point));
        double x = 0;
        ck_assert(decimal(text, &x));
        double expected = strtod(text, NULL);
        ck_assert_msg(x == expected || (strlen(text) > 16 && fabs(x - expected) <= fabs(expected) * 1e-15),
                      "%s", text);
        snprintf(text, sizeof text, "%lldE%d", (long long)mantissa, (int)hbp__rng_below(&rng, 500) - 250);
        expected = strtod(text, NULL);
        ck_assert(decimal(text, &x));
        ck_assert_msg(fabs(x - expected) <= fabs(expected) * 1e-14, "%s", text);
    }
}
END_TEST

TEST_MAIN("number", whole_numbers, what_is_no_decimal_number, decimal_numbers, it_agrees_with_the_c_library)
