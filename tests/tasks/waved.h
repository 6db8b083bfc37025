/* What waves of one level must keep, whoever makes them. */
#ifndef HBP_TESTS_WAVED_H
#define HBP_TESTS_WAVED_H

#include "graphs.h"
#include "tasks/planned.h"
#include "tasks/waves/level_waves.h"

/* At most 2 M waves; in each a MetaOp at most once, on a size of its curve, and all on N GPUs; every operator
 * runs once. */
static inline void check_waves(const planned *p, const hbp__level_waves *w)
{
    int32_t own = w->end - w->base, *done = calloc((size_t)own, sizeof *done);
    int32_t *wave_of = calloc((size_t)own, sizeof *wave_of);
    int64_t length = 0;
    ck_assert_int_ge(w->count, 1);
    ck_assert_int_le(w->count, 2 * own);
    ck_assert_int_eq(w->first[0], 0);
    ck_assert_int_eq(w->first[w->count], w->used);
    for (int32_t k = 0; k < w->count; k++) {
        int64_t longest = 0, gpus = 0;
        ck_assert_int_lt(w->first[k], w->first[k + 1]);
        for (int64_t i = w->first[k]; i < w->first[k + 1]; i++) {
            const hbp__wave_item *t = &w->item[i];
            const hbp__curve *c = hbp__meta_curve(&p->scaling, t->meta_op);
            int32_t m = t->meta_op - w->base;
            ck_assert_int_ge(m, 0);
            ck_assert_int_lt(m, own);
            ck_assert_int_ne(wave_of[m], k + 1);
            wave_of[m] = k + 1;
            ck_assert_int_eq(t->gpus, c->size[t->size]);
            ck_assert_int_eq(t->each_ns, c->time_ns[t->size]);
            ck_assert_int_ge(t->count, 1);
            done[m] += t->count;
            gpus += t->gpus;
            longest = t->count * t->each_ns > longest ? t->count * t->each_ns : longest;
        }
        ck_assert_int_le(gpus, p->problem.gpus);
        length += longest;
    }
    for (int32_t m = 0; m < own; m++)
        ck_assert_int_eq(done[m], p->meta.meta_op[w->base + m].count);
    ck_assert_int_eq(length, w->length_ns);
    free(done);
    free(wave_of);
}

typedef hbp_status level_maker(hbp_context *context, hbp__level_waves *waves);

typedef struct swept {
    const planned *p;
    level_maker *make;
} swept;

static inline hbp_status make_level(hbp_context *context, void *user)
{
    const swept *s = user;
    hbp__level_waves w;
    hbp_status status = hbp__level_waves_open(context, &s->p->problem, 0, &w);
    if (status < 0)
        return status;
    status = s->make(context, &w);
    hbp__level_waves_close(&w);
    return status;
}

/* Failing allocations and cancelling. */
static inline void sweep_level(level_maker *make)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(99, 0, 0);
    hbp_graph *graph = random_graph(context, &rng, &(graph_sizes){.tasks = 6, .all_tasks = 1, .chain = 20});
    planned p;
    open_planned(context, graph, 8, &p);
    swept s = {&p, make};
    failing_sweep(make_level, &s);
    ck_assert_int_ge(cancel_sweep(make_level, &s), 3);
    close_planned(&p);
    hbp_graph_free(graph);
    hbp_context_free(context);
}

#endif
