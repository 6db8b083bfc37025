/* A step planned and checked against everything that its options promise. */
#ifndef HBP_TESTS_STEPPED_H
#define HBP_TESTS_STEPPED_H

#include "base/methods.h"
#include "data/plan/plan.h"
#include "small_steps.h"

typedef struct stepped {
    int64_t ns; /* predicted, step_ns not counted */
    int64_t bound_ns;
    uint64_t digest;
    int64_t micro_batches;
    int64_t dummies;
    int32_t complete;
    hbp_status status;
} stepped;

static inline void stepped_check_pack(const hbp_plan *plan, const hbp_cost *cost, const hbp_step_options *o,
                                      int32_t layers, int64_t limit_bytes, int64_t p)
{
    int32_t sp = plan->pack_sp[p];
    int64_t padded = plan->pack_padded_tokens[p];
    if (plan->pack_offsets[p] == plan->pack_offsets[p + 1]) {
        ck_assert_int_eq(sp, 1);
        ck_assert_int_eq(plan->pack_recompute[p], 0);
        return;
    }
    ck_assert_int_ge(sp, o->min_sp);
    ck_assert(!o->max_sp || sp <= o->max_sp);
    ck_assert(o->any_degree || (sp & (sp - 1)) == 0);
    int64_t vision = plan->pack_vision ? plan->pack_vision[p] : 0;
    ck_assert(!o->max_vision || vision <= o->max_vision);
    if (vision && o->recompute == HBP_STEP_RECOMPUTE_AUTO && plan->pack_recompute[p])
        ck_assert_int_gt(hbp_cost_predict_pack_bytes(cost, sp, plan->pack_recompute[p] - 1, padded, vision),
                         limit_bytes);
    else if (o->recompute == HBP_STEP_RECOMPUTE_AUTO)
        ck_assert_int_eq(plan->pack_recompute[p], hbp_cost_predict_recompute(cost, sp, padded));
    else
        ck_assert_int_eq(plan->pack_recompute[p], o->recompute == HBP_STEP_RECOMPUTE_ALL ? layers : 0);
    ck_assert_int_le(plan->pack_capacity[p], hbp_cost_predict_capacity(cost, sp, plan->pack_recompute[p]));
    ck_assert_int_eq(padded % exact_multiple(o->pack_multiple, o->pack_multiple_per_sp, sp), 0);
    int64_t sum = 0, multiple = exact_multiple(o->sequence_multiple, o->sequence_multiple_per_sp, sp);
    for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++)
        sum += exact_round_up(plan->sample_tokens[i], multiple);
    ck_assert_int_eq(padded,
                     exact_round_up(sum, exact_multiple(o->pack_multiple, o->pack_multiple_per_sp, sp)));
    ck_assert(!o->tokens_per_rank || padded <= o->tokens_per_rank * sp);
    int64_t most = hbp__step_method(o->method) == HBP__STEP_HYBRID_CP ? o->sequence_tokens_per_rank * sp : 0;
    for (int64_t i = plan->pack_offsets[p]; most && i < plan->pack_offsets[p + 1]; i++)
        ck_assert_int_le(exact_round_up(plan->sample_tokens[i], multiple), most);
    ck_assert(!o->max_pack_length || padded <= o->max_pack_length);
    ck_assert(!o->max_samples || plan->pack_offsets[p + 1] - plan->pack_offsets[p] <= o->max_samples);
}

/* Checks a plan of one step; returns what tests compare. */
static inline stepped stepped_check(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                    const hbp_step_options *o, const hbp_plan *plan)
{
    hbp_plan_summary summary = {.struct_size = sizeof summary};
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    hbp_report report = {.struct_size = sizeof report};
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    OK(context, hbp_plan_get_summary(context, plan, &summary));
    OK(context, hbp_cost_get_terms(context, cost, &terms));
    OK(context, hbp_simulate(context, plan, cost, NULL, &report));
    ck_assert_int_eq(report.epoch_ns, summary.predicted_ns);
    ck_assert_int_eq(summary.steps, 1);
    ck_assert_int_eq(summary.dropped, 0);
    int64_t multiple = o->micro_batch_multiple ? o->micro_batch_multiple : 1;
    ck_assert_int_eq(summary.micro_batch_multiple, multiple);
    ck_assert_int_eq(summary.micro_batches % multiple, 0);
    ck_assert_int_ge(summary.micro_batches, o->min_micro_batches);
    ck_assert(!o->max_micro_batches || summary.micro_batches <= o->max_micro_batches);
    ck_assert_int_eq(summary.sequence_multiple, o->sequence_multiple ? o->sequence_multiple : 1);
    ck_assert_int_eq(summary.pack_multiple, o->pack_multiple ? o->pack_multiple : 1);
    ck_assert_int_eq(summary.sequence_multiple_per_sp, o->sequence_multiple_per_sp);
    ck_assert_int_eq(summary.pack_multiple_per_sp, o->pack_multiple_per_sp);
    int64_t empty = 0;
    for (int64_t p = 0; p < plan->packs; p++) {
        stepped_check_pack(plan, cost, o, terms.layers, terms.limit_bytes, p);
        empty += plan->pack_offsets[p] == plan->pack_offsets[p + 1];
    }
    ck_assert_int_eq(empty, summary.padding_packs);
    ck_assert_int_ge(summary.predicted_ns, summary.bound_ns);
    if (summary.bound_ns)
        ck_assert_double_eq_tol(summary.gap, (double)summary.predicted_ns / (double)summary.bound_ns - 1,
                                1e-9);
    int64_t step_ns = (int64_t)(terms.step_ns + .5);
    return (stepped){.ns = summary.predicted_ns - step_ns,
                     .bound_ns = summary.bound_ns ? summary.bound_ns - step_ns : 0,
                     .digest = summary.digest,
                     .micro_batches = summary.micro_batches,
                     .dummies = empty,
                     .complete = summary.complete};
}

/* Plans and checks. Without a plan the status says why. */
static inline stepped stepped_plan(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   const hbp_step_options *o)
{
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_step(context, lengths, cost, o, &plan);
    if (status < 0) {
        ck_assert_ptr_null(plan);
        ck_assert_str_ne(hbp_context_message(context), "");
        return (stepped){.status = status};
    }
    ck_assert_str_eq(hbp_context_message(context), "");
    stepped s = stepped_check(context, lengths, cost, o, plan);
    s.status = status;
    hbp_plan_free(plan);
    return s;
}

static inline stepped stepped_small(const small_step *s)
{
    return stepped_plan(s->context, s->lengths, s->cost, &s->options);
}

#endif
