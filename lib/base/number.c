#include "base/number.h"

#include "base/checked.h"

/* Digits that always fit into 64 bits. */
#define MOST_DIGITS 18

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

/* value x 10^exponent; one rounding while value and 10^|exponent| are exact (Clinger 1990, the fast path). */
static double scale_decimal(double value, int64_t exponent)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    while (exponent > 0 && value > 0 && value < 1e308) {
        int64_t step = hbp__min_i64(exponent, 22);
        value *= exact[step];
        exponent -= step;
    }
    while (exponent < 0 && value > 0) {
        int64_t step = hbp__min_i64(-exponent, 22);
        value /= exact[step];
        exponent += step;
    }
    return exponent > 0 && value > 0 ? value * 10 : value;
}

/* Digits with at most one point among them. Digits past MOST_DIGITS only count towards the exponent. Returns
 * how many bytes were used; 0: no number. */
static int64_t read_digits(const char *text, int64_t bytes, int64_t *value, int64_t *exponent)
{
    int64_t i, digits = 0, kept = 0;
    int point = 0;
    for (i = 0; i < bytes && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.') {
            point = 1;
            continue;
        }
        digits++;
        if (kept < MOST_DIGITS) {
            *value = *value * 10 + (text[i] - '0');
            kept += *value > 0;
            *exponent -= point;
        } else {
            *exponent += !point;
        }
    }
    return digits ? i : 0;
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
    int negative = bytes > 0 && text[0] == '-';
    if (bytes > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        bytes--;
    }
    int64_t value = 0, exponent = 0;
    int64_t used = read_digits(text, bytes, &value, &exponent);
    if (!used)
        return 0;
    if (used < bytes &&
        ((text[used] != 'e' && text[used] != 'E') || !read_exponent(text + used, bytes - used, &exponent)))
        return 0;
    double result = scale_decimal((double)value, exponent);
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
