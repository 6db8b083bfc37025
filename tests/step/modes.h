/* What every way to plan a step is tested for. */
#ifndef HBP_TESTS_MODES_H
#define HBP_TESTS_MODES_H

#include "base/methods.h"
#include "costs.h"
#include "failing.h"
#include "stepped.h"

/* Options that change the problem, drawn by `draw`. */
static inline void mode_vary(hbp_step_options *o, int32_t mode, int64_t draw)
{
    o->method = hbp__step_name(mode);
    o->micro_batch_multiple = draw % 5 == 1 ? 2 : 0;
    o->max_micro_batches = draw % 7 == 2 ? 2 : 0;
    o->min_micro_batches = draw % 7 == 3 ? 3 : 0;
    o->recompute = draw % 3 == 0 ? 1 + (int32_t)(draw / 3 % 2) : 0;
    o->min_sp = draw % 11 == 5 ? 2 : 0;
    o->max_sp = draw % 13 == 6 ? 4 : 0;
}

/* Plans small steps of every kind: what stepped_check asks for, the same plan twice, and no plan faster than
 * the optimum. Only sequences that no group holds and max_micro_batches may leave a step without a plan. */
static inline void mode_plans_small_steps(int32_t mode, int64_t steps)
{
    int64_t planned = 0;
    steps = TEST_FEW(steps, steps / 5);
    for (int64_t i = 0; i < steps; i++) {
        small_step s = small_open((uint64_t)i, (int)(i % SMALL_KINDS), 2 << (i / 9 % 4), 12, 1e5);
        mode_vary(&s.options, mode, i);
        if (i % 2)
            small_limit(&s, (uint64_t)(i / 2));
        exact_step e = small_exact(&s);
        int64_t best = exact_step_ns(&e);
        stepped plan = stepped_small(&s), again = stepped_small(&s);
        ck_assert_int_eq(plan.status, again.status);
        ck_assert_uint_eq(plan.digest, again.digest);
        if (plan.status < 0) {
            ck_assert_int_eq(plan.status, HBP_E_INFEASIBLE);
            int one_degree = mode == HBP__STEP_STATIC_SP || mode == HBP__STEP_HOMOGENEOUS_SP;
            ck_assert(best == EXACT_NEVER || s.options.max_micro_batches ||
                      (one_degree && s.options.sequence_multiple_per_sp));
        } else {
            ck_assert_msg(plan.ns >= best, "step %d: %lld ns, the optimum is %lld", (int)i,
                          (long long)plan.ns, (long long)best);
            planned++;
        }
        small_close(&s);
    }
    ck_assert_int_gt(planned, steps / 2);
}

/* 24 ranks in domains of 6, of degrees that do not nest; a GPU holds `limit_bytes` tokens. */
static inline hbp_cost *mode_uneven_cost(hbp_context *context, int64_t limit_bytes)
{
    static const int32_t degree[] = {1, 2, 3, 6, 12, 24};
    static const double zero[6] = {0};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 24;
    t.domain_ranks = 6;
    t.layers = 1;
    t.ns_per_token = 10000;
    t.ns_per_token_squared = 1;
    t.pack_ns = 1e6;
    t.activation_bytes = t.recomputed_bytes = 1;
    t.limit_bytes = limit_bytes;
    t.degrees = 6;
    t.degree = degree;
    t.sp_latency_ns = t.sp_ns_per_token = zero;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

/* Degrees that are no chain, and domains that they must not cross. */
static inline void mode_plans_any_degree(int32_t mode)
{
    hbp_context *context = test_context();
    hbp_cost *cost = mode_uneven_cost(context, 5000);
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_step_options o = {.struct_size = sizeof o, .method = hbp__step_name(mode), .any_degree = 1};
        o.min_sp = seed % 3 == 1 ? 3 : 0;
        hbp_lengths *lengths = test_long_tail(context, seed, 100, seed % 2 ? 9000 : 100000);
        stepped plan = stepped_plan(context, lengths, cost, &o);
        ck_assert_int_eq(plan.status, HBP_OK);
        hbp_lengths_free(lengths);
    }
    hbp_cost_free(cost);
    hbp_context_free(context);
}

typedef struct mode_call {
    hbp_step_options options;
    hbp_cost *cost;
    hbp_lengths *lengths;
} mode_call;

static inline hbp_status mode_plan(hbp_context *context, void *user)
{
    mode_call *call = user;
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(context, call->lengths, call->cost, &call->options, &plan);
    ck_assert((status >= 0) == (plan != NULL));
    hbp_plan_free(plan);
    return status;
}

/* Failing allocations and a cancel at every report leave nothing behind, for `count` sequences in at most
 * `max_micro_batches` (0: any). */
static inline void mode_fails_cleanly(int32_t mode, int64_t count, int32_t max_micro_batches)
{
    hbp_context *context = test_context();
    mode_call call = {.options = {.struct_size = sizeof call.options,
                                  .method = hbp__step_name(mode),
                                  .max_micro_batches = max_micro_batches}};
    call.cost = test_cost(context);
    call.lengths = test_long_tail(context, 1, count, 60000);
    failing_sweep(mode_plan, &call);
    ck_assert_int_gt(cancel_sweep(mode_plan, &call), 0);
    hbp_lengths_free(call.lengths);
    hbp_cost_free(call.cost);
    hbp_context_free(context);
}

/* Ranks of which a GPU runs a token in 0 ns and a squared token in 1 ns, and holds plenty. */
static inline hbp_cost *mode_square_cost(hbp_context *context, int32_t ranks)
{
    static const int32_t degree[] = {1, 2, 4, 8, 16, 32, 64};
    static const double zero[7] = {0};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = ranks;
    t.domain_ranks = ranks;
    t.layers = 1;
    t.ns_per_token_squared = 1;
    t.activation_bytes = t.recomputed_bytes = 1;
    t.limit_bytes = 1000000;
    while (t.degrees < 7 && degree[t.degrees] <= ranks)
        t.degrees++;
    t.degree = degree;
    t.sp_latency_ns = t.sp_ns_per_token = zero;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

/* Plans `count` lengths on `ranks` of mode_square_cost. */
static inline stepped mode_plan_lengths(const uint32_t *length, int64_t count, int32_t ranks,
                                        hbp_step_options options)
{
    hbp_context *context = test_context();
    hbp_cost *cost = mode_square_cost(context, ranks);
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    stepped plan = stepped_plan(context, lengths, cost, &options);
    hbp_lengths_free(lengths);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return plan;
}

#endif
