#include "base/number.h"

#include "base/checked.h"
#include "base/decimal.h"

/* Past it every number is 0 or infinite. */
#define MOST_EXPONENT 100000

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int hbp__read_whole(const char *text, int64_t bytes, int64_t *out)
{
    int64_t value = 0;
    for (int64_t i = 0; i < bytes; i++)
        if (!is_digit(text[i]) || !hbp__mul_i64(value, 10, &value) ||
            !hbp__add_i64(value, text[i] - '0', &value))
            return 0;
    if (bytes < 1)
        return 0;
    *out = value;
    return 1;
}

typedef struct decimal {
    uint8_t digit[HBP__DECIMAL_DIGITS + 1]; /* from the first that is not 0 */
    int32_t digits;
    int64_t exponent; /* of the last */
} decimal;

/* Digits with at most one point among them. Of those past HBP__DECIMAL_DIGITS only whether one is not 0
 * counts: it is remembered as a 1. Returns how many bytes were used; 0: no number. */
static int64_t read_digits(const char *text, int64_t bytes, decimal *d)
{
    int64_t i, digits = 0;
    int point = 0;
    for (i = 0; i < bytes && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = 1;
            continue;
        }
        const uint8_t digit = (uint8_t)(text[i] - '0');
        digits++;
        if (d->digits < HBP__DECIMAL_DIGITS) {
            d->digit[d->digits] = digit;
            d->digits += d->digits || digit;
            d->exponent -= point;
        } else {
            d->exponent += !point;
            d->digit[HBP__DECIMAL_DIGITS] |= digit != 0;
        }
    }
    if (d->digits == HBP__DECIMAL_DIGITS && d->digit[HBP__DECIMAL_DIGITS]) {
        d->digits++;
        d->exponent--;
    }
    return digits ? i : 0;
}

/* One rounding where value and 10^|exponent| are exact (Clinger 1990, the fast path); else by long division.
 */
static double nearest_double(const decimal *d)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (d->digits > 15 || d->exponent < -22 || d->exponent > 22)
        return hbp__decimal_nearest(d->digit, d->digits, d->exponent);
    int64_t value = 0;
    for (int32_t i = 0; i < d->digits; i++)
        value = 10 * value + d->digit[i];
    return d->exponent < 0 ? (double)value / exact[-d->exponent] : (double)value * exact[d->exponent];
}

/* e[+-]digits, saturated; 0 when it is none. */
static int read_exponent(const char *text, int64_t bytes, int64_t *exponent)
{
    int64_t i = 1, power = 0;
    int negative = 0;
    if (i < bytes && (text[i] == '-' || text[i] == '+'))
        negative = text[i++] == '-';
    if (i == bytes)
        return 0;
    for (; i < bytes; i++) {
        if (!is_digit(text[i]))
            return 0;
        power = hbp__min_i64(power * 10 + (text[i] - '0'), MOST_EXPONENT);
    }
    *exponent += negative ? -power : power;
    return 1;
}

int hbp__read_decimal(const char *text, int64_t bytes, double *out)
{
    return hbp__read_scaled(text, bytes, 0, out);
}

int hbp__read_scaled(const char *text, int64_t bytes, int32_t power, double *out)
{
    int negative = bytes > 0 && text[0] == '-';
    if (bytes > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        bytes--;
    }
    decimal d;
    d.digits = 0;
    d.exponent = power;
    d.digit[HBP__DECIMAL_DIGITS] = 0;
    int64_t used = read_digits(text, bytes, &d);
    if (!used)
        return 0;
    if (used < bytes &&
        ((text[used] != 'e' && text[used] != 'E') || !read_exponent(text + used, bytes - used, &d.exponent)))
        return 0;
    double result = nearest_double(&d);
    if (!(result <= 1.7976931348623157e308))
        return 0;
    *out = negative ? -result : result;
    return 1;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

int hbp__read_i64(const char *text, int64_t bytes, int64_t *out)
{
    while (bytes && is_blank(*text))
        text++, bytes--;
    while (bytes && is_blank(text[bytes - 1]))
        bytes--;
    int negative = bytes && *text == '-';
    if (bytes && (*text == '-' || *text == '+'))
        text++, bytes--;
    int64_t value = 0;
    int fits = 1;
    for (int64_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        int64_t digit = negative ? '0' - text[i] : text[i] - '0';
        fits = fits && hbp__mul_i64(value, 10, &value) && hbp__add_i64(value, digit, &value);
    }
    if (!bytes)
        return 0;
    *out = value;
    return fits ? 1 : -1;
}
