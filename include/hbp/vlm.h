/* A vision-language model, and its run in one call: data, pipeline stages and recomputation (OmniBal,
 * arXiv 2407.20761).
 *
 * Stability: advanced; it may change until 1.0. */
#ifndef HBP_VLM_H
#define HBP_VLM_H

#include <stdint.h>

#include "hbp/pipeline.h"
#include "hbp/plan.h"

HBP_BEGIN_DECLS

/* ---- Vision-language model ---- */

typedef struct hbp_vlm hbp_vlm;

/* The encoder, a transformer over patches, and the projector. A vision unit is what samples count: a tile of
 * fixed size (InternVL), an image, or one token handed to the language model (Qwen2-VL). Below 2^24
 * products of two widths stay far from 64 bits. */
typedef struct hbp_vlm_fields {
    uint32_t struct_size;
    int32_t vision_mlp;         /* [HBP_MLP_*] */
    int32_t vision_layers;      /* [1..2^24] */
    int32_t vision_hidden;      /* [1..2^24] */
    int32_t vision_ffn;         /* [1..2^24] */
    int32_t vision_heads;       /* [1..2^24] */
    int32_t vision_head_dim;    /* [0..2^24] 0: hidden / heads */
    int32_t patch_values;       /* [1..2^24] numbers in a patch: 3 * 14 * 14 */
    int32_t tokens_per_unit;    /* [1..2^24] the encoder runs per unit: 1025 */
    int32_t attention_tokens;   /* [0..2^24] that attend one another; 0: tokens_per_unit */
    int32_t projected_per_unit; /* [1..2^24] language-model tokens that a unit becomes: 256 */
    int32_t projector_input;  /* [1..2^24] width of a projected token before the projector (pixel shuffle) */
    int32_t projector_hidden; /* [0..2^24] width between its two matrices; 0: the language model's hidden */
} hbp_vlm_fields;

/* Makes a model of an encoder and a language model (copied). HBP_E_INVALID names the field, its value and the
 * limit. Thread: one per context. */
HBP_API hbp_status hbp_vlm_create(hbp_context *context, const hbp_vlm_fields *fields,
                                  const hbp_model *language, hbp_vlm **out);

/* internvl-1.5-26b (InternViT-6B + InternLM2-20B), internvl-1.2-plus-40b (+ Yi-34B), eva-clip-llama-3-8b
 * (EVA02-CLIP-E/14), qwen2-vl-7b; what their units are: docs, cost model. An unknown name is HBP_E_INVALID
 * and the message offers the nearest. */
HBP_API hbp_status hbp_vlm_create_preset(hbp_context *context, const char *name, hbp_vlm **out);

/* Frees the model; NULL is allowed. Thread: any. */
HBP_API void hbp_vlm_free(hbp_vlm *vlm);

/* The model's name: the preset's, or "custom". Owned by the model. Thread: shareable. */
HBP_API const char *hbp_vlm_get_name(const hbp_vlm *vlm);
HBP_API hbp_status hbp_vlm_get_fields(hbp_context *context, const hbp_vlm *vlm, hbp_vlm_fields *fields);

/* The language model, owned by the VLM. Thread: shareable. */
HBP_API const hbp_model *hbp_vlm_get_language(const hbp_vlm *vlm);

/* What follows from the fields. */
typedef struct hbp_vlm_summary {
    uint32_t struct_size;
    int32_t layers; /* rows of hbp_vlm_create_layers */
    int64_t vision_parameters;
    int64_t projector_parameters;
    int64_t language_parameters;
    double vision_flops_per_unit;    /* forward: encoder and projector */
    double language_flops_per_token; /* forward, without attention's squares */
    double language_flops_per_token_squared;
} hbp_vlm_summary;

/* Fills *summary. Thread: shareable. */
HBP_API hbp_status hbp_vlm_get_summary(hbp_context *context, const hbp_vlm *vlm, hbp_vlm_summary *summary);

typedef struct hbp_vlm_layers_options {
    uint32_t struct_size;
    int32_t tensor_parallel;     /* [0..INT32_MAX] GPUs that share a layer, with sequence parallelism; 0: 1 */
    int32_t data_parallel;       /* [0..INT32_MAX] replicas that share optimiser states under ZeRO; 0: 1 */
    int32_t zero_stage;          /* [HBP_ZERO_*] 0: HBP_ZERO_1 */
    int32_t fused_cross_entropy; /* [flag] */
    double vision;               /* vision units of the reference micro-batch; needed, > 0 */
    double tokens;               /* tokens of the reference micro-batch; needed, > 0 */
    double squares;              /* sum of squared lengths; 0: tokens^2 / 4 (four equal samples) */
    const char *stack; /* the software stack, as hbp_stack_read takes it for the language model; NULL: the
                          machine's efficiencies, nothing but products and attention takes time */
} hbp_vlm_layers_options;

/* Derives every layer's columns from the shapes and the machine (docs: cost model): "patch embedding", the
 * encoder's layers, "projector", "token embedding", the language model's layers, "final norm", "output head".
 * HBP_E_INVALID names a missing field or a tensor-parallel degree that no head count allows. Thread: one per
 * context. */
