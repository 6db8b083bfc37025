/* One micro-batch as a mixed-integer program, as FlexSP poses it (arXiv 2412.01523) but for its buckets:
 * slots of each degree that may be opened, and which sequence is in which. Beyond that, slots of a degree are
 * opened in order, their longest sequences descend, and ranks times time is at least the work on them. */
#ifndef BENCH_PLAIN_MILP_H
#define BENCH_PLAIN_MILP_H

#include "common.h"

typedef struct bench_milp {
    const hbp_cost *cost;
    int32_t ranks;
    int64_t count;    /* sequences */
    int64_t *length;  /* [count] descending */
    int64_t multiple; /* each is padded to a multiple of it */
    double unit_ns;   /* ns in a unit of the program: about what the micro-batch takes */
    double cutoff_ns; /* solutions take at most so long; infinite: any time */
    hbp_solver_limits limits;
    int32_t status;     /* out: HBP_SOLVER_* */
    double bound_ns;    /* out: the solver's */
    int64_t ns;         /* out: of the best solution, in the integers of plans; 0: none was found */
    int32_t groups[16]; /* out: of each degree 2^j */
} bench_milp;

/* Solves through `solver`. HBP_OK also when it stops early, or without a solution. */
hbp_status bench_milp_solve(const hbp_solver *solver, bench_milp *milp);

#endif
