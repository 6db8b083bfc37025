/* Steps in which samples are scarce: hard to arrange, and soon planned again (docs/explanation/step.md). */
#ifndef HBP_STEP_SCARCE_H
#define HBP_STEP_SCARCE_H

#include "step/step.h"

/* A solution that was found in `micro_batches` and `found_ns` and then spread, of ranks that are all in
 * lockstep, gives way to a shorter one that leaves no more ranks idle, found under stricter options; steps
 * whose options leave samples plenty are left as they are. Tries include all of less effort, of any step that
 * spreading made longer. A pure function of its arguments, but for a time limit. */
hbp_status hbp__step_scarce(const hbp__step *step, int64_t micro_batches, int64_t found_ns,
                            hbp__step_solution *solution);

#endif
