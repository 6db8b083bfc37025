/* Normal equations, solved by Cholesky factors within the active set of Lawson and Hanson (1974). */
#include "cost/least_squares.h"

#include <math.h>
#include <string.h>

/* A column whose part outside the columns before it is less than 1e-4 of its length counts as their
 * combination. */
#define LEAST_PIVOT 1e-8

int hbp__normal_begin(const hbp__memory *memory, int32_t columns, hbp__normal *normal)
{
    uint64_t p = (uint64_t)columns;
    /* gram and moment; three matrices, four vectors and two integer vectors of scratch. */
    double *block = hbp__new_zero(memory, 4 * p * p + 6 * p, sizeof *block);
    if (!block)
        return 0;
    *normal =
        (hbp__normal){.columns = columns, .gram = block, .moment = block + p * p, .work = block + p * p + p};
    return 1;
}

void hbp__normal_end(const hbp__memory *memory, hbp__normal *normal)
{
    hbp__delete(memory, normal->gram);
    normal->gram = NULL;
}

void hbp__normal_clear(hbp__normal *normal)
{
    size_t p = (size_t)normal->columns;
    memset(normal->gram, 0, p * p * sizeof *normal->gram);
    memset(normal->moment, 0, p * sizeof *normal->moment);
    normal->square = 0;
    normal->rows = 0;
}

void hbp__normal_add(hbp__normal *normal, const double *x, double y)
{
    int32_t p = normal->columns;
    for (int32_t i = 0; i < p; i++) {
        for (int32_t j = 0; j < p; j++)
            normal->gram[i * p + j] += x[i] * x[j];
        normal->moment[i] += x[i] * y;
    }
    normal->square += y * y;
    normal->rows++;
}

/* Lower Cholesky factor of the rows and columns `set` [count] of a [p x p], into l [count x count]. Returns
 * the first position whose pivot is below `least`, or count. */
static int32_t factor(const double *a, int32_t p, const int32_t *set, int32_t count, double least, double *l)
{
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j <= i; j++) {
            double sum = a[set[i] * p + set[j]];
            for (int32_t k = 0; k < j; k++)
                sum -= l[i * count + k] * l[j * count + k];
            if (j < i)
                l[i * count + j] = sum / l[j * count + j];
            else if (!(sum >= least))
                return i;
            else
                l[i * count + i] = sqrt(sum);
        }
    }
    return count;
}

/* Solves l y = b, then l' x = y, both [count], in place; `stride` is that of l's rows. */
static void solve_lower(const double *l, int32_t stride, int32_t count, double *b)
{
    for (int32_t i = 0; i < count; i++) {
        for (int32_t k = 0; k < i; k++)
            b[i] -= l[i * stride + k] * b[k];
        b[i] /= l[i * stride + i];
    }
}

static void solve_upper(const double *l, int32_t stride, int32_t count, double *b)
{
    for (int32_t i = count - 1; i >= 0; i--) {
        for (int32_t k = i + 1; k < count; k++)
            b[i] -= l[k * stride + i] * b[k];
        b[i] /= l[i * stride + i];
    }
}

/* Lawson and Hanson (1974), chapter 23, on g x = h with g [m x m] positive definite, m <= the columns. `l` [m
 * x m] and `s` [m] are scratch, `chosen` [m] the positive unknowns. */
static void solve_nonnegative(const double *g, const double *h, int32_t m, double tolerance, double *x,
                              double *l, double *s, int32_t *chosen)
{
    int32_t count = 0;
    memset(x, 0, (size_t)m * sizeof *x);
    for (int32_t round = 0; round < 10 * m; round++) {
        int32_t entering = -1;
        double steepest = tolerance;
        for (int32_t i = 0; i < m; i++) {
            int32_t known = 0;
            for (int32_t k = 0; k < count; k++)
                known |= chosen[k] == i;
            double slope = h[i];
            for (int32_t j = 0; j < m; j++)
                slope -= g[i * m + j] * x[j];
            if (!known && slope > steepest) {
                steepest = slope;
                entering = i;
            }
        }
        if (entering < 0)
            return;
        chosen[count++] = entering;
        for (;;) {
            factor(g, m, chosen, count, 0, l);
            for (int32_t k = 0; k < count; k++)
                s[k] = h[chosen[k]];
            solve_lower(l, count, count, s);
            solve_upper(l, count, count, s);
            /* As far towards s as every unknown stays non-negative; those that reach 0 leave. */
            double step = 1;
            for (int32_t k = 0; k < count; k++)
                if (s[k] <= 0 && x[chosen[k]] < step * (x[chosen[k]] - s[k]))
                    step = x[chosen[k]] / (x[chosen[k]] - s[k]);
            int32_t kept = 0;
            for (int32_t k = 0; k < count; k++) {
                int32_t i = chosen[k];
                int leaves = s[k] <= 0 && x[i] <= step * (x[i] - s[k]);
                x[i] = leaves ? 0 : x[i] + step * (s[k] - x[i]);
                if (!leaves)
                    chosen[kept++] = i;
            }
            if (kept == count)
                break;
            count = kept;
        }
    }
}

