#include "base/decimal.h"

#include <math.h>
#include <string.h>

/* 10^1131 x 2^1074 at most, in 32 bits a word. */
#define WORDS 160

/* No digits in front of 10^310, or behind 10^-330, make another double. */
#define MOST_POWER  310
#define LEAST_POWER (-330)

typedef struct natural {
    uint32_t word[WORDS]; /* the least first */
    int32_t words;        /* up to the highest that is not 0 */
} natural;

/* a x factor + add */
static void multiply(natural *a, uint32_t factor, uint32_t add)
{
    uint64_t carry = add;
    for (int32_t i = 0; i < a->words; i++) {
        carry += (uint64_t)a->word[i] * factor;
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        a->word[a->words++] = (uint32_t)carry;
}

static void multiply_power(natural *a, int64_t power)
{
    for (; power >= 9; power -= 9)
        multiply(a, 1000000000, 0);
    for (; power > 0; power--)
        multiply(a, 10, 0);
}

static void shift_left(natural *a, int64_t bits)
{
    const int32_t whole = (int32_t)(bits / 32);
    if (whole) {
        memmove(a->word + whole, a->word, (size_t)a->words * sizeof *a->word);
        memset(a->word, 0, (size_t)whole * sizeof *a->word);
        a->words += whole;
    }
    if (bits % 32)
        multiply(a, UINT32_C(1) << (bits % 32), 0);
}

static int compare(const natural *a, const natural *b)
{
    if (a->words != b->words)
        return a->words < b->words ? -1 : 1;
    for (int32_t i = a->words; i--;)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

/* a - b, which is not negative */
static void subtract(natural *a, const natural *b)
{
    int64_t borrow = 0;
    for (int32_t i = 0; i < a->words; i++) {
        borrow += (int64_t)a->word[i] - (i < b->words ? b->word[i] : 0);
        a->word[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->words && !a->word[a->words - 1])
        a->words--;
}

static int64_t count_bits(const natural *a)
{
    int64_t bits = 32 * ((int64_t)a->words - 1);
    for (uint32_t top = a->word[a->words - 1]; top; top >>= 1)
        bits++;
    return bits;
}

/* 64 bits of a quotient, the first of which is 1, x 2^(power - 63); *rest says that something is left. */
static uint64_t divide(natural *a, natural *b, int64_t *power, int *rest)
{
    uint64_t quotient = 0;
    *power = count_bits(a) - count_bits(b);
    shift_left(*power < 0 ? a : b, *power < 0 ? -*power : *power);
    if (compare(a, b) < 0) {
        shift_left(a, 1);
        --*power;
    }
    for (int i = 0; i < 64; i++) {
        quotient <<= 1;
        if (compare(a, b) >= 0) {
            subtract(a, b);
            quotient |= 1;
        }
        shift_left(a, 1);
    }
    *rest = a->words != 0;
    return quotient;
}

/* quotient x 2^(power - 63), rounded to even: to 53 bits, fewer below 2^-1022. */
static double round_bits(uint64_t quotient, int64_t power, int rest)
{
    if (power < -1076)
        return 0;
    const int64_t cut = power < -1022 ? 11 + (-1022 - power) : 11; /* bits that do not fit; at most 65 */
    uint64_t kept = cut > 63 ? 0 : quotient >> cut;
    const uint64_t half = cut > 64 ? 0 : UINT64_C(1) << (cut - 1);
    const uint64_t low = cut > 63 ? quotient : quotient & ((UINT64_C(1) << cut) - 1);
    if (half && (low > half || (low == half && (rest || (kept & 1)))))
        kept++;
    /* A carry out of the fraction is one more in the exponent, which is right. */
    const uint64_t exponent = power < -1022 ? 0 : (uint64_t)(power + 1022);
    const uint64_t bits = (exponent << 52) + kept;
    double value;
    memcpy(&value, &bits, sizeof value);
    return power > 1023 || bits >= UINT64_C(0x7ff) << 52 ? (double)INFINITY : value;
}

double hbp__decimal_nearest(const uint8_t *digits, int32_t count, int64_t exponent)
{
    while (count && !*digits) {
        digits++;
        count--;
    }
    if (!count || count + exponent < LEAST_POWER)
        return 0;
    if (count + exponent > MOST_POWER)
        return (double)INFINITY;
    natural a = {.words = 0}, b = {.word = {1}, .words = 1};
    for (int32_t i = 0; i < count; i++)
        multiply(&a, 10, digits[i]);
    multiply_power(exponent < 0 ? &b : &a, exponent < 0 ? -exponent : exponent);
    int64_t power;
    int rest;
    uint64_t quotient = divide(&a, &b, &power, &rest);
    return round_bits(quotient, power, rest);
}
