/* The layers of a model in pipeline stages, and which of them recompute (OmniBal, arXiv 2407.20761,
 * sections 3.3 and 3.4).
 *
 * Stability: advanced; it may change until 1.0. */
#ifndef HBP_PIPELINE_H
#define HBP_PIPELINE_H

#include <stdint.h>

#include "hbp/base.h"

HBP_BEGIN_DECLS

/* ---- Layers ---- */

/* The layers of a model in the order in which a micro-batch meets them, with what each costs: the input of
 * the planners of pipeline stages and of recomputation. Immutable once made; shareable. */

/* What a layer's time, activations and output grow with, from micro-batch to micro-batch. */
enum {
    HBP_LAYER_LANGUAGE = 0, /* tokens */
    HBP_LAYER_VISION = 1,   /* vision units */
    HBP_LAYER_FIXED = 2,    /* nothing: the same for every micro-batch */
    HBP_LAYER_TYPES = 3
};

/* What of a layer is computed again in the backward pass instead of kept. */
enum {
    HBP_RECOMPUTE_NONE = 0,
    HBP_RECOMPUTE_ATTENTION = 1, /* the attention part alone */
    HBP_RECOMPUTE_MLP = 2,       /* the feed-forward part alone */
    HBP_RECOMPUTE_LAYER = 3,     /* all of it; its input is kept */
    HBP_RECOMPUTE_CHOICES = 4
};

typedef struct hbp_layers hbp_layers;

/* Columns [count] of one GPU's share (tensor parallelism divides before), for the reference micro-batch,
 * whose scale is 1. NULL columns are zeros but where said. All values >= 0, times in ns, sizes in bytes. */
typedef struct hbp_layer_columns {
    uint32_t struct_size;
    int32_t count;
    const int64_t *forward_ns;       /* needed */
    const int64_t *backward_ns;      /* without recomputation; NULL: twice forward_ns */
    const int32_t *type;             /* HBP_LAYER_*; NULL: all HBP_LAYER_LANGUAGE */
    const int64_t *parameters;       /* a plain count */
    const int64_t *state_bytes;      /* weights, gradients, optimiser states */
    const int64_t *activation_bytes; /* kept from forward to backward with nothing recomputed */
    const int64_t *recomputed_bytes; /* kept with the whole layer recomputed */
    const int64_t
        *working_bytes; /* more while the layer is recomputed; NULL: activation - recomputed bytes */
    const int64_t *attention_bytes; /* freed by recomputing attention alone; 0: that cannot be chosen */
    const int64_t *attention_ns;    /* what that costs in time */
    const int64_t *mlp_bytes;       /* the same for the feed-forward part */
    const int64_t *mlp_ns;
    const int64_t *recompute_ns; /* time of recomputing the whole layer; NULL: forward_ns */
    const int64_t *cut_bytes;    /* sent on when a stage ends behind this layer; the last is not used */
    const int32_t *cut_type;     /* HBP_LAYER_*: what cut_bytes grows with; NULL: `type` */
    const char *const *names;    /* NULL: "layer 0", ... Copied */
} hbp_layer_columns;

/* Makes layers from measured (or made up) columns; copies. HBP_E_INVALID names the column, the layer and the
 * value: count < 1, a negative number, an unknown type, recomputed above activation bytes, parts that free
 * more than the layer keeps; HBP_E_OVERFLOW when a column's sum passes 2^62. Thread: one per context. */
HBP_API hbp_status hbp_layers_create(hbp_context *context, const hbp_layer_columns *columns,
                                     hbp_layers **out);

/* Frees the layers; NULL is allowed. Thread: any. */
HBP_API void hbp_layers_free(hbp_layers *layers);

/* The columns of layers (docs: views), each [layers] and as hbp_layer_columns has it; never NULL: defaults
 * are filled in. */
