#include "cost/least_squares.h"

#include <math.h>

#include "base/rng.h"
#include "test.h"

#define MOST 5

static double uniform(hbp__rng *rng)
{
    return (double)hbp__rng_below(rng, 1 << 24) / (1 << 24);
}

/* Gaussian elimination with pivoting on the columns in `mask`; 0 for the others. */
static void solve_subset(const hbp__normal *n, unsigned mask, double *x)
{
    double a[MOST][MOST + 1];
    int set[MOST];
    int m = 0;
    for (int i = 0; i < n->columns; i++) {
        x[i] = 0;
        if (mask >> i & 1)
            set[m++] = i;
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++)
            a[i][j] = n->gram[set[i] * n->columns + set[j]];
        a[i][m] = n->moment[set[i]];
    }
    for (int i = 0; i < m; i++) {
        int pivot = i;
        for (int r = i + 1; r < m; r++)
            if (fabs(a[r][i]) > fabs(a[pivot][i]))
                pivot = r;
        for (int j = 0; j <= m; j++) {
            double swap = a[i][j];
            a[i][j] = a[pivot][j];
            a[pivot][j] = swap;
        }
        for (int r = 0; r < m; r++)
            for (int j = m; r != i && j >= i; j--)
                a[r][j] -= a[i][j] * a[r][i] / a[i][i];
    }
    for (int i = 0; i < m; i++)
        x[set[i]] = a[i][m] / a[i][i];
}

static double squared_error(const hbp__normal *n, const double *x)
{
    double error = n->square;
    for (int i = 0; i < n->columns; i++) {
        error -= 2 * x[i] * n->moment[i];
        for (int j = 0; j < n->columns; j++)
            error += x[i] * n->gram[i * n->columns + j] * x[j];
    }
    return error;
}

/* The best over all subsets of columns whose unconstrained solution is non-negative. */
START_TEST(agrees_with_every_subset)
{
    hbp__memory memory = hbp__memory_default();
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    int clamped = 0;
    for (int round = 0; round < 3000; round++) {
        hbp__normal n;
        int32_t columns = 1 + (int32_t)hbp__rng_below(&rng, MOST);
        ck_assert(hbp__normal_begin(&memory, columns, &n));
        for (int r = 0; r < 12; r++) {
            double x[MOST];
            for (int i = 0; i < columns; i++)
                x[i] = uniform(&rng) * (i % 2 ? 1e6 : 1e-3);
            hbp__normal_add(&n, x, uniform(&rng) - .3);
        }
        double x[MOST];
        int32_t first;
        int32_t second;
        ck_assert(hbp__normal_solve(&n, 1e9, x, &first, &second));
        double least = n.square;
        for (unsigned mask = 1; mask < 1u << columns; mask++) {
            double y[MOST] = {0};
            int negative = 0;
            solve_subset(&n, mask, y);
            for (int i = 0; i < columns; i++)
                negative |= y[i] < 0;
            if (!negative && squared_error(&n, y) < least)
                least = squared_error(&n, y);
        }
        for (int i = 0; i < columns; i++) {
            ck_assert(x[i] >= 0);
            clamped += x[i] == 0;
        }
        ck_assert_double_eq_tol(squared_error(&n, x), least, 1e-9);
        hbp__normal_end(&memory, &n);
    }
    ck_assert_int_gt(clamped, 1000);
}
END_TEST

START_TEST(twins_are_named)
{
    hbp__memory memory = hbp__memory_default();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    hbp__normal n;
    ck_assert(hbp__normal_begin(&memory, 4, &n));
    for (int r = 0; r < 50; r++) {
        double a = uniform(&rng);
        double b = uniform(&rng);
        double x[4] = {a, 0, b, 3 * b + 1e-3 * a};
        hbp__normal_add(&n, x, a + b);
    }
    double x[4];
    int32_t first;
    int32_t second;
    ck_assert(!hbp__normal_solve(&n, 1e9, x, &first, &second));
    ck_assert_int_eq(first, 2);
    ck_assert_int_eq(second, 3);
    hbp__normal_end(&memory, &n);
}
END_TEST

/* Columns that differ by one part in a thousand: told apart in exact rows, not in noisy ones. */
START_TEST(noise_makes_near_twins_doubtful)
{
    hbp__memory memory = hbp__memory_default();
    for (int noisy = 0; noisy < 2; noisy++) {
        hbp__rng rng = hbp__rng_make(6, 0, 0);
        hbp__normal n;
        ck_assert(hbp__normal_begin(&memory, 3, &n));
        for (int r = 0; r < 40; r++) {
            double x[3] = {uniform(&rng), 1, 1 + uniform(&rng) / 1000};
            double noise = noisy ? 1 + (uniform(&rng) - .5) / 10 : 1;
            hbp__normal_add(&n, x, (x[0] + x[1] + 2 * x[2]) * noise);
        }
        double x[3];
        int32_t first = -1;
        int32_t second = -1;
        int told = hbp__normal_solve(&n, .25, x, &first, &second);
        ck_assert_int_eq(told, !noisy);
        if (told) {
            ck_assert_double_eq_tol(x[1], 1, 1e-4);
            ck_assert_double_eq_tol(x[2], 2, 1e-4);
        } else {
            ck_assert_int_eq(first, 1);
            ck_assert_int_eq(second, 2);
        }
        hbp__normal_end(&memory, &n);
    }
}
END_TEST

START_TEST(no_rows_give_zeros)
{
    hbp__memory memory = hbp__memory_default();
    hbp__normal n;
    ck_assert(hbp__normal_begin(&memory, 2, &n));
    double x[2] = {7, 7};
    int32_t first;
    int32_t second;
    ck_assert(hbp__normal_solve(&n, .1, x, &first, &second));
    ck_assert(x[0] == 0 && x[1] == 0);
    hbp__normal_end(&memory, &n);
}
END_TEST

TEST_MAIN("least_squares", agrees_with_every_subset, twins_are_named, noise_makes_near_twins_doubtful,
          no_rows_give_zeros)
