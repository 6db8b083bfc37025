/* The pieces of HBP (arXiv 2503.07680), for whoever packs: SP degree and recomputation of a pack, groups of
 * pack lengths, packs, balance; and packs under two budgets (OmniBal).
 *
 * Stability: stable; hbp_choose_budgets is advanced and may change. */
#ifndef HBP_PACK_H
#define HBP_PACK_H

#include <stdint.h>

#include "hbp/plan.h"

/* The most groups of a hierarchy. */
#define HBP_MAX_GROUPS 16

HBP_BEGIN_DECLS

/* ---- SP degree and recomputation of a pack ---- */

/* How one pack is run: sequence-parallel degree and layers to recompute (HBP, section 4.1, Algorithms 3 and
 * 4). */

/* Why a candidate is out. */
enum {
    HBP_SP_FEASIBLE = 0,
    HBP_SP_OUT_OF_MEMORY = 1, /* does not fit even with every layer recomputed */
    HBP_SP_ILLEGAL_HEADS = 2, /* heads or kv heads do not divide */
    HBP_SP_TOO_FEW_RANKS = 3  /* the degree does not divide the machine's ranks, or exceeds a limit */
};

typedef struct hbp_sp_options {
    uint32_t struct_size;
    int64_t tokens_per_step; /* [0..INT64_MAX] T_global; 0: as many packs as ranks, so that degrees compare at
                                equal work */
    double squares_per_token; /* Q / S of the packs; 0: one document fills the pack (Q = S^2) */
} hbp_sp_options;

/* One (degree, recomputed layers), with what it costs. */
typedef struct hbp_sp_choice {
    uint32_t struct_size;
    int32_t sp;
    int32_t recompute;     /* fewest layers that fit; all layers when none fits */
    int32_t reason;        /* HBP_SP_* */
    int64_t micro_batches; /* a step needs */
    int64_t pack_ns;       /* one pack */
    int64_t step_ns;       /* one step of tokens_per_step, compute and communication */
    int64_t peak_bytes;    /* per rank */
    int64_t limit_bytes;   /* what a rank has */
} hbp_sp_choice;

/* The feasible choice with the least step_ns for packs of `pack_length` tokens; ties go to the smaller
 * degree. *choice is written only on success. HBP_E_INFEASIBLE says how much memory the best degree lacks;
 * HBP_E_INVALID for a length outside [1, HBP_MAX_LENGTH]. O(degrees). Thread: one per context. */
HBP_API hbp_status hbp_choose_sp(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                                 const hbp_sp_options *options, hbp_sp_choice *choice);

/* Every power of two up to the number of ranks, and every allowed degree, ascending, with the reason when it
 * is out. Writes at most `capacity` choices of `choice_size` bytes each (the caller's sizeof) and sets *count
 * to how many there are; call with capacity 0 to learn it. Thread: one per context. */
HBP_API hbp_status hbp_list_sp_choices(hbp_context *context, const hbp_cost *cost, int64_t pack_length,
                                       const hbp_sp_options *options, hbp_sp_choice *choices,
                                       uint32_t choice_size, int64_t capacity, int64_t *count);

/* ---- Groups ---- */

/* The levels of the hierarchy: which pack lengths an epoch uses, each with its SP degree and recomputed
 * layers (HBP, Algorithm 1). Immutable once made; shareable. */

#define HBP_GROUPS_METHODS(X)                                                                                \
    X(OPTIMAL, "optimal", "", "exact optimum over the candidates by a shortest path")                        \
    X(HBP, "hbp", "HBP, arXiv 2503.07680",                                                                   \
      "the published rule: l_best / sp_best, l_best, l_max / sp_max, l_max")

typedef struct hbp_groups hbp_groups;

