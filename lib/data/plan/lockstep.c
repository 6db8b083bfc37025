#include "data/plan/lockstep.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

hbp_status hbp__clock_open(hbp_context *context, int32_t ranks, int32_t set, hbp__clock *c)
{
    memset(c, 0, sizeof *c);
    c->set = set ? set : ranks;
    c->sets = hbp__ceil_div(ranks, c->set);
    c->free_ns = hbp__take_zero(context, (uint64_t)c->sets, sizeof *c->free_ns);
    c->next_ns = hbp__take_zero(context, (uint64_t)c->sets, sizeof *c->next_ns);
    return hbp__scratch_check(context, "the clock of a step");
}

void hbp__clock_start(hbp__clock *c, int64_t ns)
{
    for (int64_t i = 0; i < c->sets; i++)
        c->free_ns[i] = c->next_ns[i] = ns;
}

int64_t hbp__clock_run(hbp__clock *c, int32_t rank, int32_t sp, int64_t ns)
{
    int64_t first = rank / c->set, last = ((int64_t)rank + sp - 1) / c->set, start = 0;
    for (int64_t i = first; i <= last; i++)
        start = hbp__max_i64(start, c->free_ns[i]);
    for (int64_t i = first; i <= last; i++)
        c->next_ns[i] = hbp__max_i64(c->next_ns[i], hbp__add_saturating(start, ns));
    return start;
}

void hbp__clock_next(hbp__clock *c)
{
    memcpy(c->free_ns, c->next_ns, (size_t)c->sets * sizeof *c->free_ns);
}

int64_t hbp__clock_end(const hbp__clock *c)
{
    int64_t end = 0;
    for (int64_t i = 0; i < c->sets; i++)
        end = hbp__max_i64(end, c->free_ns[i]);
    return end;
}

int64_t hbp__clock_step(hbp__clock *c, const hbp_plan *plan, int64_t step)
{
    hbp__clock_start(c, 0);
    for (int64_t m = plan->step_offsets[step]; m < plan->step_offsets[step + 1]; m++) {
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            hbp__clock_run(c, plan->pack_ranks[p], plan->pack_sp[p], plan->pack_ns[p]);
        hbp__clock_next(c);
    }
    return hbp__clock_end(c);
}
