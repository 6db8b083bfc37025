#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "base/decimal.h"
#include "base/number.h"
#include "base/rng.h"

/* The C library, in the C locale, is the oracle. */
static void check_text(const char *text)
{
    double read = -1, expected = strtod(text, NULL);
    int fits = hbp__read_decimal(text, (int64_t)strlen(text), &read);
    ck_assert_msg(fits == isfinite(expected), "%s: %d", text, fits);
    ck_assert_msg(!fits || memcmp(&read, &expected, sizeof read) == 0, "%s: %.17g, not %.17g", text, read,
                  expected);
}

static double draw_double(hbp__rng *rng)
{
    uint64_t bits = hbp__rng_next(rng);
    double value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? value : 1.5;
}

START_TEST(what_is_hard_is_read_as_the_c_library_reads_it)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0e5",
        "1e-400",
        "1e400",
        "-1e309",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272088e-324",
        "7.4109846876186981e-324",
        "9007199254740993",
        "9007199254740992.99999999999999999",
        "9007199254740993.000000000000000000001",
        "8.988465674311580536566680721305e307",
        "1e23",
        "8.5e22",
        "123456789012345678901234567890",
        "1e22",
        "1e15",
        "0.000000000000000000000000000000000000000000000000000000000000000000000000000001e70",
        "6.9294956446009195e15",
        "5e-324",
        "3e-324",
        "2e-324",
        "1e-323",
        "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
        "9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447"
        "5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(texts[i]);
    /* The middle of 1 and its successor, 1 + 2^-53, exact; and a digit more, far behind. */
    char middle[1200] = "1.00000000000000011102230246251565404236316680908203125";
    check_text(middle);
    size_t bytes = strlen(middle);
    memset(middle + bytes, '0', 900);
    strcpy(middle + bytes + 900, "1");
    check_text(middle);
    double read;
    ck_assert_int_eq(hbp__read_decimal(middle, (int64_t)strlen(middle), &read), 1);
    ck_assert(read > 1);
}
END_TEST

START_TEST(drawn_numbers_are_read_as_the_c_library_reads_them)
{
    hbp__rng rng = hbp__rng_make(9, 0, 0);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.*e", (int)hbp__rng_below(&rng, 25), draw_double(&rng));
        check_text(text);
        snprintf(text, sizeof text, "%llu.%llue%d",
                 (unsigned long long)(hbp__rng_next(&rng) >> hbp__rng_below(&rng, 64)),
                 (unsigned long long)hbp__rng_next(&rng), (int)hbp__rng_below(&rng, 60) - 30);
        check_text(text);
    }
}
END_TEST

START_TEST(what_is_printed_is_read_back)
{
    hbp__rng rng = hbp__rng_make(10, 0, 0);
    char text[HBP__DECIMAL_BYTES];
    for (int i = 0; i < 20000; i++) {
        double value = draw_double(&rng), back = 0;
        if (i % 2)
            value = (double)hbp__rng_below(&rng, 1000000) / (double)(1 + hbp__rng_below(&rng, 1000));
        int bytes = hbp__decimal_shortest(value, text);
        ck_assert_uint_eq(strlen(text), (size_t)bytes);
        ck_assert_int_eq(hbp__read_decimal(text, bytes, &back), 1);
        ck_assert_msg(memcmp(&back, &value, sizeof back) == 0, "%s", text);
        ck_assert(strpbrk(text, ".e") != NULL);
        ck_assert(strtod(text, NULL) == value);
        for (int digits = 1; digits <= 17; digits++) {
            char other[64];
            hbp__decimal_print(value, digits, text);
            snprintf(other, sizeof other, "%.*g", digits, value);
            ck_assert_msg(strtod(text, NULL) == strtod(other, NULL), "%s, not %s", text, other);
        }
    }
    const struct {
        double value;
        const char *text;
    } known[] = {{0, "0.0"},
                 {-0.0, "-0.0"},
                 {.1, "0.1"},
                 {.45, "0.45"},
                 {12, "12.0"},
                 {1e15, "1e15"},
                 {123456789012345, "123456789012345.0"},
                 {1e14, "100000000000000.0"},
                 {1.5e-7, "1.5e-7"},
                 {1e-5, "1e-5"},
                 {1e-4, "0.0001"},
                 {1e22, "1e22"},
                 {-2.5e300, "-2.5e300"},
                 {1. / 3, "0.3333333333333333"},
                 {5e-324, "4.94065645841247e-324"},
                 {.1 + .2, "0.30000000000000004"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        hbp__decimal_shortest(known[i].value, text);
        ck_assert_str_eq(text, known[i].text);
    }
}
END_TEST

TEST_MAIN("decimal", what_is_hard_is_read_as_the_c_library_reads_it,
          drawn_numbers_are_read_as_the_c_library_reads_them, what_is_printed_is_read_back)
