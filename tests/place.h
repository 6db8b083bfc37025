/* Slices to place, for tests: of random graphs, started at random; and what a placement must keep. */
#ifndef HBP_TESTS_PLACE_H
#define HBP_TESTS_PLACE_H

#include "data/tasks/flow.h"
#include "data/tasks/rank_states.h"
#include "data/tasks/task_flows.h"
#include "graphs.h"
#include "tasks/place/place.h"
#include "tasks/place/place_board.h"

/* hbp__place_slices, with the message of slices that do not fit. */
static inline hbp_status place_slices(hbp_context *context, const hbp__task_problem *problem,
                                      const hbp__task_slices *slices, int32_t placement,
                                      const hbp_task_schedule *previous, int32_t *ranks)
{
    hbp__misfit misfit;
    hbp_status status = hbp__place_slices(context, problem, slices, placement, previous, ranks, &misfit);
    return status == HBP_E_INFEASIBLE ? hbp__misfit_fail(context, &misfit) : status;
}

/* A graph with all that placing needs, and slices. */
typedef struct place_case {
    hbp_context *context;
    hbp_graph *graph;
    hbp__meta_graph meta;
    hbp__scaling scaling;
    hbp__task_problem problem;
    hbp__task_slices slices;
    int64_t *first; /* [slices + 1] where a slice's ranks begin */
    int32_t *ranks; /* [first[slices]] */
} place_case;

/* Starts MetaOps that are ready, drawn at random, pieces of random lengths on random sizes, until all have
 * run. */
static inline void add_random_slices(place_case *c, hbp__rng *rng)
{
    int32_t count = c->meta.count, left = c->graph->operator_count, running = 0, idle = c->problem.gpus;
    int32_t *done = calloc((size_t)count, sizeof *done), *gpus = calloc((size_t)count, sizeof *gpus);
    int64_t *end = calloc((size_t)count, sizeof *end), now = 0;
    while (left || running) {
        for (int32_t tries = 0; left && (tries < 2 * count || !running); tries++) {
            int32_t m = (int32_t)hbp__rng_below(rng, (uint64_t)count), ready = !gpus[m];
            for (int64_t e = c->meta.in_first[m]; e < c->meta.in_first[m + 1]; e++) {
                int32_t before = c->meta.edges[c->meta.in_edges[e]].from;
                ready &= done[before] == c->meta.meta_op[before].count && !gpus[before];
            }
            const hbp__curve *curve = hbp__meta_curve(&c->scaling, m);
            int32_t fitting = hbp__curve_floor(curve, idle), rest = c->meta.meta_op[m].count - done[m];
            if (!ready || !rest || fitting < 0)
                continue;
            int32_t size = (int32_t)random_between(rng, 0, fitting);
            int32_t piece = (int32_t)random_between(rng, 1, rest);
            gpus[m] = curve->size[size];
            end[m] = now + piece * curve->time_ns[size];
            hbp__task_slice slice = {m, done[m], piece, gpus[m], 0, now, end[m]};
            OK(c->context, hbp__task_slices_add(c->context, &c->slices, &slice));
            done[m] += piece;
            left -= piece;
            idle -= gpus[m];
            running++;
        }
        now = INT64_MAX;
        for (int32_t m = 0; m < count; m++)
            if (gpus[m] && end[m] < now)
                now = end[m];
        for (int32_t m = 0; m < count; m++)
            if (gpus[m] && end[m] == now) {
                idle += gpus[m];
                gpus[m] = 0;
                running--;
            }
    }
    free(done);
    free(gpus);
    free(end);
    OK(c->context, hbp__task_waves(c->context, &c->problem, &c->slices, NULL));
}

/* Takes over the graph. Slices are still to be added. */
static inline void open_case(hbp_context *context, hbp_graph *graph, int32_t gpus, int32_t domain_gpus,
                             int64_t limit_bytes, place_case *c)
{
    *c = (place_case){.context = context, .graph = graph, .slices = {.memory = hbp__memory_default()}};
    OK(context, hbp__meta_graph_open(context, graph, &c->meta));
    OK(context, hbp__scaling_open(context, graph, &c->meta, gpus, &c->scaling));
    c->problem = (hbp__task_problem){graph, &c->meta, &c->scaling, gpus, domain_gpus, limit_bytes, 7, 0, 0};
}

/* Once slices are there. */
static inline void ready_case(place_case *c)
{
    c->first = malloc(((size_t)c->slices.count + 1) * sizeof *c->first);
    c->first[0] = 0;
    for (int64_t s = 0; s < c->slices.count; s++)
        c->first[s + 1] = c->first[s] + c->slices.slice[s].gpus;
    c->ranks = malloc((size_t)(c->first[c->slices.count] + 1) * sizeof *c->ranks);
    memset(c->ranks, 0xff, (size_t)c->first[c->slices.count] * sizeof *c->ranks);
}

