/* The inside of a plan by patterns: packs that hold the same lengths are a pattern, micro-batches are cut
 * from the row of all packs, and a rule says which step runs which.
 *
 * Packs of a group stand in the order of their patterns, those that take longest first. Micro-batch m of a
 * group holds places [m w, (m + 1) w) for w = ranks / sp, the last one fewer. The row of a group is cut into
 * stretches, at places that w divides, of packs that take nearly as long; of a stretch of f whole
 * micro-batches, the r-th takes packs r, r + f, r + 2 f .. of it, so that it mixes patterns and waits for the
 * first of them. A unit is micro_batch_multiple micro-batches of a group; the last of a group is completed
 * with padding packs. Units are numbered over all groups; of U units and S steps, stratum t holds units
 * [t S, (t + 1) S), and gives each step one of them by a permutation of its own. The last stratum, of R
 * units, has one for step s where floor((s + 1) R / S) > floor(s R / S); the others, which are lean, have the
 * first S - R units of the first stratum, which hold the longest samples. Which samples of a length a pack
 * holds is a permutation of all of that length. */
#ifndef HBP_DATA_PATTERN_PLAN_H
#define HBP_DATA_PATTERN_PLAN_H

#include <stdint.h>

#include "base/checked.h"
#include "base/context.h"
#include "base/permutation.h"
#include "data/plan/plan_rows.h"
#include "data/table/table.h"
#include "hbp/pattern.h"

/* What to do where lengths are not those of the plan, which cuts or drops made others; the end of a message.
 */
#define HBP__PATTERN_LIMIT_HINT(plan)                                                                        \
    ((plan)->overlong_samples                                                                                \
         ? "; a limit has cut or dropped some of the plan's, so take what hbp_lengths_limit makes of yours"  \
         : "")

/* Every column: X(name, type, table, extra rows). */
#define HBP__PATTERN_COLUMNS(X)                                                                              \
    X(group_pack_lengths, int64_t, groups, 0)                                                                \
    X(group_sp, int32_t, groups, 0)                                                                          \
    X(group_recompute, int32_t, groups, 0)                                                                   \
    X(group_padding_bytes, int64_t, groups, 0)                                                               \
    X(group_first_patterns, int64_t, groups, 1)                                                              \
    X(group_first_stretches, int64_t, groups, 1)                                                             \
    X(group_first_units, int64_t, groups, 1)                                                                 \
    X(stretch_first_packs, int64_t, stretches, 1)                                                            \
    X(pattern_offsets, int64_t, patterns, 1)                                                                 \
    X(pattern_first_packs, int64_t, patterns, 1)                                                             \
    X(pattern_ns, int64_t, patterns, 0)                                                                      \
    X(pattern_tokens, int64_t, patterns, 0)                                                                  \
    X(pattern_padded_tokens, int64_t, patterns, 0)                                                           \
    X(pattern_squares, int64_t, patterns, 0)                                                                 \
    X(pattern_samples, int64_t, patterns, 0)                                                                 \
    X(pattern_bytes, int64_t, patterns, 0)                                                                   \
    X(run_lengths, int32_t, runs, 0)                                                                         \
    X(run_numbers, int32_t, runs, 0)                                                                         \
    X(run_firsts, int64_t, runs, 0)                                                                          \
    X(length_tokens, int64_t, lengths, 0)                                                                    \
    X(length_samples, int64_t, lengths, 0)

/* Every number that a file holds and a digest covers, but for the counts: X(name, type). */
#define HBP__PATTERN_NUMBERS(X)                                                                              \
    X(ranks, int32_t)                                                                                        \
    X(domain_ranks, int32_t)                                                                                 \
    X(lockstep_ranks, int32_t)                                                                               \
    X(shifted_loss, int32_t)                                                                                 \
    X(is_bare, int32_t)                                                                                      \
    X(steps, int64_t)                                                                                        \
    X(sequence_multiple, int64_t)                                                                            \
    X(pack_multiple, int64_t)                                                                                \
    X(sequence_multiple_per_sp, int64_t)                                                                     \
    X(pack_multiple_per_sp, int64_t)                                                                         \
    X(micro_batch_multiple, int64_t)                                                                         \
    X(tokens_per_step, int64_t)                                                                              \
    X(step_ns, int64_t)                                                                                      \
    X(padding_ns, int64_t)                                                                                   \
    X(predicted_ns, int64_t)                                                                                 \
    X(bound_ns, int64_t)                                                                                     \
    X(free_bound_ns, int64_t)                                                                                \
    X(loss_tokens, int64_t)                                                                                  \
    X(overlong_samples, int64_t)                                                                             \
    X(overlong_tokens, int64_t)                                                                              \
    X(dropped, int64_t)                                                                                      \
    X(seed, uint64_t)                                                                                        \
    X(epoch, uint64_t)                                                                                       \
    X(lengths_digest, uint64_t)                                                                              \
    X(histogram_digest, uint64_t)

