/* DistMM: each job in turn, by the published waves of its own MetaOps. O(MetaOps + edges) beside the waves.
 */
#include "base/scratch.h"
#include "tasks/baselines/baselines.h"
#include "tasks/baselines/jobs.h"
#include "tasks/waves/waves.h"

/* A part of a problem: the MetaOps of some job, numbered anew from 0. */
typedef struct part {
    hbp__meta_graph meta;
    hbp__scaling scaling;
    hbp__task_problem problem;
    int32_t *curve_of; /* scaling's, which is read-only there */
    int32_t *number;   /* [MetaOps of the whole] its number here, for those of the job alone */
} part;

/* Room for the largest job. */
static hbp_status take_part(hbp_context *context, const hbp__task_problem *whole, part *p)
{
    const hbp__meta_graph *meta = whole->meta;
    uint64_t count = (uint64_t)meta->count, edges = (uint64_t)meta->edge_count;
    *p = (part){.meta = *meta, .scaling = *whole->scaling, .problem = *whole};
    p->number = hbp__take(context, count, sizeof *p->number);
    p->curve_of = hbp__take(context, count, sizeof *p->curve_of);
    p->meta.meta_op = hbp__take(context, count, sizeof *p->meta.meta_op);
    p->meta.level_first = hbp__take(context, (uint64_t)meta->levels + 1, sizeof *p->meta.level_first);
    p->meta.edges = hbp__take(context, edges, sizeof *p->meta.edges);
    p->meta.out_first = hbp__take(context, count + 1, sizeof *p->meta.out_first);
    p->meta.in_first = hbp__take(context, count + 1, sizeof *p->meta.in_first);
    p->meta.in_edges = hbp__take(context, edges, sizeof *p->meta.in_edges);
    p->scaling.curve_of = p->curve_of;
    p->problem.meta = &p->meta;
    p->problem.scaling = &p->scaling;
    return hbp__scratch_check(context, "the waves of a task");
}

/* Edges of a job lead to its own MetaOps, so numbers keep their order and levels stay as they are. */
static void fill_edges(part *p, const hbp__meta_graph *whole, const int32_t *meta_op, int32_t count)
{
    hbp__meta_graph *meta = &p->meta;
    meta->edge_count = 0;
    int64_t entered = 0;
    for (int32_t m = 0; m < count; m++) {
        meta->out_first[m] = meta->edge_count;
        for (int64_t e = whole->out_first[meta_op[m]]; e < whole->out_first[meta_op[m] + 1]; e++)
            meta->edges[meta->edge_count++] =
                (hbp__edge){m, p->number[whole->edges[e].to], whole->edges[e].bytes};
    }
    meta->out_first[count] = meta->edge_count;
    for (int32_t m = 0; m <= count; m++)
        meta->in_first[m] = 0;
    for (int64_t e = 0; e < meta->edge_count; e++)
        meta->in_first[meta->edges[e].to]++;
    for (int32_t m = 0; m <= count; m++) {
        int64_t here = meta->in_first[m];
        meta->in_first[m] = entered;
        entered += here;
    }
    for (int64_t e = 0; e < meta->edge_count; e++)
        meta->in_edges[meta->in_first[meta->edges[e].to]++] = e;
    for (int32_t m = count; m > 0; m--)
        meta->in_first[m] = meta->in_first[m - 1];
    meta->in_first[0] = 0;
}

static void fill_part(part *p, const hbp__task_problem *whole, const int32_t *meta_op, int32_t count)
{
    hbp__meta_graph *meta = &p->meta;
    meta->count = count;
    meta->levels = 0;
    for (int32_t m = 0; m < count; m++) {
        p->number[meta_op[m]] = m;
        p->curve_of[m] = whole->scaling->curve_of[meta_op[m]];
        meta->meta_op[m] = whole->meta->meta_op[meta_op[m]];
        while (meta->levels <= meta->meta_op[m].level)
            meta->level_first[meta->levels++] = m;
    }
    meta->level_first[meta->levels] = count;
    fill_edges(p, whole->meta, meta_op, count);
}

/* Appends slices of a part behind all that is there. */
static hbp_status append_slices(hbp_context *context, const hbp__task_slices *own, const int32_t *meta_op,
                                hbp__task_slices *slices)
{
    int32_t wave = slices->waves;
    int64_t now = slices->makespan_ns;
    for (int64_t s = 0; s < own->count; s++) {
        hbp__task_slice slice = own->slice[s];
        slice.meta_op = meta_op[slice.meta_op];
        slice.wave += wave;
        slice.start_ns += now;
        slice.end_ns += now;
        HBP__TRY(hbp__task_slices_add(context, slices, &slice));
    }
    return HBP_OK;
}

static hbp_status add_waves(hbp_context *context, const part *p, const int32_t *meta_op,
                            hbp__task_slices *slices)
{
    hbp__task_slices own = {.memory = context->memory};
    HBP__TRY(hbp__plan_waves(context, &p->problem, &own));
    hbp_status status = append_slices(context, &own, meta_op, slices);
    hbp__task_slices_close(&own);
    return status;
}

hbp_status hbp__plan_distmm(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices)
{
    hbp__jobs jobs;
    part p;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__jobs_open(context, problem, &jobs));
    HBP__TRY(take_part(context, problem, &p));
    for (int32_t j = 0; j < jobs.count; j++) {
        const int32_t *meta_op = jobs.meta_op + jobs.first[j];
        fill_part(&p, problem, meta_op, jobs.first[j + 1] - jobs.first[j]);
        HBP__TRY(add_waves(context, &p, meta_op, slices));
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
