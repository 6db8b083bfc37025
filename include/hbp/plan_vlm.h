/* Data, pipeline stages and recomputation of a vision-language run in one call (OmniBal). */
#ifndef HBP_PLAN_VLM_H
#define HBP_PLAN_VLM_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/layers.h"
#include "hbp/lengths.h"
#include "hbp/machine.h"
#include "hbp/pipeline.h"
#include "hbp/plan.h"
#include "hbp/plan_file.h"
#include "hbp/recompute.h"
#include "hbp/vlm.h"

enum {
    HBP_VLM_DATA_PACKED = 0,  /* the library's packs under two budgets */
    HBP_VLM_DATA_ISF = 1,     /* OmniBal's, as published */
    HBP_VLM_DATA_RANDOM = 2,  /* micro-batches of `samples` random samples, padded to the longest of them */
    HBP_VLM_DATA_GROUPED = 3, /* the same of samples alike in length, groups in random order */
    HBP_VLM_DATA_SORTED = 4   /* the same in order of length */
};

HBP_BEGIN_DECLS

typedef struct hbp_vlm_plan hbp_vlm_plan;

typedef struct hbp_vlm_options {
    uint32_t struct_size;
    int32_t data;            /* HBP_VLM_DATA_* */
    int32_t model;           /* HBP_PARTITION_* */
    int32_t memory;          /* HBP_MEMORY_* */
    int32_t selective;       /* as in hbp_recompute_options */
    int32_t tensor_parallel; /* GPUs of a layer; 0: 1 */
    int32_t pipeline_stages; /* S; 0: 1 */
    int32_t virtual_stages;  /* V; 0: 1 */
    int32_t data_parallel;   /* replicas; 0: all GPUs / (tensor_parallel S) */
    int32_t micro_batches;   /* of a step, on each replica; 0: as come nearest to batch_samples */
    int32_t batch_samples;   /* of a step, all replicas; 0: 128 */
    int32_t samples;         /* of a micro-batch; 0: 4 */
    int32_t zero_stage;      /* 0: HBP_ZERO_1 */
    int32_t over_long;      /* HBP_OVERLONG_ERROR or _DROP, of samples over a budget; data ISF always drops */
    int32_t modality_order; /* as in hbp_balance_options */
    int32_t order;          /* -1: leave a step's micro-batches in the order drawn; 0: order them */
    int32_t rounds;         /* at most so many rounds of data, model, memory; 0: 8 */
    int32_t effort;         /* of the fill */
    int32_t fused_cross_entropy;
    int64_t max_vision; /* Q_v and Q_t; 0: hbp_choose_budgets */
    int64_t max_tokens;
    int64_t reserve_bytes;    /* of each GPU; 0: 5 GB; -1: none */
    const hbp_layers *layers; /* measured, for a micro-batch of layers_vision units and layers_tokens tokens,
                                 instead of derived ones; NULL */
    double layers_vision;
    double layers_tokens;
    uint64_t seed;
    uint64_t epoch;
} hbp_vlm_options;

HBP_API void hbp_vlm_options_init(hbp_vlm_options *options, uint32_t struct_size);

/* Plans a run: budgets and packs, stages for the packs' mean, recomputation under every stage's memory, and
 * again, until none changes (or `rounds`); the best round is the answer. `vlm` may be NULL where
 * options.layers are given, which are used in its place. Where not even full recomputation fits, and neither
 * budgets nor micro_batches were given, packs of one sample less are planned, and so on; the summary's
 * pack_samples tells. HBP_E_INVALID for lengths without vision units, for samples of fewer tokens than their
 * vision units become, and for options out of range; HBP_E_INFEASIBLE names the stage that does not fit even
 * with every layer recomputed; the errors of its parts. Deterministic. Thread: one per context. */
HBP_API hbp_status hbp_plan_vlm(hbp_context *context, const hbp_lengths *lengths, const hbp_vlm *vlm,
                                const hbp_machine *machine, const hbp_vlm_options *options,
                                hbp_vlm_plan **out);
HBP_API void hbp_vlm_plan_free(hbp_vlm_plan *plan);

