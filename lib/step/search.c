#include "step/step.h"

/* The sequences, longest first, each into the first group that holds it; a group has the least degree that
 * holds its first sequence. */
hbp_status hbp__step_search(const hbp__step *step, hbp__step_solution *solution)
{
    const hbp__memory *memory = &step->context->memory;
    HBP__TRY(hbp__step_solution_open(step, step->count, step->count, solution));
    int64_t *left = hbp__new(memory, (uint64_t)step->count, sizeof *left);
    if (!left)
        return hbp__fail_memory(step->context, "the groups of the step");
    int64_t groups = 0, micro_batches = 0, ranks = 0;
    for (int64_t i = 0; i < step->count; i++) {
        int64_t g = 0;
        while (g < groups && left[g] < step->tokens[i])
            g++;
        if (g == groups) {
            int32_t j = 0;
            while (step->degree[j].capacity < step->tokens[i])
                j++;
            if (!micro_batches || ranks < step->degree[j].degree) {
                solution->first[micro_batches++] = groups;
                ranks = step->ranks;
            }
            ranks -= step->degree[j].degree;
            solution->degree[g] = j;
            left[g] = step->degree[j].capacity;
            groups++;
        }
        left[g] -= step->tokens[i];
        solution->group[i] = g;
    }
    solution->first[micro_batches] = groups;
    solution->micro_batches = micro_batches;
    solution->groups = groups;
    hbp__delete(memory, left);
    return hbp__step_solution_price(step, solution);
}

hbp_status hbp__step_solve_micro_batch(const hbp__step *step, const int64_t *member, int64_t members,
                                       const int64_t *tokens, const double *squares,
                                       hbp__step_solution *solution)
{
    (void)member, (void)members, (void)tokens, (void)squares, (void)solution;
    return hbp__fail(step->context, HBP_E_INTERNAL, "not there yet");
}
