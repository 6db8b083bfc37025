/* Tasks that edges join as jobs, their times by GPUs, and longest-first list scheduling of all (LPT, Graham
 * 1969). O(J (log J + N)) and the slices. */
#include "tasks/baselines/jobs.h"

#include "base/scratch.h"
#include "base/sort.h"
#include "solve/union_find.h"

static void join_tasks(const hbp__task_problem *problem, int32_t *parent)
{
    const hbp__meta_graph *meta = problem->meta;
    for (int32_t t = 0; t < problem->graph->tasks.count; t++)
        parent[t] = t;
    for (int64_t e = 0; e < meta->edge_count; e++)
        hbp__join_sets(parent, meta->meta_op[meta->edges[e].from].task,
                       meta->meta_op[meta->edges[e].to].task);
}

hbp_status hbp__jobs_open(hbp_context *context, const hbp__task_problem *problem, hbp__jobs *jobs)
{
    const hbp__meta_graph *meta = problem->meta;
    int32_t tasks = problem->graph->tasks.count;
    jobs->count = 0;
    jobs->first = hbp__take_zero(context, (uint64_t)tasks + 2, sizeof *jobs->first);
    jobs->meta_op = hbp__take(context, (uint64_t)meta->count, sizeof *jobs->meta_op);
    int64_t mark = hbp__scratch_mark(context);
    int32_t *parent = hbp__take(context, (uint64_t)tasks, sizeof *parent);
    int32_t *number = hbp__take(context, (uint64_t)tasks, sizeof *number);
    HBP__TRY(hbp__scratch_check(context, "tasks as a whole"));
    join_tasks(problem, parent);
    for (int32_t t = 0; t < tasks; t++)
        number[t] = parent[t] == t ? jobs->count++ : number[hbp__set_of(parent, t)];
    /* Counted two places on, so that first[j + 1] is where job j goes on while it is filled. */
    for (int32_t m = 0; m < meta->count; m++)
        jobs->first[number[meta->meta_op[m].task] + 2]++;
    for (int32_t j = 0; j < jobs->count; j++)
        jobs->first[j + 2] += jobs->first[j + 1];
    for (int32_t m = 0; m < meta->count; m++)
        jobs->meta_op[jobs->first[number[meta->meta_op[m].task] + 1]++] = m;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

int32_t hbp__job_least(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job)
{
    int32_t least = 1;
    for (int32_t i = jobs->first[job]; i < jobs->first[job + 1]; i++) {
        int32_t size = hbp__meta_curve(problem->scaling, jobs->meta_op[i])->size[0];
        least = size > least ? size : least;
    }
    return least;
}

/* Time of MetaOp m on its largest size that fits; *size gets it. */
static int64_t meta_op_ns(const hbp__task_problem *problem, int32_t m, int32_t gpus, int32_t *size)
{
    const hbp__curve *curve = hbp__meta_curve(problem->scaling, m);
    int32_t i = hbp__curve_floor(curve, gpus);
    *size = curve->size[i];
    return problem->meta->meta_op[m].count * curve->time_ns[i];
}

int32_t hbp__job_most(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job, int32_t gpus)
{
    int32_t most = 0, size;
    for (int32_t i = jobs->first[job]; i < jobs->first[job + 1]; i++) {
        meta_op_ns(problem, jobs->meta_op[i], gpus, &size);
        most = size > most ? size : most;
    }
    return most;
}

int64_t hbp__job_ns(const hbp__task_problem *problem, const hbp__jobs *jobs, int32_t job, int32_t gpus)
{
    int64_t sum = 0;
    int32_t size;
    for (int32_t i = jobs->first[job]; i < jobs->first[job + 1]; i++)
        sum += meta_op_ns(problem, jobs->meta_op[i], gpus, &size);
    return sum;
}

hbp_status hbp__job_add(hbp_context *context, const hbp__task_problem *problem, const hbp__jobs *jobs,
                        int32_t job, int32_t gpus, int32_t wave, int64_t start_ns, int64_t *end_ns,
                        hbp__task_slices *slices)
{
    for (int32_t i = jobs->first[job]; i < jobs->first[job + 1]; i++) {
        int32_t m = jobs->meta_op[i];
        hbp__task_slice slice = {
            .meta_op = m,
            .count = problem->meta->meta_op[m].count,
            .wave = wave++,
            .start_ns = start_ns,
        };
        start_ns += meta_op_ns(problem, m, gpus, &slice.gpus);
        slice.end_ns = start_ns;
        HBP__TRY(hbp__task_slices_add(context, slices, &slice));
    }
    *end_ns = start_ns;
    return HBP_OK;
}

/* Jobs that run: fewer than GPUs. */
typedef struct running {
    int64_t *end_ns;
    int32_t *gpus;
    int32_t count;
    int32_t free;
} running;

/* The time at which `gpus` are free, when those that end sooner have ended; they leave the list. */
static int64_t wait_for(running *r, int32_t gpus, int64_t now)
{
    while (r->free < gpus) {
        int32_t soonest = 0;
        for (int32_t i = 1; i < r->count; i++)
            if (r->end_ns[i] < r->end_ns[soonest])
                soonest = i;
        now = r->end_ns[soonest];
        r->free += r->gpus[soonest];
        r->end_ns[soonest] = r->end_ns[--r->count];
        r->gpus[soonest] = r->gpus[r->count];
    }
    return now;
}

static hbp_status run_in_order(hbp_context *context, const hbp__task_problem *problem, const hbp__jobs *jobs,
                               const int32_t *gpus, const uint32_t *order, running *r,
                               hbp__task_slices *slices)
{
    int64_t now = 0;
    for (int32_t i = 0; i < jobs->count; i++) {
        int32_t job = (int32_t)order[i];
        now = wait_for(r, gpus[job], now);
        HBP__TRY(hbp__job_add(context, problem, jobs, job, gpus[job], 0, now, &r->end_ns[r->count], slices));
        r->gpus[r->count++] = gpus[job];
        r->free -= gpus[job];
    }
    return hbp__task_waves(context, problem, slices, NULL);
}

hbp_status hbp__jobs_run(hbp_context *context, const hbp__task_problem *problem, const hbp__jobs *jobs,
                         const int32_t *gpus, hbp__task_slices *slices)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t count = (uint64_t)jobs->count;
    int64_t *key = hbp__take(context, count, sizeof *key);
    uint32_t *order = hbp__take(context, count, sizeof *order);
    running r = {.free = problem->gpus};
    r.end_ns = hbp__take(context, (uint64_t)problem->gpus, sizeof *r.end_ns);
    r.gpus = hbp__take(context, (uint64_t)problem->gpus, sizeof *r.gpus);
    HBP__TRY(hbp__scratch_check(context, "the order of tasks"));
    for (int32_t j = 0; j < jobs->count; j++) {
        order[j] = (uint32_t)j;
        key[j] = -hbp__job_ns(problem, jobs, j, gpus[j]);
    }
    if (!hbp__sort_by_i64(&context->memory, key, order, jobs->count))
        return hbp__fail_memory(context, "the order of tasks");
    HBP__TRY(run_in_order(context, problem, jobs, gpus, order, &r, slices));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
