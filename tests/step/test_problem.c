/* The problem of a step as laid out from lengths, cost and options. */
#include <math.h>

#include "base/methods.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"
#include "small_steps.h"
#include "step/step.h"

typedef struct laid {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_step_options options;
} laid;

static laid open_laid(hbp_context *context, uint64_t seed, int64_t count)
{
    laid l = {.context = context, .options = {.struct_size = sizeof l.options}};
    l.cost = keep(test_cost(context));
    l.lengths = keep(test_long_tail(context, seed, count, 40000));
    return l;
}

static void open_step(const laid *l, hbp__step *step)
{
    OK(l->context, hbp__step_open(l->context, l->lengths, l->cost, &l->options, step));
}

/* A cost of `degrees` degrees without communication, on 24 ranks in domains of 12. */
static hbp_cost *plain_cost(hbp_context *context, const int32_t *degree, int32_t degrees, int32_t layers)
{
    double zero[HBP__STEP_DEGREES] = {0};
    hbp_cost_terms t = {.struct_size = sizeof t,
                        .ranks = 24,
                        .domain_ranks = 12,
                        .layers = layers,
                        .ns_per_token = 1000,
                        .ns_per_token_squared = 1,
                        .recompute_linear = .3,
                        .recompute_attention = .3,
                        .activation_bytes = 1000.0 / layers,
                        .recomputed_bytes = 100.0 / layers,
                        .limit_bytes = 10000000,
                        .degrees = degrees,
                        .degree = degree,
                        .sp_latency_ns = zero,
                        .sp_ns_per_token = zero};
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

START_TEST_IN_CONTEXT(defaults_are_filled_in)
{
    laid l = open_laid(context, 1, 30);
    hbp__step step;
    open_step(&l, &step);
    const hbp_step_options *o = &step.options;
    ck_assert_int_eq(o->effort, 1);
    ck_assert_int_eq(o->min_sp, 1);
    ck_assert_int_eq(o->max_sp, INT32_MAX);
    ck_assert_int_eq(o->micro_batch_multiple, 1);
    ck_assert_int_eq(o->buckets, -1);
    ck_assert_int_eq(o->sequence_multiple, 1);
    ck_assert_int_eq(o->pack_multiple, 1);
    ck_assert_int_eq(step.deadline_ns, 0);
    ck_assert_int_eq(hbp__step_is_late(&step), 0);
    ck_assert_int_eq(step.ranks, 16);
    ck_assert_int_eq(step.domain, 8);
    ck_assert_int_eq(step.chain, 1);
    ck_assert_int_eq(step.degrees, TEST_DEGREES);
    hbp__step_close(&step);
    l.options.method = hbp__step_name(HBP__STEP_FLEXSP);
    open_step(&l, &step);
    ck_assert_int_eq(step.options.buckets, 16);
    hbp__step_close(&step);
}
END_TEST

START_TEST_IN_CONTEXT(degrees_follow_the_options)
{
    static const int32_t degree[] = {1, 2, 3, 4, 6, 12, 24};
    static const struct {
        int32_t any_degree, min_sp, max_sp, listed[7], count, chain;
    } row[] = {{0, 0, 0, {1, 2, 4}, 3, 1},   {0, 2, 3, {2}, 1, 1},
               {0, 3, 7, {4}, 1, 1},         {1, 0, 0, {1, 2, 3, 4, 6, 12, 24}, 7, 0},
               {1, 6, 0, {6, 12, 24}, 3, 1}, {1, 3, 5, {3, 4}, 2, 0}};
    laid l = open_laid(context, 2, 10);
    MAKES(context, l.lengths,
          hbp_lengths_create_u32(context, (uint32_t[]){100, 7000, 3}, 3, NULL, &l.lengths));
    l.cost = keep(plain_cost(l.context, degree, 7, 4));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        hbp__step step;
        l.options.any_degree = row[i].any_degree;
        l.options.min_sp = row[i].min_sp;
        l.options.max_sp = row[i].max_sp;
        open_step(&l, &step);
        ck_assert_int_eq(step.degrees, row[i].count);
        for (int32_t j = 0; j < step.degrees; j++) {
            ck_assert_int_eq(step.degree[j].degree, row[i].listed[j]);
            ck_assert_int_eq(degree[step.degree[j].row], row[i].listed[j]);
        }
        ck_assert_int_eq(step.chain, row[i].chain);
        ck_assert_int_eq(step.taken == NULL, row[i].chain);
        hbp__step_close(&step);
    }
}
END_TEST

/* The fewest layers that fit, as the cost has it, at every border of capacity; and the time that plans
 * record, but for rounding. */
