#include "step/step.h"

hbp_status hbp__step_static_sp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_search(step, solution);
}
hbp_status hbp__step_homogeneous_sp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_search(step, solution);
}
hbp_status hbp__step_hybrid_cp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_search(step, solution);
}
hbp_status hbp__step_dynamic_cp(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_search(step, solution);
}
