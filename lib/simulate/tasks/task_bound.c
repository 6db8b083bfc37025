/* docs/explanation/tasks-bound.md states the bound and proves it; the names here are the ones used there. */
#include "simulate/tasks/task_bound.h"

#include <math.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/time_cost.h"

/* Ways to weigh GPUs, the plain one among them. */
enum { RULES = 5 };

/* Of hbp__time_cost: far more than graphs of real tasks need. */
#define STEPS 4000000

/* Windows are looked at in graphs of at most so many MetaOps, which has some thirteen such problems solved;
 * and until what is open is one part of so many. */
#define WINDOW_META_OPS 1000
#define WINDOW_NEAR     4096
#define WINDOW_PARTS    32 /* of STEPS, each */

/* Of hbp__moldable_solve: a tenth of a second at most, where most graphs take some milliseconds. */
#define PLACINGS 1000000

typedef struct bounder {
    const hbp__meta_graph *meta;
    const hbp__scaling *scaling;
    int64_t *end;             /* [MetaOps] earliest */
    int64_t *tail;            /* [MetaOps] longest path behind it */
    int32_t *least;           /* [MetaOps] sizes before this one are left out */
    int64_t *first;           /* [MetaOps + 1] */
    double *duration;         /* [points] */
    double *cost;             /* [points] */
    int32_t *from;            /* [edges] */
    int32_t *to;              /* [edges] */
    int32_t *weight;          /* [most sizes of a curve] */
    int32_t *hull;            /* [most sizes of a curve] */
    const hbp__curve **curve; /* [MetaOps of a level] */
    int32_t *operators;       /* [MetaOps of a level] */
} bounder;

/* As a double, never rounded up. */
static double double_below(int64_t x)
{
    return (double)(x - (x >> 53));
}

static hbp_status take_bounder(hbp_context *context, bounder *b)
{
    uint64_t count = (uint64_t)b->meta->count, edges = (uint64_t)b->meta->edge_count, points = 0;
    uint64_t most = 0;
    for (int32_t m = 0; m < b->meta->count; m++) {
        uint64_t sizes = (uint64_t)hbp__meta_curve(b->scaling, m)->sizes;
        points += sizes;
        most = sizes > most ? sizes : most;
    }
    b->weight = hbp__take(context, most, sizeof *b->weight);
    b->hull = hbp__take(context, most, sizeof *b->hull);
    b->end = hbp__take(context, count, sizeof *b->end);
    b->tail = hbp__take(context, count, sizeof *b->tail);
    b->least = hbp__take_zero(context, count, sizeof *b->least);
    b->first = hbp__take(context, count + 1, sizeof *b->first);
    b->duration = hbp__take(context, points, sizeof *b->duration);
    b->cost = hbp__take(context, points, sizeof *b->cost);
    b->from = hbp__take(context, edges, sizeof *b->from);
    b->to = hbp__take(context, edges, sizeof *b->to);
    b->curve = hbp__take(context, count, sizeof *b->curve);
    b->operators = hbp__take(context, count, sizeof *b->operators);
    return hbp__scratch_check(context, "the bound of tasks");
}

static int64_t critical_path(bounder *b)
{
    const hbp__meta_graph *meta = b->meta;
    int64_t longest = 0;
    for (int32_t m = 0; m < meta->count; m++) {
        const hbp__curve *c = hbp__meta_curve(b->scaling, m);
        int64_t start = 0;
        for (int64_t e = meta->in_first[m]; e < meta->in_first[m + 1]; e++)
            start = hbp__max_i64(start, b->end[meta->edges[meta->in_edges[e]].from]);
        b->end[m] = start + meta->meta_op[m].count * c->time_ns[c->sizes - 1];
        longest = hbp__max_i64(longest, b->end[m]);
    }
    return longest;
}

static int64_t fastest(const bounder *b, int32_t m)
{
    const hbp__curve *c = hbp__meta_curve(b->scaling, m);
    return c->time_ns[c->sizes - 1];
}

static void measure_tails(bounder *b)
{
    const hbp__meta_graph *meta = b->meta;
    for (int32_t m = meta->count - 1; m >= 0; m--) {
        b->tail[m] = 0;
        for (int64_t e = meta->out_first[m]; e < meta->out_first[m + 1]; e++) {
            int32_t next = meta->edges[e].to;
            b->tail[m] =
                hbp__max_i64(b->tail[m], b->tail[next] + meta->meta_op[next].count * fastest(b, next));
        }
    }
}

static int64_t least_area(const hbp__curve *c)
{
    return c->size[c->hull[0]] * c->time_ns[c->hull[0]];
}