static void check_ways(const hbp__step *step, int32_t j)
{
    const hbp__step_degree *d = &step->degree[j];
    int64_t multiple = step->options.pack_multiple;
    ck_assert_int_eq(d->capacity, d->way[d->ways - 1].capacity);
    for (int32_t w = 0; w < d->ways; w++) {
        ck_assert(!w || (d->way[w].capacity > d->way[w - 1].capacity &&
                         d->way[w].recompute > d->way[w - 1].recompute));
        ck_assert_int_eq(d->way[w].capacity % multiple, 0);
        for (int64_t tokens = d->way[w].capacity - multiple + 1; tokens <= d->way[w].capacity + 1; tokens++) {
            int64_t padded = hbp__round_up(tokens, multiple);
            double squares = (double)tokens * (double)tokens / 3;
            int32_t recompute = hbp_cost_predict_recompute(step->cost, d->degree, padded);
            int64_t ns = hbp__step_group_ns(step, j, (hbp__load){.tokens = tokens, .squares = squares});
            if (padded > d->capacity) {
                ck_assert_int_eq(ns, INT64_MAX);
                continue;
            }
            if (step->options.recompute != HBP_STEP_RECOMPUTE_AUTO)
                recompute = d->way[0].recompute;
            ck_assert_int_eq(hbp__step_find_way(d, padded)->recompute, recompute);
            ck_assert_int_eq(ns,
                             hbp_cost_predict_pack_ns(step->cost, d->degree, recompute, padded, squares, 0));
            double time = hbp__step_group_time(step, j, (hbp__load){.tokens = tokens, .squares = squares});
            ck_assert_double_le(fabs(time - (double)ns), 1 + 1e-12 * time);
        }
    }
}

START_TEST(ways_are_the_cost)
{
    for (uint64_t i = 0; i < 180; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, 20, 1e99);
        s.options.recompute = (int32_t)(i / 9 % 3);
        s.options.pack_multiple = i % 4 ? s.options.pack_multiple : 64;
        hbp__step step;
        hbp_status status = hbp__step_open(s.context, s.lengths, s.cost, &s.options, &step);
        ck_assert(status == HBP_OK || status == HBP_E_INFEASIBLE);
        for (int32_t j = 0; j < step.degrees; j++)
            check_ways(&step, j);
        hbp__step_close(&step);
        small_close(&s);
    }
}
END_TEST

/* Of more layers than ways are kept: first and last are there, and a way is never too small. */
START_TEST_IN_CONTEXT(many_layers_are_thinned_out)
{
    laid l = open_laid(context, 3, 10);
    l.lengths = keep(test_long_tail(l.context, 3, 10, 9000));
    l.cost = keep(plain_cost(l.context, (int32_t[]){1, 2}, 2, 1000));
    hbp__step step;
    open_step(&l, &step);
    for (int32_t j = 0; j < 2; j++) {
        const hbp__step_degree *d = &step.degree[j];
        ck_assert_int_le(d->ways, HBP__STEP_WAYS);
        ck_assert_int_gt(d->ways, HBP__STEP_WAYS / 4);
        ck_assert_int_eq(d->way[0].recompute, 0);
        ck_assert_int_eq(d->way[d->ways - 1].recompute, 1000);
        for (int64_t tokens = 1; tokens <= d->capacity; tokens += 97) {
            const hbp__point *way = hbp__step_find_way(d, tokens);
            ck_assert_int_ge(way->capacity, tokens);
            ck_assert(way == d->way || way[-1].capacity < tokens);
        }
    }
    hbp__step_close(&step);
}
END_TEST

/* Any number of layers around those that need thinning has its first and its last way, and no more than there
 * is room for. */
START_TEST_IN_CONTEXT(every_number_of_layers_has_room)
{
    int mark = keep_mark();
    for (int32_t layers = 250; layers <= 1300; layers += layers < 264 || layers > 500 ? 1 : 13) {
        laid l = open_laid(context, 3, 10);
        l.lengths = keep(test_long_tail(l.context, 3, 10, 9000));
        l.cost = keep(plain_cost(l.context, (int32_t[]){1}, 1, layers));
        hbp__step step;
        open_step(&l, &step);
        const hbp__step_degree *d = &step.degree[0];
        ck_assert_int_le(d->ways, HBP__STEP_WAYS);
        ck_assert_int_gt(d->ways, HBP__STEP_WAYS / 4);
        if (layers < HBP__STEP_WAYS - 2)
            ck_assert_int_eq(d->ways, layers + 1);
        ck_assert_int_eq(d->way[0].recompute, 0);
        ck_assert_int_eq(d->way[d->ways - 1].recompute, layers);
        hbp__step_close(&step);
        keep_release(mark);
    }
}
END_TEST

