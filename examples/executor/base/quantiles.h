/* Quantiles of what was measured several times. */
#ifndef EX_BASE_QUANTILES_H
#define EX_BASE_QUANTILES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts `count` values in ascending order. */
void ex_sort_reals(double *values, int64_t count);

/* The quantile q, 0 to 1, of count >= 1 sorted values, linear between neighbours. */
double ex_quantile(const double *sorted, int64_t count, double q);

#ifdef __cplusplus
}
#endif

#endif