typedef struct hbp_layers_view {
    uint32_t struct_size;
    int64_t layers;
    const int32_t *type;     /* HBP_LAYER_* */
    const int32_t *cut_type; /* HBP_LAYER_* */
    const char *const *names;
    const int64_t *forward_ns;
    const int64_t *backward_ns;
    const int64_t *parameters;
    const int64_t *state_bytes;
    const int64_t *activation_bytes;
    const int64_t *recomputed_bytes;
    const int64_t *working_bytes;
    const int64_t *attention_bytes;
    const int64_t *attention_ns;
    const int64_t *mlp_bytes;
    const int64_t *mlp_ns;
    const int64_t *recompute_ns;
    const int64_t *cut_bytes;
} hbp_layers_view;

/* Fills *view, whose columns are owned by the layers. Thread: shareable. */
HBP_API hbp_status hbp_layers_get_view(const hbp_layers *layers, hbp_layers_view *view);

/* ---- Pipeline stages ---- */

#define HBP_LAYER_PARTITION_METHODS(X)                                                                       \
    X(OPTIMAL, "optimal", "", "least pipeline time")                                                         \
    X(BALANCED, "balanced", "DeepSpeed", "partition_balanced on the layers' times")                          \
    X(PARAMETERS, "parameters", "DeepSpeed", "the same on their parameters")                                 \
    X(UNIFORM, "uniform", "DeepSpeed", "as many layers on every stage")                                      \
    X(OMNIBAL, "omnibal", "OmniBal, arXiv 2407.20761",                                                       \
      "cuts near the balanced ones, the best by variance and by communication, the fastest of those run")

/* By what a candidate came among the best. */
enum { HBP_RANKED_TIME = 1, HBP_RANKED_VARIANCE = 2, HBP_RANKED_COMMUNICATION = 4 };

/* Operations of a pipeline. */
enum { HBP_FORWARD = 0, HBP_BACKWARD = 1 };

/* Scales lie in 0..1e30, speeds and a link's bytes a second in 1e-30..1e30. */
typedef struct hbp_pipeline_options {
    uint32_t struct_size;
    int32_t stages;         /* S; needed */
    int32_t virtual_stages; /* V: chunks of layers per stage; 0, 1: plain 1F1B; more: interleaved 1F1B, chunk
                               k on stage k mod S; micro_batches must then be a multiple of S */
    int32_t micro_batches;  /* M, of a step; needed */
    const double *vision_scale; /* [M] vision units of each, reference 1: vision layers' bytes, and times
                                   unless vision_time_scale is given; NULL: all 1 */
    const double *token_scale;  /* [M] tokens: language layers' bytes, and times unless the next is given */
    const double *token_time_scale; /* [M] language layers' times (tokens and squares); NULL: token_scale */
    const double *speed;            /* [S] of each stage's GPUs, 1 as measured; NULL: all 1 */
    const int64_t *limit_bytes; /* [S] memory of each stage's GPUs less the reserve; NULL: no limit. Planners
                                   hold against it what a stage needs at most, whatever the order of
                                   micro-batches; for V > 1 the most of every chunk counts, though not all
                                   fall together, so a partition may be refused that just fits */
    const int32_t *recompute;   /* [layers] HBP_RECOMPUTE_*; NULL: none */
    double link_bytes_per_s;    /* between stages; 0: transfers take no time */
    double link_overlap;        /* share of a transfer during which both its ends go on, 0..1 */
    int64_t link_latency_ns;
    const double *vision_time_scale; /* [M] vision layers' times; NULL: vision_scale */
} hbp_pipeline_options;

typedef struct hbp_layer_partition_options {
    uint32_t struct_size;
    const char *method; /* [HBP_LAYER_PARTITION_METHODS] (docs: pipeline) */
    int32_t candidates; /* [0..64] top k to list, by each ranking; 0: 8 */
    int32_t radius; /* [0..64] r: how far the candidates by variance and communication move a cut; 0: 1, at
                       most 64 */
    int32_t order;  /* [flag] nonzero: order each candidate's micro-batches before it is run */
    int32_t run; /* [flag] nonzero: the run decides where micro-batches are equal and V = 1, too, as it does
                    else */
} hbp_layer_partition_options;

