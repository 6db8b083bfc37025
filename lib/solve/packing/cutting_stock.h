/* The linear relaxation of cutting stock: how often to use which pattern, in fractions (Gilmore and Gomory
 * 1961). */
#ifndef HBP_SOLVE_CUTTING_STOCK_H
#define HBP_SOLVE_CUTTING_STOCK_H

#include "solve/packing/patterns.h"

/* Patterns of the relaxation's basis; times is 0, uses[p] says how often pattern p is used. */
typedef struct hbp__relaxation {
    hbp__patterns patterns;
    double *uses;    /* [rows] */
    int64_t *column; /* [rows] the pattern behind uses[i]; -1: none */
    int64_t rows;
    double packs; /* sum of uses */
} hbp__relaxation;

/* Covers number[c] items of every class by patterns of `capacity`, weights aside, so that the sum of uses is
 * within `gap` packs of the least, or as near as `work` operations lead, which it counts down. Column
 * generation: a dense revised simplex prices patterns that an unbounded knapsack finds. O(classes capacity) a
 * round, O(classes^2) a pivot, 8 bytes x classes^2 of scratch. Only sums, products and quotients of doubles:
 * the same bits everywhere. Close in any case. */
hbp_status hbp__relaxation_open(hbp_context *context, const hbp__classes *classes, int64_t capacity,
                                double gap, int64_t *work, hbp__relaxation *relaxation);
void hbp__relaxation_close(hbp__relaxation *relaxation);

#endif
