/* The best single degree for a batch: FlexSP's baseline BatchAda. */
#include "step/arrange.h"

/* Packs are filled to nine tenths of what a group holds. */
#define FILL_TENTHS 9

hbp_status hbp__step_homogeneous_sp(const hbp__step *step, hbp__step_solution *solution)
{
    hbp_status status = HBP_OK;
    for (int32_t j = 0; j < step->degrees; j++) {
        hbp__step_solution trial = {.ns = 0};
        if (!hbp__step_holds_each(step, j))
            continue;
        HBP__TRY(hbp__tick(step->context, "SP degrees", j, step->degrees));
        status = hbp__step_arrange_degree(step, j, FILL_TENTHS, &trial);
        if (status >= 0)
            hbp__step_keep_faster(solution, &trial);
        hbp__step_solution_close(&trial);
        if (status < 0 && status != HBP_E_INFEASIBLE)
            return status;
    }
    if (!solution->memory.release && status >= 0)
        return hbp__fail(step->context, HBP_E_INFEASIBLE, "no single SP degree holds every sequence");
    if (!solution->memory.release)
        return status; /* every degree takes more micro-batches than are allowed */
    return hbp__forgive(step->context);
}