typedef struct hbp_vlm_plan_summary {
    uint32_t struct_size;
    int32_t gpus;
    int32_t replicas;
    int32_t stages;
    int32_t virtual_stages;
    int32_t micro_batches; /* of a full step, on each replica */
    int32_t rounds;        /* until nothing changed */
    int32_t recomputed;    /* layers recomputed in whole, and in part */
    int32_t selective;
    int64_t max_vision; /* Q_v, 0 for data that are not packed */
    int64_t max_tokens;
    int64_t steps;
    int64_t samples;
    int64_t dropped;
    int64_t epoch_ns;   /* the sum over steps of the slowest replica's pipeline */
    int64_t bound_ns;   /* no data, partition and order of these layers without recomputation takes less; the
                           work of all samples spread evenly over all GPUs */
    int64_t peak_bytes; /* of the fullest stage */
    int64_t limit_bytes;
    double gpu_days; /* epoch_ns of all GPUs */
    double bubble;   /* share of GPU-time in which a stage waits, or its replica for a slower one */
    double padding;  /* OmniBal's PadRatio and DistRatio */
    double dist_vision;
    double dist_tokens;
    uint64_t digest;        /* of everything decided: data, cuts, recomputation */
    int64_t packs_bound_ns; /* no stages, order and recomputation take less with these packs in these steps;
                               with virtual stages as bound_ns but for the steps (docs: vlm) */
    int32_t pack_samples;   /* that a pack was to hold: `samples`, or fewer where memory was short */
    int32_t reserved;
} hbp_vlm_plan_summary;

HBP_API hbp_status hbp_vlm_plan_get_summary(hbp_context *context, const hbp_vlm_plan *plan,
                                            hbp_vlm_plan_summary *summary);

/* The data: a plan whose ranks are the replicas, one pack a replica and micro-batch. In padded data a pack's
 * capacity is what the batch is padded to. Its predicted times are those of perfectly even stages. Owned by
 * the VLM plan, as everything below. */
HBP_API const hbp_plan *hbp_vlm_plan_get_data(const hbp_vlm_plan *plan);

/* The layers for the mean micro-batch. */
HBP_API const hbp_layers *hbp_vlm_plan_get_layers(const hbp_vlm_plan *plan);

/* The columns of a plan (docs: views). */
typedef struct hbp_vlm_plan_view {
    uint32_t struct_size;
    int64_t stages; /* S */
    int64_t chunks; /* S V */
    int64_t layers;
    int64_t steps;
    const int32_t *cuts;        /* [chunks + 1] first layer of every chunk, and the number of layers */
    const int32_t *recompute;   /* [layers] HBP_RECOMPUTE_* */
    const int64_t *stage_ns;    /* [stages] mean time for a micro-batch */
    const int64_t *stage_bytes; /* [stages] peak */
    const int64_t *step_ns;     /* [steps] in the pipeline */
} hbp_vlm_plan_view;

HBP_API hbp_status hbp_vlm_plan_get_view(const hbp_vlm_plan *plan, hbp_vlm_plan_view *view);

/* Writes the plan file of the data (hbp_plan_save) with the rest in its header: stages, recomputation,
 * layers, and what the steps' times follow from (docs: file format). hbp_plan_load and hbp_plan_file_open
 * read the data as they do any plan's. `options` may be NULL. Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_save(hbp_context *context, const hbp_vlm_plan *plan, const char *path,
                                     const hbp_plan_save_options *options);

/* Reads such a file whole, trusting nothing: HBP_E_FORMAT with the byte offset for a damaged file or one of a
 * plan alone, HBP_E_VERSION for a file of a later format. */
HBP_API hbp_status hbp_vlm_plan_load(hbp_context *context, const char *path, hbp_vlm_plan **out);

/* Checks the data as hbp_plan_validate does, with `lengths` (NULL: without) also that each sample is there
 * once; that times and bytes of stages, and the times of all steps, are those of the layers, cuts,
 * recomputation and packs; that every stage stays within the limit. HBP_E_INVALID names the first breach.
 * O(samples + micro-batches x stages). Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_validate(hbp_context *context, const hbp_vlm_plan *plan,
                                         const hbp_lengths *lengths);

/* Writes a Chrome trace (opens in Perfetto) of steps [first, first + count), count 0: all: a process for each
 * replica, a row for each stage, an event for each forward and backward. Atomically. Thread: one per context.
 */
HBP_API hbp_status hbp_vlm_plan_write_trace(hbp_context *context, const hbp_vlm_plan *plan, int64_t first,
                                            int64_t count, const char *path);

/* Writes the plan as JSON: its data as hbp_plan_write_json does, and "vlm" with all else under the keys of
 * its file. Whole or not at all. Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_write_json(hbp_context *context, const hbp_vlm_plan *plan, const char *path);

HBP_END_DECLS

#endif
