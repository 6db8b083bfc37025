/* The published way to cut a batch into micro-batches: alike lengths together, equal tokens in each. */
#ifndef HBP_STEP_BLASTER_H
#define HBP_STEP_BLASTER_H

#include "step/step.h"

/* Solves one micro-batch: hbp__step_solve_micro_batch, or another of its kind. */
typedef hbp_status hbp__step_inner(const hbp__step *step, const int64_t *member, int64_t members,
                                   const int64_t *tokens, const double *squares,
                                   hbp__step_solution *solution);

/* Cuts lengths [count] into `runs` consecutive runs, none empty (1 <= runs <= count), so that the largest sum
 * is least; run r is first[r]..first[r + 1] - 1. Of the cuts that do, one whose runs are near the mean of
 * what is left. O(count log total). */
hbp_status hbp__step_blaster_cut(hbp_context *context, const int64_t *length, int64_t count, int64_t runs,
                                 int64_t *first);

/* Tries the least number of micro-batches whose tokens fit the cluster, and up to four more (FlexSP), each
 * solved by `inner`; keeps the one that takes the least time. Numbers at which `inner` finds a micro-batch
 * infeasible before any other was solved do not count. HBP_NOT_PROVEN when `inner` said so of a micro-batch
 * that was kept. HBP_E_INFEASIBLE when max_micro_batches are too few. */
hbp_status hbp__step_blast(const hbp__step *step, hbp__step_inner *inner, hbp__step_solution *solution);

#endif
