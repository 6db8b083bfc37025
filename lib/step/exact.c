#include "step/step.h"

hbp_status hbp__step_exact(const hbp__step *step, hbp__step_solution *solution)
{
    (void)solution;
    return hbp__fail(step->context, HBP_E_SOLVER, "no exact solver yet");
}