struct hbp_pattern_plan {
    hbp__memory memory;
    int64_t groups;
    int64_t stretches;
    int64_t patterns;
    int64_t runs;
    int64_t lengths;
#define HBP__PATTERN_NUMBER(name, type) type name;
    HBP__PATTERN_NUMBERS(HBP__PATTERN_NUMBER)
#undef HBP__PATTERN_NUMBER
    uint64_t digest;
#define HBP__PATTERN_FIELD(name, type, table, extra) type *name;
    HBP__PATTERN_COLUMNS(HBP__PATTERN_FIELD)
#undef HBP__PATTERN_FIELD
};

extern const hbp__table hbp__pattern_table;

/* A plan of these counts, all else zero; NULL when memory is short. */
hbp_pattern_plan *hbp__pattern_plan_new(const hbp__memory *memory, int64_t groups, int64_t stretches,
                                        int64_t patterns, int64_t runs, int64_t lengths);

/* The same plan in other memory; NULL when it is short. */
hbp_pattern_plan *hbp__pattern_plan_copy(const hbp__memory *memory, const hbp_pattern_plan *plan);

/* Over every number and column but the digest. */
uint64_t hbp__pattern_plan_digest(const hbp_pattern_plan *plan);

/* That offsets, ranges and sums are such that the plan is safe to walk, that its patterns hold every sample
 * once and keep to capacity, and that its times are those of its patterns: with lockstep sets, that they are
 * possible. Safe on columns from a hostile file. HBP_E_INVALID and a message. O(runs). */
hbp_status hbp__pattern_plan_check(hbp_context *context, const hbp_pattern_plan *plan);

/* Packs of a micro-batch of group g; the first of its packs in the row of all, and how many it has, without
 * padding packs. */
static inline int64_t hbp__pattern_width(const hbp_pattern_plan *plan, int64_t g)
{
    return plan->ranks / plan->group_sp[g];
}

static inline int64_t hbp__pattern_first_pack(const hbp_pattern_plan *plan, int64_t g)
{
    return plan->pattern_first_packs[plan->group_first_patterns[g]];
}

static inline int64_t hbp__pattern_packs(const hbp_pattern_plan *plan, int64_t g)
{
    return hbp__pattern_first_pack(plan, g + 1) - hbp__pattern_first_pack(plan, g);
}

static inline int64_t hbp__pattern_units(const hbp_pattern_plan *plan)
{
    return plan->group_first_units[plan->groups];
}

/* Units that a group needs. */
static inline int64_t hbp__pattern_group_units(const hbp_pattern_plan *plan, int64_t g)
{
    return hbp__ceil_div(hbp__pattern_packs(plan, g),
                         hbp__pattern_width(plan, g) * plan->micro_batch_multiple);
}

/* Tokens that no unit of a range has more of, each of its packs taken for the one with most of its stretch;
 * and of all packs. They saturate. Ranges are those of the stretches, ascending: one may begin in the unit
 * that the one before ends in. */
typedef struct hbp__unit_range {
    int64_t first, end; /* units */
    int64_t tokens;
} hbp__unit_range;

typedef struct hbp__pattern_sizes {
    int64_t all;
    int64_t ranges;
    hbp__unit_range *range; /* [ranges] scratch */
} hbp__pattern_sizes;

/* O(patterns). */
hbp_status hbp__pattern_sizes_open(hbp_context *context, const hbp_pattern_plan *plan,
                                   hbp__pattern_sizes *sizes);

/* No step holds more tokens when there are `steps` of them: every stratum its largest unit, but no more than
 * all. Saturates. O(stretches). */
int64_t hbp__pattern_step_tokens(const hbp_pattern_plan *plan, const hbp__pattern_sizes *sizes,
                                 int64_t steps);

/* The time of all steps where all ranks wait for one another in every micro-batch; saturates. O(patterns). */
int64_t hbp__pattern_plan_waiting_ns(const hbp_pattern_plan *plan);

/* The predicted time of all steps; saturates. O(patterns); with lockstep sets O(packs log patterns). */
hbp_status hbp__pattern_plan_predict(hbp_context *context, const hbp_pattern_plan *plan, int64_t *ns);

/* A pack: which one of its pattern's. */
typedef struct hbp__pattern_pack {
    int64_t pattern;
    int64_t turn;
} hbp__pattern_pack;