typedef struct hbp_layer_partition hbp_layer_partition;

/* What a partition comes to. With W_s the time of stage s for the mean micro-batch, forward, backward and
 * recomputation and the exposed part of its transfers, C_s without transfers and X the transfers of one
 * micro-batch over all cuts, there and back:
 *
 *   predicted = ((M V - 1) max W_s + sum C_s + X) / V */
typedef struct hbp_layer_partition_summary {
    uint32_t struct_size;
    int32_t proven; /* nonzero: no partition has less predicted_ns (method optimal) */
    int32_t micro_batches;
    int32_t bottleneck;    /* the stage with the largest W_s */
    int64_t predicted_ns;  /* the formula */
    int64_t bound_ns;      /* no partition within the limits has less predicted_ns; = it when proven */
    int64_t simulated_ns;  /* the schedule run with the micro-batches as they are */
    int64_t bottleneck_ns; /* its W_s */
    int64_t cut_bytes;     /* sent on over all cuts by the reference micro-batch */
    double stage_variance; /* of W_s, in ns^2 */
    double bubble;         /* share of simulated stage-time in which a stage waits */
    int64_t peak_bytes;    /* of the fullest stage, simulated */
} hbp_layer_partition_summary;

/* Cuts the layers into S V chunks of at least one layer each. Method optimal with V = 1 and equal
 * micro-batches is exact: of the partitions within the memory limits one of least predicted_ns, ties to the
 * one with earlier cuts. When micro-batches differ or V > 1, where the formula says less about the run, or by
 * option, it takes the candidate of least simulated_ns instead, from among the best by formula, what the
 * other methods make and what lies near those, and moves cuts while the run gets shorter; `proven` speaks of
 * predicted_ns all the same. HBP_E_INVALID for more chunks than layers, and for options out of range (the
 * message names the one and its limit); HBP_E_INFEASIBLE when no partition, or none of the method, fits (the
 * message names the stage that is short and by how much); HBP_E_OVERFLOW when times might pass 2^62 ns;
 * HBP_NOT_PROVEN (> 0) with a partition when the search for the least predicted_ns ended at its limit.
 * Thread: one per context.
 */
HBP_API hbp_status hbp_partition_layers(hbp_context *context, const hbp_layers *layers,
                                        const hbp_pipeline_options *pipeline,
                                        const hbp_layer_partition_options *options,
                                        hbp_layer_partition **out);

/* Frees the partition; NULL is allowed. Thread: any. */
HBP_API void hbp_layer_partition_free(hbp_layer_partition *partition);
HBP_API hbp_status hbp_layer_partition_get_summary(hbp_context *context, const hbp_layer_partition *partition,
                                                   hbp_layer_partition_summary *summary);

/* The columns of a partition (docs: views). The first candidate is the one chosen; then (and with it, unless
 * it was chosen by predicted_ns) they come by simulated time. */
typedef struct hbp_layer_partition_view {
    uint32_t struct_size;
    int64_t stages;               /* S */
    int64_t chunks;               /* S V */
    int64_t micro_batches;        /* M */
    const int32_t *cuts;          /* [chunks + 1] first layer of every chunk, and the number of layers */
    const int64_t *stage_ns;      /* [stages] W_s */
    const int64_t *stage_busy_ns; /* [stages] simulated */
    const int64_t *stage_bytes;   /* [stages] peak, simulated */
    const int32_t
        *order;         /* [micro_batches] in which they are best run; the identity unless `order` was set */
    int64_t candidates; /* of the best partitions */
    const int32_t *candidate_cuts;         /* [candidates x (chunks + 1)] */
    const int32_t *candidate_ranked;       /* [candidates] HBP_RANKED_*, or-ed */
    const int64_t *candidate_predicted_ns; /* [candidates] */
    const int64_t *candidate_simulated_ns; /* [candidates] */
    const int64_t *candidate_cut_bytes;    /* [candidates] */
    const double *candidate_variance;      /* [candidates] of stages, in ns^2 */
} hbp_layer_partition_view;

