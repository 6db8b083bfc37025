/* Neighbouring classes taken together as one row of the size of the largest, so that a linear program stays
 * small. */
#ifndef HBP_SOLVE_COARSE_H
#define HBP_SOLVE_COARSE_H

#include "solve/patterns.h"

typedef struct hbp__coarse {
    hbp__classes rows;
    int64_t *size, *number; /* [rows] */
    int64_t *top;           /* [rows] the largest class of the row that has items left */
    int64_t *first;         /* [rows] the row's first class */
    int64_t *left;          /* [rows] items left */
} hbp__coarse;

/* At most `rows` rows of the classes with number[c] > 0. The loss of a row, what its items are short of its
 * size in all, is about the same for all rows: a row ends where the loss would pass a threshold, which is
 * bisected. Weights must be absent. O(classes log). On scratch. */
hbp_status hbp__coarse_open(hbp_context *context, const hbp__classes *classes, const int64_t *number,
                            int64_t rows, hbp__coarse *coarse);

/* Uses a pattern of rows `times` times, or as long as every row has items: draws items from the rows, largest
 * first, counts number[c] down and appends patterns of classes. Returns in *used how often it was used. */
hbp_status hbp__coarse_use(hbp_context *context, hbp__coarse *coarse, int64_t times, const hbp__run *run,
                           int64_t runs, int64_t *number, hbp__patterns *patterns, int64_t *used);

#endif
