/* Small costs and plans written by hand, for the tests of simulate. */
#ifndef HBP_TESTS_SIMULATE_SMALL_H
#define HBP_TESTS_SIMULATE_SMALL_H

#include <stdarg.h>

#include "failing.h"
#include "test.h"

#include "base/checked.h"
#include "base/rng.h"
#include "cost/cost.h"
#include "data/plan/plan.h"

#define SMALL_ROWS 512

/* Tables of a cost with degrees 1, 2, 4, ... */
typedef struct small_terms {
    hbp_cost_terms all;
    int32_t degree[8];
    double latency[8];
    double per_token[8];
} small_terms;

/* Terms that are 0 but for the tables' degrees, the limit and a byte per token and layer. */
static inline void small_terms_init(small_terms *t, int32_t ranks, int32_t layers, int64_t limit_bytes)
{
    memset(t, 0, sizeof *t);
    t->all = (hbp_cost_terms){.struct_size = sizeof t->all};
    t->all.ranks = ranks;
    t->all.domain_ranks = ranks;
    t->all.layers = layers;
    t->all.activation_bytes = 1;
    t->all.limit_bytes = limit_bytes;
    for (int32_t d = 1; d <= ranks; d *= 2)
        if (ranks % d == 0)
            t->degree[t->all.degrees++] = d;
    t->all.degree = t->degree;
    t->all.sp_latency_ns = t->latency;
    t->all.sp_ns_per_token = t->per_token;
}

static inline hbp_cost *small_cost(hbp_context *context, const small_terms *t)
{
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t->all, &cost));
    return cost;
}

/* A plan being written: call small_step, small_micro_batch and small_pack in the order of the plan. */
typedef struct small_plan {
    int64_t sequence_multiple;
    int64_t pack_multiple;
    int64_t steps, micro_batches, packs, samples;
    int64_t step_first[SMALL_ROWS], micro_batch_first[SMALL_ROWS], pack_first[SMALL_ROWS];
    int32_t rank[SMALL_ROWS], sp[SMALL_ROWS], recompute[SMALL_ROWS];
    int64_t capacity[SMALL_ROWS];
    int32_t tokens[SMALL_ROWS];
    int has_vision;                      /* the plan has a second size: */
    int32_t vision[SMALL_ROWS];          /* of each sample */
    int64_t vision_capacity[SMALL_ROWS]; /* of each pack */
} small_plan;

static inline void small_init(small_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->sequence_multiple = plan->pack_multiple = 1;
}

static inline void small_step(small_plan *plan)
{
    plan->step_first[plan->steps++] = plan->micro_batches;
}

static inline void small_micro_batch(small_plan *plan)
{
    plan->micro_batch_first[plan->micro_batches++] = plan->packs;
}

static inline void small_pack_array(small_plan *plan, int32_t rank, int32_t sp, int32_t recompute,
                                    int64_t capacity, int count, const int32_t *tokens)
{
    int64_t p = plan->packs++;
    plan->pack_first[p] = plan->samples;
    plan->rank[p] = rank;
    plan->sp[p] = sp;
    plan->recompute[p] = recompute;
    plan->capacity[p] = capacity;
    for (int i = 0; i < count; i++)
        plan->tokens[plan->samples++] = tokens[i];
}

/* The same with the samples' tokens as arguments. */
static inline void small_pack(small_plan *plan, int32_t rank, int32_t sp, int32_t recompute, int64_t capacity,
                              int count, ...)
{
    int32_t tokens[64];
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        tokens[i] = va_arg(list, int);
    va_end(list);
    small_pack_array(plan, rank, sp, recompute, capacity, count, tokens);
}

/* The plan with every column filled; predictions are 0, so that a reader of them is found out. */
static inline hbp_plan *small_make(const small_plan *from, int32_t ranks)
{
    hbp__memory memory = hbp__memory_default();
    hbp_plan *plan = hbp__plan_new(&memory, from->steps, from->micro_batches, from->packs, from->samples, 0,
                                   from->has_vision ? HBP__PLAN_VISION : 0);
    ck_assert_ptr_nonnull(plan);
    plan->ranks = plan->domain_ranks = ranks;
    plan->sequence_multiple = from->sequence_multiple;
    plan->pack_multiple = from->pack_multiple;
    for (int64_t i = 0; i < from->steps; i++) {
        plan->step_offsets[i] = from->step_first[i];
        plan->step_ns[i] = plan->step_tokens[i] = plan->step_samples[i] = plan->step_loss_tokens[i] = 0;
    }
    plan->step_offsets[from->steps] = from->micro_batches;
    for (int64_t i = 0; i < from->micro_batches; i++) {
        plan->micro_batch_offsets[i] = from->micro_batch_first[i];
        plan->micro_batch_ns[i] = 0;
    }
    plan->micro_batch_offsets[from->micro_batches] = from->packs;
    for (int64_t p = 0; p < from->packs; p++) {
        int64_t end = p + 1 < from->packs ? from->pack_first[p + 1] : from->samples;
        plan->pack_offsets[p] = from->pack_first[p];
        plan->pack_ranks[p] = from->rank[p];
        plan->pack_sp[p] = from->sp[p];
        plan->pack_recompute[p] = from->recompute[p];
        plan->pack_capacity[p] = from->capacity[p];
        plan->pack_tokens[p] = plan->pack_squares[p] = plan->pack_padded_tokens[p] = 0;
        plan->pack_ns[p] = plan->pack_bytes[p] = 0;
        if (from->has_vision) {
            plan->pack_vision[p] = 0;
            plan->pack_vision_capacity[p] = from->vision_capacity[p];
        }
        for (int64_t i = from->pack_first[p]; i < end; i++) {
            int64_t tokens = from->tokens[i];
            plan->sample_ids[i] = i;
            plan->sample_tokens[i] = (int32_t)tokens;
            if (from->has_vision) {
                plan->sample_vision[i] = from->vision[i];
                plan->pack_vision[p] += from->vision[i];
            }
            plan->pack_tokens[p] += tokens;
            plan->pack_squares[p] += tokens * tokens;
            plan->pack_padded_tokens[p] += hbp__round_up(tokens, plan->sequence_multiple);
        }
        plan->pack_padded_tokens[p] = hbp__round_up(plan->pack_padded_tokens[p], plan->pack_multiple);
        plan->pack_loss_tokens[p] = plan->pack_tokens[p];
    }
    plan->pack_offsets[from->packs] = from->samples;
    for (int64_t s = 0; s < from->steps; s++)
        for (int64_t p = plan->micro_batch_offsets[plan->step_offsets[s]];
             p < plan->micro_batch_offsets[plan->step_offsets[s + 1]]; p++) {
            plan->step_tokens[s] += plan->pack_tokens[p];
            plan->step_loss_tokens[s] += plan->pack_tokens[p];
            plan->step_samples[s] += plan->pack_offsets[p + 1] - plan->pack_offsets[p];
        }
    hbp__plan_seal(plan);
    return plan;
}

#endif
