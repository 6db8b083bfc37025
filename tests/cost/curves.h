/* Curves made by hand, and at random. */
#ifndef HBP_TESTS_CURVES_H
#define HBP_TESTS_CURVES_H

#include "base/rng.h"
#include "cost/scaling.h"
#include "test.h"

#define CURVE_SIZES 16

/* A curve with the columns it needs. */
typedef struct made_curve {
    hbp__curve curve;
    int32_t size[CURVE_SIZES];
    int64_t time_ns[CURVE_SIZES];
    int32_t hull[CURVE_SIZES];
} made_curve;

static inline void curve_make(made_curve *c, const int32_t *size, const int64_t *time_ns, int32_t sizes)
{
    for (int32_t i = 0; i < sizes; i++) {
        c->size[i] = size[i];
        c->time_ns[i] = time_ns[i];
        c->hull[i] = i;
    }
    c->curve = (hbp__curve){c->size, c->time_ns, sizes, sizes, c->size, c->time_ns, sizes, c->hull};
}

/* 1..CURVE_SIZES sizes from `least` on, times that fall by anything from 1 ns to more than what they should.
 */
static inline void curve_draw(made_curve *c, hbp__rng *rng)
{
    int32_t size[CURVE_SIZES], sizes = 1 + (int32_t)hbp__rng_below(rng, CURVE_SIZES);
    int64_t time_ns[CURVE_SIZES], time = 1 + hbp__rng_below(rng, 1000);
    int32_t n = 1 + (int32_t)hbp__rng_below(rng, 4), doubling = (int32_t)hbp__rng_below(rng, 2);
    for (int32_t i = 0; i < sizes; i++) {
        size[i] = n;
        n = doubling && n < 1 << 12 ? 2 * n : n + 1 + (int32_t)hbp__rng_below(rng, 5);
    }
    for (int32_t i = sizes - 1; i >= 0; i--) {
        time_ns[i] = time;
        time += 1 + hbp__rng_below(rng, 1 + (uint64_t)(hbp__rng_below(rng, 8) ? time : 20));
    }
    curve_make(c, size, time_ns, sizes);
}

#endif
