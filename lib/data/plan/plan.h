/* The inside of a plan, and the piece that builds one. */
#ifndef HBP_DATA_PLAN_H
#define HBP_DATA_PLAN_H

#include <math.h>
#include <stdint.h>

#include "base/checked.h"
#include "base/context.h"
#include "data/table/table.h"
#include "hbp/plan.h"

/* Every column: X(name, type, table, extra rows). Offsets have one row more than their table. */
#define HBP__PLAN_COLUMNS(X)                                                                                 \
    X(step_offsets, int64_t, steps, 1)                                                                       \
    X(step_ns, int64_t, steps, 0)                                                                            \
    X(step_loss_tokens, int64_t, steps, 0)                                                                   \
    X(step_samples, int64_t, steps, 0)                                                                       \
    X(step_tokens, int64_t, steps, 0)                                                                        \
    X(micro_batch_offsets, int64_t, micro_batches, 1)                                                        \
    X(micro_batch_ns, int64_t, micro_batches, 0)                                                             \
    X(micro_batch_modalities, int64_t, micro_batches, 0)                                                     \
    X(pack_offsets, int64_t, packs, 1)                                                                       \
    X(pack_ranks, int32_t, packs, 0)                                                                         \
    X(pack_sp, int32_t, packs, 0)                                                                            \
    X(pack_recompute, int32_t, packs, 0)                                                                     \
    X(pack_capacity, int64_t, packs, 0)                                                                      \
    X(pack_tokens, int64_t, packs, 0)                                                                        \
    X(pack_padded_tokens, int64_t, packs, 0)                                                                 \
    X(pack_squares, int64_t, packs, 0)                                                                       \
    X(pack_loss_tokens, int64_t, packs, 0)                                                                   \
    X(pack_ns, int64_t, packs, 0)                                                                            \
    X(pack_bytes, int64_t, packs, 0)                                                                         \
    X(pack_vision, int64_t, packs, 0)                                                                        \
    X(pack_vision_capacity, int64_t, packs, 0)                                                               \
    X(sample_ids, int64_t, samples, 0)                                                                       \
    X(sample_tokens, int32_t, samples, 0)                                                                    \
    X(sample_first_tokens, int64_t, samples, 0)                                                              \
    X(sample_loss_tokens, int32_t, samples, 0)                                                               \
    X(sample_vision, int32_t, samples, 0)                                                                    \
    X(sample_modalities, int32_t, samples, 0)                                                                \
    X(dropped_ids, int64_t, dropped, 0)                                                                      \
    X(dropped_reasons, int32_t, dropped, 0)                                                                  \
    X(dropped_first_tokens, int64_t, dropped, 0)                                                             \
    X(dropped_tokens, int32_t, dropped, 0)

/* Columns that not every plan has: X(name, HBP__PLAN_* below, type, table). */
#define HBP__PLAN_OPTIONAL(X)                                                                                \
    X(micro_batch_modalities, HBP__PLAN_MODALITIES, int64_t, micro_batches)                                  \
    X(pack_vision, HBP__PLAN_VISION, int64_t, packs)                                                         \
    X(pack_vision_capacity, HBP__PLAN_VISION, int64_t, packs)                                                \
    X(sample_first_tokens, HBP__PLAN_SPLIT, int64_t, samples)                                                \
    X(sample_loss_tokens, HBP__PLAN_LOSS, int32_t, samples)                                                  \
    X(sample_vision, HBP__PLAN_VISION, int32_t, samples)                                                     \
    X(sample_modalities, HBP__PLAN_MODALITIES, int32_t, samples)                                             \
    X(dropped_first_tokens, HBP__PLAN_PIECES, int64_t, dropped)                                              \
    X(dropped_tokens, HBP__PLAN_PIECES, int32_t, dropped)

struct hbp_plan {
    hbp__memory memory;
    int32_t ranks;
    int32_t domain_ranks;
    int32_t complete;
    int64_t steps;
    int64_t micro_batches;
    int64_t packs;
    int64_t samples;
    int64_t dropped;
    int64_t sequence_multiple;
    int64_t pack_multiple;
    int64_t micro_batch_multiple;
    int64_t first_step;
    int64_t overlong_samples;
    int64_t overlong_tokens;
    int64_t sequence_multiple_per_sp;
    int64_t pack_multiple_per_sp;
    int32_t lockstep_ranks; /* of the cost; 0: all ranks */
    int32_t shifted_loss;   /* of the lengths, whose digest tells it */
    /* Not part of the digest: */
    int64_t bound_ns;      /* no plan of these samples is faster; 0: not known */
    int64_t free_bound_ns; /* nor one with whatever steps; 0: not known */
    int32_t composition;
    int64_t epoch_steps; /* of the plan that this is a part of; 0: of none */
    int64_t samples_per_step;
    int64_t tokens_per_step;
    int64_t hierarchy_ns;
    int64_t mixture_ns;
    uint64_t seed;
    uint64_t epoch;
    uint64_t lengths_digest;
    uint64_t digest; /* set by hbp__plan_seal */
#define HBP__PLAN_FIELD(name, type, table, extra) type *name;
    HBP__PLAN_COLUMNS(HBP__PLAN_FIELD)
#undef HBP__PLAN_FIELD
};