static inline void open_random_case(hbp_context *context, hbp__rng *rng, const graph_sizes *sizes,
                                    int32_t gpus, int32_t domain_gpus, int64_t limit_bytes, place_case *c)
{
    open_case(context, random_graph(context, rng, sizes), gpus, domain_gpus, limit_bytes, c);
    add_random_slices(c, rng);
    ready_case(c);
}

static inline void close_case(place_case *c)
{
    hbp__task_slices_close(&c->slices);
    hbp__scaling_close(&c->scaling);
    hbp__meta_graph_close(&c->meta);
    hbp_graph_free(c->graph);
    free(c->first);
    free(c->ranks);
}

/* Bytes of the fullest rank, by data/tasks/rank_states.h; each rank's go to `bytes` [gpus], which may be
 * NULL. */
static inline int64_t peak_of(place_case *c, const int32_t *ranks, int64_t *bytes)
{
    hbp__rank_states states;
    int64_t peak = 0;
    OK(c->context,
       hbp__rank_states_open(c->context, c->graph, &c->meta, &c->slices, ranks, c->problem.gpus, &states));
    for (int32_t r = 0; r < c->problem.gpus; r++) {
        hbp__rank_states_read(&states, r);
        int64_t sum = states.activation_bytes;
        for (int32_t i = 0; i < states.held_count; i++)
            sum += states.bytes[states.held[i]];
        peak = sum > peak ? sum : peak;
        if (bytes)
            bytes[r] = sum;
    }
    hbp__rank_states_close(&states);
    return peak;
}

/* Flows as summaries count them: all bytes, those that leave their rank, those that leave their domain. */
typedef struct flow_sums {
    int64_t bytes;
    int64_t moved;
    int64_t crossing;
} flow_sums;

static inline flow_sums flows_of(place_case *c, const int32_t *ranks)
{
    hbp__task_flows flows;
    flow_sums sums = {0, 0, 0};
    OK(c->context, hbp__task_flows_open(c->context, c->graph, &c->meta, &c->slices, &flows));
    for (int64_t f = 0; f < flows.count; f++) {
        const hbp__task_flow *flow = &flows.flow[f];
        hbp__flow b = hbp__flow_between(ranks + c->first[flow->from], c->slices.slice[flow->from].gpus,
                                        ranks + c->first[flow->to], c->slices.slice[flow->to].gpus,
                                        c->problem.domain_gpus, flow->bytes);
        sums.bytes += flow->bytes;
        sums.moved += b.moved;
        sums.crossing += b.crossing;
    }
    hbp__task_flows_close(&flows);
    return sums;
}

static inline int64_t weigh(flow_sums sums)
{
    return sums.moved + (HBP__CROSSING - 1) * sums.crossing;
}

/* Every slice has its number of different ranks, ascending, and no rank two slices at a time. */
static inline void check_ranks(const place_case *c, const int32_t *ranks)
{
    for (int64_t s = 0; s < c->slices.count; s++)
        for (int64_t i = c->first[s]; i < c->first[s + 1]; i++) {
            ck_assert_int_ge(ranks[i], 0);
            ck_assert_int_lt(ranks[i], c->problem.gpus);
            if (i > c->first[s])
                ck_assert_int_gt(ranks[i], ranks[i - 1]);
        }
    uint8_t *used = malloc((size_t)c->problem.gpus);
    for (int64_t s = 0; s < c->slices.count; s++) {
        const hbp__task_slice *a = &c->slices.slice[s];
        memset(used, 0, (size_t)c->problem.gpus);
        for (int64_t i = c->first[s]; i < c->first[s + 1]; i++)
            used[ranks[i]] = 1;
        for (int64_t t = 0; t < s; t++) {
            const hbp__task_slice *b = &c->slices.slice[t];
            if (b->end_ns <= a->start_ns || a->end_ns <= b->start_ns)
                continue;
            for (int64_t i = c->first[t]; i < c->first[t + 1]; i++)
                ck_assert_msg(!used[ranks[i]], "slices %d and %d both run on rank %d", (int)t, (int)s,
                              (int)ranks[i]);
        }
    }
    free(used);
}

/* What is on a board is what this case's ranks are, with true bytes and costs. */
static inline void check_board(place_case *c, hbp__board *board)
{
    hbp__board_write(board, c->ranks);
    check_ranks(c, c->ranks);
    int64_t cost = board->cost, over = board->over_bytes;
    int64_t *bytes = malloc((size_t)c->problem.gpus * sizeof *bytes);
    peak_of(c, c->ranks, bytes);
    for (int32_t r = 0; r < c->problem.gpus && c->problem.limit_bytes != INT64_MAX; r++)
        ck_assert_int_eq(board->rank_bytes[r], bytes[r]);
    hbp__board_measure(board);
    ck_assert_int_eq(board->cost, cost);
    ck_assert_int_eq(board->over_bytes, over);
    for (int32_t r = 0; r < c->problem.gpus; r++)
        ck_assert_int_eq(board->rank_bytes[r], bytes[r]);
    free(bytes);
}

#endif
