/* The levels of the hierarchy: which pack lengths an epoch uses, each with its SP degree and recomputed
 * layers (HBP, Algorithm 1). Immutable once made; shareable. */
#ifndef HBP_GROUPS_H
#define HBP_GROUPS_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/cost.h"
#include "hbp/lengths.h"

enum {
    HBP_GROUPS_OPTIMAL = 0, /* exact optimum over the candidates by a shortest path (docs: groups) */
    HBP_GROUPS_PAPER = 1    /* the published rule: l_best / sp_best, l_best, l_max / sp_max, l_max */
};

HBP_BEGIN_DECLS

typedef struct hbp_groups hbp_groups;

typedef struct hbp_groups_options {
    uint32_t struct_size;
    int32_t mode;       /* HBP_GROUPS_* */
    int32_t max_groups; /* at most so many levels, 1..16; 0: 6 */
    int32_t step_slack; /* optimal mode: a step may carry so many percent fewer tokens than tokens_per_step
                           where a shorter pack saves recomputation; 0: 25; -1: none, every full step carries
                           the same */
    int64_t tokens_per_step;   /* T_global, of every group: no step holds more. 0: one pack of the longest
                                  sample   (max_length, if given) on every SP group of its best degree, and on
                                  each rank   the tokens at which one takes least */
    int64_t max_length;        /* longest sample, in tokens, not longest pack; 0: that of the lengths */
    int64_t min_length;        /* shortest candidate pack; 0: 8,192 in mode paper, 1,024 else */
    int64_t pack_multiple;     /* pack lengths are multiples of it; 0: 1 */
    int64_t sequence_multiple; /* each sample will be padded to a multiple of it; 0: 1 */
    int64_t max_pack_length;   /* longest pack, in tokens; 0: as long as memory and time favour, in mode paper
                                  max_length, or the longest sample rounded up to a power of two */
    int64_t tokens_per_rank;   /* the most padded tokens on a rank; 0: what memory holds */
} hbp_groups_options;

HBP_API void hbp_groups_options_init(hbp_groups_options *options, uint32_t struct_size);

/* Chooses the groups for these lengths. HBP_E_INVALID when a sample is longer than max_length (the message
 * counts them), HBP_E_INFEASIBLE when no degree can hold the longest sample, or not within max_pack_length,
 * tokens_per_rank or tokens_per_step (the message names what would do), HBP_E_CANCELLED. Works from the
 * histogram alone, of samples or, with ties, of what is tied together. Optimal mode: O(C^3 + bins) for C
 * candidates, with ties O(samples) more. Thread: one per context. */
HBP_API hbp_status hbp_plan_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   const hbp_groups_options *options, hbp_groups **out);

/* Makes groups by hand: `count` rows, pack_length strictly ascending; sp and recompute as given (recompute
 * -1: the fewest layers that fit). A sample belongs to the first group whose threshold it does not exceed;
 * the threshold is the pack length. Every row is checked against the cost, and its micro-batch
 * against tokens_per_step (0: what the largest of them holds). */
HBP_API hbp_status hbp_groups_create(hbp_context *context, const hbp_cost *cost, int64_t count,
                                     const int64_t *pack_length, const int32_t *sp, const int32_t *recompute,
                                     int64_t tokens_per_step, hbp_groups **out);

HBP_API void hbp_groups_free(hbp_groups *groups);

/* Columns, one row a group, ascending in threshold; owned by the groups. The first row is the shortest group,
 * however long its packs. `threshold`: longest sample, or tied samples together (tokens), that belongs to the
 * group; `pack_length`: capacity in tokens; `packs`: packs in a micro-batch (ranks / sp);
 * `micro_batches`: in a step; `tokens`: of the samples that belong; `step_ns`: predicted time of a full step.
 */
HBP_API const int64_t *hbp_groups_get_thresholds(const hbp_groups *groups, int64_t *count);
HBP_API const int64_t *hbp_groups_get_pack_lengths(const hbp_groups *groups, int64_t *count);
HBP_API const int32_t *hbp_groups_get_sp(const hbp_groups *groups, int64_t *count);
HBP_API const int32_t *hbp_groups_get_recompute(const hbp_groups *groups, int64_t *count);
HBP_API const int64_t *hbp_groups_get_packs(const hbp_groups *groups, int64_t *count);
HBP_API const int64_t *hbp_groups_get_micro_batches(const hbp_groups *groups, int64_t *count);
HBP_API const int64_t *hbp_groups_get_tokens(const hbp_groups *groups, int64_t *count);
HBP_API const int64_t *hbp_groups_get_step_ns(const hbp_groups *groups, int64_t *count);

/* The tokens a step carries (T_global). */
HBP_API int64_t hbp_groups_get_tokens_per_step(const hbp_groups *groups);

/* The hierarchies that were considered: [rows] predicted epoch time, and a text each such as "16384 x SP 1,
 * 131072 x SP 8"; row 0 is the one chosen, the others follow best first; no row has a level twice. One of
 * more levels may be faster than row 0 by less than the thousandth that each level must save. NULL text past
 * the end. Owned by the groups. */
HBP_API const int64_t *hbp_groups_get_candidate_ns(const hbp_groups *groups, int64_t *count);
HBP_API const char *hbp_groups_get_candidate_text(const hbp_groups *groups, int64_t index);

HBP_END_DECLS

#endif
