/* The walk over a plan: every rank runs its packs, step by step, and all take the same optimiser steps. */
#ifndef EX_WALK_WALK_H
#define EX_WALK_WALK_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "comm/comm.h"
#include "device/device.h"
#include "model/shape.h"
#include "walk/record.h"
#include "walk/tokens.h"

/* What became of a step; times are of this rank. */
typedef struct ex_step {
    int64_t step; /* of the epoch */
    int64_t micro_batches;
    int64_t samples;
    int64_t tokens;      /* without padding */
    double loss;         /* weighted by the plan: the mean over loss tokens, unless told otherwise */
    double norm;         /* of all gradients, before clipping */
    int64_t ns;          /* from the first pack's beginning to the optimiser's end */
    int64_t packs_ns;    /* of it in packs */
    int64_t reduce_ns;   /* in the all-reduce of gradients, waiting for slower ranks included */
    int64_t optimise_ns; /* in clipping and AdamW */
    int64_t predicted_ns;
} ex_step;

typedef struct ex_walk_options {
    const hbp_plan *plan;
    const ex_shape *shape;
    const ex_tokens *tokens;
    int64_t first_step; /* row of the plan's steps; -1: where `resume` stands, else 0 */
    int64_t steps;      /* 0: to the plan's end */
    uint64_t seed;      /* of the weights */
    int32_t normaliser; /* HBP_LOSS_* */
    int32_t recompute;  /* layers of every pack; -1: the plan's */
    int32_t unpacked;   /* every sample alone on one rank, in turn: what packing must not change */
    int32_t repeat; /* every pack is run so often for its time, the gradients counted once, and its least time
                       is recorded; 0: once */
    int32_t no_update; /* gradients alone: weights stay as they are */
    ex_adam adam;      /* corrections and gradient_scale are set by the walk */
    double max_norm;   /* gradients are clipped to it; 0: not */
    int64_t arena_bytes;
    const char *resume;    /* a state to go on from; NULL: begin */
    const char *save;      /* a state to write; NULL: none */
    int64_t save_every;    /* steps; 0: at the end */
    const char *gradients; /* a folder for the last step's gradients, summed over ranks; NULL: none */
    ex_record *record;     /* rows are added on rank 0, and on all others too; NULL: none */
    int32_t clock;         /* EX_CLOCK_* of the record */
    int measure_communication;
    void (*on_step)(void *user, const ex_step *step); /* called on every rank after each step; may be NULL */
    void *user;
} ex_walk_options;

/* Runs the steps. Ranks first agree that they have the same plan, shape and options. Returns 0; -1 with a
 * message in `fault`: print it, then tell the others by comm->ops->abandon, which may end the process; -2
 * when all ranks know that one cannot begin: the fault of the first such rank says why, the others' have no
 * text. Collective. */
int ex_walk(const ex_walk_options *options, hbp_context *context, ex_device *device, ex_comm *comm,
            ex_fault *fault);

#endif