typedef struct hbp_groups_options {
    uint32_t struct_size;
    const char *method;      /* [HBP_GROUPS_METHODS] (docs: groups) */
    int32_t max_groups;      /* [0..HBP_MAX_GROUPS] at most so many levels; 0: 6 */
    int32_t step_slack;      /* [-1..99] method optimal: a step may carry so many percent fewer tokens than
                                tokens_per_step where a shorter pack saves recomputation or memory holds no
                                longer one; 0: 25; -1: none, every full step carries the same */
    int64_t tokens_per_step; /* [0..2^50] T_global, of every group: no step holds more. 0: one pack of the
                                longest sample (max_length, if given) on every SP group of its best degree,
                                and on each rank the tokens at which one takes least */
    int64_t max_length;    /* [0..2^50] longest sample, in tokens, not longest pack; 0: that of the lengths */
    int64_t min_length;    /* [0..2^50] shortest candidate pack; 0: 8,192 with method hbp, 1,024 else */
    int64_t pack_multiple; /* [0..2^50] pack lengths are multiples of it; 0: 1 */
    int64_t sequence_multiple; /* [0..2^50] each sample will be padded to a multiple of it; 0: 1 */
    int64_t max_pack_length; /* [0..2^50] longest pack, in tokens; 0: as long as memory and time favour, with
                                method hbp max_length, or the longest sample rounded up to a power of two */
    int64_t tokens_per_rank; /* [0..2^50] the most padded tokens on a rank; 0: what memory holds */
} hbp_groups_options;

/* Chooses the groups for these lengths. HBP_E_INVALID when a sample is longer than max_length (the message
 * counts them), HBP_E_INFEASIBLE when no degree can hold the longest sample, or not within max_pack_length,
 * tokens_per_rank or tokens_per_step (the message names what would do), HBP_E_CANCELLED. Works from the
 * histogram alone, of samples or, with links, of linked samples as one; vision units that the cost charges
 * are spread over the tokens, and full packs have capacity for their share of them (docs: vision). Method
 * optimal: O(C^3 + bins) for C candidates, with links O(samples) more. Thread: one per context. */
HBP_API hbp_status hbp_plan_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   const hbp_groups_options *options, hbp_groups **out);

/* Makes groups by hand: `count` rows, pack_length strictly ascending; sp and recompute as given (recompute
 * -1: the fewest layers that fit). A sample belongs to the first group whose threshold it does not exceed;
 * the threshold is the pack length. Every row is checked against the cost, and its micro-batch
 * against tokens_per_step (0: what the largest of them holds). */
HBP_API hbp_status hbp_groups_create(hbp_context *context, const hbp_cost *cost, int64_t count,
                                     const int64_t *pack_length, const int32_t *sp, const int32_t *recompute,
                                     int64_t tokens_per_step, hbp_groups **out);

/* Frees the groups; NULL is allowed. Thread: any. */
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
    const int64_t *thresholds;    /* [groups] tokens of the longest sample, or linked samples, that belong */
    const int64_t *pack_lengths;  /* [groups] capacity in tokens */
    const int32_t *sp;            /* [groups] */
    const int32_t *recompute;     /* [groups] layers */
    const int64_t *packs;         /* [groups] in a micro-batch: ranks / sp */
    const int64_t *micro_batches; /* [groups] in a step */
    const int64_t *tokens;        /* [groups] of the samples that belong */
    const int64_t *step_ns;       /* [groups] predicted time of a full step */
    const int64_t *candidate_ns;  /* [candidates] predicted time of the epoch */
    const char *const *candidate_texts; /* [candidates] "16384 x SP 1, 131072 x SP 8" */
} hbp_groups_view;

/* Fills *view, whose columns are owned by the groups. Thread: shareable. */
HBP_API hbp_status hbp_groups_get_view(const hbp_groups *groups, hbp_groups_view *view);

/* ---- Packs ---- */

/* Which samples share a pack (HBP, Algorithms 2, 5 and 6). Immutable once made; shareable. */

#define HBP_FILL_METHODS(X)                                                                                  \
    X(BALANCED, "balanced", "", "packs of a micro-batch balanced in tokens and squares, each step a mix")    \
    X(TIGHT, "tight", "", "the fewest packs: never more than best fit decreasing")                           \
    X(HBP, "hbp", "HBP, arXiv 2503.07680",                                                                   \
      "iterative fill, then first-fit greedy fill of the gaps, as published")