/* Fills *view, whose columns are owned by the partition. Thread: shareable. */
HBP_API hbp_status hbp_layer_partition_get_view(const hbp_layer_partition *partition,
                                                hbp_layer_partition_view *view);

/* A pipeline that was simulated. */
typedef struct hbp_pipeline_run hbp_pipeline_run;

/* Runs one step of the schedule: stages work through their operations in the order of 1F1B (interleaved 1F1B
 * for V > 1, Megatron-LM's order), each as soon as its input is there and the stage is free. `cuts` [S V +
 * 1]; `order` [M] is the order in which micro-batches enter, NULL: as given. O(M S V). Errors as above.
 * Thread: one per context. */
HBP_API hbp_status hbp_simulate_pipeline(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                         const hbp_pipeline_options *pipeline, const int32_t *order,
                                         hbp_pipeline_run **out);
HBP_API void hbp_pipeline_run_free(hbp_pipeline_run *run);

typedef struct hbp_pipeline_summary {
    uint32_t struct_size;
    int32_t stages;
    int64_t total_ns;
    int64_t bound_ns;       /* no order of these micro-batches on these stages takes less */
    int64_t peak_bytes;     /* of the fullest stage */
    int64_t operations;     /* 2 M S V */
    double bubble;          /* share of stage-time in which a stage waits */
    int32_t virtual_stages; /* V, 1 or more */
    int32_t micro_batches;  /* M */
    uint64_t digest;        /* over columns, V, M, total_ns and bound_ns */
} hbp_pipeline_summary;

/* Fills *summary. Thread: shareable. */
HBP_API hbp_status hbp_pipeline_run_get_summary(hbp_context *context, const hbp_pipeline_run *run,
                                                hbp_pipeline_summary *summary);

/* The columns of a run (docs: views); operations by stage and in the order of their start. */
typedef struct hbp_pipeline_run_view {
    uint32_t struct_size;
    int64_t stages;
    int64_t operations;
    const int64_t *stage_busy_ns;           /* [stages] */
    const int64_t *stage_bytes;             /* [stages] peak */
    const int32_t *operation_stages;        /* [operations] */
    const int32_t *operation_chunks;        /* [operations] */
    const int32_t *operation_micro_batches; /* [operations] row of the options, not place in the order */
    const int32_t *operation_directions;    /* [operations] HBP_FORWARD, HBP_BACKWARD */
    const int64_t *operation_starts;        /* [operations] ns */
    const int64_t *operation_ends;          /* [operations] ns */
} hbp_pipeline_run_view;

/* Fills *view, whose columns are owned by the run. Thread: shareable. */
HBP_API hbp_status hbp_pipeline_run_get_view(const hbp_pipeline_run *run, hbp_pipeline_run_view *view);

/* Whether every chunk's forward and backward runs once for each micro-batch, on the chunk's stage, one at a
 * time and not before what it needs, and whether the numbers are those of the columns. With `layers`: whether
 * these, cut and run with these options in the order in which stage 0 begins micro-batches, make the same
 * times, bytes and bound; without, `cuts` and `pipeline` are not looked at. HBP_E_INVALID names the first
 * breach. O(operations). Thread: one per context. */
HBP_API hbp_status hbp_pipeline_run_validate(hbp_context *context, const hbp_pipeline_run *run,
                                             const hbp_layers *layers, const int32_t *cuts,
                                             const hbp_pipeline_options *pipeline);

/* Orders the micro-batches of a step for the least simulated time: best for M <= 7, never slower than as
 * given. `order` [M] is written on success; *before_ns, *after_ns may be NULL. Within memory limits when the
 * order given is. Thread: one per context. */
