/* Plans that do not list their samples: packs by patterns of lengths, steps by rule, samples by a draw that
 * is computed where it is asked for. As large as the variety in the data, whatever their number; any step of
 * them becomes a plan (hbp/plan.h) on demand.
 *
 * Stability: advanced, may change. */
#ifndef HBP_PATTERN_H
#define HBP_PATTERN_H

#include <stdint.h>

#include "hbp/epoch.h"

HBP_BEGIN_DECLS

/* ---- Which samples have which length ---- */

/* The samples of a data set by length: 4 bytes each. Immutable once made; shareable. */
typedef struct hbp_length_index hbp_length_index;
typedef struct hbp_length_index_builder hbp_length_index_builder;

/* The index of lengths that are held as an array, after hbp_lengths_limit where a plan has a limit; it keeps
 * them alive, for loss tokens and what split samples were. HBP_E_INVALID for a histogram, which needs none:
 * its samples are named in ascending order of length. O(samples). Thread: one per context. */
HBP_API hbp_status hbp_length_index_create(hbp_context *context, const hbp_lengths *lengths,
                                           hbp_length_index **out);

/* The same of lengths that come piece by piece, in the order of the samples, and are nowhere held:
 * `histogram` says how often each occurs, as one pass over them counted. HBP_E_INVALID by append for a length
 * that the histogram lacks, by finish where one came more or less often. finish moves the index out,
 * even when it fails; free the builder in any case. Thread: one per context. */
HBP_API hbp_status hbp_length_index_builder_create(hbp_context *context, const hbp_lengths *histogram,
                                                   hbp_length_index_builder **out);
HBP_API hbp_status hbp_length_index_builder_append(hbp_context *context, hbp_length_index_builder *builder,
                                                   const uint32_t *lengths, int64_t count);
HBP_API hbp_status hbp_length_index_builder_finish(hbp_context *context, hbp_length_index_builder *builder,
                                                   hbp_length_index **out);
HBP_API void hbp_length_index_builder_free(hbp_length_index_builder *builder);

/* Frees the index; NULL is allowed. Thread: any. */
HBP_API void hbp_length_index_free(hbp_length_index *index);

/* ---- Plans by patterns ---- */

typedef struct hbp_pattern_plan hbp_pattern_plan;

/* Plans an epoch by patterns (docs: patterns): groups as hbp_plan_groups chooses them, packs as
 * hbp_greedy_fill with method balanced makes them, of up to half a million samples that stand for all;
 * micro-batches of one group, and steps that each hold their share of all of them (composition stratified).
 * Works from the histogram of `lengths` alone, of up to HBP_MAX_HISTOGRAM_SAMPLES samples; which sample of a
 * length goes where is a draw from (seed, epoch). Of `options` (NULL: defaults) those are kept that method
 * patterns keeps; with max_length the plan is of what hbp_lengths_limit makes of `lengths`: whoever is to
 * index or validate it calls that first, and plans those. HBP_E_INVALID for others, for links and for a
 * second size; HBP_E_INFEASIBLE where memory or caps hold no plan, or a micro-batch whose packs each have the
 * most tokens of their stretch has more than a step may. O(distinct lengths), whatever the number of samples;
 * with lockstep_ranks in the cost O(packs). Thread: one per context. */
HBP_API hbp_status hbp_plan_patterns(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                     const hbp_epoch_options *options, hbp_pattern_plan **out);

/* Frees the plan; NULL is allowed. Thread: any. */
HBP_API void hbp_pattern_plan_free(hbp_pattern_plan *plan);

/* The same packs with other samples, in steps of other micro-batches: another epoch of a run. O(runs),
 * with lockstep_ranks in the cost O(packs).
 * Thread: one per context. */
HBP_API hbp_status hbp_pattern_plan_redraw(hbp_context *context, const hbp_pattern_plan *plan, uint64_t seed,
                                           uint64_t epoch, hbp_pattern_plan **out);

/* Fills *summary: what that of the whole listed plan would say, but for the digest, which is of the patterns.
 * Thread: shareable. */
HBP_API hbp_status hbp_pattern_plan_get_summary(hbp_context *context, const hbp_pattern_plan *plan,
                                                hbp_plan_summary *summary);

