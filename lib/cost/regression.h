/* Robust non-negative regression that decides by itself which of its less certain unknowns the rows can tell:
 * Huber's M-estimator (1964) with forward selection by partial F tests. */
#ifndef HBP_COST_REGRESSION_H
#define HBP_COST_REGRESSION_H

#include <stdint.h>

#include "base/context.h"

/* What becomes of an unknown: taken as it is; fitted; or fitted where the rows say clearly that it is not
 * what it is tied to. */
enum { HBP__UNKNOWN_FIXED, HBP__UNKNOWN_FITTED, HBP__UNKNOWN_MAYBE };

/* An unknown that is not fitted is `prior` times the unknown `parent` >= 0, or `prior` itself where `parent`
 * is -1. A parent is fitted. */
typedef struct hbp__unknown {
    int32_t kind;
    int32_t parent;
    double prior;
    int spare;    /* nonzero: one that is FITTED is tied rather than in doubt or mistaken for another */
    double value; /* found */
    int fitted;   /* found from the rows */
} hbp__unknown;

typedef struct hbp__regression {
    const void *user;
    /* Row i of the design, x [columns] whole, and the right side, both scaled so that the error is relative;
     * returns the right side. */
    double (*row)(const void *user, int64_t i, double *x);
    int64_t rows;
    int32_t columns;
    hbp__unknown *unknowns; /* [columns] */
} hbp__regression;

/* Finds the values >= 0. HBP_E_INFEASIBLE, without a message, when there are fewer rows than FITTED unknowns
 * or they cannot tell *first and *second of them apart, neither of which is `spare`; `doubt` is as in
 * hbp__normal_solve. HBP_E_CANCELLED, HBP_E_NO_MEMORY.
 * O(rows columns^2) an iteration, of which there are some tens. */
hbp_status hbp__regress(hbp_context *context, hbp__regression *regression, double doubt, int32_t *first,
                        int32_t *second);

#endif
