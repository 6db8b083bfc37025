#include "step/builder.h"

/* Groups looked at between two looks at a request to cancel. */
#define TICK_GROUPS (INT64_C(1) << 22)

hbp_status hbp__step_first_fit(const hbp__step *step, hbp__step_solution *solution)
{
    const hbp__memory *memory = &step->context->memory;
    int64_t shortest = step->tokens[step->count - 1], groups = 0, micro_batches = 0, oldest = 0;
    int32_t ranks = 0;
    HBP__TRY(hbp__step_solution_open(step, step->count, step->count, solution));
    int64_t *left = hbp__new(memory, (uint64_t)step->count, 2 * sizeof *left);
    if (!left)
        return hbp__fail_memory(step->context, "the groups of the step");
    int64_t *room = left + step->count; /* for samples */
    hbp_status status = HBP_OK;
    for (int64_t k = 0, work = 0; k < step->count && status >= 0; k++) {
        while (oldest < groups && left[oldest] < shortest)
            oldest++; /* holds nothing any more */
        int64_t g = oldest;
        int64_t samples = hbp__step_samples(step, k);
        while (g < groups && (left[g] < step->degree[solution->degree[g]].tokens[k] || room[g] < samples))
            g++;
        work += g - oldest + 1;
        if (work > TICK_GROUPS) {
            status = hbp__tick(step->context, "sequences", k, step->count);
            work = 0;
        }
        if (g == groups) {
            int32_t j = 0;
            while (step->degree[j].capacity < step->degree[j].tokens[k])
                j++;
            if (!micro_batches || ranks < step->degree[j].degree) {
                solution->first[micro_batches++] = groups;
                ranks = step->ranks;
            }
            ranks -= step->degree[j].degree;
            solution->degree[g] = j;
            left[g] = step->degree[j].capacity;
            room[g] = step->most_samples;
            groups++;
        }
        room[g] -= samples;
        left[g] = room[g] ? left[g] - step->degree[solution->degree[g]].tokens[k] : 0;
        solution->group[k] = g;
    }
    hbp__delete(memory, left);
    HBP__TRY(status);
    solution->first[micro_batches] = groups;
    solution->micro_batches = micro_batches;
    solution->groups = groups;
    return hbp__step_solution_price(step, solution);
}
