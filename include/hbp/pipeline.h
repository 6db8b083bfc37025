/* Which layers share a pipeline stage (OmniBal, section 3.3), and what a pipeline takes. */
#ifndef HBP_PIPELINE_H
#define HBP_PIPELINE_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/layers.h"

enum {
    HBP_PARTITION_OPTIMAL = 0,    /* least pipeline time (docs: pipeline) */
    HBP_PARTITION_BALANCED = 1,   /* DeepSpeed's partition_balanced on the layers' times */
    HBP_PARTITION_PARAMETERS = 2, /* the same on their parameters */
    HBP_PARTITION_UNIFORM = 3,    /* as many layers on every stage */
    HBP_PARTITION_PAPER = 4       /* OmniBal: cuts near the balanced ones, the best by variance and by
                                     communication, the fastest of those run */
};

/* By what a candidate came among the best. */
enum { HBP_RANKED_TIME = 1, HBP_RANKED_VARIANCE = 2, HBP_RANKED_COMMUNICATION = 4 };

/* Operations of a pipeline. */
enum { HBP_FORWARD = 0, HBP_BACKWARD = 1 };

HBP_BEGIN_DECLS

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

HBP_API void hbp_pipeline_options_init(hbp_pipeline_options *options, uint32_t struct_size);

typedef struct hbp_partition_options {
    uint32_t struct_size;
    int32_t mode;       /* HBP_PARTITION_* */
    int32_t candidates; /* top k to list, by each ranking; 0: 8, at most 64 */
    int32_t radius;     /* r: how far the candidates by variance and communication move a cut; 0: 1, at most
                           64 */
    int32_t order;      /* nonzero: order each candidate's micro-batches before it is run */
    int32_t run; /* nonzero: the run decides where micro-batches are equal and V = 1, too, as it does else */
} hbp_partition_options;

HBP_API void hbp_partition_options_init(hbp_partition_options *options, uint32_t struct_size);

typedef struct hbp_partition hbp_partition;

/* What a partition comes to. With W_s the time of stage s for the mean micro-batch, forward, backward and
 * recomputation and the exposed part of its transfers, C_s without transfers and X the transfers of one
 * micro-batch over all cuts, there and back:
 *
 *   predicted = ((M V - 1) max W_s + sum C_s + X) / V */
typedef struct hbp_partition_summary {
    uint32_t struct_size;
    int32_t proven; /* nonzero: no partition has less predicted_ns (mode optimal) */
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
} hbp_partition_summary;

/* Cuts the layers into S V chunks of at least one layer each. Mode optimal with V = 1 and equal micro-batches
 * is exact: of the partitions within the memory limits one of least predicted_ns, ties to the one with
 * earlier cuts. When micro-batches differ or V > 1, where the formula says less about the run, or by option,
 * it takes the candidate of least simulated_ns instead, from among the best by formula, what the other modes
 * make and what lies near those, and moves cuts while the run gets shorter; `proven` speaks of predicted_ns
 * all the same. HBP_E_INVALID for more chunks than layers, and for options out of range (the message names
 * the one and its limit); HBP_E_INFEASIBLE when no partition, or none of the mode, fits (the message names
 * the stage that is short and by how much); HBP_E_OVERFLOW when times might pass 2^62 ns; HBP_NOT_PROVEN (>
 * 0) with a partition when the search for the least predicted_ns ended at its limit. Thread: one per context.
 */
HBP_API hbp_status hbp_partition_layers(hbp_context *context, const hbp_layers *layers,
                                        const hbp_pipeline_options *pipeline,
                                        const hbp_partition_options *options, hbp_partition **out);

HBP_API void hbp_partition_free(hbp_partition *partition);
HBP_API hbp_status hbp_partition_get_summary(hbp_context *context, const hbp_partition *partition,
                                             hbp_partition_summary *summary);

