/* Doubles as decimal numbers. */
#include "base/decimal.h"

#include <math.h>
#include <stdio.h>

#include "base/number.h"

int hbp__decimal_print(double value, int digits, char text[HBP__DECIMAL_BYTES])
{
    char printed[48], digit[24];
    int count = 0, at = 0, power = 0, negative = 0;
    snprintf(printed, sizeof printed, "%.*e", digits - 1, fabs(value));
    const char *from = printed; /* d, a point as the locale has it, digits, e+dd */
    for (; *from != 'e'; from++)
        if (*from >= '0' && *from <= '9')
            digit[count++] = *from;
    negative = from[1] == '-';
    for (from += 2; *from; from++)
        power = 10 * power + (*from - '0');
    power = negative ? -power : power;
    while (count > 1 && digit[count - 1] == '0')
        count--;
    if (signbit(value))
        text[at++] = '-';
    const int plain = power >= -4 && power < digits;        /* as %g */
    const int before = plain && power >= 0 ? power + 1 : 1; /* digits in front of the point */
    int i = 0;
    for (int k = 0; k < before; k++)
        text[at++] = plain && power < 0 ? '0' : i < count ? digit[i++] : '0';
    if (plain || i < count)
        text[at++] = '.';
    for (int k = -1; plain && k > power; k--)
        text[at++] = '0';
    if (plain && i == count && power >= 0)
        text[at++] = '0';
    while (i < count)
        text[at++] = digit[i++];
    text[at] = '\0';
    if (!plain)
        at += snprintf(text + at, 8, "e%d", power);
    return at;
}

int hbp__decimal_shortest(double value, char text[HBP__DECIMAL_BYTES])
{
    double back;
    int bytes = 0;
    for (int digits = 15; digits <= 17; digits++) {
        bytes = hbp__decimal_print(value, digits, text);
        if (digits == 17 || (hbp__read_decimal(text, bytes, &back) && back == value))
            break;
    }
    return bytes;
}