typedef struct hbp_packs hbp_packs;

typedef struct hbp_fill_options {
    uint32_t struct_size;
    const char *method; /* [HBP_FILL_METHODS] (docs: fill) */
    int32_t effort; /* [0..9] 0 greedy, 1..9 search for fewer packs at growing cost; at least 1 with method
                       balanced, where only data that pack badly are searched */
    int32_t max_samples;       /* [0..INT32_MAX] per pack; 0: no cap */
    int64_t sequence_multiple; /* [0..2^20] each sample is padded to a multiple of it (context parallelism,
                                  FP8); 0: 1 */
    int64_t pack_multiple;     /* [0..2^20] each pack is padded to a multiple of it (tokens % sp); 0: 1 */
    uint64_t seed;
    uint64_t epoch; /* another epoch, another draw; the same (seed, epoch), the same packs */
} hbp_fill_options;

/* Fills packs of every group, longest group first; gaps in long packs take samples of shorter groups. No
 * sample is lost; linked samples share a pack; capacity holds after padding. HBP_E_INFEASIBLE names a sample,
 * or linked samples, that fit no pack. Method balanced: O(n + m log m) for n samples, m = n / packs of a
 * micro-batch. Thread: one per context. */
HBP_API hbp_status hbp_greedy_fill(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                                   const hbp_fill_options *options, hbp_packs **out);

/* Packs made elsewhere, for hbp_balance_attention: pack p holds samples sample_indices[pack_offsets[p]] to
 * [pack_offsets[p + 1] - 1] in this order, row pack_groups[p] of the groups, or where `pack_groups` is NULL
 * of the first that holds it. Of `options` (NULL: defaults) the multiples are read. Arrays are copied:
 * pack_offsets [packs + 1] from 0, sample_indices [samples of the lengths]. HBP_E_INVALID names a sample that
 * is in two packs or in none, linked samples in two, a pack that is longer than those of its group.
 * O(samples).
 */
HBP_API hbp_status hbp_packs_create(hbp_context *context, const hbp_lengths *lengths,
                                    const hbp_groups *groups, int64_t packs, const int64_t *pack_offsets,
                                    const int64_t *sample_indices, const int32_t *pack_groups,
                                    const hbp_fill_options *options, hbp_packs **out);

/* Frees the packs; NULL is allowed. Thread: any. */
HBP_API void hbp_packs_free(hbp_packs *packs);

/* The columns of packs (docs: views). */
typedef struct hbp_packs_view {
    uint32_t struct_size;
    int64_t packs;
    int64_t samples; /* (pieces) in packs */
    int64_t dropped; /* (pieces) that the fill left out; 0 for every fill but hbp_iterative_fill */
    const int64_t *pack_offsets;       /* [packs + 1] into the samples */
    const int32_t *pack_groups;        /* [packs] row of the groups */
    const int64_t *pack_tokens;        /* [packs] */
    const int64_t *pack_padded_tokens; /* [packs] */
    const int64_t *pack_squares;       /* [packs] sum of squared lengths */
    const int64_t *pack_vision;        /* [packs] vision units; NULL when the lengths have no second size */
    const uint32_t *sample_indices;    /* [samples] into the lengths, packs laid end to end */
    const uint32_t *dropped_indices;   /* [dropped] into the lengths */
    const int32_t *dropped_reasons;    /* [dropped] HBP_DROPPED_* */
    int64_t groups;
    const int64_t *group_bounds; /* [groups] no fill of the samples that a group's packs hold needs fewer:
                                    ceil(padded tokens / pack length), ceil(samples / max_samples), or better
                                    where one is known */
} hbp_packs_view;

/* Fills *view, whose columns are owned by the packs. Thread: shareable. */
HBP_API hbp_status hbp_packs_get_view(const hbp_packs *packs, hbp_packs_view *view);

/* ---- Balance ---- */

