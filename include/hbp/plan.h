/* A plan, what a rank runs of it, and its replay.
 *
 * Stability: stable. */
#ifndef HBP_PLAN_H
#define HBP_PLAN_H

#include <stdint.h>

#include "hbp/cost.h"
#include "hbp/lengths.h"

HBP_BEGIN_DECLS

/* ---- Plan ---- */

/* A plan: four tables of columns (steps, micro-batches, packs, samples) joined by offsets, and a list of
 * dropped samples. Immutable; any number of threads may read one. */

/* What a sample's token loss is divided by, so that a step's loss is the sum over its samples (HBP,
 * section 4.3). */
enum {
    HBP_LOSS_TOKEN = 0,       /* Ave-Token, stable loss: every loss token of the step weighs the same */
    HBP_LOSS_LOCAL_TOKEN = 1, /* mean of each pack's token mean */
    HBP_LOSS_SAMPLE = 2,      /* mean of each sample's token mean */
    HBP_LOSS_SUM = 3          /* plain sum: every weight 1 */
};

/* How the samples of a step are chosen (docs: contract). */
enum {
    HBP_COMPOSITION_AUTO = 0, /* random with samples_per_step; else the fastest found that is no hierarchy, or
                                 the hierarchy where it takes more than 1 % less time */
    HBP_COMPOSITION_RANDOM = 1,     /* as a shuffled sampler draws them */
    HBP_COMPOSITION_STRATIFIED = 2, /* every step a small copy of the epoch */
    HBP_COMPOSITION_HIERARCHY = 3,  /* HBP: a step holds packs of one group */
    HBP_COMPOSITION_GIVEN = 4       /* the caller's batches; of a plan, never an option */
};

/* Bytes of a resume cursor. */
#define HBP_CURSOR_BYTES 64

typedef struct hbp_plan hbp_plan;

/* Frees the plan; NULL is allowed. Thread: any. */
HBP_API void hbp_plan_free(hbp_plan *plan);

/* "auto", "random", "stratified", "hierarchy", "given"; NULL for no such composition. Static text. Thread:
 * any. */
HBP_API const char *hbp_composition_name(int32_t composition);

typedef struct hbp_plan_summary {
    uint32_t struct_size;
    int32_t ranks;
    int32_t domain_ranks; /* consecutive ranks on fast links */
    int32_t complete;     /* nonzero: no time limit cut the planning short */
    int64_t steps;
    int64_t micro_batches;
    int64_t packs; /* padding packs included */
    int64_t padding_packs;
    int64_t samples; /* rows of the sample table */
    int64_t dropped;
    int64_t tokens;
    int64_t padded_tokens;
    int64_t loss_tokens;
    int64_t sequence_multiple;
    int64_t pack_multiple;
    int64_t micro_batch_multiple;
    int64_t predicted_ns;     /* the epoch: the sum over steps */
    int64_t first_step;       /* of the epoch: > 0 in a part of a plan that does not begin it */
    int64_t overlong_samples; /* of the data set, in a part of a plan too */
    int64_t overlong_tokens;
    uint64_t seed;
    uint64_t epoch;
    uint64_t digest;         /* over every column and the fields that decide: equal plans, and only those,
                                agree; ranks that plan redundantly compare it */
    uint64_t lengths_digest; /* of the data set it was made for */
    int64_t bound_ns;        /* no plan under its cost and options is faster (docs: contract); 0: not known */
    double gap;              /* predicted_ns / bound_ns - 1; NaN when the bound is not known */
    int64_t vision;          /* vision units in all; -1: the plan has no second size */
    int64_t modalities;      /* modalities that occur, bit k for modality k; 0: no order of modalities */
    int32_t composition; /* HBP_COMPOSITION_* of its steps; 0: packs of one length, dealt as they are; or not
                            recorded */
    int32_t proven;      /* nonzero: predicted_ns is bound_ns: none is faster */
    int64_t samples_per_step;         /* asked for; 0: it was not */
    int64_t tokens_per_step;          /* the most that was asked for or chosen; 0: none */
    int64_t sequence_multiple_per_sp; /* as in hbp_step_options, as is the next; 0: none */
    int64_t pack_multiple_per_sp;
    int64_t hierarchy_ns; /* composition auto: predicted time of the best plan found of composition hierarchy,
                             and of one that is none (estimated from some steps where that was enough to
                             say), with drop_last of all samples at the plan's rate; 0 where there was none,
                             the planner did not look for one, or traffic hides behind compute */
    int64_t mixture_ns;
    int32_t lockstep_ranks; /* consecutive ranks that wait for one another in every micro-batch, as in
                               hbp_cost_terms; 0: all */
    int64_t free_bound_ns;  /* no plan of its samples is faster, whatever its steps hold: what is above it is
                               the price of the contract; of whole epochs; 0: not known */
    int32_t shifted_loss;   /* nonzero: its lengths had shifted_loss (hbp_lengths_options): labels are shifted
                               inside the model and the first token of a sample or piece has no loss */
    int64_t epoch_steps;    /* of a part of a plan: steps of the whole; 0: this is the whole */
} hbp_plan_summary;

