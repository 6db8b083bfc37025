/* Sequential, uniform and Optimus (Spindle, section 5.1) over tasks that run as a whole. */
#include "tasks/baselines/baselines.h"

#include "base/scratch.h"

#include "tasks/baselines/jobs.h"

hbp_status hbp__plan_sequential(hbp_context *context, const hbp__task_problem *problem,
                                hbp__task_slices *slices)
{
    hbp__jobs jobs;
    int64_t mark = hbp__scratch_mark(context), now = 0;
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    for (int32_t j = 0; j < jobs.count; j++)
        HBP__TRY(hbp__job_add(context, problem, &jobs, j, problem->gpus, slices->waves, now, &now, slices));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__plan_uniform(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__jobs jobs;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    int32_t *gpus = hbp__take(context, (uint64_t)jobs.count, sizeof *gpus);
    HBP__TRY(hbp__scratch_check(context, "the GPUs of tasks"));
    int32_t share = problem->gpus / jobs.count + (problem->gpus % jobs.count > 0);
    for (int32_t j = 0; j < jobs.count; j++) {
        int32_t least = hbp__job_least(problem, &jobs, j);
        gpus[j] = hbp__job_most(problem, &jobs, j, share > least ? share : least);
    }
    HBP__TRY(hbp__jobs_run(context, problem, &jobs, gpus, slices));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* A job's next step: to `gpus` GPUs, saving `saved` / `more` ns per GPU that it adds. */
typedef struct step {
    int32_t gpus;
    int32_t more; /* 0: no step */
    int64_t saved;
} step;

static step next_step(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job, int32_t gpus)
{
    step s = {.gpus = INT32_MAX};
    for (int32_t i = jobs->first[job]; i < jobs->first[job + 1]; i++) {
        const hbp__curve *curve = hbp__meta_curve(problem->scaling, jobs->meta_op[i]);
        int32_t next = hbp__curve_floor(curve, gpus) + 1;
        if (next < curve->sizes && curve->size[next] < s.gpus)
            s.gpus = curve->size[next];
    }
    if (s.gpus == INT32_MAX)
        return (step){0};
    s.more = s.gpus - gpus;
    s.saved = hbp__job_ns(problem, jobs, job, gpus) - hbp__job_ns(problem, jobs, job, s.gpus);
    return s;
}

/* Whether a / b > c / d without a product that overflows: whole parts, then remainders below 2^31. */
static int saves_more(const step *x, const step *y)
{
    int64_t whole = x->saved / x->more, other = y->saved / y->more;
    if (whole != other)
        return whole > other;
    return x->saved % x->more * y->more > y->saved % y->more * x->more;
}

/* Hands out what is left of the GPUs. O(N J) and the steps. */
static hbp_status raise_jobs(hbp_context *context, const hbp__task_problem *problem, const hbp__jobs *jobs,
                             int32_t left, int32_t *gpus)
{
    int64_t mark = hbp__scratch_mark(context);
    step *next = hbp__take(context, (uint64_t)jobs->count, sizeof *next);
    HBP__TRY(hbp__scratch_check(context, "the GPUs of tasks"));
    for (int32_t j = 0; j < jobs->count; j++)
        next[j] = next_step(problem, jobs, j, gpus[j]);
    for (;;) {
        int32_t best = -1;
        for (int32_t j = 0; j < jobs->count; j++)
            if (next[j].more > 0 && next[j].more <= left && (best < 0 || saves_more(&next[j], &next[best])))
                best = j;
        if (best < 0)
            break;
        gpus[best] = next[best].gpus;
        left -= next[best].more;
        next[best] = next_step(problem, jobs, best, gpus[best]);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__plan_optimus(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__jobs jobs;
    int64_t mark = hbp__scratch_mark(context), left = problem->gpus;
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    int32_t *gpus = hbp__take(context, (uint64_t)jobs.count, sizeof *gpus);
    HBP__TRY(hbp__scratch_check(context, "the GPUs of tasks"));
    for (int32_t j = 0; j < jobs.count; j++)
        left -= gpus[j] = hbp__job_least(problem, &jobs, j);
    if (left > 0)
        HBP__TRY(raise_jobs(context, problem, &jobs, (int32_t)left, gpus));
    HBP__TRY(hbp__jobs_run(context, problem, &jobs, gpus, slices));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
