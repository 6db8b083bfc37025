/* hbp__curve_time, hbp__curve_gpus and hbp__relax (lib/cost/relax.c). */
#include <math.h>

#include "cost/curves.h"

#define MOST 24

/* The three curves of Spindle's figure 5a, N = 4, C* = 1 s. */
static void make_figure(made_curve c[3])
{
    static const int32_t size[] = {1, 2};
    curve_make(&c[0], size, (int64_t[]){220000000, 120000000}, 2);
    curve_make(&c[1], size, (int64_t[]){118300000, 68300000}, 2);
    curve_make(&c[2], size, (int64_t[]){100000000}, 1);
}

START_TEST(shares_of_the_figure)
{
    made_curve c[3];
    make_figure(c);
    ck_assert_double_eq_tol(hbp__curve_gpus(&c[0].curve, 1e9 / 8), .2 / .105, 1e-9);
    ck_assert_double_eq_tol(hbp__curve_gpus(&c[1].curve, 1e9 / 12), .1 / (1. / 12 - .0183), 1e-9);
    ck_assert_double_eq_tol(hbp__curve_gpus(&c[2].curve, 1e9 / 6), .6, 1e-9);
    const hbp__curve *curves[] = {&c[0].curve, &c[1].curve, &c[2].curve};
    double share[3], optimum = hbp__relax(curves, (int32_t[]){8, 12, 6}, 3, 4, share);
    ck_assert_double_eq_tol(optimum, 1e9, 2e7);
    ck_assert_double_eq_tol(share[0], 1.9, .03);
    ck_assert_double_eq_tol(share[1], 1.5, .03);
    ck_assert_double_eq_tol(share[2], .6, .01);
}
END_TEST

/* T = a / n on sizes 1, 2, 4, ... (a a multiple of all of them, so that ns are exact): C* = sum a L / N. */
START_TEST(bisection_equals_the_closed_form)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    static made_curve c[MOST];
    for (int trial = 0; trial < 5000; trial++) {
        const hbp__curve *curves[MOST];
        int32_t operators[MOST], count = 1 + (int32_t)hbp__rng_below(&rng, MOST);
        int64_t a[MOST];
        double sum = 0, share[MOST];
        for (int32_t m = 0; m < count; m++) {
            int32_t size[CURVE_SIZES];
            int64_t ns[CURVE_SIZES];
            a[m] = (1 + (int64_t)hbp__rng_below(&rng, 1 << 30)) << 15;
            for (int32_t i = 0; i < CURVE_SIZES; i++) {
                size[i] = 1 << i;
                ns[i] = a[m] >> i;
            }
            curve_make(&c[m], size, ns, CURVE_SIZES);
            curves[m] = &c[m].curve;
            operators[m] = 1 + (int32_t)hbp__rng_below(&rng, 100);
            sum += (double)a[m] * operators[m];
        }
        double gpus = 1 + (double)hbp__rng_below(&rng, 1024);
        double optimum = hbp__relax(curves, operators, count, gpus, share);
        ck_assert_double_eq_tol(optimum * gpus / sum, 1, 1e-9);
        for (int32_t m = 0; m < count; m++)
            ck_assert_double_eq_tol(share[m] * sum / ((double)a[m] * operators[m] * gpus), 1, 1e-9);
    }
}
END_TEST

/* Theorem 1 on any curves: all end at C* and the shares sum up to N; or the level is saturated, and C* is the
 * longest MetaOp on its largest size. */
