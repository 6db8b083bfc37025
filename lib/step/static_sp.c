/* One degree for a whole run, as DeepSpeed-Ulysses with packing has it. */
#include "base/checked.h"
#include "step/arrange.h"

/* The least degree that holds `longest` tokens, or -1. */
static int32_t find_degree(const hbp__step *step, int64_t longest)
{
    for (int32_t j = 0; j < step->degrees; j++)
        if (step->degree[j].capacity >= longest)
            return j;
    return -1;
}

static int64_t largest_capacity(const hbp__step *step)
{
    int64_t most = 0;
    for (int32_t j = 0; j < step->degrees; j++)
        most = hbp__max_i64(most, step->degree[j].capacity);
    return most;
}

hbp_status hbp__step_static_sp(const hbp__step *step, hbp__step_solution *solution)
{
    int64_t stated = hbp__round_up(step->options.longest_tokens, step->options.sequence_multiple);
    int32_t j = find_degree(step, hbp__max_i64(stated, step->tokens[0]));
    if (j < 0)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "hbp_step_options.longest_tokens is %lld; the largest SP group holds %lld tokens",
                         (long long)step->options.longest_tokens, (long long)largest_capacity(step));
    return hbp__step_arrange_degree(step, j, 10, solution);
}
