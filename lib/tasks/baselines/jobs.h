/* Tasks that run as a whole: what the methods that Spindle is compared with share. */
#ifndef HBP_TASKS_JOBS_H
#define HBP_TASKS_JOBS_H

#include "tasks/problem.h"

/* Jobs are tasks; those with edges between them are one. Numbered by their least task. */
typedef struct hbp__jobs {
    int32_t count;
    int32_t *first;   /* [count + 1] */
    int32_t *meta_op; /* [MetaOps] those of job j are meta_op[first[j]] .. meta_op[first[j + 1] - 1], rising,
                         so that none comes before one that it needs */
} hbp__jobs;

/* In scratch. */
hbp_status hbp__jobs_open(hbp_context *context, const hbp__task_problem *problem, hbp__jobs *jobs);

/* The least GPUs that every MetaOp of a job runs on, on at most as many. */
int32_t hbp__job_least(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job);

/* The largest size that its MetaOps take on `gpus` >= the least. */
int32_t hbp__job_most(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job, int32_t gpus);

/* Time of a job whose MetaOps run one after another, each on its largest size that fits in `gpus` >= the
 * least. */
int64_t hbp__job_ns(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job, int32_t gpus);

/* Adds a job's slices so, from start_ns on, a wave each from `wave` on; *end_ns gets its end. */
hbp_status hbp__job_add(hbp_context *context, const hbp__task_problem *problem, const hbp__jobs *jobs,
                        int32_t job, int32_t gpus, int32_t wave, int64_t start_ns, int64_t *end_ns,
                        hbp__task_slices *slices);

/* Runs all jobs, job j on gpus[j] GPUs: the longest first, each as soon as those before it have started and
 * as many GPUs are free; all at once where they fit. Numbers waves. O(J (log J + N)) and the slices. */
hbp_status hbp__jobs_run(hbp_context *context, const hbp__task_problem *problem, const hbp__jobs *jobs,
                         const int32_t *gpus, hbp__task_slices *slices);

#endif
