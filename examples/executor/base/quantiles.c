#include "base/quantiles.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void ex_sort_reals(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
}

double ex_quantile(const double *sorted, int64_t count, double q)
{
    double at = q * (double)(count - 1);
    int64_t below = (int64_t)at;
    return below + 1 < count ? sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below])
                             : sorted[below];
}
