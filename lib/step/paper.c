#include "step/step.h"

hbp_status hbp__step_paper(const hbp__step *step, hbp__step_solution *solution)
{
    return hbp__step_search(step, solution);
}
