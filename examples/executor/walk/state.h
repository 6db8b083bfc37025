/* Saving a run and going on with it: weights, optimiser, and where in the plan it stands. */
#ifndef EX_WALK_STATE_H
#define EX_WALK_STATE_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/parameters.h"

/* Writes the state before step `step` of the plan to `path`: a header (shape, number of optimiser steps, the
 * plan's cursor), fp32 masters and both moments, a CRC-32. Atomic: a temporary file beside it, fsync, rename.
 * One rank calls it. `updates`: optimiser steps so far. */
int ex_state_save(const char *path, hbp_context *context, const hbp_plan *plan, int64_t step, int64_t updates,
                  const ex_parameters *parameters, ex_fault *fault);

/* Reads it into `parameters`, weights included; every rank calls it. -1 with a message, before anything is
 * changed, for another shape, another plan or number of ranks, a file that is damaged or not one of these. */
int ex_state_load(const char *path, hbp_context *context, const hbp_plan *plan, int64_t *step,
                  int64_t *updates, ex_parameters *parameters, ex_fault *fault);

/* Writes every tensor of `gradients` as fp32 into `folder`/NAME.npy, making the folder. */
int ex_state_write_gradients(const char *folder, const ex_parameters *parameters, ex_fault *fault);

#endif