/* Fills *summary. Thread: shareable. */
HBP_API hbp_status hbp_plan_get_summary(hbp_context *context, const hbp_plan *plan,
                                        hbp_plan_summary *summary);

/* The columns of a plan (docs: views). A pack without samples is a padding pack; samples stand in the order
 * in which packs lay them end to end. */
typedef struct hbp_plan_view {
    uint32_t struct_size;
    int64_t steps;
    int64_t micro_batches;
    int64_t packs;
    int64_t samples;
    int64_t dropped;
    const int64_t *step_offsets;        /* [steps + 1] into micro-batches */
    const int64_t *step_ns;             /* [steps] predicted */
    const int64_t *step_loss_tokens;    /* [steps] what the step's loss is divided by */
    const int64_t *step_samples;        /* [steps] */
    const int64_t *step_tokens;         /* [steps] */
    const int64_t *micro_batch_offsets; /* [micro_batches + 1] into packs */
    const int64_t *micro_batch_ns;      /* [micro_batches] of the slowest pack */
    /* [micro_batches] modalities that every rank meets in it, in ascending order, bit k for modality k: all
     * its packs hold samples of just these modalities, sorted by modality, and a rank with a padding pack
     * runs a padding pack of each. NULL unless an order of modalities was asked for. */
    const int64_t *micro_batch_modalities;
    const int64_t *pack_offsets;       /* [packs + 1] into samples */
    const int32_t *pack_ranks;         /* [packs] the first of pack_sp ranks */
    const int32_t *pack_sp;            /* [packs] */
    const int32_t *pack_recompute;     /* [packs] layers */
    const int64_t *pack_capacity;      /* [packs] tokens */
    const int64_t *pack_tokens;        /* [packs] */
    const int64_t *pack_padded_tokens; /* [packs] */
    const int64_t *pack_squares;       /* [packs] sum of squared lengths */
    const int64_t *pack_loss_tokens;   /* [packs] */
    const int64_t *pack_ns;            /* [packs] predicted */
    const int64_t *pack_bytes;         /* [packs] predicted peak of a rank */
    const int64_t *pack_vision;        /* [packs] vision units; NULL without a second size */
    const int64_t
        *pack_vision_capacity;          /* [packs] the most it may hold, INT64_MAX: no limit; NULL as above */
    const int64_t *sample_ids;          /* [samples] */
    const int32_t *sample_tokens;       /* [samples] */
    const int64_t *sample_first_tokens; /* [samples] of a piece, in its sample; NULL unless one was split */
    const int32_t *sample_loss_tokens;  /* [samples]; NULL when every token carries loss */
    const int32_t *sample_vision;       /* [samples] vision units; NULL without a second size */
    const int32_t *sample_modalities;   /* [samples] modalities; NULL unless an order of them was asked for */
    const int64_t *dropped_ids;         /* [dropped] */
    const int32_t *dropped_reasons;     /* [dropped] HBP_DROPPED_* */
    /* [dropped] where samples were split, the piece that was dropped: its first token in the sample and its
     * tokens, 0 for a sample that the limit on lengths left out whole. NULL unless a piece was dropped. */
    const int64_t *dropped_first_tokens;
    const int32_t *dropped_tokens;
} hbp_plan_view;

