/* An epoch in one call: packs, steps, ranks, SP degrees and recomputation (HBP, sections 4 and 5).
 *
 * Stability: stable. */
#ifndef HBP_EPOCH_H
#define HBP_EPOCH_H

#include <stdint.h>

#include "hbp/pack.h"

HBP_BEGIN_DECLS

/* How an epoch is planned; patterns is what hbp_plan_patterns plans, every sample listed; those from
 * no-packing on are to compare with. From there to first-fit-shuffled packs are of one length, each on one SP
 * degree; the last three plan each step for itself. An option that says what a plan holds is kept or refused:
 * docs: contract, other methods, says by which. */
#define HBP_EPOCH_METHODS(X)                                                                                 \
    X(SEARCH, "search", "", "the fastest plan found; of very many samples, by patterns")                     \
    X(HBP, "hbp", "HBP, arXiv 2503.07680", "as published: its groups, greedy fill, sorted balance")          \
    X(PATTERNS, "patterns", "", "packs by patterns of lengths, for very many samples")                       \
    X(NO_PACKING, "no-packing", "", "one sample a pack, in random order")                                    \
    X(SORTED, "sorted", "LongAlign, arXiv 2401.18058",                                                       \
      "sort, cut into micro-batches in order, permute these")                                                \
    X(NEXT_FIT, "next-fit", "LongAlign, arXiv 2401.18058", "next fit in the order given")                    \
    X(FIRST_FIT_DECREASING, "first-fit-decreasing", "Johnson, 1974",                                         \
      "the longest first, each into the first pack that it fits")                                            \
    X(BEST_FIT_DECREASING, "best-fit-decreasing", "Johnson, 1974",                                           \
      "the longest first, each into the fullest pack that it fits")                                          \
    X(ISF, "isf", "OmniBal, arXiv 2407.20761", "iterative sampling and filtering, on tokens alone")          \
    X(SPFHP, "spfhp", "Krell et al., arXiv 2107.02027", "shortest-pack-first histogram packing")             \
    X(HOMOGENEOUS_SP, "homogeneous-sp", "", "this library's packing and balance, one group")                 \
    X(RANDOM, "random", "", "next fit in a random order")                                                    \
    X(FIRST_FIT_SHUFFLED, "first-fit-shuffled", "HBP, arXiv 2503.07680", "first fit in a random order")      \
    X(FLEXSP, "flexsp", "FlexSP, arXiv 2412.01523", "as published, step by step")                            \
    X(HYBRID_CP, "hybrid-cp", "Megatron-LM", "hybrid context parallelism, step by step")                     \
    X(DYNAMIC_CP, "dynamic-cp", "Megatron-LM", "dynamic context parallelism, step by step")

typedef struct hbp_epoch_options {
    uint32_t struct_size;
    const char *method;       /* [HBP_EPOCH_METHODS] */
    int64_t tokens_per_step;  /* [0..2^50] > 0: no step holds more; 0: chosen (hbp_plan_get_summary has it) */
    int64_t samples_per_step; /* [0..2^50] > 0: every step holds so many samples but the last, or one that
                                 linked samples leave fewer for; never more where they are drawn at random */
    int64_t batches; /* [0..2^50] > 0: so many steps, each of the samples that the caller gives it; excludes
                        the other contracts, composition, curriculum_steps and drop_last */
    const int64_t *batch_offsets; /* [batches + 1] into batch_samples, from 0 */
    const int64_t *batch_samples; /* [batch_offsets[batches]] indices of samples: each of them once */
    int64_t window_samples;   /* [0..2^50] > 0: a sample moves only inside its window of so many samples in
                                 input order */
    int64_t curriculum_steps; /* [0..INT64_MAX] the first so many steps hold samples of the shortest group
                                 alone, the one with the least threshold, while there are any */
    int32_t composition;      /* [HBP_COMPOSITION_*, 0..3] */
    int32_t mixture_slack;    /* [-1..1000] composition auto: steps that are no hierarchy are taken where they
                                 cost at most so many thousandths more; 0: 10; -1: none. Given, the longest
                                 samples alone may keep steps of the hierarchy */
    int32_t modality_order;   /* [flag] as in hbp_balance_options; packs exchange samples first, for fewer
                                 padding packs. Compositions auto and hierarchy, which are one then */
    int32_t drop_last;        /* [flag] nonzero: a group's last, incomplete step is dropped and listed */
    int32_t micro_batches_per_step; /* [0..65536] > 0: every step has exactly so many */
    int32_t micro_batch_multiple;   /* [0..65536] as in hbp_balance_options */
    int32_t equal_samples;          /* [flag] as in hbp_step_options */
    int32_t over_long;              /* [HBP_OVERLONG_*, 0..3] for samples past max_length */
    int64_t max_length;             /* [0..INT64_MAX] longest sample in tokens; 0: that of the lengths */
    int64_t max_pack_length; /* [0..HBP_MAX_LENGTH] as in hbp_groups_options and hbp_step_options, as is the
                                next */
    int64_t tokens_per_rank; /* [0..HBP_MAX_LENGTH] */
    int64_t max_vision; /* [0..HBP_MAX_VISION] the most vision units of a pack; 0: what memory holds. Given,
                           micro-batches are of packs similar in units, too; with over_long drop, samples that
                           have more are dropped (docs: vision) */
    int64_t sequence_multiple;        /* [0..HBP_MAX_LENGTH] as in hbp_step_options, as are the next three */
    int64_t pack_multiple;            /* [0..HBP_MAX_LENGTH] */
    int64_t sequence_multiple_per_sp; /* [0..65536] */
    int64_t pack_multiple_per_sp;     /* [0..65536] */
    const hbp_groups *groups;         /* use these, which must keep to the caps; NULL: choose them */
    int32_t max_groups;               /* [0..HBP_MAX_GROUPS] as in hbp_groups_options */
    int32_t step_slack;               /* [-1..99] as in hbp_groups_options */
    int32_t max_samples;              /* [0..INT32_MAX] per pack, as in hbp_fill_options */
    int32_t min_sp; /* [0..65536] as in hbp_step_options: methods hybrid-cp and dynamic-cp alone */
    int64_t sequence_tokens_per_rank; /* [0..HBP_MAX_LENGTH] as in hbp_step_options: method hybrid-cp alone */
    int32_t effort;  /* [0..9] as in hbp_fill_options and, where steps are planned one by one,
                        hbp_step_options */
    int32_t threads; /* [0..1024] that plan steps side by side; 0: those of the context. The same plan for any
                        number. With more than one the context's allocator is called from all of them */
    uint64_t seed;
    uint64_t epoch;
} hbp_epoch_options;

