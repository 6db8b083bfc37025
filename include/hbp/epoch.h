/* An epoch in one call: packs, steps, ranks, SP degrees and recomputation (HBP, sections 4 and 5).
 *
 * Stability: stable. */
#ifndef HBP_EPOCH_H
#define HBP_EPOCH_H

#include <stdint.h>

#include "hbp/pack.h"

HBP_BEGIN_DECLS

enum {
    HBP_EPOCH_DEFAULT = 0, /* the fastest plan found under the contract (docs: contract) */
    HBP_EPOCH_PAPER = 1    /* HBP as published: paper groups, paper fill, sorted balance */
};

typedef struct hbp_epoch_options {
    uint32_t struct_size;
    int32_t mode;                 /* [HBP_EPOCH_*] */
    int32_t over_long;            /* [HBP_OVERLONG_*] for samples past max_length */
    int32_t max_groups;           /* [0..HBP_MAX_GROUPS] as in hbp_groups_options */
    int32_t micro_batch_multiple; /* [0..65536] as in hbp_balance_options */
    int32_t drop_last;            /* [flag] */
    int32_t max_samples;          /* [0..INT32_MAX] per pack, as in hbp_fill_options */
    int32_t effort;               /* [0..9] */
    int64_t max_length;           /* [0..INT64_MAX] longest sample in tokens; 0: that of the lengths */
    int64_t tokens_per_step; /* [0..2^50] > 0: no step holds more; 0: chosen (hbp_plan_get_summary says it) */
    int64_t curriculum_steps;  /* [0..INT64_MAX] the first so many steps hold samples of the shortest group
                                  alone, the one with the least threshold, while there are any */
    int64_t sequence_multiple; /* [0..HBP_MAX_LENGTH] */
    int64_t pack_multiple;     /* [0..HBP_MAX_LENGTH] */
    int64_t samples_per_step;  /* [0..2^50] > 0: every step holds so many samples but the last, or one that
                                  linked samples leave fewer for; never more where they are drawn at random */
    int64_t window_samples;    /* [0..2^50] > 0: a sample moves only inside its window of so many samples in
                                  input order */
    uint64_t seed;
    uint64_t epoch;
    const hbp_groups *groups; /* use these, which must keep to the caps; NULL: choose them */
    int32_t mixture_slack;    /* [-1..1000] composition auto: steps that are no hierarchy are taken where they
                                 cost at most so many thousandths more; 0: 10; -1: none. Given, the
                                 longest samples alone may keep steps of the hierarchy */
    int32_t
        modality_order;  /* [flag] as in hbp_balance_options; packs exchange samples first, so that fewer
                            padding packs are needed. Compositions auto and hierarchy, which are one then */
    int64_t max_vision;  /* [0..HBP_MAX_VISION] the most vision units of a pack; 0: what memory holds. Given,
                            micro-batches are of packs similar in units, too; with over_long drop, samples that
                            have more are dropped (docs: vision) */
    int32_t composition; /* [HBP_COMPOSITION_*, 0..3] */
    int32_t threads; /* [0..1024] that plan steps side by side; 0: 1. The same plan for any number. With more
                        than one the context's allocator is called from all of them */
    int32_t micro_batches_per_step; /* [0..65536] > 0: every step has exactly so many */
    int32_t equal_samples;          /* [flag] as in hbp_step_options */
    int32_t step_slack;             /* [-1..99] as in hbp_groups_options */
    int32_t min_sp;          /* [0..65536] as in hbp_step_options: for baselines hybrid-cp and dynamic-cp */
    int64_t max_pack_length; /* [0..HBP_MAX_LENGTH] as in hbp_groups_options and hbp_step_options, as are the
                                next three */
    int64_t tokens_per_rank; /* [0..HBP_MAX_LENGTH] */
    int64_t sequence_multiple_per_sp; /* [0..65536] */
    int64_t pack_multiple_per_sp;     /* [0..65536] */
    int64_t batches; /* [0..2^50] > 0: so many steps, each of the samples that the caller gives it; excludes
                        the other contracts, composition, curriculum_steps and drop_last */
    const int64_t *batch_offsets;     /* [batches + 1] into batch_samples, from 0 */
    const int64_t *batch_samples;     /* [batch_offsets[batches]] indices of samples: each of them once */
    int64_t sequence_tokens_per_rank; /* [0..HBP_MAX_LENGTH] as in hbp_step_options: for baseline hybrid-cp */
} hbp_epoch_options;