/* Longest first, with padding, linked samples together and squares without padding. */
START_TEST_IN_CONTEXT(sequences_descend)
{
    laid l = open_laid(context, 4, 10);
    uint32_t length[] = {100, 257, 100, 5, 300, 64};
    int64_t link[] = {3, -1, 9, 3, -1, 9};
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    MAKES(context, l.lengths, hbp_lengths_create_u32(context, length, 6, &links, &l.lengths));
    l.options.sequence_multiple = 64;
    hbp__step step;
    open_step(&l, &step);
    int64_t tokens[] = {320, 320, 192, 192};
    ck_assert_int_eq(step.count, 4);
    ck_assert_int_eq(step.total_tokens, 1024);
    double squares = 0;
    for (int64_t i = 0; i < 4; i++) {
        ck_assert_int_eq(step.tokens[i], tokens[i]);
        squares += step.squares[i];
    }
    ck_assert_double_eq(step.squares[0] + step.squares[1], 257.0 * 257 + 300.0 * 300);
    ck_assert_double_eq(squares, 257.0 * 257 + 300.0 * 300 + 2 * 100.0 * 100 + 25 + 64 * 64);
    hbp__step_close(&step);
}
END_TEST

/* Without lengths there are the degrees alone. */
START_TEST_IN_CONTEXT(lengths_may_be_left_out)
{
    laid l = open_laid(context, 8, 10);
    hbp__step step, bare;
    open_step(&l, &step);
    OK(l.context, hbp__step_open(l.context, NULL, l.cost, &l.options, &bare));
    ck_assert_int_eq(bare.count, 0);
    ck_assert_int_eq(bare.degrees, step.degrees);
    for (int32_t j = 0; j < bare.degrees; j++)
        ck_assert_int_eq(bare.degree[j].capacity, step.degree[j].capacity);
    hbp__step_close(&bare);
    hbp__step_close(&step);
}
END_TEST

START_TEST_IN_CONTEXT(a_deadline_passes)
{
    laid l = open_laid(context, 5, 10);
    hbp__step step;
    l.options.time_limit_ms = INT64_C(1) << 40;
    open_step(&l, &step);
    ck_assert_int_gt(step.deadline_ns, 0);
    ck_assert_int_eq(hbp__step_is_late(&step), 0);
    step.deadline_ns = 1;
    ck_assert_int_ne(hbp__step_is_late(&step), 0);
    hbp__step_close(&step);
    l.options.time_limit_ms++;
    FAILS(l.context, HBP_E_INVALID, "time_limit_ms",
          hbp__step_open(l.context, l.lengths, l.cost, &l.options, &step));
    hbp__step_close(&step);
}
END_TEST

START_TEST_IN_CONTEXT(too_many_degrees_are_refused)
{
    static int32_t degree[70];
    double zero[70] = {0};
    laid l = open_laid(context, 6, 5);
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_cost *cost = NULL;
    OK(l.context, hbp_cost_get_terms(l.context, l.cost, &t));
    t.ranks = t.domain_ranks = 221760; /* 168 divisors */
    t.degrees = 0;
    for (int32_t d = 1; t.degrees < 70; d++)
        if (t.ranks % d == 0)
            degree[t.degrees++] = d;
    t.degree = degree;
    t.sp_latency_ns = t.sp_ns_per_token = zero;
    OK(l.context, hbp_cost_create_terms(l.context, &t, &cost));
    hbp__step step;
    l.options.any_degree = 1;
    FAILS(l.context, HBP_E_INVALID, "more than 64 degrees",
          hbp__step_open(l.context, l.lengths, cost, &l.options, &step));
    hbp__step_close(&step);
    hbp_cost_free(cost);
}
END_TEST

static hbp_status open_once(hbp_context *context, void *user)
{
    laid *l = user;
    hbp__step step;
    hbp_status status = hbp__step_open(context, l->lengths, l->cost, &l->options, &step);
    hbp__step_close(&step);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    laid l = open_laid(context, 7, 50);
    failing_sweep(open_once, &l);
    l.cost = keep(plain_cost(l.context, (int32_t[]){1, 2, 3}, 3, 4));
    l.lengths = keep(test_long_tail(l.context, 7, 50, 9000));
    l.options.any_degree = 1;
    failing_sweep(open_once, &l);
}
END_TEST

TEST_MAIN("problem", defaults_are_filled_in, degrees_follow_the_options, ways_are_the_cost,
          many_layers_are_thinned_out, every_number_of_layers_has_room, sequences_descend,
          lengths_may_be_left_out, a_deadline_passes, too_many_degrees_are_refused, nothing_is_left_behind)