START_TEST(conditions_of_the_theorem)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    static made_curve c[MOST];
    int saturated = 0, below = 0, between = 0;
    for (int trial = 0; trial < 5000; trial++) {
        const hbp__curve *curves[MOST];
        int32_t operators[MOST], count = 1 + (int32_t)hbp__rng_below(&rng, MOST);
        double longest = 0, sum = 0, share[MOST];
        for (int32_t m = 0; m < count; m++) {
            curve_draw(&c[m], &rng);
            curves[m] = &c[m].curve;
            operators[m] = 1 + (int32_t)hbp__rng_below(&rng, 50);
            double least = (double)operators[m] * (double)c[m].time_ns[c[m].curve.sizes - 1];
            longest = least > longest ? least : longest;
        }
        double gpus = 1 + (double)hbp__rng_below(&rng, hbp__rng_below(&rng, 2) ? 16 : 512);
        double optimum = hbp__relax(curves, operators, count, gpus, share);
        ck_assert(optimum == hbp__relax(curves, operators, count, gpus, NULL));
        ck_assert_double_ge(optimum, longest);
        for (int32_t m = 0; m < count; m++) {
            sum += share[m];
            ck_assert_double_eq_tol(hbp__curve_time(curves[m], share[m]) * operators[m] / optimum, 1, 1e-9);
            below += share[m] < curves[m]->size[0];
            between += share[m] > curves[m]->size[0];
        }
        ck_assert_double_le(sum, gpus);
        double guess = optimum * (double)hbp__rng_below(&rng, 2000) / 1000;
        double near = hbp__relax_near(curves, operators, count, gpus, guess, 1e-3);
        ck_assert_double_ge(near, optimum * (1 - 1e-12));
        ck_assert_double_le(near, optimum * (1 + 1e-3));
        ck_assert_double_eq_tol(hbp__relax_near(curves, operators, count, gpus, guess, 0) / optimum, 1,
                                1e-12);
        if (optimum > longest)
            ck_assert_double_eq_tol(sum / gpus, 1, 1e-9);
        else
            saturated++;
    }
    ck_assert_int_gt(saturated, 200);
    ck_assert_int_lt(saturated, 4800);
    ck_assert_int_gt(below, 1000);
    ck_assert_int_gt(between, 1000);
}
END_TEST

/* Time never rises with GPUs, meets the sizes exactly, and its inverse is the least n that is fast enough. */
START_TEST(inverse_of_time)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int trial = 0; trial < 5000; trial++) {
        made_curve made;
        curve_draw(&made, &rng);
        const hbp__curve *c = &made.curve;
        int32_t largest = c->size[c->sizes - 1];
        for (int32_t i = 0; i < c->sizes; i++) {
            ck_assert(hbp__curve_time(c, c->size[i]) == (double)c->time_ns[i]);
            ck_assert_double_eq_tol(hbp__curve_gpus(c, (double)c->time_ns[i]) / c->size[i], 1, 1e-12);
        }
        double n = 0, last = INFINITY;
        for (int k = 0; k < 50; k++) {
            n += (double)(1 + hbp__rng_below(&rng, 1000)) / 25000 * largest;
            double time = hbp__curve_time(c, n);
            ck_assert(n > largest ? time == (double)c->time_ns[c->sizes - 1] : time < last);
            last = time;
            if (n > largest)
                continue;
            ck_assert_double_eq_tol(hbp__curve_gpus(c, time) / n, 1, 1e-9);
            ck_assert_double_eq_tol(hbp__curve_time(c, hbp__curve_gpus(c, time)) / time, 1, 1e-12);
        }
        ck_assert(isinf(hbp__curve_gpus(c, (double)c->time_ns[c->sizes - 1] - .5)));
        ck_assert(isinf(hbp__curve_gpus(c, 0)));
        ck_assert_double_eq_tol(hbp__curve_gpus(c, 2. * (double)c->time_ns[0]), c->size[0] / 2., 1e-9);
        ck_assert_double_eq_tol(hbp__curve_time(c, c->size[0] / 4.), 4. * (double)c->time_ns[0], 1e-3);
    }
}
END_TEST

/* Times near the largest and operators that do not multiply exactly. */
START_TEST(large_times)
{
    made_curve c[2];
    curve_make(&c[0], (int32_t[]){1, 3}, (int64_t[]){(INT64_C(1) << 53) - 1, (INT64_C(1) << 52) + 3}, 2);
    curve_make(&c[1], (int32_t[]){2}, (int64_t[]){1}, 1);
    const hbp__curve *curves[] = {&c[0].curve, &c[1].curve};
    double share[2];
    for (int32_t operators = 1; operators < 2000; operators += 7) {
        double optimum = hbp__relax(curves, (int32_t[]){operators, 1}, 2, 8, share);
        ck_assert_double_eq_tol(optimum, ((double)(INT64_C(1) << 52) + 3) * operators, optimum * 1e-12);
        ck_assert_double_eq_tol(share[0], 3, 1e-9);
        ck_assert_double_gt(share[1], 0);
        optimum = hbp__relax(curves, (int32_t[]){operators, 1}, 2, .5, share);
        ck_assert_double_eq_tol(share[0] + share[1], .5, 1e-9);
    }
}
END_TEST

TEST_MAIN("relax", shares_of_the_figure, bisection_equals_the_closed_form, conditions_of_the_theorem,
          inverse_of_time, large_times)
