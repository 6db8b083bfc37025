/* The lower bound against exact optima of thousands of tiny steps. */
#include "exact_step.h"
#include "failing.h"
#include "small_steps.h"
#include "step/step.h"

enum { MOST_STEPS = 2700 };

#define STEPS TEST_FEW(MOST_STEPS, 540)

/* The options that change what is possible, differently in every step. */
static void vary(small_step *s, uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 77, 0);
    hbp_step_options *o = &s->options;
    o->max_micro_batches = hbp__rng_below(&rng, 4) ? 0 : 1 + (int32_t)hbp__rng_below(&rng, 2);
    o->min_micro_batches = hbp__rng_below(&rng, 4) ? 0 : 1 + (int32_t)hbp__rng_below(&rng, 4);
    if (o->max_micro_batches)
        o->min_micro_batches = 0;
    o->micro_batch_multiple = hbp__rng_below(&rng, 4) ? 0 : 1 + (int32_t)hbp__rng_below(&rng, 3);
    o->recompute = hbp__rng_below(&rng, 3) ? HBP_STEP_RECOMPUTE_AUTO : (int32_t)hbp__rng_below(&rng, 3);
    o->min_sp = hbp__rng_below(&rng, 6) ? 0 : 2;
    o->max_sp = hbp__rng_below(&rng, 6) ? 0 : 4;
}

static hbp_status bound_of(const small_step *s, int64_t upper_ns, int64_t *bound_ns)
{
    hbp__step step;
    hbp_status status = hbp__step_open(s->context, s->lengths, s->cost, &s->options, &step);
    if (status >= 0)
        status = hbp__step_bound(&step, upper_ns, bound_ns);
    hbp__step_close(&step);
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The best of what three upper times guide to; none may pass the optimum. A bound never passes the upper time
 * that it was given, so these lie above the optimum. */
static int64_t check_bounds(const small_step *s, int64_t i, int64_t best)
{
    const double factor[] = {1.003, 1.3, 8};
    int64_t most = 0;
    for (int k = 0; k < 3; k++) {
        int64_t bound_ns = -1;
        OK(s->context, bound_of(s, (int64_t)((double)best * factor[k]) + 1000, &bound_ns));
        ck_assert_msg(bound_ns >= 0 && bound_ns <= best, "step %d: the bound is %lld ns, the optimum %lld",
                      (int)i, (long long)bound_ns, (long long)best);
        most = bound_ns > most ? bound_ns : most;
    }
    return most;
}

/* Never above the optimum; and not so far below it that it says nothing. */
START_TEST(no_step_is_faster_than_its_bound)
{
    static double ratio[MOST_STEPS];
    int64_t count = 0;
    for (uint64_t i = 0; i < STEPS; i++) {
        static const int32_t ranks[] = {2, 4, 8, 16};
        small_step s = small_open(1000 + i, (int)(i % SMALL_KINDS), ranks[i / SMALL_KINDS % 4], 9, 2e4);
        vary(&s, i);
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        if (best != EXACT_NEVER)
            ratio[count++] = (double)check_bounds(&s, (int64_t)i, best) / (double)best;
        small_close(&s);
    }
    ck_assert_int_gt(count, STEPS / 2);
    qsort(ratio, (size_t)count, sizeof *ratio, compare);
    ck_assert_msg(ratio[count / 2] > .9, "the median bound is %.4f of the optimum", ratio[count / 2]);
    ck_assert_msg(ratio[count / 10] > .6, "a bound in ten is below %.4f of the optimum", ratio[count / 10]);
}
END_TEST

/* What must be run at least is in the bound. */
START_TEST(the_bound_counts_every_micro_batch)
{
    for (uint64_t i = 0; i < 90; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), 8, 12, 1e9);
        int64_t pack_ns = hbp_cost_predict_pack_ns(s.cost, 1, 0, 0, 0, 0), bound_ns = 0;
        s.options.min_micro_batches = 30;
        s.options.micro_batch_multiple = 7;
        OK(s.context, bound_of(&s, INT64_C(1000000000000000), &bound_ns));
        ck_assert_msg(bound_ns + 100 >= 35 * pack_ns, "step %d: bound %lld ns, 35 micro-batches %lld ns",
                      (int)i, (long long)bound_ns, (long long)(35 * pack_ns));
        small_close(&s);
    }
}
END_TEST

/* A single sequence on its best degree is all there is: the bound must see that. */
START_TEST(one_sequence_is_bounded_closely)
{
    for (uint64_t i = 0; i < 90; i++) {
        small_step s = small_open(i, (int)(i % SMALL_KINDS), i % 2 ? 16 : 8, 1, 1e9);
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e), bound_ns = 0;
        OK(s.context, bound_of(&s, best + best / 100, &bound_ns));
        ck_assert_int_le(bound_ns, best);
        ck_assert_msg((double)bound_ns >= .97 * (double)best, "step %d: bound %lld ns, optimum %lld", (int)i,
                      (long long)bound_ns, (long long)best);
        small_close(&s);
    }
}
END_TEST

/* A step with a cost of its own, without small_open's draws. */
static small_step open_step(const hbp_cost_terms *terms, const uint32_t *length, int64_t count)
{
    small_step s = {.context = test_context(), .options = {.struct_size = sizeof s.options}, .count = count};
    s.options.any_degree = 1;
    OK(s.context, hbp_cost_create_terms(s.context, terms, &s.cost));
    OK(s.context, hbp_lengths_create_u32(s.context, length, count, NULL, &s.lengths));
    return s;
}

/* Groups of 6 ranks hold what none of 4 would, and what remains for smaller ones falls and rises with the
 * ranks of the wide: a search over them that ends too soon rules the plan out. */
