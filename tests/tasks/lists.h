/* Lists of pieces for tests: random ones, and whether they are sound. */
#ifndef HBP_TESTS_TASKS_LISTS_H
#define HBP_TESTS_TASKS_LISTS_H

#include "graphs.h"
#include "tasks/overlap/overlap_pieces.h"
#include "tasks/planned.h"

/* Pieces of random sizes in a random order that precedence allows. */
static inline void random_list(const hbp__scheduler *scheduler, hbp__rng *rng, hbp__piece_list *list)
{
    const hbp__meta_graph *meta = scheduler->problem->meta;
    int32_t *done = calloc((size_t)meta->count, sizeof *done), left = meta->operator_count;
    list->count = 0;
    while (left > 0) {
        int32_t m = (int32_t)hbp__rng_below(rng, (uint64_t)meta->count),
                ready = done[m] < meta->meta_op[m].count;
        for (int64_t e = 0; e < meta->edge_count; e++)
            ready = ready && (meta->edges[e].to != m ||
                              done[meta->edges[e].from] == meta->meta_op[meta->edges[e].from].count);
        if (!ready)
            continue;
        const hbp__curve *c = scheduler->curve[m];
        int32_t size = (int32_t)hbp__rng_below(rng, (uint64_t)c->sizes);
        int32_t count = (int32_t)random_between(rng, 1, meta->meta_op[m].count - done[m]);
        ck_assert_int_lt(list->count, scheduler->room);
        list->piece[list->count++] =
            (hbp__piece){.meta_op = m, .size = size, .gpus = c->size[size], .count = count};
        done[m] += count;
        left -= count;
    }
    free(done);
}

/* As slices, for check_slices; the caller closes them. */
static inline hbp__task_slices slices_of(hbp_context *context, const hbp__scheduler *scheduler,
                                         const hbp__piece_list *list)
{
    hbp__task_slices slices = {0};
    int32_t *first = calloc((size_t)scheduler->meta_ops, sizeof *first);
    for (int32_t i = 0; i < list->count; i++) {
        const hbp__piece *p = &list->piece[i];
        OK(context, hbp__task_slices_add(context, &slices,
                                         &(hbp__task_slice){p->meta_op, first[p->meta_op], p->count, p->gpus,
                                                            0, p->start_ns, p->end_ns}));
        first[p->meta_op] += p->count;
    }
    free(first);
    OK(context, hbp__task_waves(context, scheduler->problem, &slices, NULL));
    return slices;
}

/* A sound schedule of everything, with true sums. */
static inline void check_list(hbp_context *context, const planned *p, const hbp__scheduler *scheduler,
                              const hbp__piece_list *list)
{
    hbp__task_slices slices = slices_of(context, scheduler, list);
    check_slices(p, &slices);
    ck_assert_int_eq(slices.makespan_ns, list->makespan_ns);
    hbp__task_slices_close(&slices);
    int64_t area = 0, ends = 0;
    for (int32_t i = 0; i < list->count; i++) {
        area += (list->piece[i].end_ns - list->piece[i].start_ns) * list->piece[i].gpus;
        ends += list->piece[i].end_ns;
    }
    ck_assert_int_eq(area, list->area_ns);
    ck_assert_int_eq(ends, list->ends_ns);
}

/* A random problem and two lists. */
typedef struct bench {
    hbp_context *context;
    hbp_graph *graph;
    planned planned;
    hbp__scheduler scheduler;
    hbp__piece_list list;
    hbp__piece_list other;
} bench;

static inline void bench_open(bench *b, hbp__rng *rng, const graph_sizes *sizes)
{
    b->context = test_context();
    b->graph = random_graph(b->context, rng, sizes);
    open_planned(b->context, b->graph, (int32_t)random_between(rng, 4, 16), &b->planned);
    OK(b->context, hbp__scheduler_open(b->context, &b->planned.problem,
                                       2 * b->planned.meta.operator_count + 8, &b->scheduler));
    OK(b->context, hbp__pieces_open(b->context, &b->scheduler, &b->list));
    OK(b->context, hbp__pieces_open(b->context, &b->scheduler, &b->other));
}

static inline void bench_close(bench *b)
{
    close_planned(&b->planned);
    hbp_graph_free(b->graph);
    hbp_context_free(b->context);
}

#endif
