#include "data/lockstep.h"

#include "base/checked.h"

/* A pack whose ranks wait for one another alone; returns when it begins. */
static int64_t run_pack(int64_t first, int64_t ranks, int64_t ns, int64_t *free_ns)
{
    int64_t start = hbp__lockstep_end(free_ns + first, (int32_t)ranks);
    for (int64_t r = first; r < first + ranks; r++)
        free_ns[r] = hbp__add_saturating(start, ns);
    return start;
}

void hbp__lockstep_run(const hbp_plan *plan, int64_t micro_batch, int32_t set, const int64_t *pack_ns,
                       int64_t *free_ns, int64_t *start_ns)
{
    int64_t first = plan->micro_batch_offsets[micro_batch], end = plan->micro_batch_offsets[micro_batch + 1];
    for (int64_t p = first, stop; p < end; p = stop) {
        int64_t rank = plan->pack_ranks[p] / set * set, start = free_ns[rank], slowest = 0;
        if (set == 1)
            start = run_pack(rank, plan->pack_sp[p], pack_ns[p - first], free_ns);
        for (stop = p; stop < end && plan->pack_ranks[stop] < rank + set; stop++) {
            slowest = hbp__max_i64(slowest, pack_ns[stop - first]);
            if (start_ns)
                start_ns[stop - first] = start;
        }
        for (int64_t r = rank; r < rank + set && set > 1; r++)
            free_ns[r] = hbp__add_saturating(start, slowest);
    }
}

int64_t hbp__lockstep_end(const int64_t *free_ns, int32_t ranks)
{
    int64_t end = 0;
    for (int32_t r = 0; r < ranks; r++)
        end = hbp__max_i64(end, free_ns[r]);
    return end;
}

int64_t hbp__lockstep_span(const hbp_plan *plan, int64_t step, int64_t *free_ns)
{
    int64_t first = plan->step_offsets[step], end = plan->step_offsets[step + 1], span = 0;
    if (!plan->lockstep_ranks) {
        for (int64_t m = first; m < end; m++)
            span = hbp__add_saturating(span, plan->micro_batch_ns[m]);
        return span;
    }
    for (int32_t r = 0; r < plan->ranks; r++)
        free_ns[r] = 0;
    for (int64_t m = first; m < end; m++)
        hbp__lockstep_run(plan, m, plan->lockstep_ranks, plan->pack_ns + plan->micro_batch_offsets[m],
                          free_ns, NULL);
    return hbp__lockstep_end(free_ns, plan->ranks);
}

hbp_status hbp__lockstep_open(hbp_context *context, const hbp_plan *plan, int64_t **free_ns)
{
    *free_ns = NULL;
    if (!plan->lockstep_ranks)
        return HBP_OK;
    *free_ns = hbp__new(&context->memory, (uint64_t)plan->ranks, sizeof **free_ns);
    return *free_ns ? HBP_OK : hbp__fail_memory(context, "the clock of a step");
}
