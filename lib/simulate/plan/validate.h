/* A plan against what it was made from. */
#ifndef HBP_SIMULATE_VALIDATE_H
#define HBP_SIMULATE_VALIDATE_H

#include "base/context.h"
#include "hbp/plan.h"

/* hbp_plan_validate inside of another call; takes scratch. */
hbp_status hbp__plan_validate(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                              const hbp_cost *cost);

#endif