START_TEST(every_number_of_ranks_is_weighed)
{
    static const int32_t degree[] = {1, 2, 3, 4, 6};
    static const double latency[] = {799369.6, 0, 0, 0, 0};
    static const double per_token[] = {.00770355, .00132919, .00489001, .00307915, .00450411};
    static const uint32_t length[] = {439107, 50942, 49543, 6784, 431897, 101465, 21143, 6093};
    hbp_cost_terms t = {.struct_size = sizeof t, .ranks = 12, .domain_ranks = 12, .layers = 6};
    t.ns_per_token = .017091275;
    t.ns_per_token_squared = 8.929023e-6;
    t.recompute_linear = .137541;
    t.recompute_attention = .144573;
    t.recompute_communication = .250854;
    t.pack_ns = 1.3;
    t.static_bytes = 1e9;
    t.activation_bytes = 22716.73216;
    t.recomputed_bytes = 45433.46433;
    t.logits_bytes = 15144.48811;
    t.sp_buffer_bytes = 61965.06639;
    t.limit_bytes = INT64_C(21000000000);
    t.degrees = 5;
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    small_step s = open_step(&t, length, 8);
    s.options.max_micro_batches = 1;
    int64_t slowest = 0, bound_ns = 0;
    for (int g = 0; g < 2; g++) { /* the first four in one group, the rest in the other */
        int64_t tokens = 0;
        double squares = 0;
        for (int i = 4 * g; i < 4 * g + 4; i++) {
            tokens += length[i];
            squares += (double)length[i] * length[i];
        }
        ck_assert_int_ge(hbp_cost_predict_capacity(s.cost, 6, 0), tokens);
        slowest = exact_max(slowest, hbp_cost_predict_pack_ns(s.cost, 6, 0, tokens, squares, 0));
    }
    OK(s.context, bound_of(&s, slowest + slowest / 50, &bound_ns));
    ck_assert_msg(bound_ns <= slowest, "the bound is %lld ns, a plan takes %lld", (long long)bound_ns,
                  (long long)slowest);
    small_close(&s);
}
END_TEST

static hbp_cost_terms one_rank(const double *none)
{
    static const int32_t degree[] = {1};
    hbp_cost_terms t = {.struct_size = sizeof t, .ranks = 1, .layers = 1, .degrees = 1, .degree = degree};
    t.sp_latency_ns = t.sp_ns_per_token = none;
    t.activation_bytes = t.recomputed_bytes = 1;
    t.limit_bytes = 1000000000;
    return t;
}

/* Rounding may take all there is off every micro-batch. */
START_TEST(less_than_half_a_nanosecond_is_nothing)
{
    static const double none[] = {0};
    uint32_t length[100];
    int64_t bound_ns = -1;
    for (int i = 0; i < 100; i++)
        length[i] = 100;
    hbp_cost_terms t = one_rank(none);
    t.ns_per_token = .0049;
    small_step s = open_step(&t, length, 100);
    ck_assert_int_eq(hbp_cost_predict_pack_ns(s.cost, 1, 0, 100, 0, 0), 0);
    OK(s.context, bound_of(&s, 49, &bound_ns));
    ck_assert_int_eq(bound_ns, 0);
    small_close(&s);
}
END_TEST

/* Times that no integer holds. */
START_TEST(the_longest_times_saturate)
{
    static const double none[] = {0};
    int64_t bound_ns = -1;
    hbp_cost_terms t = one_rank(none);
    t.ns_per_token = 1e18;
    small_step s = open_step(&t, (uint32_t[]){100, 7}, 2);
    OK(s.context, bound_of(&s, INT64_MAX, &bound_ns));
    ck_assert_int_ge(bound_ns, INT64_MAX - (INT64_MAX >> 38));
    small_close(&s);
}
END_TEST

/* A search need not look at each of many numbers of layers; the bound holds for all. */
START_TEST(every_number_of_layers_counts)
{
    for (uint32_t tokens = 1000; tokens < 20000; tokens += 97) {
        static const double none[] = {0};
        int64_t bound_ns = -1;
        hbp_cost_terms t = one_rank(none);
        t.layers = 1000;
        t.ns_per_token = 1000;
        t.recompute_linear = .4;
        t.recomputed_bytes = .05;
        t.limit_bytes = 1000 * 1000;
        small_step s = open_step(&t, &tokens, 1);
        int32_t layers = hbp_cost_predict_recompute(s.cost, 1, tokens);
        ck_assert_int_ge(layers, 0);
        int64_t best = hbp_cost_predict_pack_ns(s.cost, 1, layers, tokens, 0, 0);
        OK(s.context, bound_of(&s, best + best / 100, &bound_ns));
        ck_assert_int_le(bound_ns, best);
        ck_assert_int_ge(bound_ns, best - 2 - best / 1000000000);
        small_close(&s);
    }
}
END_TEST

static hbp_status bound_once(hbp_context *context, void *user)
{
    small_step s = *(small_step *)user;
    int64_t bound_ns = 0;
    s.context = context;
    return bound_of(&s, INT64_C(1000000000000), &bound_ns);
}

START_TEST(nothing_is_left_behind)
{
    small_step s = small_open(5, SMALL_RECOMPUTE, 8, 20, 1e99);
    failing_sweep(bound_once, &s);
    small_close(&s);
}
END_TEST

TEST_MAIN("bound", no_step_is_faster_than_its_bound, the_bound_counts_every_micro_batch,
          one_sequence_is_bounded_closely, every_number_of_ranks_is_weighed,
          less_than_half_a_nanosecond_is_nothing, the_longest_times_saturate, every_number_of_layers_counts,
          nothing_is_left_behind)
