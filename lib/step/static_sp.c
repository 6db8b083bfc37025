/* One degree for a whole run, as DeepSpeed-Ulysses with packing has it. */
#include "base/checked.h"
#include "step/arrange.h"

/* The least degree that holds `longest` tokens, which one does. */
static int32_t find_degree(const hbp__step *step, int64_t longest)
{
    int32_t j = 0;
    while (step->degree[j].capacity < longest)
        j++;
    return j;
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
    int64_t stated = step->options.longest_tokens, most = largest_capacity(step);
    if (stated > most)
        return hbp__fail(step->context, HBP_E_INFEASIBLE,
                         "hbp_step_options.longest_tokens is %lld; the largest SP group holds %lld tokens",
                         (long long)stated, (long long)most);
    /* What is held, but not when padded, bounds samples that are shorter. */
    stated = hbp__min_i64(hbp__round_up(stated, step->options.sequence_multiple), most);
    return hbp__step_arrange_degree(step, find_degree(step, hbp__max_i64(stated, step->tokens[0])), 10,
                                    solution);
}
