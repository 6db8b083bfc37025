/* A step of a plan, with its idle ranks filled: its own packs are the solution that the spreading begins
 * from. */
#include "step/respread.h"
#include "base/checked.h"
#include "base/scratch.h"
#include "data/plan/plan.h"

typedef struct respread {
    const hbp_plan *plan;
    int64_t step; /* of the plan */
    hbp__step problem;
    hbp__step_solution solution;
    int64_t *group; /* [samples] of each piece of the lengths */
} respread;

static int32_t index_of(const hbp__step *step, int32_t sp)
{
    for (int32_t j = 0; j < step->degrees; j++)
        if (step->degree[j].degree == sp)
            return j;
    return -1;
}

/* The packs that hold samples as groups. 0 where a pack's degree is not one of the problem's. */
static int read_packs(respread *r)
{
    const hbp_plan *plan = r->plan;
    hbp__step_solution *s = &r->solution;
    int64_t groups = 0, first_batch = plan->step_offsets[r->step];
    int64_t base = plan->pack_offsets[plan->micro_batch_offsets[first_batch]];
    for (int64_t m = 0; m < s->micro_batches; m++) {
        s->first[m] = groups;
        for (int64_t p = plan->micro_batch_offsets[first_batch + m];
             p < plan->micro_batch_offsets[first_batch + m + 1]; p++) {
            if (plan->pack_offsets[p] == plan->pack_offsets[p + 1])
                continue;
            int32_t j = index_of(&r->problem, plan->pack_sp[p]);
            if (j < 0)
                return 0;
            s->degree[groups] = j;
            for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++)
                r->group[i - base] = groups;
            groups++;
        }
    }
    s->first[s->micro_batches] = groups;
    s->groups = groups;
    /* Linked samples share a pack. */
    for (int64_t k = 0; k < r->problem.count; k++)
        s->group[k] = r->group[r->problem.items.sample[hbp__step_item(&r->problem, k)]];
    return 1;
}

static hbp_status spread(respread *r, hbp_plan **out)
{
    hbp_context *context = r->problem.context;
    const hbp_plan *plan = r->plan;
    int64_t batches = plan->step_offsets[r->step + 1] - plan->step_offsets[r->step];
    int64_t first = plan->micro_batch_offsets[plan->step_offsets[r->step]];
    int64_t packs = plan->micro_batch_offsets[plan->step_offsets[r->step + 1]] - first;
    r->group = hbp__take(context, (uint64_t)r->problem.lengths->count, sizeof *r->group);
    HBP__TRY(hbp__scratch_check(context, "the packs of a step"));
    HBP__TRY(hbp__step_solution_open(&r->problem, batches, packs, &r->solution));
    if (!read_packs(r))
        return HBP_OK;
    HBP__TRY(hbp__step_solution_price(&r->problem, &r->solution));
    HBP__TRY(hbp__step_spread(&r->problem, &r->solution));
    return hbp__step_finish(&r->problem, &r->solution, out);
}

hbp_status hbp__step_respread(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                              const hbp_step_options *options, const hbp_plan *plan, int64_t step,
                              hbp_plan **out)
{
    respread r = {.plan = plan, .step = step};
    int64_t mark = hbp__scratch_mark(context);
    *out = NULL;
    hbp_status status = hbp__step_open(context, lengths, cost, options, &r.problem);
    if (status >= 0 && !r.problem.options.equal_samples) /* spreading gives packs degrees of their own */
        status = spread(&r, out);
    hbp__step_solution_close(&r.solution);
    hbp__step_close(&r.problem);
    return hbp__leave(context, mark, status);
}
