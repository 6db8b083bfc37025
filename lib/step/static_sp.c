/* One degree for a whole run, as DeepSpeed-Ulysses with packing has it. */
#include "base/checked.h"
#include "step/arrange.h"

/* The least degree that holds a sample of `stated` tokens and every sequence; the number of degrees when none
 * does. What is held, but not when padded, bounds samples that are shorter. */
static int32_t find_degree(const hbp__step *step, int64_t stated, int64_t most)
{
    for (int32_t j = 0; j < step->degrees; j++) {
        const hbp__step_degree *degree = &step->degree[j];
        int64_t longest = hbp__min_i64(hbp__round_up(stated, degree->sequence_multiple), most);
        if (degree->capacity >= longest && hbp__step_holds_each(step, j))
            return j;
    }
    return step->degrees;
}

hbp_status hbp__step_static_sp(const hbp__step *step, hbp__step_solution *solution)
{
    int64_t stated = step->options.longest_tokens, most = hbp__step_capacity(step);
    if (stated > most)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "`longest_tokens` is %lld; the largest SP group holds %lld tokens",
                         (long long)stated, (long long)most);
    int32_t j = find_degree(step, stated, most);
    if (j == step->degrees)
        return hbp__fail(step->context, HBP_E_INFEASIBLE, "no single SP degree holds every sequence");
    return hbp__step_arrange_degree(step, j, 10, solution);
}
