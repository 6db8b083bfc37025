/* What parameters take in memory, and what attention's backward pass takes in time. */
#ifndef HBP_COST_STATES_H
#define HBP_COST_STATES_H

#include "hbp/cost.h"

/* Bytes per parameter: bf16 weights; fp32 gradients; fp32 weights and Adam's two moments. Together 18. */
#define HBP__WEIGHT_BYTES    2.0
#define HBP__GRADIENT_BYTES  4.0
#define HBP__OPTIMISER_BYTES 12.0

/* Flash attention's backward pass does 5 matrix products for the forward pass's 2. */
#define HBP__ATTENTION_BACKWARD 2.5

/* Bytes of one parameter on each of `ranks` data-parallel ranks under a ZeRO stage (HBP_ZERO_*, not 0). */
static inline double hbp__cost_state_bytes(int32_t stage, double ranks)
{
    double weights = stage == HBP_ZERO_3 ? HBP__WEIGHT_BYTES / ranks : HBP__WEIGHT_BYTES;
    double gradients =
        stage == HBP_ZERO_3 || stage == HBP_ZERO_2 ? HBP__GRADIENT_BYTES / ranks : HBP__GRADIENT_BYTES;
    double states = stage == HBP_ZERO_NONE ? HBP__OPTIMISER_BYTES : HBP__OPTIMISER_BYTES / ranks;
    return weights + gradients + states;
}

/* Layers whose weights ZeRO-3 holds whole: the one at work and the one being fetched. */
#define HBP__GATHERED_LAYERS 2.0

/* What does not grow with a pack, on each of `ranks` that ZeRO shards over. */
static inline double hbp__cost_static_bytes(int32_t stage, double ranks, double parameters,
                                            double layer_parameters)
{
    double bytes = hbp__cost_state_bytes(stage, ranks) * parameters;
    return stage == HBP_ZERO_3 && ranks > 1
               ? bytes + HBP__GATHERED_LAYERS * HBP__WEIGHT_BYTES * layer_parameters
               : bytes;
}

#endif
