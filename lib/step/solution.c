/* A solution of a step: its columns, and what it takes, with or without lockstep sets. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "data/plan/lockstep.h"
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
    uint64_t rows = (uint64_t)micro_batches + 1, count = (uint64_t)step->count;
    solution->first = hbp__new(memory, rows, sizeof *solution->first);
    solution->degree = hbp__new(memory, (uint64_t)groups, sizeof *solution->degree);
    solution->group = hbp__new(memory, count, sizeof *solution->group);
    hbp_status status = solution->first && solution->degree && solution->group
                            ? hbp__zero(step->context, solution->first, rows * sizeof *solution->first)
                            : hbp__fail_memory(step->context, "a solution of the step");
    if (status >= 0)
        status = hbp__zero(step->context, solution->degree, (uint64_t)groups * sizeof *solution->degree);
    if (status >= 0)
        status = hbp__zero(step->context, solution->group, count * sizeof *solution->group);
    if (status < 0)
        hbp__step_solution_close(solution);
    return status;
}

void hbp__step_solution_close(hbp__step_solution *solution)
{
    if (!solution->memory.release)
        return;
    hbp__delete(&solution->memory, solution->first);
    hbp__delete(&solution->memory, solution->degree);
    hbp__delete(&solution->memory, solution->group);
    hbp__delete(&solution->memory, solution->rank);
    memset(solution, 0, sizeof *solution);
}

/* Places the groups of micro-batch m into rank [groups]; zero when they have no place. */
static int place(const hbp__step *step, const hbp__step_solution *s, int64_t m, int32_t *rank)
{
    int64_t first = s->first[m], count = s->first[m + 1] - first;
    if (!s->rank)
        return hbp__step_place(step, s->degree + first, count, rank + first);
    memcpy(rank + first, s->rank + first, (size_t)count * sizeof *rank);
    return 1;
}

/* Runs the micro-batches, their groups taking `ns`, a negative one being a group without sequences. */
static hbp_status run_micro_batches(const hbp__step *step, const hbp__step_solution *s, const int64_t *ns,
                                    int32_t *rank, hbp__clock *clock)
{
    int64_t padding_ns = hbp__cost_padding_ns(step->cost);
    for (int64_t m = 0; m < s->micro_batches; m++) {
        if (!place(step, s, m, rank))
            return hbp__fail(step->context, HBP_E_INTERNAL, "the groups of a micro-batch do not fit %d ranks",
                             (int)step->ranks);
        /* A rank without a group takes a padding pack; a group takes no less. */
        for (int64_t i = 0; i < clock->sets; i++)
            hbp__clock_run(clock, (int32_t)(i * clock->set), 1, padding_ns);
        for (int64_t g = s->first[m]; g < s->first[m + 1]; g++)
            if (ns[g] >= 0)
                hbp__clock_run(clock, rank[g], step->degree[s->degree[g]].degree, ns[g]);
        hbp__clock_next(clock);
    }
    return HBP_OK;
}

/* Sets `ns` of the solution by the times of its groups. */
static hbp_status run_sets(const hbp__step *step, hbp__step_solution *s, const int64_t *ns)
{
    hbp_context *context = step->context;
    hbp__clock clock;
    int32_t *rank = hbp__take(context, (uint64_t)s->groups, sizeof *rank);
    HBP__TRY(hbp__scratch_check(context, "the groups of the step"));
    HBP__TRY(hbp__clock_open(context, step->ranks, step->cost->terms.lockstep_ranks, &clock));
    HBP__TRY(run_micro_batches(step, s, ns, rank, &clock));
    int64_t others = hbp__step_whole(step, s->micro_batches) - s->micro_batches;
    s->ns = hbp__add_saturating(hbp__mul_saturating(others, hbp__cost_padding_ns(step->cost)),
                                hbp__clock_end(&clock));
    return HBP_OK;
}

int64_t hbp__step_solution_ranks(const hbp__step *step, const hbp__step_solution *solution)
{
    int64_t ranks = 0;
    for (int64_t g = 0; g < solution->groups; g++)
        ranks += step->degree[solution->degree[g]].degree;
    return ranks;
}

hbp_status hbp__step_solution_price(const hbp__step *step, hbp__step_solution *s)
{
    hbp_context *context = step->context;
    int64_t mark = hbp__scratch_mark(context);
    hbp__load *load = hbp__take_zero(context, (uint64_t)s->groups, sizeof *load);
    int64_t *ns = hbp__take(context, (uint64_t)s->groups, sizeof *ns);
    HBP__TRY(hbp__scratch_check(context, "the groups of the step"));
    for (int64_t i = 0; i < step->count; i++) {
        int64_t g = s->group[i];
        if (g < 0 || g >= s->groups)
            return hbp__fail(context, HBP_E_INTERNAL, "sequence %lld of the step is in no group",
                             (long long)i);
        load[g] = hbp__step_load_with(step, s->degree[g], load[g], i);
    }
    for (int64_t m = 0; m < s->micro_batches; m++)
        for (int64_t g = s->first[m]; g < s->first[m + 1]; g++) {
            if (!hbp__step_holds(step, s->degree[g], load[g]))
                return hbp__fail(context, HBP_E_INTERNAL, "a group of micro-batch %lld does not fit",
                                 (long long)m);
            ns[g] = load[g].samples ? hbp__step_group_ns(step, s->degree[g], load[g]) : -1;
        }
    HBP__TRY(run_sets(step, s, ns));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