/* The columns of a partition (docs: views). */
typedef struct hbp_partition_view {
    uint32_t struct_size;
    int64_t stages;               /* S */
    int64_t chunks;               /* S V */
    int64_t micro_batches;        /* M */
    const int32_t *cuts;          /* [chunks + 1] first layer of every chunk, and the number of layers */
    const int64_t *stage_ns;      /* [stages] W_s */
    const int64_t *stage_busy_ns; /* [stages] simulated */
    const int64_t *stage_bytes;   /* [stages] peak, simulated */
    const int32_t
        *order; /* [micro_batches] in which they are best run; the identity unless `order` was set */
} hbp_partition_view;

HBP_API hbp_status hbp_partition_get_view(const hbp_partition *partition, hbp_partition_view *view);

/* One of the best partitions. The first is the one chosen; then (and with it, unless it was chosen by
 * predicted_ns) by simulated time. */
typedef struct hbp_partition_candidate {
    uint32_t struct_size;
    int32_t ranked; /* HBP_RANKED_*, or-ed */
    int64_t predicted_ns;
    int64_t simulated_ns;
    int64_t cut_bytes;
    double stage_variance;
} hbp_partition_candidate;

HBP_API int64_t hbp_partition_count_candidates(const hbp_partition *partition);
/* *cuts gets [S V + 1], owned by the partition; may be NULL. HBP_E_INVALID for no such candidate. */
HBP_API hbp_status hbp_partition_get_candidate(hbp_context *context, const hbp_partition *partition,
                                               int64_t index, hbp_partition_candidate *candidate,
                                               const int32_t **cuts);

/* A pipeline that was run on paper. */
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

HBP_API hbp_status hbp_pipeline_run_get_view(const hbp_pipeline_run *run, hbp_pipeline_run_view *view);

/* Writes the run to a file, whole or not at all; reads one (docs: files of one object), of which nothing
 * is believed: HBP_E_FORMAT names the byte and what is wrong there, HBP_E_VERSION a newer format. A loaded
 * run is like any other. O(operations). Thread: one per context. */
HBP_API hbp_status hbp_pipeline_run_save(hbp_context *context, const hbp_pipeline_run *run, const char *path);
HBP_API hbp_status hbp_pipeline_run_load(hbp_context *context, const char *path, hbp_pipeline_run **out);

/* Whether every chunk's forward and backward runs once for each micro-batch, on the chunk's stage, one at a
 * time and not before what it needs, and whether the numbers are those of the columns. With `layers`: whether
 * these, cut and run with these options in the order in which stage 0 begins micro-batches, make the same
 * times, bytes and bound; without, `cuts` and `pipeline` are not looked at. HBP_E_INVALID names the first
 * breach. O(operations). Thread: one per context. */
HBP_API hbp_status hbp_pipeline_run_validate(hbp_context *context, const hbp_pipeline_run *run,
                                             const hbp_layers *layers, const int32_t *cuts,
                                             const hbp_pipeline_options *pipeline);

/* Writes the run as a Chrome trace (chrome://tracing, Perfetto): a row for each stage, an event for each
 * operation. Whole or not at all. O(operations). Thread: one per context. */
HBP_API hbp_status hbp_pipeline_run_write_trace(hbp_context *context, const hbp_pipeline_run *run,
                                                const char *path);

/* Writes all of it as JSON, under the keys of its file. Whole or not at all. O(operations). */
HBP_API hbp_status hbp_pipeline_run_write_json(hbp_context *context, const hbp_pipeline_run *run,
                                               const char *path);

/* Orders the micro-batches of a step for the least simulated time: best for M <= 7, never slower than as
 * given. `order` [M] is written on success; *before_ns, *after_ns may be NULL. Within memory limits when the
 * order given is. Thread: one per context. */
HBP_API hbp_status hbp_order_micro_batches(hbp_context *context, const hbp_layers *layers,
                                           const int32_t *cuts, const hbp_pipeline_options *pipeline,
                                           int32_t *order, int64_t *before_ns, int64_t *after_ns);

HBP_END_DECLS

#endif