static int64_t sum_area(const bounder *b)
{
    int64_t sum = 0;
    for (int32_t m = 0; m < b->meta->count; m++)
        sum += b->meta->meta_op[m].count * least_area(hbp__meta_curve(b->scaling, m));
    return hbp__ceil_div(sum, b->scaling->gpus);
}

static int64_t relaxed(bounder *b, int64_t *level_ns)
{
    const hbp__meta_graph *meta = b->meta;
    int64_t sum = 0;
    for (int32_t l = 0; l < meta->levels; l++) {
        int32_t first = meta->level_first[l], count = meta->level_first[l + 1] - first;
        for (int32_t k = 0; k < count; k++) {
            b->curve[k] = hbp__meta_curve(b->scaling, first + k);
            b->operators[k] = meta->meta_op[first + k].count;
        }
        int64_t ns = hbp__round_i64(hbp__relax(b->curve, b->operators, count, b->scaling->gpus, NULL));
        sum = hbp__add_saturating(sum, ns);
        if (level_ns)
            level_ns[l] = ns;
    }
    return sum;
}

/* What n GPUs weigh under rule k, the machine weighing N max(k, 1). Rule 0 counts GPUs; the others round
 * shares x = n / N of the machine: to x where (k + 1) x is whole, else to floor((k + 1) x) / k. */
static int64_t weigh(int64_t n, int64_t gpus, int32_t k)
{
    if (k == 0 || (k + 1) * n % gpus == 0)
        return n * (k > 0 ? k : 1);
    return (k + 1) * n / gpus * gpus;
}

/* No rule that weighs no size more than its share adds to rule 0. */
static int rounds_up(const bounder *b, int32_t k)
{
    int64_t gpus = b->scaling->gpus;
    for (int32_t i = 0; i < b->scaling->count; i++)
        for (int32_t j = 0; j < b->scaling->curve[i].sizes; j++)
            if (weigh(b->scaling->curve[i].size[j], gpus, k) > k * (int64_t)b->scaling->curve[i].size[j])
                return 1;
    return 0;
}

/* Points of all MetaOps under rule k, of their sizes from `least` on, the largest first: it takes the least
 * time. */
static void fill_points(bounder *b, int32_t k)
{
    int64_t at = 0;
    for (int32_t m = 0; m < b->meta->count; m++) {
        const hbp__curve *c = hbp__meta_curve(b->scaling, m);
        int64_t count = b->meta->meta_op[m].count;
        int32_t sizes = c->sizes - b->least[m];
        const int64_t *time_ns = c->time_ns + b->least[m];
        for (int32_t i = 0; i < sizes; i++)
            b->weight[i] = (int32_t)weigh(c->size[b->least[m] + i], b->scaling->gpus, k);
        b->first[m] = at;
        for (int32_t i = hbp__curve_hull(b->weight, time_ns, sizes, b->hull) - 1; i >= 0; i--, at++) {
            int64_t ns = count * time_ns[b->hull[i]];
            b->duration[at] = double_below(ns);
            b->cost[at] = double_below(ns * b->weight[b->hull[i]]);
        }
    }
    b->first[b->meta->count] = at;
}

/* Whether no sum of weights times ns overflows; they are at most k + 1 times the GPUs. */
static int is_small(const bounder *b, int32_t k)
{
    int64_t sum = 0;
    for (int32_t m = 0; m < b->meta->count; m++) {
        const hbp__curve *c = hbp__meta_curve(b->scaling, m);
        int64_t most = 0;
        for (int32_t i = 0; i < c->sizes; i++)
            most = hbp__max_i64(most, c->size[i] * c->time_ns[i]);
        sum += b->meta->meta_op[m].count * most; /* at most 2^62: hbp__scaling_open */
    }
    return sum <= INT64_MAX / (k + 1) && b->scaling->gpus <= INT32_MAX / (k + 1);
}

static hbp__project project_of(bounder *b)
{
    hbp__project project = {.activities = b->meta->count,
                            .first = b->first,
                            .duration = b->duration,
                            .cost = b->cost,
                            .arcs = b->meta->edge_count,
                            .from = b->from,
                            .to = b->to};
    for (int64_t e = 0; e < b->meta->edge_count; e++) {
        b->from[e] = b->meta->edges[e].from;
        b->to[e] = b->meta->edges[e].to;
    }
    return project;
}

static hbp_status bound_by_rules(hbp_context *context, bounder *b, int64_t *bound_ns)
{
    hbp__project project = project_of(b);
    for (int32_t k = 0; k < RULES; k++) {
        double least, rate = (double)b->scaling->gpus * (k > 0 ? k : 1);
        int32_t exact;
        if (k > 0 && (!rounds_up(b, k) || !is_small(b, k)))
            continue;
        fill_points(b, k);
        HBP__TRY(hbp__time_cost(context, &project, rate, STEPS, &least, &exact));
        *bound_ns = hbp__max_i64(*bound_ns, (int64_t)ceil(least));
    }
    return HBP_OK;
}

