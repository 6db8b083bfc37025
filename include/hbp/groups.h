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
 * histogram alone, of samples or, with ties, of what is tied together; vision units that the cost charges are
 * spread over the tokens, and full packs have room for their share of them (docs: vision). Optimal mode:
 * O(C^3 + bins) for C candidates, with ties O(samples) more. Thread: one per context. */
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

/* The columns of groups (docs: views). Groups ascend in threshold; the first is the shortest, however long
 * its packs. Candidates are the hierarchies that were considered: the first is the one chosen, the others
 * follow best first; none has a level twice. One of more levels may be faster than the first by less than the
 * thousandth that each level must save. */
typedef struct hbp_groups_view {
    uint32_t struct_size;
    int64_t groups;
    int64_t candidates;
    int64_t tokens_per_step;      /* that a step carries (T_global) */
    const int64_t *thresholds;    /* [groups] tokens of the longest sample, or tied samples, that belong */
    const int64_t *pack_lengths;  /* [groups] capacity in tokens */
    const int32_t *sp;            /* [groups] */
    const int32_t *recompute;     /* [groups] layers */
    const int64_t *packs;         /* [groups] in a micro-batch: ranks / sp */
    const int64_t *micro_batches; /* [groups] in a step */
    const int64_t *tokens;        /* [groups] of the samples that belong */
    const int64_t *step_ns;       /* [groups] predicted time of a full step */
    const int64_t *candidate_ns;  /* [candidates] predicted time of the epoch */
} hbp_groups_view;

HBP_API hbp_status hbp_groups_get_view(const hbp_groups *groups, hbp_groups_view *view);

/* A candidate such as "16384 x SP 1, 131072 x SP 8"; NULL past the end. Owned by the groups. */
HBP_API const char *hbp_groups_get_candidate_text(const hbp_groups *groups, int64_t index);

HBP_END_DECLS

#endif
