/* Some sequences planned by themselves, as one micro-batch of a step. */
#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "step/step.h"

/* A step of the members alone, in descending order of the tokens they are to have. */
typedef struct part {
    hbp__step step;
    uint32_t *order; /* [members] */
    int64_t *given;  /* [members] tokens */
} part;

/* The columns that not every step has. A sequence that is given more tokens than its own is padded from
 * these. */
static hbp_status copy_columns(const hbp__step *step, const int64_t *member, int64_t members, part *p)
{
    hbp_context *context = step->context;
    if (step->padded)
        p->step.padded =
            hbp__take(context, (uint64_t)members * (uint64_t)step->degrees, sizeof *p->step.padded);
    if (step->samples)
        p->step.samples = hbp__take(context, (uint64_t)members, sizeof *p->step.samples);
    HBP__TRY(hbp__scratch_check(context, "a micro-batch"));
    for (int32_t j = 0; step->padded && j < step->degrees; j++)
        for (int64_t i = 0; i < members; i++) {
            const hbp__step_degree *degree = &step->degree[j];
            p->step.padded[j * members + i] =
                hbp__max_i64(degree->tokens[member[p->order[i]]],
                             hbp__round_up(p->step.tokens[i], degree->sequence_multiple));
        }
    for (int64_t i = 0; step->samples && i < members; i++)
        p->step.samples[i] = step->samples[member[p->order[i]]];
    hbp__step_set_columns(&p->step);
    return HBP_OK;
}

static hbp_status part_open(const hbp__step *step, const int64_t *member, int64_t members,
                            const int64_t *tokens, const double *squares, part *p)
{
    hbp_context *context = step->context;
    memset(p, 0, sizeof *p);
    p->step = *step;
    p->step.count = members;
    p->step.total_tokens = 0;
    p->step.options.method = hbp__step_name(HBP__STEP_SEARCH);
    p->step.options.min_micro_batches = 0;
    p->step.options.max_micro_batches = 1;
    p->step.options.micro_batch_multiple = 1;
    p->step.tokens = hbp__take(context, (uint64_t)members, sizeof *p->step.tokens);
    p->step.weight = p->step.tokens; /* vision units that count are refused before */
    p->step.squares = hbp__take(context, (uint64_t)members, sizeof *p->step.squares);
    p->order = hbp__take(context, (uint64_t)members, sizeof *p->order);
    p->given = hbp__take(context, (uint64_t)members, sizeof *p->given);
    HBP__TRY(hbp__scratch_check(context, "a micro-batch"));
    for (int64_t i = 0; i < members; i++) {
        p->order[i] = (uint32_t)i;
        p->given[i] = -(tokens ? tokens[i] : step->tokens[member[i]]);
    }
    if (!hbp__sort_by_i64(&context->memory, p->given, p->order, members))
        return hbp__fail_memory(context, "a micro-batch");
    for (int64_t i = 0; i < members; i++) {
        uint32_t from = p->order[i];
        p->step.tokens[i] = -p->given[from];
        p->step.squares[i] = squares ? squares[from] : step->squares[member[from]];
        p->step.total_tokens += p->step.tokens[i];
    }
    return copy_columns(step, member, members, p);
}

hbp_status hbp__step_solve_micro_batch(const hbp__step *step, const int64_t *member, int64_t members,
                                       const int64_t *tokens, const double *squares,
                                       hbp__step_solution *solution)
{
    hbp__step_solution own = {.ns = 0};
    int64_t mark = hbp__scratch_mark(step->context);
    part p;
    HBP__TRY(part_open(step, member, members, tokens, squares, &p));
    hbp_status status =
        hbp__step_find_unheld(&p.step) < members ? HBP_E_INFEASIBLE : hbp__step_search(&p.step, &own);
    if (status == HBP_E_INFEASIBLE)
        hbp__forgive(step->context);
    if (status >= 0) {
        for (int64_t i = 0; i < members; i++)
            p.given[p.order[i]] = own.group[i];
        memcpy(own.group, p.given, (size_t)members * sizeof *own.group);
        *solution = own;
    } else {
        hbp__step_solution_close(&own);
    }
    return hbp__leave(step->context, mark, status);
}
