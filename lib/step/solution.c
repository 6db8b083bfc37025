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
    hbp__delete(&solution->memory, solution->rank);
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

/* The clock of lockstep sets over a solution; as hbp__lockstep_run over its plan. */
typedef struct sets {
    const hbp__step *step;
    int32_t set;      /* ranks of one */
    int64_t dummy_ns; /* of a rank without a group */
    int64_t *end;     /* [ranks] when each is free */
    int64_t *next;    /* [ranks] scratch: after the micro-batch */
    int32_t *rank;    /* [groups] */
} sets;

/* Places the groups of micro-batch m; zero when they have no place. */
static int place(const sets *c, const hbp__step_solution *s, int64_t m)
{
    int64_t first = s->first[m], count = s->first[m + 1] - first;
    if (!s->rank)
        return hbp__step_place(c->step, s->degree + first, count, c->rank + first);
    memcpy(c->rank + first, s->rank + first, (size_t)count * sizeof *c->rank);
    for (int64_t g = first; g < first + count; g++) {
        int32_t d = c->step->degree[s->degree[g]].degree;
        if (c->rank[g] < 0 || c->rank[g] > c->step->ranks - d || c->rank[g] % d)
            return 0;
    }
    return 1;
}

/* Runs a micro-batch whose groups take `ns`. */
static void run_micro_batch(sets *c, const hbp__step_solution *s, int64_t m, const int64_t *ns)
{
    int32_t ranks = c->step->ranks;
    for (int32_t r = 0; r < ranks; r++)
        c->next[r] = hbp__add_saturating(c->end[r], c->dummy_ns);
    for (int64_t g = s->first[m]; g < s->first[m + 1]; g++) {
        int32_t first = c->rank[g], end = first + c->step->degree[s->degree[g]].degree;
        int64_t start = 0;
        for (int32_t r = first; r < end; r++)
            start = hbp__max_i64(start, c->end[r]);
        for (int32_t r = first; r < end && ns[g] >= 0; r++)
            c->next[r] = hbp__add_saturating(start, ns[g]);
    }
    for (int32_t r = 0; r < ranks; r += c->set) {
        int64_t end = 0;
        for (int32_t i = r; i < r + c->set; i++)
            end = hbp__max_i64(end, c->next[i]);
        for (int32_t i = r; i < r + c->set; i++)
            c->end[i] = end;
    }
}

/* Sets `ns` of the solution by the times of its groups, -1 for one without sequences. */
static hbp_status run_sets(const hbp__step *step, hbp__step_solution *s, const int64_t *ns)
{
    hbp_context *context = step->context;
    const hbp__memory *memory = &context->memory;
    int32_t set = step->cost->terms.lockstep_ranks ? step->cost->terms.lockstep_ranks : step->ranks;
    sets c = {step, set, hbp__cost_dummy_ns(step->cost), NULL, NULL, NULL};
    hbp_status status = HBP_OK;
    c.end = hbp__new_zero(memory, (uint64_t)step->ranks, sizeof *c.end);
    c.next = hbp__new(memory, (uint64_t)step->ranks, sizeof *c.next);
    c.rank = hbp__new(memory, (uint64_t)s->groups, sizeof *c.rank);
    if (!c.end || !c.next || !c.rank)
        status = hbp__fail_memory(context, "the clock of a step");
    for (int64_t m = 0; m < s->micro_batches && status >= 0; m++) {
        if (!place(&c, s, m))
            status = hbp__fail(context, HBP_E_INTERNAL, "the groups of a micro-batch do not fit %d ranks",
                               (int)step->ranks);
        else
            run_micro_batch(&c, s, m, ns);
    }
    int64_t whole = hbp__step_whole(step, s->micro_batches);
    s->ns = hbp__mul_saturating(whole - s->micro_batches, c.dummy_ns);
    if (status >= 0) {
        int64_t end = 0;
        for (int32_t r = 0; r < step->ranks; r++)
            end = hbp__max_i64(end, c.end[r]);
        s->ns = hbp__add_saturating(s->ns, end);
    }
    hbp__delete(memory, c.rank);
    hbp__delete(memory, c.next);
    hbp__delete(memory, c.end);
    return status;
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
    for (int64_t g = 0; g < s->groups && status == HBP_OK; g++) {
        if (!hbp__step_holds(step, s->degree[g], tokens[g], samples[g]))
            status = hbp__fail(context, HBP_E_INTERNAL, "a group of the step does not fit");
        else /* in the place of its tokens */
            tokens[g] = samples[g] ? hbp__step_group_ns(step, s->degree[g], tokens[g], squares[g]) : -1;
    }
    if (status == HBP_OK)
        status = run_sets(step, s, tokens);
    hbp__delete(&context->memory, samples);
    hbp__delete(&context->memory, squares);
    hbp__delete(&context->memory, tokens);
    return status;
}
