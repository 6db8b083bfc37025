/* Data sets and options for the tests of the facade, and the promises every plan keeps. */
#ifndef HBP_TESTS_PLANNED_H
#define HBP_TESTS_PLANNED_H

#include "costs.h"
#include "data/lengths/lengths.h"
#include "data/plan/plan.h"

/* Ids of the plan's samples and of the dropped ones are those of `lengths`, each once, unless pieces were
 * split. */
static inline void planned_check(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths)
{
    OK(context, hbp__plan_check(context, plan));
    int64_t *tokens = calloc((size_t)lengths->count, sizeof *tokens);
    for (int64_t i = 0; i < plan->samples; i++) {
        ck_assert_int_lt(plan->sample_ids[i], lengths->count);
        ck_assert(plan->sample_first_tokens || tokens[plan->sample_ids[i]] == 0);
        tokens[plan->sample_ids[i]] += plan->sample_tokens[i];
    }
    for (int64_t i = 0; i < plan->dropped; i++) {
        ck_assert_int_eq(tokens[plan->dropped_ids[i]], 0);
        tokens[plan->dropped_ids[i]] = -1;
    }
    int64_t cut = 0;
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t length = hbp__lengths_get(lengths, i);
        ck_assert_int_ne(tokens[i], 0);
        ck_assert_int_le(tokens[i], length);
        cut += tokens[i] > 0 ? length - tokens[i] : length;
    }
    if (!plan->dropped || plan->dropped_reasons[0] == HBP_DROPPED_OVERLONG)
        ck_assert_int_eq(cut, plan->overlong_tokens);
    free(tokens);
}

/* A plan that keeps its promises. */
static inline hbp_plan *planned_with(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                     const hbp_epoch_options *options)
{
    hbp_plan *plan = NULL;
    OK(context, hbp_plan_epoch(context, lengths, cost, options, &plan));
    OK(context, hbp_plan_validate(context, plan, lengths, cost));
    planned_check(context, plan, lengths);
    return plan;
}

/* What an epoch is planned from, for sweeps. */
typedef struct planned_inputs {
    hbp_lengths *lengths;
    hbp_cost *cost;
    hbp_epoch_options options;
} planned_inputs;

static inline hbp_status planned_once(hbp_context *context, void *user)
{
    planned_inputs *in = user;
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_epoch(context, in->lengths, in->cost, &in->options, &plan);
    ck_assert_int_eq(status == HBP_OK, plan != NULL);
    hbp_plan_free(plan);
    return status;
}

/* Linked samples are in one pack. */
static inline void planned_check_links(const hbp_plan *plan, const int64_t *link, int64_t count)
{
    int64_t *home = calloc((size_t)count, sizeof *home);
    for (int64_t p = 0; p < plan->packs; p++)
        for (int64_t i = plan->pack_offsets[p]; i < plan->pack_offsets[p + 1]; i++) {
            int64_t t = link[plan->sample_ids[i]];
            if (t < 0)
                continue;
            ck_assert(home[t] == 0 || home[t] == p + 1);
            home[t] = p + 1;
        }
    free(home);
}

#endif
