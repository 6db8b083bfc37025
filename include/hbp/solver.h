/* The seam to a solver of linear and mixed-integer programs. libhbp has none of its own: libhbp-glpk
 * (hbp/glpk.h) is one, and any other is a struct with a function. */
#ifndef HBP_SOLVER_H
#define HBP_SOLVER_H

#include <stdint.h>

#include "hbp/context.h"

enum { HBP_COLUMN_CONTINUOUS = 0, HBP_COLUMN_INTEGER = 1 };

/* What a solver found out. */
enum {
    HBP_SOLVER_STOPPED = 0, /* by a limit, without a point; `bound` holds */
    HBP_SOLVER_OPTIMAL = 1,
    HBP_SOLVER_FEASIBLE = 2, /* stopped by a limit, with the best point so far */
    HBP_SOLVER_INFEASIBLE = 3,
    HBP_SOLVER_UNBOUNDED = 4 /* or infeasible, where columns are integer */
};

HBP_BEGIN_DECLS

/* Minimise objective . x subject to row_lower <= A x <= row_upper and column_lower <= x <= column_upper. An
 * infinite bound is none. Everything else is finite, and of the order of 1: libhbp scales. Rows are sparse:
 * row r has the entries row_first[r] to row_first[r + 1], no column twice. Read-only, valid during the call.
 */
typedef struct hbp_program {
    uint32_t struct_size;
    int32_t columns;
    int32_t rows;
    const double *objective;        /* [columns] */
    const double *column_lower;     /* [columns] */
    const double *column_upper;     /* [columns] */
    const int32_t *column_kind;     /* [columns] HBP_COLUMN_*; integer columns have integer bounds */
    const int32_t *column_priority; /* [columns] >= 0: branch on the highest first; a hint; NULL: none */
    const double *row_lower;        /* [rows] */
    const double *row_upper;        /* [rows] */
    const int64_t *row_first;       /* [rows + 1] */
    const int32_t *entry_column;    /* [row_first[rows]] */
    const double *entry_value;      /* [row_first[rows]] */
    const double *start;            /* [columns] a feasible point to improve on; NULL: none */
} hbp_program;

/* When to stop. Zero is no limit. Nodes and iterations make the answer a function of the program alone. */
typedef struct hbp_solver_limits {
    uint32_t struct_size;
    int32_t (*poll)(void *user); /* nonzero: stop, with what there is. Called every few ms on the thread that
                                    called solve; NULL: never */
    void *poll_user;
    int64_t nodes;      /* of the branch-and-bound tree */
    int64_t iterations; /* of the simplex method */
    int64_t time_ms;
    int64_t memory_bytes;
    double gap; /* (objective - bound) / |objective| that is good enough */
} hbp_solver_limits;

typedef struct hbp_solver_answer {
    uint32_t struct_size;
    int32_t status;   /* HBP_SOLVER_* */
    double objective; /* of values, where there are */
    double bound;     /* no point has a smaller objective, within the solver's tolerances; -infinity: none */
    double *values;   /* [columns] the caller's room; filled when optimal or feasible */
    char *message;    /* [message_bytes] the caller's room for one line about a failure */
    int64_t message_bytes;
    int64_t iterations; /* of the simplex method that it took; 0: not counted */
} hbp_solver_answer;

/* A solver. `solve` returns HBP_OK with an answer, or a failure with a message in it; it prints nothing, and
 * leaves no thread behind. libhbp checks every point that it hands back. Called on the thread of the call
 * that needs it, several at a time from different contexts. */
typedef struct hbp_solver {
    uint32_t struct_size;
    hbp_status (*solve)(void *user, const hbp_program *program, const hbp_solver_limits *limits,
                        hbp_solver_answer *answer);
    void *user;
} hbp_solver;

/* Gives the context a solver, which must stay valid for as long as the context uses it; NULL takes it away.
 * HBP_E_INVALID for a solver without a function. Thread: one per context. */
HBP_API hbp_status hbp_context_set_solver(hbp_context *context, const hbp_solver *solver);

HBP_END_DECLS

#endif