/* What a schedule that ends by `target_ns` takes at least: no operator is slower than what the others of its
 * MetaOp and of the longest path through it leave when they are as fast as they go. The same holds for ends
 * before *next_ns, where an operator gets a size more. */
static hbp_status bound_in_windows(hbp_context *context, bounder *b, int64_t target_ns, int64_t *bound_ns,
                                   int64_t *next_ns)
{
    hbp__project project = project_of(b);
    double least;
    int32_t exact;
    *next_ns = INT64_MAX;
    for (int32_t m = 0; m < b->meta->count; m++) {
        const hbp__curve *c = hbp__meta_curve(b->scaling, m);
        int64_t others = b->end[m] + b->tail[m] - fastest(b, m);
        int32_t k = 0;
        while (others + c->time_ns[k] > target_ns)
            k++;
        if (k > 0)
            *next_ns = hbp__min_i64(*next_ns, others + c->time_ns[k - 1]);
        b->least[m] = k;
    }
    fill_points(b, 0);
    HBP__TRY(hbp__time_cost(context, &project, b->scaling->gpus, STEPS / WINDOW_PARTS, &least, &exact));
    *bound_ns = (int64_t)ceil(least);
    return HBP_OK;
}

/* A target that its own windows forbid is no makespan, nor is any before it: what is open is halved until
 * little is. */
static hbp_status raise_bound(hbp_context *context, bounder *b, int64_t *bound_ns)
{
    int64_t target = *bound_ns, low = target, high = INT64_MAX, least, next;
    if (b->meta->count > WINDOW_META_OPS)
        return HBP_OK;
    measure_tails(b);
    do {
        HBP__TRY(bound_in_windows(context, b, target, &least, &next));
        if (least > target) {
            low = hbp__min_i64(least, next);
            high = hbp__min_i64(high, least);
        } else {
            high = target;
        }
        target = low + (high - low) / 2;
    } while (high - low > low / WINDOW_NEAR);
    *bound_ns = low;
    return HBP_OK;
}

/* Few operators: schedules themselves are searched. */
static hbp_status search_few(hbp_context *context, const bounder *b, hbp__task_bounds *bounds)
{
    const hbp__meta_graph *meta = b->meta;
    hbp__moldable_job job[HBP__MOLDABLE_JOBS];
    bounds->few = meta->operator_count <= HBP__MOLDABLE_JOBS;
    if (!bounds->few)
        return HBP_OK;
    for (int32_t m = 0; m < meta->count; m++) {
        const hbp__meta_op *op = &meta->meta_op[m];
        const hbp__curve *c = hbp__meta_curve(b->scaling, m);
        for (int64_t i = op->first; i < op->first + op->count; i++)
            job[i] = (hbp__moldable_job){c->sizes, c->size, c->time_ns,
                                         i > op->first ? UINT32_C(1) << (i - 1) : 0};
        for (int64_t e = meta->in_first[m]; e < meta->in_first[m + 1]; e++) {
            const hbp__meta_op *from = &meta->meta_op[meta->edges[meta->in_edges[e]].from];
            job[op->first].needs |= UINT32_C(1) << (from->first + from->count - 1);
        }
    }
    HBP__TRY(hbp__moldable_solve(context, job, meta->operator_count, b->scaling->gpus, bounds->bound_ns,
                                 PLACINGS, &bounds->best));
    bounds->bound_ns = bounds->best.bound_ns;
    return HBP_OK;
}

static hbp_status bound_tasks(hbp_context *context, bounder *b, hbp__task_bounds *bounds, int64_t *level_ns)
{
    bounds->critical_path_ns = critical_path(b);
    bounds->area_ns = sum_area(b);
    bounds->relaxed_ns = relaxed(b, level_ns);
    bounds->bound_ns = hbp__max_i64(bounds->critical_path_ns, bounds->area_ns);
    HBP__TRY(bound_by_rules(context, b, &bounds->bound_ns));
    HBP__TRY(raise_bound(context, b, &bounds->bound_ns));
    return search_few(context, b, bounds);
}

hbp_status hbp__task_bound(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *scaling,
                           hbp__task_bounds *bounds, int64_t *level_ns)
{
    bounder b = {.meta = meta, .scaling = scaling};
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(take_bounder(context, &b));
    HBP__TRY(bound_tasks(context, &b, bounds, level_ns));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