HBP_API hbp_status hbp_order_micro_batches(hbp_context *context, const hbp_layers *layers,
                                           const int32_t *cuts, const hbp_pipeline_options *pipeline,
                                           int32_t *order, int64_t *before_ns, int64_t *after_ns);

/* ---- Recomputation ---- */

/* Which layers recompute their activations, so that every pipeline stage fits (OmniBal, section 3.4). */

#define HBP_RECOMPUTE_METHODS(X)                                                                             \
    X(OPTIMAL, "optimal", "", "on each stage the least time that fits")                                      \
    X(OMNIBAL, "omnibal", "OmniBal, arXiv 2407.20761",                                                       \
      "the published rule: whole layers, language layers released first, the first layers of a stage stay "  \
      "recomputed")                                                                                          \
    X(ALL, "all", "", "every layer recomputes that keeps less so")                                           \
    X(NONE, "none", "", "no layer does; infeasible where that does not fit")

/* Which choices method optimal has besides whole layers. */
enum { HBP_SELECT_ATTENTION = 1, HBP_SELECT_MLP = 2 };

typedef struct hbp_recompute_options {
    uint32_t struct_size;
    int32_t selective;  /* [-1..3] HBP_SELECT_*, or-ed; 0: both; -1: whole layers alone */
    const char *method; /* [HBP_RECOMPUTE_METHODS] (docs: recompute) */
    /* [S] free at the peak with every layer recomputed, as measured, after the reserve; takes the place of
     * limit_bytes. NULL: what limit_bytes leaves of the columns' peak. */
    const int64_t *measured_free_bytes;
    /* Freed by recomputing one vision layer, and one language layer, over all micro-batches in flight:
     * hbp_fit_layer_bytes. Columns then say only in what proportion a layer's parts free it. 0: the columns'.
     */
    int64_t measured_vision_bytes;
    int64_t measured_language_bytes;
} hbp_recompute_options;

typedef struct hbp_recompute_report {
    uint32_t struct_size;
    int32_t proven;       /* nonzero: on no stage is there a choice of less time that fits */
    int32_t recomputed;   /* layers recomputed in whole */
    int32_t selective;    /* layers recomputed in part */
    int64_t recompute_ns; /* of the mean micro-batch over all stages, each of speed 1 */
    int64_t saved_ns; /* against recomputing every layer; negative where only parts of layers free memory */
    int64_t slack_bytes; /* left on the fullest stage; INT64_MAX where nothing limits */
} hbp_recompute_report;

/* Chooses for every layer, stage by stage. `pipeline` gives stages, schedule, micro-batches and limits (its
 * `recompute` is not read): stage s of 1F1B keeps min(M, S - s) micro-batches, and the largest of them are
 * counted. `choices` [layers] gets HBP_RECOMPUTE_*; `report` may be NULL. HBP_E_INFEASIBLE names the stage
 * that does not fit whatever is recomputed, and the bytes it lacks. Method optimal is exact, as a rule also
 * on stages of a thousand layers that all differ (docs: recompute); HBP_NOT_PROVEN (> 0), with a choice that
 * fits, when its search ended at a limit. Thread: one per context. */
HBP_API hbp_status hbp_choose_recompute(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                        const hbp_pipeline_options *pipeline,
                                        const hbp_recompute_options *options, int32_t *choices,
                                        hbp_recompute_report *report);

/* The bytes that one vision and one language layer free, from two measurements (one of the first, one of the
 * last stage): vision_layers[i] x + language_layers[i] y = freed_bytes[i], i = 0, 1. HBP_E_INFEASIBLE when
 * the two cannot separate x from y, or when one comes out negative (the message says which). *x, *y are
 * rounded down. Thread: one per context. */
HBP_API hbp_status hbp_fit_layer_bytes(hbp_context *context, const int32_t vision_layers[2],
                                       const int32_t language_layers[2], const int64_t freed_bytes[2],
                                       int64_t *vision_bytes, int64_t *language_bytes);

HBP_END_DECLS

#endif
