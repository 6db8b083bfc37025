/* Methods of others to plan an epoch, each at its own best settings under the same contract. */
#ifndef HBP_EXAMPLES_EPOCH_SETTINGS_H
#define HBP_EXAMPLES_EPOCH_SETTINGS_H

#include <hbp/hbp.h>

/* What was found best; all 0 for a way that has nothing to set: FlexSP and HBP choose for themselves. */
typedef struct epoch_setting {
    int64_t pack_length; /* of the methods of one group, with degree and recomputed layers */
    int32_t sp;
    int32_t recompute;
    int64_t tokens_per_rank; /* of Megatron's two: in hybrid CP sequence_tokens_per_rank */
    int32_t min_sp;          /* of the same */
} epoch_setting;

/* Plans the epoch by options->method, which must be given, with what makes it fastest under the contract of
 * the options. Methods of one group: on every degree of the cost, packs from the longest sample to what
 * memory, the caps and the tokens of a step allow, with as few layers recomputed as that takes. Megatron's
 * two: one number of tokens a rank and one least degree for all steps. Options that the method does not
 * keep are left out; batches are as many samples a step then. Large data sets are swept by an even part of
 * them; the best few settings are then planned in full. Fails as hbp_plan_epoch does where no setting has a
 * plan. */
hbp_status epoch_settings_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               const hbp_epoch_options *options, epoch_setting *best, hbp_plan **out);

#endif