/* epoch_steps of `count` steps of a plan that has `steps`, from first_step on, and epoch_steps itself. */
static inline int64_t hbp__plan_epoch_steps(int64_t epoch_steps, int64_t first_step, int64_t steps,
                                            int64_t count)
{
    return epoch_steps || count == steps ? epoch_steps : hbp__add_saturating(first_step, steps);
}

/* Files of before epoch_steps say it by first_step alone. */
static inline int hbp__plan_is_part(const hbp_plan *plan)
{
    return plan->epoch_steps > 0 || plan->first_step > 0;
}

extern const hbp__table hbp__plan_table;

/* Which optional columns a plan has. */
enum {
    HBP__PLAN_SPLIT = 1,
    HBP__PLAN_LOSS = 2,
    HBP__PLAN_VISION = 4,
    HBP__PLAN_MODALITIES = 8,
    HBP__PLAN_PIECES = 16
};

/* A plan with columns of these sizes, uninitialised but for zeroed offsets[0], and the optional ones that
 * `optional` names; those of dropped rows only when there are such. NULL when memory is short. */
hbp_plan *hbp__plan_new(const hbp__memory *memory, int64_t steps, int64_t micro_batches, int64_t packs,
                        int64_t samples, int64_t dropped, int32_t optional);

/* Computes the digest once every column and field is in place. */
void hbp__plan_seal(hbp_plan *plan);

/* The same of a plan that may have very many rows; HBP_E_CANCELLED leaves it unsealed. */
hbp_status hbp__plan_seal_long(hbp_context *context, hbp_plan *plan);

/* HBP__PLAN_* of the optional columns that the plan has. */
int32_t hbp__plan_optional(const hbp_plan *plan);

/* How far `predicted_ns` is from a bound; NaN when the bound is not known. */
static inline double hbp__plan_gap(int64_t predicted_ns, int64_t bound_ns)
{
    return bound_ns > 0 ? (double)predicted_ns / (double)bound_ns - 1 : (double)NAN;
}

/* Whether no plan is faster: the bound is known, and met. */
static inline int32_t hbp__plan_is_proven(int64_t predicted_ns, int64_t bound_ns)
{
    return bound_ns > 0 && predicted_ns == bound_ns;
}

/* The predicted time of all steps. */
int64_t hbp__plan_ns(const hbp_plan *plan);

/* Leaves the faster of both in *plan, which wins when they are equal, and frees the other; either may be
 * NULL.
 */
void hbp__plan_keep_faster(hbp_plan **plan, hbp_plan **other);

/* The whole summary; token sums saturate. O(packs). */
void hbp__plan_summarise(const hbp_plan *plan, hbp_plan_summary *summary);

/* The same plan in other memory; NULL when it is short. */
hbp_plan *hbp__plan_copy(const hbp__memory *memory, const hbp_plan *plan);

/* Steps [first, first + count) as a sealed plan of their own, without dropped samples and bound but with the
 * counts of over-long ones, which tell the limit it was made under; the range lies inside the plan. *out is
 * written on success. */
hbp_status hbp__plan_slice(hbp_context *context, const hbp_plan *plan, int64_t first, int64_t count,
                           hbp_plan **out);

/* The same plan with the micro-batches of each step in another order: `order` [micro_batches] names for every
 * row the one it takes, of the same step. A sealed plan of its own; *out is written on success. O(samples).
 */
hbp_status hbp__plan_permute(hbp_context *context, const hbp_plan *plan, const int32_t *order,
                             hbp_plan **out);

/* The checks of hbp_plan_validate that need neither lengths nor cost: offsets in range and monotone, counts,
 * rank ranges, sums. Safe on columns read from a hostile file. HBP_E_INVALID and a message for the first
 * breach. */
hbp_status hbp__plan_check(hbp_context *context, const hbp_plan *plan);

/* What any plan keeps of its ranks, and of its bounds beside its predicted time. */
hbp_status hbp__plan_check_ranks(hbp_context *context, int64_t ranks, int64_t domain_ranks,
                                 int64_t lockstep_ranks);
hbp_status hbp__plan_check_bounds(hbp_context *context, int64_t bound_ns, int64_t free_bound_ns, int64_t ns);

/* Lengths fall into classes [2^k, 2^(k + 1)). */
#define HBP__LENGTH_CLASSES 32

/* Tokens by length class. */
typedef struct hbp__mixture {
    double tokens[HBP__LENGTH_CLASSES];
    double total;
} hbp__mixture;

/* Adds `number` samples of `length` tokens, at least 1. */
void hbp__mixture_add(hbp__mixture *mixture, int64_t length, double number);

/* Of steps, those without tokens left out: half the L1 distance of their mixture to another. */
typedef struct hbp__distances {
    double sum;
    int64_t steps;
} hbp__distances;

static inline double hbp__distances_mean(const hbp__distances *distances)
{
    return distances->steps ? distances->sum / (double)distances->steps : 0;
}

/* Adds the steps of a plan. Every sample has at least 1 token. O(samples). */
hbp_status hbp__mixture_distances(hbp_context *context, const hbp_plan *plan, const hbp__mixture *all,
                                  hbp__distances *distances);

/* The mean distance of the steps to the mixture of all of them; 0 of none. O(samples). */
hbp_status hbp__plan_mixture(hbp_context *context, const hbp_plan *plan, double *distance);

#endif
