/* Whether a plan can be run here, said before anything is: ranks, degrees, layers, memory. */
#ifndef EX_WALK_CHECK_H
#define EX_WALK_CHECK_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "base/fault.h"
#include "device/device.h"
#include "model/shape.h"

/* What is to be run, and where. */
typedef struct ex_check {
    const hbp_plan *plan;
    const hbp_model *model;
    const ex_shape *shape;
    int32_t ranks;
    int32_t sharers;    /* ranks that share the memory of this rank's device */
    int64_t first_step; /* rows of the plan's steps */
    int64_t steps;
    int32_t recompute; /* layers to recompute instead of the plan's; -1: the plan's */
    int32_t unpacked;  /* every sample as a pack of its own on one rank */
} ex_check;

/* -1 with a message when the plan is for another number of ranks, has an SP degree that the model's heads do
 * not divide by, or recomputes more layers than there are. */
int ex_check_plan(const ex_check *check, ex_fault *fault);

/* Sets *arena_bytes to what the plan's packs need at most. -1 when weights, optimiser and that do not fit in
 * the memory that is free on `device` now, with the pack and the numbers. */
int ex_check_memory(const ex_check *check, ex_device *device, int64_t *arena_bytes, ex_fault *fault);

/* Layers that a pack of the plan recomputes. */
int32_t ex_check_recompute(const ex_check *check, int64_t pack);

/* Nonzero when a profile or cost named `name` ("NVIDIA H100 80GB HBM3 x 8", or the preset "h100") is of
 * `device`. */
int ex_check_same_device(const char *name, const char *device);

#endif