/* Which patterns packs [b << shift, (b + 1) << shift) are of: first[b] to first[b + 1]. */
typedef struct hbp__pattern_blocks {
    int32_t shift;
    int32_t *first; /* [blocks + 1] */
} hbp__pattern_blocks;

/* Blocks of about as many packs as patterns have, for walks over many packs; in scratch. O(patterns). */
hbp_status hbp__pattern_blocks_open(hbp_context *context, const hbp_pattern_plan *plan,
                                    hbp__pattern_blocks *blocks);

/* Walks over the places of a group, counted over all packs. */
typedef struct hbp__pattern_walk {
    const hbp_pattern_plan *plan;
    const hbp__pattern_blocks *blocks; /* NULL: none */
    int64_t width;
    int64_t place;       /* of the next pack */
    int64_t stretch;     /* that it is in */
    int64_t whole;       /* whole micro-batches of the stretch */
    int64_t micro_batch; /* of the next pack, counted from the stretch's first */
    int64_t rank;        /* its place there */
} hbp__pattern_walk;

/* A walk over group g from `place` on. O(log stretches). */
hbp__pattern_walk hbp__pattern_walk_from(const hbp_pattern_plan *plan, const hbp__pattern_blocks *blocks,
                                         int64_t g, int64_t place);

/* The pack at the next place. O(log patterns), with blocks mostly O(1). */
hbp__pattern_pack hbp__pattern_walk_next(hbp__pattern_walk *walk);

/* Strata; the last may be short. */
static inline int64_t hbp__pattern_strata(const hbp_pattern_plan *plan)
{
    return hbp__ceil_div(hbp__pattern_units(plan), plan->steps);
}

/* The permutations of the strata, but for their streams. */
typedef struct hbp__pattern_deal {
    uint64_t key;
    int64_t strata;
    hbp__permutation whole;
    hbp__permutation last; /* of the last stratum, and of the first one in steps that have one of it */
    hbp__permutation lean; /* of the first one in the others */
} hbp__pattern_deal;

hbp__pattern_deal hbp__pattern_deal_of(const hbp_pattern_plan *plan);

/* A unit: the places of its group in [first, end), and padding packs up to micro_batch_multiple micro-batches
 * of the group's width. */
typedef struct hbp__pattern_unit {
    int64_t group;
    int64_t row; /* over all groups */
    int64_t first;
    int64_t end;
} hbp__pattern_unit;

/* The unit of a step's `stratum`; 0 when the step has none in the last one. O(groups). */
int hbp__pattern_unit_at(const hbp_pattern_plan *plan, const hbp__pattern_deal *deal, int64_t step,
                         int64_t stratum, hbp__pattern_unit *unit);

/* The samples of every micro-batch [units, micro_batch_multiple], in scratch. O(packs). */
hbp_status hbp__pattern_count_samples(hbp_context *context, const hbp_pattern_plan *plan, int64_t **samples);

/* Samples of all packs: at most HBP_MAX_HISTOGRAM_SAMPLES. O(lengths). */
static inline int64_t hbp__pattern_all_samples(const hbp_pattern_plan *plan)
{
    int64_t samples = 0;
    for (int64_t i = 0; i < plan->lengths; i++)
        samples += plan->length_samples[i];
    return samples;
}

/* The stream of the permutation of the samples of a length, in row `row` of the lengths. */
#define HBP__PATTERN_LENGTH_STREAM (UINT64_C(0x6c656e67) << 32)
static inline uint64_t hbp__pattern_length_stream(const hbp_pattern_plan *plan, int64_t row)
{
    return HBP__PATTERN_LENGTH_STREAM + (uint64_t)plan->length_tokens[row];
}

/* Refuses an index of other samples than the plan's; NULL: none. */
hbp_status hbp__pattern_check_index(hbp_context *context, const hbp_pattern_plan *plan,
                                    const hbp_length_index *index);

/* hbp_pattern_plan_expand within a call; without an index samples are no more than their length and number,
 * whatever the plan is of. The same for any number of threads, 0 being
 * those of the context. *out is set on success alone. */
hbp_status hbp__pattern_plan_expand(hbp_context *context, const hbp_pattern_plan *plan,
                                    const hbp_length_index *index, int64_t first_step, int64_t steps,
                                    int32_t threads, hbp_plan **out);

/* All steps, of the lengths that the plan was made of. `order` [samples] holds those of an array as
 * hbp__lengths_deal does; NULL: they are put in order where the plan's tokens will stand. */
hbp_status hbp__pattern_plan_list(hbp_context *context, const hbp_pattern_plan *plan,
                                  const hbp_lengths *lengths, const uint32_t *order, int32_t threads,
                                  hbp_plan **out);

#endif