/* From packs to a plan (HBP, Algorithm 7 and section 4.3). */
#define HBP_BALANCE_METHODS(X)                                                                               \
    X(TIME, "time", "",                                                                                      \
      "packs of a micro-batch agree in predicted time; like packs change places at random")                  \
    X(SORTED, "sorted", "HBP, arXiv 2503.07680",                                                             \
      "sort a group's packs by sum of squares and cut (Algorithm 7)")                                        \
    X(GIVEN, "given", "", "packs in the order given")                                                        \
    X(RANDOM, "random", "", "packs of a group in random order")                                              \
    X(VISION, "vision", "",                                                                                  \
      "packs of a micro-batch agree in vision units, tokens and time, all at once; steps are small copies "  \
      "of the epoch")

typedef struct hbp_balance_options {
    uint32_t struct_size;
    int32_t drop_last;            /* [flag] nonzero: a group's last, incomplete step is dropped and listed */
    const char *method;           /* [HBP_BALANCE_METHODS] */
    int64_t tokens_per_step;      /* [0..INT64_MAX] 0: the groups' */
    int64_t curriculum_steps;     /* [0..INT64_MAX] the first so many steps come from the shortest group */
    int32_t micro_batch_multiple; /* [0..65536] micro-batches of a step are a multiple of it (virtual
                                     pipeline); 0: 1 */
    int32_t modality_order;       /* [flag] nonzero: all packs of a micro-batch hold samples of the same
                                     modalities, in ascending order of modality; where the packs of one set
                                     of modalities do not fill their last micro-batch, padding packs
                                     complete it */
    uint64_t seed;
    uint64_t epoch;
} hbp_balance_options;

/* Puts packs of like cost into the same micro-batch, micro-batches into steps of one group each, and steps
 * into an order in which, after the curriculum, every prefix stays close to the epoch's mixture of groups.
 * Incomplete micro-batches are completed with padding packs. `groups` must be the ones the packs were filled
 * for. HBP_E_INFEASIBLE names a pack whose vision units pass the memory that its group has for them. O(p log
 * p) for p packs, plus the copy of samples. Thread: one per context. */
HBP_API hbp_status hbp_balance_attention(hbp_context *context, const hbp_packs *packs,
                                         const hbp_groups *groups, const hbp_cost *cost,
                                         const hbp_balance_options *options, hbp_plan **out);

/* ---- Packs under two budgets ---- */

/* Packs under two budgets, vision units and tokens (OmniBal, section 3.2: iterative sampling and filtering).
 */

#define HBP_ITERATIVE_FILL_METHODS(X)                                                                        \
    X(VECTOR, "vector", "", "vector packing: fewer packs, no sample lost")                                   \
    X(ISF, "isf", "OmniBal, arXiv 2407.20761",                                                               \
      "the authors' order, sample by sample, with numpy's generator; loses the samples that theirs loses")

#define HBP_BUDGETS_METHODS(X)                                                                               \
    X(PLANE, "plane", "", "over both budgets, with vector packing")                                          \
    X(LINE, "line", "OmniBal, arXiv 2407.20761", "the published line search, with fills as published")

typedef struct hbp_iterative_fill_options {
    uint32_t struct_size;
    const char *method;  /* [HBP_ITERATIVE_FILL_METHODS] (docs: vision, isf) */
    int64_t max_tokens;  /* [1..HBP_MAX_LENGTH] Q_t, of a pack, after padding; needed */
    int64_t max_vision;  /* Q_v, of a pack; needed where the lengths have vision units */
    int64_t full_tokens; /* [0..INT64_MAX] Q'_t, method isf: a pack of as many tokens is kept; 0: max_tokens -
                            128 */
    int64_t full_vision; /* [0..INT64_MAX] Q'_v, method isf: a pack of just so many vision units is kept; 0:
                            max_vision */
    int32_t over_long;   /* [HBP_OVERLONG_*, 0..1] a sample over a budget: HBP_OVERLONG_ERROR or _DROP; method
                            isf drops it always */
    int32_t max_samples; /* [0..INT32_MAX] per pack, method vector; 0: no cap */
    int64_t sequence_multiple; /* [0..2^20] as in hbp_fill_options; method isf: 1 */
    int64_t pack_multiple;     /* [0..2^20] */
    int32_t rounds;            /* [0..INT32_MAX] T, method isf; 0: 50 */
    int32_t effort;            /* [0..9] method vector: search for fewer packs at growing cost; 0: 1 */
    uint64_t seed;             /* method isf: of numpy.random.RandomState, below 2^32 */
    uint64_t epoch;
} hbp_iterative_fill_options;

