/* Steps of many kinds with a builder, boards of them, and what every board must be. */
#ifndef HBP_TESTS_STEP_BOARDS_H
#define HBP_TESTS_STEP_BOARDS_H

#include <math.h>

#include "costs.h"
#include "failing.h"
#include "small_steps.h"
#include "step/builder.h"

/* After the small kinds: more sequences than an optimum can be had of. */
enum { GROUND_LONG = SMALL_KINDS, GROUND_UNEVEN, GROUND_KINDS };

typedef struct ground {
    small_step small; /* its lengths only in the small kinds */
    hbp__step step;
    hbp__step_builder builder;
    hbp__rng rng;
} ground;

/* Degrees of which some do not divide the next; a GPU holds 5000 tokens, 10000 when it recomputes. */
static inline hbp_cost *ground_uneven_cost(hbp_context *context)
{
    static const int32_t degree[] = {1, 2, 3, 6, 12, 24};
    static const double latency[] = {0, 1e5, 1e5, 1e5, 2e5, 2e5}, per_token[] = {0, 300, 200, 200, 900, 900};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 24;
    t.domain_ranks = 6;
    t.layers = 2;
    t.ns_per_token = 10000;
    t.ns_per_token_squared = 1;
    t.recompute_linear = t.recompute_attention = .3;
    t.pack_ns = 1e6;
    t.activation_bytes = 2;
    t.recomputed_bytes = 1;
    t.limit_bytes = 20000;
    t.degrees = 6;
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

static inline void ground_draw(ground *g, uint64_t seed, int kind, int64_t most)
{
    if (kind < SMALL_KINDS) {
        g->small = small_open(seed, kind, seed % 2 ? 16 : 8, most < EXACT_SEQUENCES ? most : EXACT_SEQUENCES,
                              most < EXACT_SEQUENCES ? 1e9 : 1e300);
        if (seed % 7 == 3 && g->small.cost)
            g->small.options.min_sp = 2;
        return;
    }
    hbp_context *context = test_context();
    g->small = (small_step){.context = context, .options = {.struct_size = sizeof g->small.options}};
    g->small.cost =
        kind == GROUND_LONG ? test_cost_ranks(context, seed % 2 ? 16 : 64) : ground_uneven_cost(context);
    g->small.options.any_degree = 1;
    g->small.lengths =
        test_long_tail(context, seed, 20 + hbp__rng_below(&g->rng, 130), kind == GROUND_LONG ? 60000 : 30000);
}

/* Step `seed` of a kind, of the small ones with at most `most` sequences; its builder has work enough for
 * anything. */
static inline void ground_open(ground *g, uint64_t seed, int kind, int64_t most)
{
    g->rng = hbp__rng_make(seed, (uint64_t)kind, 91);
    ground_draw(g, seed, kind, most);
    small_step *s = &g->small;
    OK(s->context, hbp__step_open(s->context, s->lengths, s->cost, &s->options, &g->step));
    OK(s->context, hbp__step_builder_open(&g->step, &g->builder));
    g->builder.work_limit = INT64_MAX / 2;
}

static inline void ground_close(ground *g)
{
    hbp__step_close(&g->step);
    small_close(&g->small);
}

/* Every sequence into the pool. */
static inline void ground_pool_all(ground *g)
{
    hbp__step_pool *pool = &g->builder.pool;
    pool->count = g->step.count;
    for (int64_t k = 0; k < g->step.count; k++)
        pool->member[k] = k;
    hbp__step_pool_sum(&g->step, pool);
}

/* The least time of sequence k alone. */
static inline double ground_alone(const hbp__step *step, int64_t k)
{
    double least = (double)INFINITY;
    for (int32_t j = 0; j < step->degrees; j++)
        if (step->tokens[k] <= step->degree[j].capacity) {
            double time = hbp__step_group_time(
                step, j, (hbp__load){.tokens = step->tokens[k], .squares = step->squares[k]});
            least = time < least ? time : least;
        }
    return least;
}

static inline hbp__step_style ground_style(ground *g)
{
    int32_t grain = (int32_t)hbp__rng_below(&g->rng, (uint64_t)g->step.degrees);
    int32_t spread = (int32_t)hbp__rng_below(&g->rng, 2);
    uint64_t skip = hbp__rng_below(&g->rng, 2) ? hbp__rng_below(&g->rng, 64) : 0;
    return (hbp__step_style){.grain = grain, .spread = spread, .skip = skip};
}

/* A board of all sequences, each micro-batch filled within a random makespan; micro-batches without any stand
 * between. Room for two for each sequence and four more. */
static inline void ground_board(ground *g, hbp__step_board *board)
{
    hbp__step_builder *b = &g->builder;
    OK(g->small.context, hbp__step_board_open(&g->step, 2 * g->step.count + 4, board));
    ground_pool_all(g);
    while (b->pool.count) {
        double goal = ground_alone(&g->step, b->pool.member[0]) * small_between(&g->rng, 1, 2.5);
        int64_t m = board->micro_batches++;
        if (!hbp__rng_below(&g->rng, 6)) {
            board->groups[m] = 0;
            board->makespan[m] = b->fixed;
            m = board->micro_batches++;
        }
        int64_t before = b->pool.count;
        hbp__step_fill(&b->filler, &b->pool, board, m, goal, ground_style(g));
        ck_assert_int_lt(b->pool.count, before);
    }
}

static inline void board_check_group(const hbp__step *step, const hbp__step_board *board, int64_t g,
                                     int64_t *times)
{
    const hbp__step_group *group = &board->group[g];
    int64_t tokens = 0;
    double squares = 0, time = step->cost->terms.pack_ns;
    ck_assert(group->degree >= 0 && group->degree < step->degrees);
    for (int64_t k = group->head; k != HBP__NONE; k = board->next[k]) {
        ck_assert(k >= 0 && k < step->count);
        ck_assert_int_eq(board->home[k], g);
        ck_assert_int_eq(times[k]++, 0);
        tokens += step->tokens[k];
        squares += step->squares[k];
    }
    ck_assert_int_eq(group->load.tokens, tokens);
    ck_assert_double_eq(group->load.squares, squares);
    ck_assert_int_le(hbp__round_up(tokens, step->options.pack_multiple),
                     step->degree[group->degree].capacity);
    if (tokens)
        time = hbp__step_group_time(step, group->degree, (hbp__load){.tokens = tokens, .squares = squares});
    ck_assert_double_eq(group->time, time);
}

/* Micro-batch m has its groups' ranks, sums and times; `times` [count] counts how often it has each sequence.
 */
static inline void board_check_one(const hbp__step *step, const hbp__step_board *board, int64_t m,
                                   int64_t *times)
{
    int32_t degree[64];
    double slowest = step->cost->terms.pack_ns;
    ck_assert(board->groups[m] >= 0 && board->groups[m] <= board->ranks);
    for (int64_t i = 0; i < board->groups[m]; i++) {
        const hbp__step_group *group = &board->group[m * board->ranks + i];
        board_check_group(step, board, m * board->ranks + i, times);
        degree[i] = group->degree;
        slowest = group->time > slowest ? group->time : slowest;
    }
    if (board->groups[m] || board->makespan[m] > 0) /* without any it may be going to be dropped */
        ck_assert_double_eq(board->makespan[m], slowest);
    ck_assert(hbp__step_place(step, degree, board->groups[m], NULL));
}

/* The board has every sequence once, but none of `absent` [absents]. */
static inline void board_check(const hbp__step *step, const hbp__step_board *board, const int64_t *absent,
                               int64_t absents)
{
    int64_t *times = calloc((size_t)step->count + 1, sizeof *times);
    ck_assert_ptr_nonnull(times);
    double sum = 0;
    for (int64_t m = 0; m < board->micro_batches; m++) {
        board_check_one(step, board, m, times);
        sum += board->makespan[m];
    }
    ck_assert_double_eq(hbp__step_board_time(board), sum);
    for (int64_t i = 0; i < absents; i++)
        ck_assert_int_eq(times[absent[i]]++, 0);
    for (int64_t k = 0; k < step->count; k++)
        ck_assert_msg(times[k] == 1, "sequence %d is there %d times", (int)k, (int)times[k]);
    free(times);
}

/* Micro-batch a of one board is b of the other, member for member. */
static inline void board_same_one(const hbp__step_board *x, int64_t a, const hbp__step_board *y, int64_t b)
{
    ck_assert_int_eq(x->groups[a], y->groups[b]);
    ck_assert_double_eq(x->makespan[a], y->makespan[b]);
    for (int64_t i = 0; i < x->groups[a]; i++) {
        const hbp__step_group *p = &x->group[a * x->ranks + i], *q = &y->group[b * y->ranks + i];
        ck_assert_int_eq(p->degree, q->degree);
        ck_assert_int_eq(p->load.tokens, q->load.tokens);
        ck_assert_double_eq(p->load.squares, q->load.squares);
        ck_assert_double_eq(p->time, q->time);
        int64_t k = p->head;
        ck_assert_int_eq(k, q->head);
        for (; k != HBP__NONE; k = x->next[k]) {
            ck_assert_int_eq(x->next[k], y->next[k]);
            ck_assert_int_eq(x->home[k], a * x->ranks + i);
            ck_assert_int_eq(y->home[k], b * y->ranks + i);
        }
    }
}

static inline void board_same(const hbp__step_board *x, const hbp__step_board *y)
{
    ck_assert_int_eq(x->micro_batches, y->micro_batches);
    for (int64_t m = 0; m < x->micro_batches; m++)
        board_same_one(x, m, y, m);
}

/* A copy with room of its own. */
static inline void board_remember(const hbp__step *step, const hbp__step_board *board, hbp__step_board *copy)
{
    OK(step->context, hbp__step_board_open(step, board->micro_batches + 1, copy));
    hbp__step_board_copy(step, board, copy);
}

typedef struct board_call {
    hbp_lengths *lengths;
    hbp_cost *cost;
    int (*build)(hbp__step_builder *builder, hbp__step_board *board);
} board_call;

static inline hbp_status board_call_once(hbp_context *context, void *user)
{
    const board_call *call = user;
    hbp__step step;
    hbp__step_builder builder;
    hbp__step_board board = {.ranks = 0};
    hbp_status status = hbp__step_open(context, call->lengths, call->cost, NULL, &step);
    if (status >= 0) {
        status = hbp__step_builder_open(&step, &builder);
        builder.work_limit = INT64_MAX / 2;
        if (status >= 0)
            status = hbp__step_board_open(&step, step.count, &board);
        if (status >= 0 && !call->build(&builder, &board)) {
            status = builder.status;
            ck_assert_int_eq(status, HBP_E_CANCELLED);
        } else if (status >= 0)
            board_check(&step, &board, NULL, 0);
    }
    hbp__step_close(&step);
    return status;
}

/* Failing allocations and a cancel at every report leave nothing behind, whatever builds `count` sequences.
 */
static inline void board_fails_cleanly(int (*build)(hbp__step_builder *builder, hbp__step_board *board),
                                       int64_t count)
{
    hbp_context *context = test_context();
    board_call call = {test_long_tail(context, 1, count, 60000), test_cost(context), build};
    ck_assert_int_gt(cancel_sweep(board_call_once, &call), 3);
    failing_sweep(board_call_once, &call);
    hbp_lengths_free(call.lengths);
    hbp_cost_free(call.cost);
    hbp_context_free(context);
}

#endif