/* The columns of a plan by patterns (docs: views). A pattern is what equal packs hold: runs of samples of one
 * length. Patterns stand group by group, the longest packs first, in each group those that take longest
 * first. */
typedef struct hbp_pattern_plan_view {
    uint32_t struct_size;
    int64_t groups;
    int64_t patterns;
    int64_t runs;
    int64_t distinct_lengths;
    const int64_t *group_pack_lengths;   /* [groups] capacity in tokens */
    const int32_t *group_sp;             /* [groups] */
    const int32_t *group_recompute;      /* [groups] layers */
    const int64_t *group_first_patterns; /* [groups + 1] */
    const int64_t *pattern_offsets;      /* [patterns + 1] into the runs */
    const int64_t *pattern_first_packs;  /* [patterns + 1] packs of the patterns before */
    const int64_t *pattern_ns;           /* [patterns] predicted, of a pack */
    const int64_t *pattern_tokens;       /* [patterns] of a pack, as the next two */
    const int64_t *pattern_padded_tokens;
    const int64_t *pattern_squares;
    const int64_t *pattern_bytes;  /* [patterns] predicted peak of a rank */
    const int32_t *run_lengths;    /* [runs] row of the lengths */
    const int32_t *run_numbers;    /* [runs] samples of a pack */
    const int64_t *run_firsts;     /* [runs] samples of that length in the patterns before */
    const int64_t *length_tokens;  /* [distinct_lengths] ascending */
    const int64_t *length_samples; /* [distinct_lengths] */
} hbp_pattern_plan_view;

/* Fills *view, whose columns are owned by the plan. Thread: shareable. */
HBP_API hbp_status hbp_pattern_plan_get_view(const hbp_pattern_plan *plan, hbp_pattern_plan_view *view);

/* Steps [first_step, first_step + steps) as a plan that lists their samples; all of them: what hbp_plan_epoch
 * plans by method patterns. `index` is of the lengths that the plan was made of; NULL: samples are numbered
 * in ascending order of length, as a histogram's are, and the plan is of that histogram. A part has neither
 * dropped samples nor bounds.
 * HBP_E_INVALID for steps that are not there, an index of other lengths, and no index where samples have more
 * to them than their length. O(samples of these steps). Thread: one per context. */
HBP_API hbp_status hbp_pattern_plan_expand(hbp_context *context, const hbp_pattern_plan *plan,
                                           const hbp_length_index *index, int64_t first_step, int64_t steps,
                                           hbp_plan **out);

/* Checks every promise of the plan: patterns hold each length as often as it occurs, within capacity, and
 * steps keep to their tokens; with `lengths` that they are those planned, with `cost` also memory, degrees
 * and predicted times. Either may be NULL. HBP_E_INVALID names the first breach. O(runs), with lockstep_ranks
 * in the cost O(packs). Thread: one per context. */
HBP_API hbp_status hbp_pattern_plan_validate(hbp_context *context, const hbp_pattern_plan *plan,
                                             const hbp_lengths *lengths, const hbp_cost *cost);

/* hbp_simulate of the whole listed plan, a few steps of which are listed at a time. O(samples). Thread: one
 * per context. */
HBP_API hbp_status hbp_pattern_plan_simulate(hbp_context *context, const hbp_pattern_plan *plan,
                                             const hbp_cost *cost, const hbp_simulate_options *options,
                                             hbp_report *report);

/* hbp_plan_save_cursor and hbp_plan_load_cursor of a plan by patterns whose samples `index` names; NULL: by
 * their places. A cursor holds them to the same lengths in the same order: an index of chunks that came in
 * another order is refused, as one of other lengths is. */
HBP_API hbp_status hbp_pattern_plan_save_cursor(hbp_context *context, const hbp_pattern_plan *plan,
                                                const hbp_length_index *index, int64_t step, uint8_t *cursor);
HBP_API hbp_status hbp_pattern_plan_load_cursor(hbp_context *context, const hbp_pattern_plan *plan,
                                                const hbp_length_index *index, const uint8_t *cursor,
                                                int64_t *step);

HBP_END_DECLS

#endif