/* Thread: shareable. */
HBP_API hbp_status hbp_plan_get_view(const hbp_plan *plan, hbp_plan_view *view);

/* The pack that `rank` runs in micro-batch `micro_batch` (0-based inside the step) of step `step`; -1 when
 * there is no such thing. O(log packs of the micro-batch). Thread: shareable. */
HBP_API int64_t hbp_plan_get_rank_pack(const hbp_plan *plan, int64_t step, int64_t micro_batch, int32_t rank);

/* What one rank runs in one micro-batch of a step. */
typedef struct hbp_rank_pack {
    uint32_t struct_size;
    int32_t sp;           /* ranks that share the pack: its SP degree */
    int32_t first_rank;   /* of them */
    int32_t sp_rank;      /* this rank's place among them: rank - first_rank */
    int32_t recompute;    /* layers to recompute in backward */
    int32_t is_padding;   /* nonzero: no samples, but the rank takes part with no loss tokens */
    int64_t pack;         /* row of the plan's packs */
    int64_t first_sample; /* rows first_sample .. first_sample + samples - 1 of the plan's samples */
    int64_t samples;
    int64_t tokens;
    int64_t padded_tokens;
    int64_t loss_tokens; /* of the pack; every rank of its group counts them */
    int64_t vision;      /* vision units of the pack; 0 without a second size */
    int64_t modalities;  /* modalities that the rank runs, of a padding pack too; 0 without an order of
                            modalities */
} hbp_rank_pack;

/* Writes the part of rank `rank` in step `step`: a pack for each micro-batch of the step, as many on every
 * rank, of `pack_size` bytes each (the caller's sizeof). *count gets the number of micro-batches; nothing is
 * written when `capacity` is below it. HBP_E_INVALID then and for a step or rank that is not there.
 * O(micro-batches x log ranks). */
HBP_API hbp_status hbp_plan_copy_rank_packs(hbp_context *context, const hbp_plan *plan, int64_t step,
                                            int32_t rank, hbp_rank_pack *packs, uint32_t pack_size,
                                            int64_t capacity, int64_t *count);

/* Writes the borders of pack `pack`: int32 [samples + 1], from 0; padded: every sample rounded up to the
 * sequence multiple, and the pack's own padding as one border more when there is any (flash attention's
 * cu_seqlens). *count gets the number of borders; nothing is written when `capacity` is below it. */
HBP_API hbp_status hbp_plan_copy_cu_seqlens(hbp_context *context, const hbp_plan *plan, int64_t pack,
                                            int32_t padded, int32_t *borders, int64_t capacity,
                                            int64_t *count);

/* Writes a factor per sample of step `step` (plan order) for its token losses: the step's loss is
 * sum(weight_i * sum of token losses of i), and sum(weight_i * loss tokens of i) = 1, except for
 * HBP_LOSS_SUM. Multiply by the data-parallel size where gradients are averaged instead of summed. */
HBP_API hbp_status hbp_plan_copy_loss_weights(hbp_context *context, const hbp_plan *plan, int64_t step,
                                              int32_t normaliser, double *weights, int64_t capacity,
                                              int64_t *count);

/* Checks every promise of the plan (docs: contract); with `lengths` also that each sample is there once with
 * its length, with `cost` also memory, degrees and predicted times. Either may be NULL. HBP_E_INVALID names
 * the first breach. O(samples). Thread: one per context. */
