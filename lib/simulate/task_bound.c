/* docs/explanation/tasks-bound.md states the bound and proves it; the names here are the ones used there. */
#include "simulate/task_bound.h"

#include <math.h>

#include "base/checked.h"
#include "solve/time_cost.h"

/* Activities are MetaOps, their points the hulls of curves; room for all of their sizes. */
typedef struct bounder {
    const hbp__meta_graph *meta;
    const hbp__scaling *scaling;
    int64_t *end;             /* [MetaOps] earliest */
    int64_t *first;           /* [MetaOps + 1] */
    double *duration;         /* [points] */
    double *cost;             /* [points] */
    int32_t *from;            /* [edges] */
    int32_t *to;              /* [edges] */
    const hbp__curve **curve; /* [MetaOps of a level] */
    int32_t *operators;       /* [MetaOps of a level] */
} bounder;

/* As a double, never rounded up. */
static double double_below(int64_t x)
{
    return (double)(x - (x >> 53));
}

static int open_bounder(const hbp__memory *memory, bounder *b)
{
    uint64_t count = (uint64_t)b->meta->count, edges = (uint64_t)b->meta->edge_count, points = 0;
    for (int32_t m = 0; m < b->meta->count; m++)
        points += (uint64_t)hbp__meta_curve(b->scaling, m)->tight;
    b->end = hbp__new(memory, count, sizeof *b->end);
    b->first = hbp__new(memory, count + 1, sizeof *b->first);
    b->duration = hbp__new(memory, points, sizeof *b->duration);
    b->cost = hbp__new(memory, points, sizeof *b->cost);
    b->from = hbp__new(memory, edges, sizeof *b->from);
    b->to = hbp__new(memory, edges, sizeof *b->to);
    b->curve = hbp__new(memory, count, sizeof *b->curve);
    b->operators = hbp__new(memory, count, sizeof *b->operators);
    return b->end && b->first && b->duration && b->cost && b->from && b->to && b->curve && b->operators;
}

static void close_bounder(const hbp__memory *memory, bounder *b)
{
    hbp__delete(memory, b->end);
    hbp__delete(memory, b->first);
    hbp__delete(memory, b->duration);
    hbp__delete(memory, b->cost);
    hbp__delete(memory, b->from);
    hbp__delete(memory, b->to);
    hbp__delete(memory, b->curve);
    hbp__delete(memory, b->operators);
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

static int64_t least_area(const hbp__curve *c)
{
    return c->size[c->hull[0]] * c->time_ns[c->hull[0]];
}

static int64_t area(const bounder *b)
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

/* Largest size first: it takes the least time. */
static void fill_points(bounder *b)
{
    int64_t at = 0;
    for (int32_t m = 0; m < b->meta->count; m++) {
        const hbp__curve *c = hbp__meta_curve(b->scaling, m);
        int64_t count = b->meta->meta_op[m].count;
        b->first[m] = at;
        for (int32_t i = c->tight - 1; i >= 0; i--, at++) {
            int64_t ns = count * c->time_ns[c->hull[i]];
            b->duration[at] = double_below(ns);
            b->cost[at] = double_below(ns * c->size[c->hull[i]]);
        }
    }
    b->first[b->meta->count] = at;
    for (int64_t e = 0; e < b->meta->edge_count; e++) {
        b->from[e] = b->meta->edges[e].from;
        b->to[e] = b->meta->edges[e].to;
    }
}

static hbp_status bound_tasks(hbp_context *context, bounder *b, hbp__task_bounds *bounds, int64_t *level_ns)
{
    double least;
    int32_t exact;
    fill_points(b);
    hbp__project project = {.activities = b->meta->count,
                            .first = b->first,
                            .duration = b->duration,
                            .cost = b->cost,
                            .arcs = b->meta->edge_count,
                            .from = b->from,
                            .to = b->to};
    HBP__TRY(hbp__time_cost(context, &project, b->scaling->gpus, 0, &least, &exact));
    bounds->critical_path_ns = critical_path(b);
    bounds->area_ns = area(b);
    bounds->relaxed_ns = relaxed(b, level_ns);
    bounds->bound_ns = hbp__max_i64(bounds->critical_path_ns, bounds->area_ns);
    bounds->bound_ns = hbp__max_i64(bounds->bound_ns, (int64_t)ceil(least));
    return HBP_OK;
}

hbp_status hbp__task_bound(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *scaling,
                           hbp__task_bounds *bounds, int64_t *level_ns)
{
    const hbp__memory *memory = &context->memory;
    bounder b = {.meta = meta, .scaling = scaling};
    hbp_status status = open_bounder(memory, &b) ? bound_tasks(context, &b, bounds, level_ns)
                                                 : hbp__fail_memory(context, "the bound of tasks");
    close_bounder(memory, &b);
    return status;
}