/* All of it in one call, for a first look and for trainers that need no more: `tokens` [count] of each
 * sample, a model and a machine as hbp_model_create_preset and hbp_machine_create_preset take them
 * ("llama-3.1-8b", "h100:4"), options as hbp_plan_epoch does, NULL for defaults. The plan is the one of these
 * calls, byte for byte; free it with hbp_plan_free. hbp_plan_get_view reads it
 * without a context; what takes one needs one of the caller's (hbp_context_create). Memory comes from malloc.
 * On failure *out is NULL and `why` [why_bytes] gets the message, cut where it does not fit; `why` may be
 * NULL. Thread: any. */
HBP_API hbp_status hbp_plan_quick(const int64_t *tokens, int64_t count, const char *model,
                                  const char *machine, const hbp_epoch_options *options, hbp_plan **out,
                                  char *why, int64_t why_bytes);

/* Plans an epoch. What a step holds is a contract, asked for in one form (docs: contract): samples_per_step,
 * tokens_per_step, batches, or nothing, when tokens_per_step is chosen. `composition` says how the samples of
 * a step are chosen. Steps whose samples are drawn, dealt or given are planned one by one, as hbp_plan_step
 * does; the hierarchy is HBP's: groups, fill, balance. In composition auto the plan is at most mixture_slack
 * slower than the fastest that was found, the hierarchy and method hbp's groups among them, before drop_last
 * drops. No rank is left idle in a step that has samples to spread; in packs of groups none where that takes
 * at most a hundredth longer. Given groups and modality_order keep their places, whose padding packs get
 * samples of fuller packs. Method hbp leaves padding packs as they are (docs: contract, where they remain).
 *
 * Methods whose packs are of one length: `groups`, which must then be one, says how long and on which degree;
 * without, they are those of method hbp's longest group: of max_length, or of the power of two that holds the
 * longest sample. Steps are filled up to tokens_per_step (HBP_E_INFEASIBLE where a micro-batch has more),
 * with samples_per_step up to what as many samples have on average, or one micro-batch. Where a sample is a
 * pack, steps have as many samples as have these tokens on average, and at least one a rank's SP group, so
 * that a step may have more tokens. Methods that plan each step for itself hold the samples that the contract
 * says, drawn at random unless composition is stratified, which takes samples_per_step; tokens_per_rank,
 * sequence_tokens_per_rank and min_sp are theirs to be tuned. Neither plan has a bound. HBP_E_INVALID for an
 * option that the method does not keep, for several groups, and where the cost charges vision units and the
 * lengths have some.
 *
 * A pure function of (lengths, cost, options) for one version of the library. HBP_E_INVALID for two contracts
 * at once, linked samples that no step can hold, a sample that batches name twice or not at all, a sample
 * longer than tokens_per_step; HBP_E_INFEASIBLE where memory or caps hold no plan; and the errors of
 * hbp_plan_groups, hbp_greedy_fill, hbp_balance_attention and hbp_plan_step. Each names the thing, the value
 * and the limit. Thread: one per context. */
HBP_API hbp_status hbp_plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                  const hbp_epoch_options *options, hbp_plan **out);

HBP_END_DECLS

#endif
