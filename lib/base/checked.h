/* Integer arithmetic that says when it overflows: each returns 1 and writes *out, or returns 0. */
#ifndef HBP_BASE_CHECKED_H
#define HBP_BASE_CHECKED_H

#include <math.h>
#include <stdint.h>

static inline int hbp__add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline int hbp__mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline int hbp__add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline int hbp__mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* a + b and a b for a, b >= 0; INT64_MAX where they would pass it: predicted times saturate. */
static inline int64_t hbp__add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    return hbp__add_i64(a, b, &sum) ? sum : INT64_MAX;
}

static inline int64_t hbp__mul_saturating(int64_t a, int64_t b)
{
    int64_t product;
    return hbp__mul_i64(a, b, &product) ? product : INT64_MAX;
}

/* a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t hbp__ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* a rounded up to a multiple of b, for a >= 0 and b > 0; the caller knows that it fits. */
static inline int64_t hbp__round_up(int64_t a, int64_t b)
{
    return (b & (b - 1)) == 0 ? (a + b - 1) & -b : hbp__ceil_div(a, b) * b; /* divisions are slow */
}

/* `hundredths` of a >= 0, rounded down, without overflow where hundredths <= 100. */
static inline int64_t hbp__percent(int64_t a, int64_t hundredths)
{
    return a / 100 * hundredths + a % 100 * hundredths / 100;
}

static inline int64_t hbp__min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t hbp__max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline double hbp__min_f64(double a, double b)
{
    return a < b ? a : b;
}

static inline double hbp__max_f64(double a, double b)
{
    return a > b ? a : b;
}

/* Whether x lies in low..high: not if it is NaN, and then without the exception that < and >= raise. */
static inline int hbp__lies_in(double x, double low, double high)
{
    return isgreaterequal(x, low) && islessequal(x, high);
}

/* A non-negative double rounded to the nearest int64, ties up; saturates at INT64_MAX, NaN included. Uses
 * only operations that IEEE 754 fixes to the last bit. */
static inline int64_t hbp__round_i64(double x)
{
    return x < 9223372036854774784.0 ? (int64_t)(x + 0.5) : INT64_MAX;
}

#endif
