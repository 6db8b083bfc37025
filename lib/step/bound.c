#include "step/step.h"

hbp_status hbp__step_bound(const hbp__step *step, int64_t *bound_ns)
{
    (void)step;
    *bound_ns = 0;
    return HBP_OK;
}
