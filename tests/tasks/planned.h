/* Graphs as planners see them, and what every list of slices must keep. */
#ifndef HBP_TESTS_PLANNED_H
#define HBP_TESTS_PLANNED_H

#include "failing.h"
#include "tasks/problem.h"

typedef struct planned {
    hbp__meta_graph meta;
    hbp__scaling scaling;
    hbp__task_problem problem;
} planned;

static inline void open_planned(hbp_context *context, const hbp_graph *graph, int32_t gpus, planned *p)
{
    OK(context, hbp__meta_graph_open(context, graph, &p->meta));
    OK(context, hbp__scaling_open(context, graph, &p->meta, gpus, &p->scaling));
    p->problem = (hbp__task_problem){graph, &p->meta, &p->scaling, gpus, gpus, INT64_MAX, 0, 0, 0};
}

static inline void close_planned(planned *p)
{
    hbp__scaling_close(&p->scaling);
    hbp__meta_graph_close(&p->meta);
}

/* Every operator runs once, in order, on a size of its curve and for its time; nothing starts before what it
 * needs has ended, nor in an earlier wave; never more than N GPUs at a time. */
static inline void check_slices(const planned *p, const hbp__task_slices *s)
{
    int32_t m_count = p->meta.count;
    int32_t *done = calloc((size_t)m_count, sizeof *done);
    int64_t *start = calloc((size_t)m_count, sizeof *start), *end = calloc((size_t)m_count, sizeof *end);
    int32_t *first_wave = calloc((size_t)m_count, sizeof *first_wave);
    int32_t *last_wave = calloc((size_t)m_count, sizeof *last_wave);
    int64_t longest = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const hbp__task_slice *slice = &s->slice[i];
        const hbp__curve *curve = hbp__meta_curve(&p->scaling, slice->meta_op);
        int32_t m = slice->meta_op, size = hbp__curve_find(curve, slice->gpus);
        ck_assert_int_ge(size, 0);
        ck_assert_int_ge(slice->count, 1);
        ck_assert_int_eq(slice->first, done[m]);
        ck_assert_int_eq(slice->end_ns - slice->start_ns, slice->count * curve->time_ns[size]);
        if (slice->first == 0) {
            start[m] = slice->start_ns;
            first_wave[m] = slice->wave;
        } else {
            ck_assert_int_ge(slice->start_ns, end[m]);
            ck_assert_int_gt(slice->wave, last_wave[m]);
        }
        done[m] += slice->count;
        end[m] = slice->end_ns;
        last_wave[m] = slice->wave;
        longest = slice->end_ns > longest ? slice->end_ns : longest;
        int64_t used = 0;
        for (int64_t k = 0; k < s->count; k++)
            if (s->slice[k].start_ns <= slice->start_ns && s->slice[k].end_ns > slice->start_ns)
                used += s->slice[k].gpus;
        ck_assert_int_le(used, p->problem.gpus);
    }
    for (int32_t m = 0; m < m_count; m++)
        ck_assert_int_eq(done[m], p->meta.meta_op[m].count);
    for (int64_t e = 0; e < p->meta.edge_count; e++) {
        ck_assert_int_ge(start[p->meta.edges[e].to], end[p->meta.edges[e].from]);
        ck_assert_int_gt(first_wave[p->meta.edges[e].to], last_wave[p->meta.edges[e].from]);
    }
    ck_assert_int_eq(longest, s->makespan_ns);
    free(done);
    free(start);
    free(end);
    free(first_wave);
    free(last_wave);
}

#endif
