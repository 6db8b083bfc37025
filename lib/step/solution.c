#include <string.h>

#include "base/checked.h"
#include "step/step.h"

hbp_status hbp__step_solution_open(const hbp__step *step, int64_t micro_batches, int64_t groups,
                                   hbp__step_solution *solution)
{
    const hbp__memory *memory = &step->context->memory;
    memset(solution, 0, sizeof *solution);
    solution->memory = *memory;
    solution->micro_batches = micro_batches;
    solution->groups = groups;
    solution->complete = 1;
    solution->first = hbp__new_zero(memory, (uint64_t)micro_batches + 1, sizeof *solution->first);
    solution->degree = hbp__new_zero(memory, (uint64_t)groups, sizeof *solution->degree);
    solution->group = hbp__new_zero(memory, (uint64_t)step->count, sizeof *solution->group);
    if (solution->first && solution->degree && solution->group)
        return HBP_OK;
    hbp__step_solution_close(solution);
    return hbp__fail_memory(step->context, "a solution of the step");
}

void hbp__step_solution_close(hbp__step_solution *solution)
{
    if (!solution->memory.release)
        return;
    hbp__delete(&solution->memory, solution->first);
    hbp__delete(&solution->memory, solution->degree);
    hbp__delete(&solution->memory, solution->group);
    memset(solution, 0, sizeof *solution);
}

int64_t hbp__step_group_ns(const hbp__step *step, int32_t j, int64_t tokens, double squares)
{
    const hbp__step_degree *degree = &step->degree[j];
    tokens = hbp__round_up(tokens, degree->pack_multiple);
    if (tokens > degree->capacity)
        return INT64_MAX;
    int32_t recompute = tokens ? hbp__step_find_way(degree, tokens)->recompute : 0;
    return hbp__cost_pack_ns(step->cost, degree->row, recompute, tokens, squares);
}

/* Whether the groups of each micro-batch can be placed. */
static int are_placed(const hbp__step *step, const hbp__step_solution *s)
{
    for (int64_t m = 0; m < s->micro_batches; m++)
        if (!hbp__step_place(step, s->degree + s->first[m], s->first[m + 1] - s->first[m], NULL))
            return 0;
    return 1;
}

hbp_status hbp__step_solution_price(const hbp__step *step, hbp__step_solution *s)
{
    hbp_context *context = step->context;
    int64_t *tokens = hbp__new_zero(&context->memory, (uint64_t)s->groups, sizeof *tokens);
    double *squares = hbp__new_zero(&context->memory, (uint64_t)s->groups, sizeof *squares);
    int64_t *samples = hbp__new_zero(&context->memory, (uint64_t)s->groups, sizeof *samples);
    hbp_status status = HBP_OK;
    if (!tokens || !squares || !samples)
        status = hbp__fail_memory(context, "the groups of the step");
    for (int64_t i = 0; i < step->count && status == HBP_OK; i++) {
        int64_t g = s->group[i];
        if (g < 0 || g >= s->groups) {
            status =
                hbp__fail(context, HBP_E_INTERNAL, "sequence %lld of the step is in no group", (long long)i);
            break;
        }
        tokens[g] += step->degree[s->degree[g]].tokens[i];
        squares[g] += step->squares[i];
        samples[g] += hbp__step_samples(step, i);
    }
    if (status == HBP_OK && !are_placed(step, s))
        status = hbp__fail(context, HBP_E_INTERNAL, "the groups of a micro-batch do not fit %d ranks",
                           (int)step->ranks);
    int64_t whole = hbp__step_whole(step, s->micro_batches);
    s->ns = hbp__mul_saturating(whole - s->micro_batches, hbp__round_i64(step->cost->terms.pack_ns));
    for (int64_t m = 0; m < s->micro_batches && status == HBP_OK; m++) {
        int64_t slowest = hbp__round_i64(step->cost->terms.pack_ns);
        for (int64_t g = s->first[m]; g < s->first[m + 1] && status == HBP_OK; g++) {
            if (!hbp__step_holds(step, s->degree[g], tokens[g], samples[g]))
                status = hbp__fail(context, HBP_E_INTERNAL, "a group of micro-batch %lld does not fit",
                                   (long long)m);
            else
                slowest =
                    hbp__max_i64(slowest, hbp__step_group_ns(step, s->degree[g], tokens[g], squares[g]));
        }
        s->ns = hbp__add_saturating(s->ns, slowest);
    }
    hbp__delete(&context->memory, samples);
    hbp__delete(&context->memory, squares);
    hbp__delete(&context->memory, tokens);
    return status;
}
