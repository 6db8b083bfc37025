/* Exact solutions, by the context's solver of mixed-integer programs. */
#ifndef HBP_STEP_EXACT_H
#define HBP_STEP_EXACT_H

#include "step/step.h"

/* hbp__step_solve_micro_batch, then the best solution there is, or the best found within the limits. bound_ns
 * is a lower bound for the sizes given. HBP_NOT_PROVEN when stopped early; HBP_E_INFEASIBLE, without a
 * message, when none is found; HBP_E_SOLVER. */
hbp_status hbp__step_exact_micro_batch(const hbp__step *step, const int64_t *member, int64_t members,
                                       const int64_t *tokens, const double *squares,
                                       hbp__step_solution *solution);

#endif
