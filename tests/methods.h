/* Epochs planned by each method, by the library's constants. */
#ifndef HBP_TESTS_METHODS_H
#define HBP_TESTS_METHODS_H

#include "base/methods.h"
#include "hbp/epoch.h"

/* hbp_plan_epoch by a method of HBP__EPOCH_*; `options` may be NULL. */
static inline hbp_status test_plan_by(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                      int32_t method, const hbp_epoch_options *options, hbp_plan **plan)
{
    hbp_epoch_options by = {.struct_size = sizeof by};
    if (options)
        by = *options;
    by.method = hbp__epoch_name(method);
    return hbp_plan_epoch(context, lengths, cost, &by, plan);
}

#endif
