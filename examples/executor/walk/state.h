/* Saving a run and going on with it: weights, optimiser, and where in the plan it stands. */
#ifndef EX_WALK_STATE_H
#define EX_WALK_STATE_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/parameters.h"

/* What a run keeps beside the weights. */
typedef struct ex_run_state {
    int64_t step;    /* of the epoch: the next one */
    int64_t updates; /* optimiser steps so far */
    uint64_t seed;   /* of weights and drawn tokens */
    int32_t normaliser;
    uint32_t crc; /* of the file it was loaded from: ranks compare it */
} ex_run_state;

/* Writes the state before step `run->step` of the plan to `path`: a header (shape, element type, run, the
 * plan's cursor), fp32 masters and both moments, a CRC-32. Atomic: a temporary file beside it, fsync, rename.
 * One rank calls it. */
int ex_state_save(const char *path, hbp_context *context, const hbp_plan *plan, const ex_run_state *run,
                  const ex_parameters *parameters, ex_fault *fault);

/* Reads it into `parameters`, weights included, and *run, whose seed and normaliser must be those of the
 * file; every rank calls it. -1 with a message, before anything is changed, for another shape, type, seed or
 * normaliser, another plan or number of ranks, a file that is damaged or not one of these. */
int ex_state_load(const char *path, hbp_context *context, const hbp_plan *plan, ex_run_state *run,
                  ex_parameters *parameters, ex_fault *fault);

/* Writes every tensor of `gradients` as fp32 into `folder`/NAME.npy, making the folder. */
int ex_state_write_gradients(const char *folder, const ex_parameters *parameters, ex_fault *fault);

#endif
