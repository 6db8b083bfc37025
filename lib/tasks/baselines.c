#include "tasks/baselines.h"

#include "tasks/jobs.h"

hbp_status hbp__plan_sequential(hbp_context *context, const hbp__task_problem *problem,
                                hbp__task_slices *slices)
{
    hbp__jobs jobs;
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    hbp_status status = HBP_OK;
    int64_t now = 0;
    for (int32_t j = 0; status == HBP_OK && j < jobs.count; j++)
        status = hbp__job_add(context, problem, &jobs, j, problem->gpus, slices->waves, now, &now, slices);
    hbp__jobs_close(&jobs);
    return status;
}

/* Runs jobs on `gpus`, where they are there, and lets go of both. */
static hbp_status run_and_close(hbp_context *context, const hbp__task_problem *problem, hbp__jobs *jobs,
                                int32_t *gpus, hbp__task_slices *slices)
{
    hbp_status status = gpus ? hbp__jobs_run(context, problem, jobs, gpus, slices)
                             : hbp__fail_memory(context, "the GPUs of tasks");
    hbp__delete(&context->memory, gpus);
    hbp__jobs_close(jobs);
    return status;
}

hbp_status hbp__plan_uniform(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__jobs jobs;
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    int32_t *gpus = hbp__new(&context->memory, (uint64_t)jobs.count, sizeof *gpus);
    int32_t share = problem->gpus / jobs.count + (problem->gpus % jobs.count > 0);
    for (int32_t j = 0; gpus && j < jobs.count; j++) {
        int32_t least = hbp__job_least(problem, &jobs, j);
        gpus[j] = hbp__job_most(problem, &jobs, j, share > least ? share : least);
    }
    return run_and_close(context, problem, &jobs, gpus, slices);
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
    step *next = hbp__new(&context->memory, (uint64_t)jobs->count, sizeof *next);
    if (!next)
        return hbp__fail_memory(context, "the GPUs of tasks");
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
    hbp__delete(&context->memory, next);
    return HBP_OK;
}

hbp_status hbp__plan_optimus(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__jobs jobs;
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    int32_t *gpus = hbp__new(&context->memory, (uint64_t)jobs.count, sizeof *gpus);
    int64_t left = problem->gpus;
    for (int32_t j = 0; gpus && j < jobs.count; j++)
        left -= gpus[j] = hbp__job_least(problem, &jobs, j);
    if (gpus && left > 0) {
        hbp_status status = raise_jobs(context, problem, &jobs, (int32_t)left, gpus);
        if (status < 0) {
            hbp__delete(&context->memory, gpus);
            hbp__jobs_close(&jobs);
            return status;
        }
    }
    return run_and_close(context, problem, &jobs, gpus, slices);
}
