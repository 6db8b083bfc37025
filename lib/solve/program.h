/* Linear and mixed-integer programs: built column by column and row by row, solved by the context's solver,
 * and the answer checked before anyone believes it. */
#ifndef HBP_SOLVE_PROGRAM_H
#define HBP_SOLVE_PROGRAM_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/base.h"

/* How far a point may miss a bound, a row or an integer, in proportion to the numbers that meet there. */
#define HBP__PROGRAM_TOLERANCE 1e-5

typedef struct hbp__program {
    hbp_context *context;
    int32_t columns;
    int32_t rows;
    int64_t entries;
    double *objective;
    double *lower;
    double *upper;
    int32_t *kind;
    int32_t *priority;
    double *row_lower;
    double *row_upper;
    int64_t *row_first;
    int32_t *entry_column;
    double *entry_value;
    int64_t column_room;
    int64_t row_room;
    int64_t entry_room;
} hbp__program;

/* An empty program. Close releases what was added. */
void hbp__program_open(hbp_context *context, hbp__program *program);
void hbp__program_close(hbp__program *program);

/* Appends a column; its index is program->columns before the call. `priority` >= 0. Amortised O(1). */
hbp_status hbp__program_add_column(hbp__program *program, double objective, double lower, double upper,
                                   int32_t kind, int32_t priority);

/* Appends a row without entries, then an entry of the last row; an entry of 0 is left out. No column twice in
 * a row. Amortised O(1). */
hbp_status hbp__program_add_row(hbp__program *program, double lower, double upper);
hbp_status hbp__program_add_entry(hbp__program *program, int32_t column, double value);

typedef struct hbp__answer {
    int32_t status; /* HBP_SOLVER_* */
    double objective;
    double bound;       /* at most the objective, where there is one */
    int64_t iterations; /* 0: not counted */
} hbp__answer;

/* Hands the program to the context's solver; `start` and `values` are [columns]. The context's progress and
 * cancel are asked under the name of `stage`, and the poll of `limits` where it has one. HBP_E_SOLVER when
 * there is no solver, it fails, or its answer does not hold; HBP_E_CANCELLED; HBP_E_INVALID for a number that
 * is not finite. */
hbp_status hbp__program_solve(const hbp__program *program, const char *stage, const double *start,
                              const hbp_solver_limits *limits, double *values, hbp__answer *answer);

/* Nonzero when the point keeps the bounds, the rows and the integers. O(entries). */
int hbp__program_holds(const hbp__program *program, const double *values);

#endif
