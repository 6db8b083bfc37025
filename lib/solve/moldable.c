/* Branch and bound over starts that do not fall: serial schedule generation in the order of starts, in which
 * a job starts as early as it can but no earlier than the one before, reaches an optimal schedule. Targets
 * between the bound and the best schedule are searched until the two meet: a target that no schedule reaches
 * is a bound. */
#include "solve/moldable.h"

#include "base/checked.h"
#include "base/scratch.h"

enum { JOBS = HBP__MOLDABLE_JOBS };

/* Placings between two looks at whether to go on: some milliseconds. */
#define TICK_WORK 100000

/* Searches end when what is open is one part of the bound out of so many; the last one is for the optimum
 * itself, where it is not farther than one of so many. */
#define NEAR    64
#define NOT_FAR 8

/* A search that is not the last one has one part of the work out of so many. */
#define PARTS 4

typedef struct run {
    int64_t end_ns;
    int32_t size;
} run;

/* Jobs that started by `now_ns`, and those that run then, by end. */
typedef struct node {
    uint32_t done;
    int32_t last; /* job */
    int32_t runs;
    int64_t now_ns;
    int64_t end_ns; /* of all */
    run running[JOBS];
} node;

typedef struct solver {
    hbp_context *context;
    const hbp__moldable_job *job;
    int32_t jobs;
    int32_t processors;
    int64_t *area[JOBS];     /* [sizes] least processor time on that size or larger ones */
    int64_t least_ns[JOBS];  /* on its largest size */
    int64_t behind_ns[JOBS]; /* longest path behind its end */
    uint32_t twins[JOBS];    /* jobs like it of lower numbers: they start first */
    int64_t ends_ns[JOBS];   /* of those done */
    int32_t size[JOBS];
    int64_t start_ns[JOBS];
    int64_t target_ns; /* schedules that end by then are looked for */
    int to_the_end;    /* nonzero: for the shortest of them; else for any */
    int found;
    int64_t work;
    int64_t limit;
    int64_t tick;
    hbp_status status;
    hbp__moldable_plan *plan;
} solver;

static int count_work(solver *s)
{
    if (++s->work >= s->tick && s->status >= 0) {
        s->tick = s->work + TICK_WORK;
        s->status = hbp__tick(s->context, "few tasks", s->work, s->limit);
    }
    return s->status >= 0 && s->work <= s->limit;
}