/* All of it in one call, for a first look and for trainers that need no more: `tokens` [count] of each
 * sample, a model and a machine as hbp_model_create_preset and hbp_machine_create_preset take them
 * ("llama-3.1-8b", "h100:4"), options as hbp_plan_epoch does, NULL for defaults. The plan is the one of these
 * calls, byte for byte; free it with hbp_plan_free. Memory comes from malloc. On failure *out is NULL and
 * `why` [why_bytes] gets the message, cut where it does not fit; `why` may be NULL. Thread: any. */
HBP_API hbp_status hbp_plan_quick(const int64_t *tokens, int64_t count, const char *model,
                                  const char *machine, const hbp_epoch_options *options, hbp_plan **out,
                                  char *why, int64_t why_bytes);

/* Plans an epoch. What a step holds is a contract, asked for in one form (docs: contract): samples_per_step,
 * tokens_per_step, batches, or nothing, when tokens_per_step is chosen. `composition` says how the samples of
 * a step are chosen. Steps whose samples are drawn, dealt or given are planned one by one, as hbp_plan_step
 * does; the hierarchy is HBP's: groups, fill, balance. In composition auto the plan is at most mixture_slack
 * slower than the fastest that was found, the hierarchy and mode paper's groups among them, before drop_last
 * drops. No rank is left idle in a step that has samples to spread; in packs of groups none where that takes
 * at most a hundredth longer. Given groups and modality_order keep their places, whose padding packs get
 * samples of fuller packs. Mode paper leaves padding packs as they are (docs: contract, where padding packs
 * remain).
 *
 * A pure function of (lengths, cost, options) for one version of the library. HBP_E_INVALID for two contracts
 * at once, linked samples that no step can hold, a sample that batches name twice or not at all, a sample
 * longer than tokens_per_step; HBP_E_INFEASIBLE where memory or caps hold no plan; and the errors of
 * hbp_plan_groups, hbp_greedy_fill, hbp_balance_attention and hbp_plan_step. Each names the thing, the value
 * and the limit. Thread: one per context. */
HBP_API hbp_status hbp_plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                  const hbp_epoch_options *options, hbp_plan **out);

/* The methods of others to plan an epoch, to compare with. The classic ones, up to spfhp and the two behind
 * hbp-paper, fill packs of one length and run each on one SP degree. The last three plan each step for
 * itself.
 */
enum {
    HBP_BASELINE_NO_PACKING = 0, /* one sample a pack, none padded: ranks wait for the longest of a
                                    micro-batch */
    HBP_BASELINE_SORTED = 1,     /* LongAlign-sorted: sort, cut into micro-batches in order, permute these */
    HBP_BASELINE_NEXT_FIT = 2,   /* LongAlign-packing: next fit in the order given */
    HBP_BASELINE_FIRST_FIT_DECREASING = 3,
    HBP_BASELINE_BEST_FIT_DECREASING = 4,
    HBP_BASELINE_ISF = 5,            /* iterative sampling and filtering (OmniBal), on tokens alone */
    HBP_BASELINE_SPFHP = 6,          /* shortest-pack-first histogram packing */
    HBP_BASELINE_HOMOGENEOUS_SP = 7, /* this library's packing and balance, one group */
    HBP_BASELINE_PAPER = 8,          /* HBP as published */
    HBP_BASELINE_RANDOM = 9,         /* next fit in a random order */
    HBP_BASELINE_FIRST_FIT_SHUFFLED = 10,
    HBP_BASELINE_FLEXSP = 11,     /* FlexSP as published: HBP_STEP_PAPER */
    HBP_BASELINE_HYBRID_CP = 12,  /* Megatron's hybrid context parallelism */
    HBP_BASELINE_DYNAMIC_CP = 13, /* Megatron's dynamic context parallelism */
    HBP_BASELINE_COUNT = 14
};

/* "no-packing", "sorted", ...; NULL for no such baseline. Static text. Thread: any. */
HBP_API const char *hbp_baseline_name(int32_t baseline);

/* Plans an epoch one of these methods. `groups`, which must then be one, says how long packs of the classic
 * methods are and on which degree they run; without, they are of max_length (or of the longest sample) on the
 * degree that hbp_choose_sp finds; a step of theirs has the tokens that the contract says, of
 * samples_per_step or batches on average, and where a sample is a pack as many samples as have these. Steps
 * planned for themselves hold the samples that the contract says: samples_per_step, batches, or
 * tokens_per_step, chosen where none is given, drawn at random unless composition is stratified; the plan has
 * no bound. tokens_per_rank, sequence_tokens_per_rank and min_sp are theirs to be tuned. Options that a
 * method has no use for are ignored. HBP_E_INVALID where the cost charges vision units and the lengths have
 * some, or for several groups. */
HBP_API hbp_status hbp_plan_baseline(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                     int32_t baseline, const hbp_epoch_options *options, hbp_plan **out);

HBP_END_DECLS

#endif
