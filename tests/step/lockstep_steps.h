/* Costs with lockstep sets, and steps planned under them and checked. */
#ifndef HBP_TESTS_LOCKSTEP_STEPS_H
#define HBP_TESTS_LOCKSTEP_STEPS_H

#include "base/checked.h"
#include "cost/cost.h"
#include "costs.h"
#include "data/plan/plan.h"

static inline hbp_cost *lockstep_cost(hbp_context *context, int32_t ranks, int32_t set, int32_t uneven,
                                      double pack_ns, int64_t limit_bytes)
{
    hbp_cost *plain = test_cost_ranks(context, ranks), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    terms.lockstep_ranks = set;
    terms.uneven_micro_batches = uneven;
    terms.pack_ns = pack_ns;
    terms.limit_bytes = limit_bytes ? limit_bytes : terms.limit_bytes;
    while (set > 1 && terms.degree[terms.degrees - 1] > set)
        terms.degrees--;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

/* Plans a step, checked against lengths, cost and replay; *bound_ns gets the bound, both without step_ns. */
static inline int64_t lockstep_plan_ns(hbp_context *context, const hbp_cost *cost, const hbp_lengths *lengths,
                                       const hbp_step_options *options, int64_t *bound_ns)
{
    hbp_plan *plan = NULL;
    hbp_plan_summary s = {.struct_size = sizeof s};
    hbp_report report = {.struct_size = sizeof report};
    OK(context, hbp_plan_step(context, lengths, cost, options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    OK(context, hbp_simulate(context, plan, cost, NULL, &report));
    OK(context, hbp_plan_get_summary(context, plan, &s));
    ck_assert_int_eq(report.epoch_ns, s.predicted_ns);
    ck_assert_int_eq(s.lockstep_ranks, cost->terms.lockstep_ranks);
    int64_t step_ns = hbp__round_i64(cost->terms.step_ns);
    *bound_ns = s.bound_ns > step_ns ? s.bound_ns - step_ns : 0;
    hbp_plan_free(plan);
    return s.predicted_ns - step_ns;
}

/* Steps with at least as many samples as ranks leave no rank without any, in sets of `set` ranks. */
static inline void lockstep_check_busy(int32_t set)
{
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < TEST_ROUNDS(120); seed++) {
        int32_t ranks = seed % 3 ? 8 : 16;
        hbp_cost *cost = lockstep_cost(context, ranks, set, seed % 2, seed % 5 ? 4e7 : 0, 0);
        hbp_lengths *lengths =
            test_long_tail(context, seed, ranks + (int64_t)(seed % 29), seed % 7 ? 40000 : 90);
        hbp_plan *plan = NULL;
        uint32_t busy = 0;
        hbp_step_options o = {.struct_size = sizeof o,
                              .micro_batch_multiple = set == 1 && seed % 4 == 1 ? 3 : 0};
        OK(context, hbp_plan_step(context, lengths, cost, &o, &plan));
        for (int64_t p = 0; p < plan->packs; p++)
            if (plan->pack_tokens[p])
                busy |= ((UINT32_C(1) << plan->pack_sp[p]) - 1) << plan->pack_ranks[p];
        ck_assert_msg(busy == (UINT32_C(1) << ranks) - 1, "seed %d: busy ranks %x", (int)seed, busy);
        hbp_plan_free(plan);
        hbp_lengths_free(lengths);
        hbp_cost_free(cost);
    }
    hbp_context_free(context);
}

#endif