/* The least size on which a job takes at most `ns`; it has one. */
static int32_t least_size(const hbp__moldable_job *job, int64_t ns)
{
    int32_t low = 0, high = job->sizes - 1;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (job->time_ns[middle] <= ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* When each job that is left may start, and its least size such that all can end by the target. Zero when
 * some job has none, or all together need more processor time than there is. */
static int64_t find_spare(const solver *s, const node *at, int64_t ready_ns[], int32_t least[])
{
    int64_t area = 0, ends[JOBS];
    for (int32_t r = 0; r < at->runs; r++)
        area += (at->running[r].end_ns - at->now_ns) * at->running[r].size;
    for (int32_t i = 0; i < s->jobs; i++) {
        if (at->done >> i & 1) {
            ends[i] = s->ends_ns[i];
            continue;
        }
        ready_ns[i] = at->now_ns;
        for (int32_t j = 0; j < i; j++)
            if (s->job[i].needs >> j & 1)
                ready_ns[i] = hbp__max_i64(ready_ns[i], ends[j]);
        ends[i] = ready_ns[i] + s->least_ns[i];
        if (ends[i] + s->behind_ns[i] > s->target_ns)
            return -1;
        least[i] = least_size(&s->job[i], s->target_ns - s->behind_ns[i] - ready_ns[i]);
        area += s->area[i][least[i]];
    }
    return hbp__mul_saturating(s->target_ns - at->now_ns, s->processors) - area;
}

/* The child of `at` that starts job i then. */
static void start_job(solver *s, const node *at, int32_t i, int32_t k, int64_t start, node *next)
{
    int64_t end = start + s->job[i].time_ns[k];
    *next = (node){.done = at->done | UINT32_C(1) << i, .last = i, .now_ns = start};
    next->end_ns = hbp__max_i64(at->end_ns, end);
    run own = {end, s->job[i].size[k]};
    for (int32_t r = 0; r < at->runs; r++) {
        if (at->running[r].end_ns <= start)
            continue;
        if (own.size && at->running[r].end_ns > end) {
            next->running[next->runs++] = own;
            own.size = 0;
        }
        next->running[next->runs++] = at->running[r];
    }
    if (own.size)
        next->running[next->runs++] = own;
    s->ends_ns[i] = end;
    s->size[i] = k;
    s->start_ns[i] = start;
}

static void keep_plan(solver *s, const node *at)
{
    s->found = 1;
    s->plan->makespan_ns = at->end_ns;
    s->target_ns = at->end_ns - 1;
    for (int32_t i = 0; i < s->jobs; i++) {
        s->plan->size[i] = s->size[i];
        s->plan->start_ns[i] = s->start_ns[i];
    }
}

/* The earliest start from `ready` on with `size` processors free; what runs only ends. */
static int64_t earliest_start(const solver *s, const node *at, int64_t ready, int32_t size)
{
    int32_t used = 0;
    for (int32_t r = 0; r < at->runs; r++)
        used += at->running[r].size;
    for (int32_t r = 0; r < at->runs && (used + size > s->processors || at->running[r].end_ns <= ready);
         r++) {
        ready = hbp__max_i64(ready, at->running[r].end_ns);
        used -= at->running[r].size;
    }
    return ready;
}

static int search(solver *s, const node *at);

/* Job i on each size from `least` on that takes no more than `most` processor time. */
static int try_job(solver *s, const node *at, int32_t i, int64_t ready, int32_t least, int64_t most)
{
    const hbp__moldable_job *job = &s->job[i];
    for (int32_t k = least; k < job->sizes; k++) {
        if (job->size[k] * job->time_ns[k] > most)
            continue;
        if (!count_work(s))
            return 0;
        int64_t start = earliest_start(s, at, ready, job->size[k]);
        if (start + job->time_ns[k] + s->behind_ns[i] > s->target_ns || (start == at->now_ns && i < at->last))
            continue;
        node next;
        start_job(s, at, i, k, start, &next);
        if (!search(s, &next))
            return 0;
    }
    return 1;
}

/* Zero when the search ends: some schedule was found and any will do, or the work is done. */
static int search(solver *s, const node *at)
{
    int64_t ready[JOBS];
    int32_t least[JOBS];
    if (at->done == (UINT32_C(1) << s->jobs) - 1) {
        keep_plan(s, at);
        return s->to_the_end;
    }
    int64_t spare = find_spare(s, at, ready, least);
    if (spare < 0)
        return 1;
    for (int32_t i = 0; i < s->jobs; i++) {
        if ((at->done >> i & 1) || ((s->job[i].needs | s->twins[i]) & ~at->done))
            continue;
        if (!try_job(s, at, i, ready[i], least[i], s->area[i][least[i]] + spare))
            return 0;
    }
    return 1;
}

static int same_job(const solver *s, int32_t i, int32_t j)
{
    if (s->job[i].size != s->job[j].size || s->job[i].time_ns != s->job[j].time_ns ||
        s->job[i].needs != s->job[j].needs)
        return 0;
    for (int32_t k = 0; k < s->jobs; k++)
        if ((s->job[k].needs >> i & 1) != (s->job[k].needs >> j & 1))
            return 0;
    return 1;
}

/* Paths, and one job after the other, each as fast as it goes: the first schedule. */
static void prepare(solver *s)
{
    int64_t end = 0;
    for (int32_t i = 0; i < s->jobs; i++) {
        const hbp__moldable_job *job = &s->job[i];
        s->least_ns[i] = job->time_ns[job->sizes - 1];
        s->behind_ns[i] = 0;
        s->twins[i] = 0;
        for (int32_t j = 0; j < i; j++)
            if (same_job(s, i, j))
                s->twins[i] |= UINT32_C(1) << j;
        s->plan->size[i] = job->sizes - 1;
        s->plan->start_ns[i] = end;
        end += s->least_ns[i];
    }
    s->plan->makespan_ns = end;
    for (int32_t i = s->jobs - 1; i >= 0; i--)
        for (int32_t j = 0; j < i; j++)
            if (s->job[i].needs >> j & 1)
                s->behind_ns[j] = hbp__max_i64(s->behind_ns[j], s->behind_ns[i] + s->least_ns[i]);
}

/* Searches for schedules that end by `target_ns`; zero when the work did not suffice. */
static int reach(solver *s, int64_t target_ns, int64_t work)
{
    s->target_ns = target_ns;
    s->found = 0;
    s->limit = s->work + work;
    search(s, &(node){.last = -1});
    return s->status >= 0 && s->work <= s->limit;
}

/* Halves what is open between the bound and `open_ns`, a target that schedules may not reach for all that is
 * known, until they are near. */
static void approach(solver *s, int64_t work)
{
    hbp__moldable_plan *plan = s->plan;
    int64_t open_ns = plan->makespan_ns;
    while (s->status >= 0 && open_ns - plan->bound_ns > plan->bound_ns / NEAR) {
        int64_t target = plan->bound_ns + (open_ns - plan->bound_ns) / 2;
        if (reach(s, target, work) && !s->found)
            plan->bound_ns = target + 1;
        else
            open_ns = s->found ? plan->makespan_ns : target;
    }
}

static hbp_status take_areas(solver *s)
{
    for (int32_t i = 0; i < s->jobs; i++)
        s->area[i] = hbp__take(s->context, (uint64_t)s->job[i].sizes, sizeof **s->area);
    HBP__TRY(hbp__scratch_check(s->context, "few tasks"));
    for (int32_t i = 0; i < s->jobs; i++) {
        int64_t least = INT64_MAX;
        for (int32_t k = s->job[i].sizes - 1; k >= 0; k--)
            s->area[i][k] = least = hbp__min_i64(least, s->job[i].size[k] * s->job[i].time_ns[k]);
    }
    return HBP_OK;
}

hbp_status hbp__moldable_solve(hbp_context *context, const hbp__moldable_job *job, int32_t jobs,
                               int32_t processors, int64_t bound_ns, int64_t limit, hbp__moldable_plan *plan)
{
    solver s = {.context = context, .job = job, .jobs = jobs, .processors = processors, .plan = plan};
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(take_areas(&s));
    prepare(&s);
    plan->bound_ns = bound_ns;
    approach(&s, limit / PARTS);
    s.to_the_end = 1;
    int64_t apart = plan->makespan_ns - plan->bound_ns;
    if (s.status >= 0 && apart > 0 && apart <= plan->bound_ns / NOT_FAR &&
        reach(&s, plan->makespan_ns - 1, limit))
        plan->bound_ns = plan->makespan_ns;
    hbp__scratch_release(context, mark);
    return s.status;
}
