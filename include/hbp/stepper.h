/* A planner for a whole run: a thread of its own plans the next step while the trainer runs this one. */
#ifndef HBP_STEPPER_H
#define HBP_STEPPER_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/lengths.h"
#include "hbp/plan.h"
#include "hbp/step.h"

HBP_BEGIN_DECLS

typedef struct hbp_stepper hbp_stepper;

typedef struct hbp_stepper_options {
    uint32_t struct_size;
    int32_t depth; /* most steps that are submitted and not taken, 1..1024; 0: 2 */
    int32_t wait;  /* zero: submit refuses a step past the depth, and take a step that was not submitted.
                      Nonzero: they wait, for a program in which one thread submits and another takes */
} hbp_stepper_options;

HBP_API void hbp_stepper_options_init(hbp_stepper_options *options, uint32_t struct_size);

/* Makes a planner whose every step is planned as hbp_plan_step plans it with `cost` and the step options, and
 * with the solver that `context` has now. The options are copied; cost and solver must outlive the stepper.
 * Its thread takes memory from the context's allocator, and keeps it from step to step: the allocator must be
 * callable from two threads at once. The thread calls nothing else of the caller's but the solver, and blocks
 * every signal. It does not survive a fork: a child process must not use or free the stepper.
 *
 * One thread may submit and another take, each with a context of its own. Returns the errors of
 * hbp_plan_step's options; HBP_E_SYSTEM when there is no thread to be had; HBP_E_NO_MEMORY. Thread: one per
 * context. */
HBP_API hbp_status hbp_stepper_create(hbp_context *context, const hbp_cost *cost,
                                      const hbp_step_options *step_options,
                                      const hbp_stepper_options *options, hbp_stepper **out);

/* Cancels the step that is being planned, drops the others and ends the thread; NULL is allowed. Plans that
 * were taken stay valid. Thread: any, while no other uses the stepper. */
HBP_API void hbp_stepper_free(hbp_stepper *stepper);

/* Submits the next step: a batch given as hbp_lengths_create_i64 takes it. Everything is copied, and the call
 * returns before the step is planned. Returns the errors of hbp_lengths_create_i64, and HBP_E_INVALID for a
 * step past the depth unless `wait`; the step is not submitted then. HBP_E_CANCELLED while it waits. Thread:
 * one at a time submits. */
HBP_API hbp_status hbp_stepper_submit(hbp_context *context, hbp_stepper *stepper, const int64_t *lengths,
                                      int64_t count, const hbp_lengths_options *options);

/* The same for a data set, which is shared, not copied: it may be freed at once, but an array that it borrows
 * must stay until the step is taken. */
HBP_API hbp_status hbp_stepper_submit_lengths(hbp_context *context, hbp_stepper *stepper,
                                              const hbp_lengths *batch_lengths);

/* Takes the plan of the oldest submitted step, waiting until it is made. It is the very plan that
 * hbp_plan_step makes of the batch, digest included, whatever the timing and on every rank: a whole plan of
 * one step, whose `first_step` is 0. The caller frees it; it may outlive the stepper.
 *
 * Returns what planning returned, with "step 17: " and its message after a failure; the steps that follow are
 * not affected. HBP_E_CANCELLED when the waiting is cancelled: the step can be taken later. HBP_E_INVALID
 * when no step is submitted that was not taken, unless `wait`. Progress: stage "take", then "wait" (steps
 * planned, of those submitted). Thread: one at a time takes. */
HBP_API hbp_status hbp_stepper_take(hbp_context *context, hbp_stepper *stepper, hbp_plan **out);

typedef struct hbp_stepper_summary {
    uint32_t struct_size;
    int32_t depth;
    int64_t submitted;
    int64_t planned;
    int64_t taken;
    int64_t waited;     /* steps whose plan was not ready when it was to be taken */
    int64_t kept_bytes; /* for the planning of later steps; as of the step taken last */
    uint64_t digest;    /* over the plans taken so far, and the failures: ranks that compare it now and then
                           need not compare each plan's */
} hbp_stepper_summary;

/* Fills *summary. Thread: any, one per context. */
HBP_API hbp_status hbp_stepper_get_summary(hbp_context *context, hbp_stepper *stepper,
                                           hbp_stepper_summary *summary);

HBP_END_DECLS

#endif