HBP_API hbp_status hbp_vlm_create_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                         const hbp_vlm_layers_options *options, hbp_layers **out);

/* ---- Plan ---- */

#define HBP_VLM_DATA_METHODS(X)                                                                              \
    X(PACKED, "packed", "", "the library's packs under two budgets")                                         \
    X(ISF, "isf", "OmniBal, arXiv 2407.20761", "iterative sampling and filtering, as published")             \
    X(RANDOM, "random", "", "micro-batches of `samples` random samples, padded to the longest of them")      \
    X(GROUPED, "grouped", "", "the same of samples similar in length, groups in random order")               \
    X(SORTED, "sorted", "", "the same in order of length")

typedef struct hbp_vlm_plan hbp_vlm_plan;

typedef struct hbp_vlm_options {
    uint32_t struct_size;
    int32_t rounds;               /* [0..64] at most so many rounds of data, partition, recomputation; 0: 8 */
    const char *data_method;      /* [HBP_VLM_DATA_METHODS] */
    const char *partition_method; /* [HBP_LAYER_PARTITION_METHODS] */
    const char *recompute_method; /* [HBP_RECOMPUTE_METHODS] */
    int32_t tensor_parallel;      /* [0..1024] GPUs of a layer; 0: 1 */
    int32_t pipeline_stages;      /* [0..1024] S; 0: 1 */
    int32_t virtual_stages;       /* [0..64] V; 0: 1 */
    int32_t data_parallel;        /* [0..2^20] replicas; 0: all GPUs / (tensor_parallel S) */
    int32_t micro_batches; /* [0..65536] of a step, on each replica; 0: as come nearest to batch_samples */
    int32_t batch_samples; /* [0..2^30] of a step, all replicas; 0: 128 */
    int32_t samples;       /* [0..65536] of a micro-batch; 0: 4 */
    int32_t over_long;  /* [HBP_OVERLONG_*, 0..1] HBP_OVERLONG_ERROR or _DROP, of samples over a budget; data
                           method isf always drops */
    int64_t max_vision; /* [0..HBP_MAX_VISION] Q_v and Q_t; 0: hbp_choose_budgets */
    int64_t max_tokens; /* [0..HBP_MAX_LENGTH] */
    int32_t modality_order; /* [flag] as in hbp_balance_options */
    int32_t
        keep_order; /* [flag] nonzero: leave a step's micro-batches in the order drawn, instead of the best */
    int32_t selective;           /* [-1..3] as in hbp_recompute_options */
    int32_t zero_stage;          /* [HBP_ZERO_*] 0: HBP_ZERO_1 */
    int32_t fused_cross_entropy; /* [flag] */
    int32_t effort;              /* [0..9] of the fill */
    int64_t reserve_bytes;       /* [-1..INT64_MAX] of each GPU; 0: HBP_RESERVE_BYTES; -1: none */
    const hbp_layers *layers; /* measured, for a micro-batch of layers_vision units and layers_tokens tokens,
                                 instead of derived ones; NULL */
    double layers_vision;
    double layers_tokens;
    uint64_t seed;
    uint64_t epoch;
    const char *stack; /* as in hbp_vlm_layers_options */
} hbp_vlm_options;

/* Plans a run: budgets and packs, stages for the packs' mean, recomputation under every stage's memory, and
 * again, until none changes (or `rounds`); the best round is the answer. `vlm` may be NULL where
 * options.layers are given, which are used in its place. Where not even full recomputation fits, and neither
 * budgets nor micro_batches were given, packs of one sample less are planned, and so on; the summary's
 * pack_samples says. HBP_E_INVALID for lengths without vision units, for samples of fewer tokens than their
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
} hbp_vlm_plan_summary;

/* Fills *summary. Thread: shareable. */
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

/* Fills *view, whose columns are owned by the plan. Thread: shareable. */
HBP_API hbp_status hbp_vlm_plan_get_view(const hbp_vlm_plan *plan, hbp_vlm_plan_view *view);

/* Runs the pipeline of one replica in one step: `step` in 0..steps - 1 and `replica` in 0..replicas - 1 are
 * rows, operation_micro_batches count from 0 in the step and replica r's pack of micro-batch m is row r of it
 * in the data. The step ends, step_ns, when its slowest replica does. stage_bytes are of this step alone.
 * *out is the caller's to free. HBP_E_INVALID for rows outside. O(micro-batches x chunks). The schedule is
 * that of hbp_simulate_pipeline. Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_run_step(hbp_context *context, const hbp_vlm_plan *plan, int64_t step,
                                         int32_t replica, hbp_pipeline_run **out);

/* Checks the data as hbp_plan_validate does, with `lengths` (NULL: without) also that each sample is there
 * once; that times and bytes of stages, and the times of all steps, are those of the layers, cuts,
 * recomputation and packs; that every stage stays within the limit. HBP_E_INVALID names the first breach.
 * O(samples + micro-batches x stages). Thread: one per context. */
HBP_API hbp_status hbp_vlm_plan_validate(hbp_context *context, const hbp_vlm_plan *plan,
                                         const hbp_lengths *lengths);

HBP_END_DECLS

#endif
