/* A random solution of a step, as any search may hand one over. */
#ifndef HBP_TESTS_SOLVED_H
#define HBP_TESTS_SOLVED_H

#include "small_steps.h"
#include "step/step.h"

/* Each sequence joins a random group that holds it, or opens a new one of a random degree in the last
 * micro-batch or in a new one. Now and then a group or a micro-batch stays empty. Not priced. */
static inline void solved_draw(const hbp__step *step, uint64_t seed, hbp__step_solution *solution)
{
    hbp__rng rng = hbp__rng_make(seed, 5, 0);
    int64_t most = 2 * step->count + 2, groups = 0, micro_batches = 0;
    int64_t *left = malloc((size_t)most * sizeof *left);
    int32_t ranks = 0;
    ck_assert_int_eq(hbp__step_solution_open(step, most, most, solution), HBP_OK);
    for (int64_t i = 0; i < step->count;) {
        int64_t g = groups ? hbp__rng_below(&rng, (uint64_t)groups) : 0;
        if (groups && left[g] >= step->tokens[i] && hbp__rng_below(&rng, 3)) {
            solution->group[i] = g;
            left[g] -= step->tokens[i++];
            continue;
        }
        int32_t j = (int32_t)hbp__rng_below(&rng, (uint64_t)step->degrees);
        if (step->degree[j].capacity < step->tokens[i] && hbp__rng_below(&rng, 20))
            continue;
        if (groups + 1 == most || micro_batches + 1 == most)
            j = step->degrees - 1;
        if (!micro_batches || ranks < step->degree[j].degree) {
            solution->first[micro_batches++] = groups;
            ranks = step->ranks;
        }
        ranks -= step->degree[j].degree;
        solution->degree[groups] = j;
        left[groups] = step->degree[j].capacity;
        if (left[groups] >= step->tokens[i]) {
            solution->group[i] = groups;
            left[groups] -= step->tokens[i++];
        }
        groups++;
        ck_assert_int_lt(groups, most);
    }
    solution->first[micro_batches] = groups;
    if (seed % 5 == 0 && micro_batches < most)
        solution->first[++micro_batches] = groups;
    solution->micro_batches = micro_batches;
    solution->groups = groups;
    free(left);
}

#endif
