#include "base/number.h"

#include "base/checked.h"

/* Digits that a uint64_t holds, and powers of ten that a double holds exactly. */
enum { DIGITS = 19, EXACT = 22 };

/* No double is larger than 10^MOST or, but for 0, smaller than 10^-MOST times a mantissa of DIGITS digits. */
enum { MOST = 400 };

static const double powers[EXACT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

typedef struct scan {
    const char *text;
    int64_t bytes;
    int64_t at;
} scan;

static int take(scan *s, char a, char b)
{
    if (s->at < s->bytes && (s->text[s->at] == a || s->text[s->at] == b)) {
        s->at++;
        return 1;
    }
    return 0;
}

static int take_digit(scan *s, uint32_t *digit)
{
    if (s->at >= s->bytes || s->text[s->at] < '0' || s->text[s->at] > '9')
        return 0;
    *digit = (uint32_t)(s->text[s->at++] - '0');
    return 1;
}

/* The exponent after the digits, saturating. */
static int take_exponent(scan *s, int64_t *exponent)
{
    if (!take(s, 'e', 'E'))
        return 1;
    int negative = take(s, '-', '-');
    if (!negative)
        take(s, '+', '+');
    uint32_t digit;
    int64_t value = 0;
    int digits = 0;
    for (; take_digit(s, &digit); digits++)
        value = hbp__min_i64(10 * value + digit, 100000);
    *exponent += negative ? -value : value;
    return digits > 0;
}

/* Divides or multiplies by powers that are exact themselves. */
static double scale(double value, int64_t exponent)
{
    for (; exponent > EXACT; exponent -= EXACT)
        value *= powers[EXACT];
    for (; exponent < -EXACT; exponent += EXACT)
        value /= powers[EXACT];
    return exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
}

int hbp__parse_decimal(const char *text, int64_t bytes, double *out)
{
    scan s = {text, bytes, 0};
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    int held = 0, digits = 0;
    uint32_t digit;
    int negative = take(&s, '-', '-');
    if (!negative)
        take(&s, '+', '+');
    for (int after_point = 0;;) {
        if (take_digit(&s, &digit)) {
            digits = 1;
            exponent -= after_point;
            if (held < DIGITS) {
                mantissa = 10 * mantissa + digit;
                held += mantissa != 0;
            } else {
                exponent++;
            }
        } else if (!after_point && take(&s, '.', '.')) {
            after_point = 1;
        } else {
            break;
        }
    }
    if (!digits || !take_exponent(&s, &exponent) || s.at != s.bytes)
        return 0;
    double value = 0;
    if (mantissa) {
        if (exponent > MOST)
            return 0;
        value = exponent < -MOST ? 0 : scale((double)mantissa, exponent);
    }
    if (value > 1.7976931348623157e308)
        return 0;
    *out = negative ? -value : value;
    return 1;
}

int hbp__parse_unsigned(const char *text, int64_t bytes, uint32_t base, uint64_t *out)
{
    uint64_t value = 0;
    for (int64_t i = 0; i < bytes; i++) {
        char c = text[i];
        uint32_t digit = 99;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        if (digit >= base || !hbp__mul_u64(value, base, &value) || !hbp__add_u64(value, digit, &value))
            return 0;
    }
    *out = value;
    return bytes > 0;
}