/* Fills packs of one group, row 0, under both budgets. Method vector: every sample is in one pack, linked
 * samples share a pack, the view's group_bounds[0] is a lower bound on the number of packs; the packs stand
 * in no order of size. Method isf (docs: isf): packs and samples in the authors' order, the same in every
 * epoch; samples over a budget, and those that the authors lose, are in hbp_packs_view's dropped_indices;
 * links, padding and caps are refused. Without a second size tokens alone count, and max_vision is not read.
 * HBP_E_INVALID for a budget <= 0, under HBP_OVERLONG_ERROR for samples over a budget (the message counts
 * them and names the first, its size and the budget), and when no sample is left; HBP_E_INFEASIBLE for linked
 * samples that fit no pack; HBP_E_CANCELLED. Vector: O(n log n) at effort 1. ISF: O(T n). Thread: one per
 * context.
 */
HBP_API hbp_status hbp_iterative_fill(hbp_context *context, const hbp_lengths *lengths,
                                      const hbp_iterative_fill_options *options, hbp_packs **out);

typedef struct hbp_budgets_options {
    uint32_t struct_size;
    const char *method; /* [HBP_BUDGETS_METHODS] */
    int32_t samples; /* [0..INT32_MAX - 1] a pack shall hold so many samples on average, or up to one more; 0:
                        4 */
    int32_t ranks;   /* [0..INT32_MAX] packs of a micro-batch (data parallel size); 0: 8 */
    int32_t rounds;  /* [0..INT32_MAX] T of the line search's fills; 0: 50 */
    int32_t effort;  /* [0..9] of the plane's fills; 0: 1 */
    int64_t max_tokens;     /* [0..HBP_MAX_LENGTH] no budget above it; 0: no limit */
    int64_t max_vision;     /* [0..HBP_MAX_VISION] no budget above it; 0: no limit */
    int64_t token_multiple; /* [0..2^20] Q_t is a multiple of it, plane; 0: 64 */
    uint64_t seed;
    double most_samples; /* plane: a pack holds at most so many on average; 0: samples + 1 */
} hbp_budgets_options;

/* A pair of budgets and what packs under them come to. The DistRatios are OmniBal's over packs as its
 * samplers deal them out: of `ranks` equal stretches of the packs in their order each rank has one,
 * micro-batch k is the k-th pack of each, and what is left over counts nowhere (docs: isf). */
typedef struct hbp_budgets {
    uint32_t struct_size;
    int32_t considered;  /* pairs tried */
    int64_t max_vision;  /* Q_v */
    int64_t max_tokens;  /* Q_t */
    int64_t full_tokens; /* Q'_t of the line search */
    int64_t packs;
    double samples_per_pack;
    double padding; /* of samples in a micro-batch; 0, for packs have none */
    double dist_vision;
    double dist_tokens;
    double unused_vision; /* share of the vision budget that packs leave free */
    double unused_tokens;
    double score; /* what was minimised: the line: padding + dist_vision + dist_tokens; the plane: those and
                     both unused shares */
} hbp_budgets;

/* Chooses Q_v and Q_t for a data set so that a pack holds `samples` of them on average. *budgets is written
 * on success. HBP_E_INFEASIBLE when no pair of budgets within the limits gives packs of that many samples;
 * HBP_E_INVALID for lengths without vision units. Thread: one per context. */
HBP_API hbp_status hbp_choose_budgets(hbp_context *context, const hbp_lengths *lengths,
                                      const hbp_budgets_options *options, hbp_budgets *budgets);

HBP_END_DECLS

#endif
