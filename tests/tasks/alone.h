/* Checked slices of a planner, and what tasks take one after another. */
#ifndef HBP_TESTS_ALONE_H
#define HBP_TESTS_ALONE_H

#include "tasks/planned.h"

typedef hbp_status planner(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices);

/* What `how` plans, checked. */
static inline hbp__task_slices plan(hbp_context *context, planner *how, const planned *p)
{
    hbp__task_slices slices = {0};
    OK(context, how(context, &p->problem, &slices));
    check_slices(p, &slices);
    return slices;
}

static inline int64_t makespan(hbp_context *context, planner *how, const planned *p)
{
    hbp__task_slices slices = plan(context, how, p);
    int64_t ns = slices.makespan_ns;
    hbp__task_slices_close(&slices);
    return ns;
}

/* Of a task whose MetaOps run one after another on the largest sizes within `gpus`; 0: one needs more. */
static inline int64_t task_ns(const planned *p, int32_t task, int32_t gpus)
{
    int64_t sum = 0;
    for (int32_t m = 0; m < p->meta.count; m++) {
        const hbp__curve *curve = hbp__meta_curve(&p->scaling, m);
        int64_t each = 0;
        if (p->meta.meta_op[m].task != task)
            continue;
        for (int32_t i = 0; i < curve->sizes && curve->size[i] <= gpus; i++)
            each = curve->time_ns[i];
        if (!each)
            return 0;
        sum += each * p->meta.meta_op[m].count;
    }
    return sum;
}

/* List scheduling one GPU at a time: longest first, each where it can start soonest, none before the one
 * ahead of it. */
static inline int64_t longest_first(const planned *p, int32_t tasks, const int32_t *gpus)
{
    int64_t free_at[64] = {0}, end = 0, last = 0;
    int32_t done[16] = {0};
    for (int32_t k = 0; k < tasks; k++) {
        int32_t best = -1;
        for (int32_t t = 0; t < tasks; t++)
            if (!done[t] && (best < 0 || task_ns(p, t, gpus[t]) > task_ns(p, best, gpus[best])))
                best = t;
        done[best] = 1;
        for (int32_t i = 0; i < p->problem.gpus; i++) /* soonest free first */
            for (int32_t j = i + 1; j < p->problem.gpus; j++)
                if (free_at[j] < free_at[i]) {
                    int64_t swap = free_at[i];
                    free_at[i] = free_at[j];
                    free_at[j] = swap;
                }
        int64_t start = free_at[gpus[best] - 1] > last ? free_at[gpus[best] - 1] : last;
        last = start;
        for (int32_t i = 0; i < gpus[best]; i++)
            free_at[i] = start + task_ns(p, best, gpus[best]);
        end = free_at[0] > end ? free_at[0] : end;
    }
    return end;
}

#endif
