/* Idle ranks of a step that was planned in another way. */
#ifndef HBP_STEP_RESPREAD_H
#define HBP_STEP_RESPREAD_H

#include "step/step.h"

/* Step `step` of `plan` as a plan of its own in which samples are spread to the ranks that had none, by
 * hbp__step_spread from the plan's own packs. `lengths` are its samples in the plan's order. *out stays NULL
 * where a pack's degree is none of the options', and with equal_samples. HBP_E_INTERNAL where the packs do
 * not keep to the options.
 */
hbp_status hbp__step_respread(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              const hbp_step_options *options, const hbp_plan *plan, int64_t step,
                              hbp_plan **out);

#endif
