/* Lengths and options that plans by patterns are tested on. */
#ifndef HBP_TESTS_PATTERNED_H
#define HBP_TESTS_PATTERNED_H

#include "costs.h"
#include "data/pattern/pattern_plan.h"
#include "keep.h"

static inline hbp_epoch_options defaults(void)
{
    return (hbp_epoch_options){.struct_size = sizeof(hbp_epoch_options)};
}

/* Lengths of which most are short. */
static inline void draw_values(hbp__rng *rng, uint32_t *values, int64_t count, uint32_t top)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t most = 1 + hbp__rng_below(rng, top);
        values[i] = 1 + hbp__rng_below(rng, hbp__rng_below(rng, 4) ? 1 + most / 16 : most);
    }
}

static inline hbp_lengths *draw_lengths(hbp_context *context, hbp__rng *rng, int64_t count, uint32_t top,
                                        int with_loss)
{
    hbp_lengths *lengths;
    uint32_t *values = keep((uint32_t *)malloc((size_t)count * sizeof *values)),
             *loss = keep((uint32_t *)malloc((size_t)count * sizeof *loss));
    draw_values(rng, values, count, top);
    for (int64_t i = 0; i < count; i++)
        loss[i] = hbp__rng_below(rng, values[i] + 1);
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .loss_tokens = with_loss ? loss : NULL,
                                   .shifted_loss = with_loss ? 0 : (int32_t)hbp__rng_below(rng, 2)};
    OK(context, hbp_lengths_create_u32(context, values, count, &options, &lengths));
    return keep(lengths);
}

#endif
