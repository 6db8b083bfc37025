/* Costs with lockstep sets, and steps planned under them and checked. */
#ifndef HBP_TESTS_LOCKSTEP_STEPS_H
#define HBP_TESTS_LOCKSTEP_STEPS_H

#include "base/checked.h"
#include "cost/cost.h"
#include "costs.h"

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

#endif
