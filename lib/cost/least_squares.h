/* Non-negative least squares with a handful of unknowns, by the normal equations: rows stream through, memory
 * is O(columns^2). */
#ifndef HBP_COST_LEAST_SQUARES_H
#define HBP_COST_LEAST_SQUARES_H

#include <stdint.h>

#include "base/memory.h"

typedef struct hbp__normal {
    int32_t columns;
    int64_t rows;
    double *gram;   /* [columns x columns] X'X */
    double *moment; /* [columns] X'y */
    double square;  /* y'y */
    double error;   /* squared error that a solution leaves; set by hbp__normal_solve that returns 1 */
    double *work;   /* scratch of the functions below */
} hbp__normal;

/* Returns 0 when memory is short. */
int hbp__normal_begin(const hbp__memory *memory, int32_t columns, hbp__normal *normal);
void hbp__normal_end(const hbp__memory *memory, hbp__normal *normal);

/* Forgets every row. */
void hbp__normal_clear(hbp__normal *normal);

/* Adds the row x [columns] with right side y. O(columns^2). */
void hbp__normal_add(hbp__normal *normal, const double *x, double y);

/* x [columns] >= 0 with the least squared error; a column of zeros gets 0. Returns 1, or 0 when the rows
 * cannot tell the columns *first and *second apart: where one is as good as a combination of the others, or
 * the error that remains leaves a column's mean contribution to y uncertain by more than `doubt` (one
 * standard error). O(columns^4). */
int hbp__normal_solve(hbp__normal *normal, double doubt, double *x, int32_t *first, int32_t *second);

#endif