HBP_API hbp_status hbp_plan_validate(hbp_context *context, const hbp_plan *plan, const hbp_lengths *lengths,
                                     const hbp_cost *cost);

/* Writes where to resume (before step `step`) into `cursor` [HBP_CURSOR_BYTES]; reads it back: *step is set
 * when plan and world size are the ones it was written for, else HBP_E_INVALID says what changed. */
HBP_API hbp_status hbp_plan_save_cursor(hbp_context *context, const hbp_plan *plan, int64_t step,
                                        uint8_t *cursor);
HBP_API hbp_status hbp_plan_load_cursor(hbp_context *context, const hbp_plan *plan, const uint8_t *cursor,
                                        int64_t *step);

/* ---- Replay and bound ---- */

/* Replays a plan and measures it, independently of the planners; and the bound no plan can beat. */

/* Shares are in 0..1. Metrics as HBP and OmniBal define them (docs: metrics), means over micro-batches unless
 * said. */
typedef struct hbp_report {
    uint32_t struct_size;
    int32_t ranks;
    int64_t steps;
    int64_t epoch_ns; /* predicted */
    int64_t bound_ns; /* no plan in so many steps is faster under this cost; 0: not computed */
    int64_t tokens;
    int64_t peak_bytes; /* largest of any rank */
    double gap;         /* epoch_ns / bound_ns - 1; NaN when the bound is not known */
    double idle;        /* rank-time spent waiting inside micro-batches / all rank-time of micro-batches */
    double dbr;         /* data balance ratio over SP groups, in tokens */
    double padding;     /* tokens that are only padding / tokens computed: (padded - tokens) / padded */
    double abr;         /* attention balance ratio over true SP groups */
    double abr_paper;   /* at the paper's granularity, ranks / largest SP */
    double cr;          /* tokens in packs with SP > 1 / all tokens */
    double ave_tokens;  /* mean tokens per rank and step */
    double tokens_per_s_per_gpu;
    double communication;    /* share of rank-time in all-to-all */
    double samples_cv;       /* coefficient of variation of samples per step, over all steps */
    double mixture_distance; /* mean over steps of half the L1 distance of tokens by length class (powers of
                                two) to the mixture of the epoch */
    int64_t vision;          /* vision units; -1: no second size */
    double dist_vision;      /* OmniBal's DistRatio of vision units: mean over micro-batches of the sum over
                                packs, padding packs included, of (most - own) / (most * packs) */
    double dist_tokens;      /* the same of padded tokens */
    double
        vision_padding; /* (capacity - vision) / capacity over packs with a limit, padding packs included */
    int64_t step_samples_p5; /* samples of a step: quantiles over the steps, the lower of two neighbours */
    int64_t step_samples_median;
    int64_t step_samples_p95;
    int64_t step_tokens_p5; /* the same of tokens */
    int64_t step_tokens_median;
    int64_t step_tokens_p95;
} hbp_report;

typedef struct hbp_simulate_options {
    uint32_t struct_size;
    int32_t no_bound;        /* [flag] nonzero: no bound; bound_ns is 0 */
    int64_t tokens_per_step; /* [0..INT64_MAX] limit for the bound's number of steps; 0: the plan's own number
                                of steps */
} hbp_simulate_options;

/* Recomputes every pack's time and memory from its samples and the cost, and from them everything in the
 * report; predictions stored in the plan are not used. *report is written on success. O(samples). Thread: one
 * per context. */
HBP_API hbp_status hbp_simulate(hbp_context *context, const hbp_plan *plan, const hbp_cost *cost,
                                const hbp_simulate_options *options, hbp_report *report);

/* The bound for a data set: no plan that runs these samples whole, in at least `steps` steps, is predicted to
 * take less than *bound_ns (docs: bound, with its proof). O(bins * degrees * layers). Thread: one per
 * context. */
HBP_API hbp_status hbp_bound_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   int64_t steps, int64_t *bound_ns);

HBP_END_DECLS

#endif