/* Which column the doubtful column `j` is mistaken for: the largest partial correlation. */
static int32_t find_partner(const double *inverse, int32_t m, int32_t j)
{
    int32_t partner = j;
    double closest = -1;
    for (int32_t k = 0; k < m; k++) {
        double correlation = fabs(inverse[j * m + k]) / sqrt(inverse[j * m + j] * inverse[k * m + k]);
        if (k != j && correlation > closest) {
            closest = correlation;
            partner = k;
        }
    }
    return partner;
}

int hbp__normal_solve(hbp__normal *normal, double doubt, double *x, int32_t *first, int32_t *second)
{
    int32_t p = normal->columns;
    double *g = normal->work;
    double *l = g + p * p;
    double *inverse = l + p * p;
    double *vectors = inverse + p * p;
    double *scale = vectors;
    double *h = vectors + p;
    double *z = vectors + 2 * p;
    double *s = vectors + 3 * p;
    int32_t *column = (int32_t *)(vectors + 4 * p); /* [p], then `chosen` [p] */
    int32_t *chosen = column + p;

    /* Columns of unit length, so that one threshold suits tokens and squares alike. */
    int32_t m = 0;
    for (int32_t i = 0; i < p; i++) {
        x[i] = 0;
        if (normal->gram[i * p + i] > 0)
            column[m++] = i;
    }
    for (int32_t i = 0; i < m; i++)
        scale[i] = sqrt(normal->gram[column[i] * p + column[i]]);
    for (int32_t i = 0; i < m; i++) {
        h[i] = normal->moment[column[i]] / scale[i];
        for (int32_t j = 0; j < m; j++)
            g[i * m + j] = normal->gram[column[i] * p + column[j]] / (scale[i] * scale[j]);
        chosen[i] = i;
    }
    int32_t twin = factor(g, m, chosen, m, LEAST_PIVOT, l);
    if (twin < m) {
        /* Its combination of the columns before it; the largest weight is the likeliest confusion. */
        memcpy(s, l + twin * m, (size_t)twin * sizeof *s);
        solve_upper(l, m, twin, s);
        int32_t heaviest = 0;
        for (int32_t k = 1; k < twin; k++)
            if (fabs(s[k]) > fabs(s[heaviest]))
                heaviest = k;
        *first = column[heaviest];
        *second = column[twin];
        return 0;
    }
    for (int32_t j = 0; j < m; j++) {
        double *row = inverse + j * m;
        memset(row, 0, (size_t)m * sizeof *row);
        row[j] = 1;
        solve_lower(l, m, m, row);
        solve_upper(l, m, m, row);
    }
    solve_nonnegative(g, h, m, 1e-12 * sqrt(normal->square), z, l, s, chosen);

    double error = normal->square;
    for (int32_t i = 0; i < m; i++) {
        error -= 2 * z[i] * h[i];
        for (int32_t j = 0; j < m; j++)
            error += z[i] * g[i * m + j] * z[j];
    }
    normal->error = error > 0 ? error : 0;
    double variance = normal->rows > m ? normal->error / (double)(normal->rows - m) : 0;
    int32_t worst = 0;
    for (int32_t j = 1; j < m; j++)
        if (inverse[j * m + j] > inverse[worst * m + worst])
            worst = j;
    if (m > 1 && variance * inverse[worst * m + worst] > doubt * doubt * (double)normal->rows) {
        int32_t partner = find_partner(inverse, m, worst);
        *first = column[worst < partner ? worst : partner];
        *second = column[worst < partner ? partner : worst];
        return 0;
    }
    for (int32_t i = 0; i < m; i++)
        x[column[i]] = z[i] / scale[i];
    return 1;
}
