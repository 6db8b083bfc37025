/* The ways to plan a step, by name. */
#include "hbp/step.h"

#include <stddef.h>

const char *hbp_step_mode_name(int32_t mode)
{
    static const char *const names[HBP_STEP_MODE_COUNT] = {"default",        "paper",     "static-sp",
                                                           "homogeneous-sp", "hybrid-cp", "dynamic-cp"};
    return mode >= 0 && mode < HBP_STEP_MODE_COUNT ? names[mode] : NULL;
}
