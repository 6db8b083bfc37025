/* Methods of others to plan a step, each at its own best settings under the same contract: what a comparison
 * owes them. */
#ifndef HBP_EXAMPLES_STEP_SETTINGS_H
#define HBP_EXAMPLES_STEP_SETTINGS_H

#include <hbp/hbp.h>

/* Whether a method has settings that are swept: all but search, the default. */
int step_settings_swept(const char *method);

/* Sets what makes options->method plan this step fastest, and plans with it: `tokens_per_rank`, from what the
 * longest sample needs to what memory holds or the options allow, in hybrid CP `sequence_tokens_per_rank`;
 * with it static SP's degree, as `min_sp` = `max_sp`, and `min_sp` of Megatron's two; powers of two, fifteen
 * values between each two, then finer around the best ones. The published planner, unless it is exact, is
 * planned with 16, 64 and no buckets, and the best of those with two values from each power of two to the
 * next, then finer. A method that is not swept is planned as it is. Fails as hbp_plan_step does where no
 * setting has a plan. */
hbp_status step_settings_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              hbp_step_options *options, hbp_plan **out);

/* The tokens a rank that are worth trying, with every degree of the options: from what the longest sample
 * needs to what memory holds or the options allow. Zero when there are none. */
int step_settings_range(const hbp_cost *cost, const hbp_step_options *options, const hbp_cost_terms *terms,
                        int64_t longest, int64_t *least, int64_t *most);

#endif
