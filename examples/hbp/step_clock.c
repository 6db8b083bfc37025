#include "step_clock.h"

#include <stdlib.h>
#include <string.h>

int step_clock_open(step_clock *t, const hbp_plan_summary *s)
{
    t->set = s->lockstep_ranks ? s->lockstep_ranks : s->ranks;
    t->sets = (s->ranks - 1) / t->set + 1;
    t->free_ns = calloc((size_t)t->sets, sizeof *t->free_ns);
    t->next_ns = calloc((size_t)t->sets, sizeof *t->next_ns);
    return t->free_ns && t->next_ns;
}

void step_clock_close(step_clock *t)
{
    free(t->free_ns);
    free(t->next_ns);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t step_clock_run(step_clock *t, const hbp_plan_view *v, int64_t step, int64_t *start_ns)
{
    int64_t end = 0;
    memset(t->free_ns, 0, (size_t)t->sets * sizeof *t->free_ns);
    memset(t->next_ns, 0, (size_t)t->sets * sizeof *t->next_ns);
    for (int64_t m = v->step_offsets[step]; m < v->step_offsets[step + 1]; m++) {
        for (int64_t p = v->micro_batch_offsets[m]; p < v->micro_batch_offsets[m + 1]; p++) {
            const int64_t first = v->pack_ranks[p] / t->set;
            const int64_t last = (v->pack_ranks[p] + (int64_t)v->pack_sp[p] - 1) / t->set;
            int64_t start = 0;
            for (int64_t i = first; i <= last; i++)
                start = later(start, t->free_ns[i]);
            for (int64_t i = first; i <= last; i++)
                t->next_ns[i] = later(t->next_ns[i], start + v->pack_ns[p]);
            if (start_ns)
                start_ns[p] = start;
        }
        memcpy(t->free_ns, t->next_ns, (size_t)t->sets * sizeof *t->free_ns);
    }
    for (int64_t i = 0; i < t->sets; i++)
        end = later(end, t->free_ns[i]);
    return end;
}
