/* What every chunk of layers takes for every micro-batch: the common ground of the pipeline's simulator and
 * of the planners that it judges. */
#ifndef HBP_SIMULATE_STAGE_TIMES_H
#define HBP_SIMULATE_STAGE_TIMES_H

#include <stdint.h>

#include "base/context.h"
#include "data/pipeline/layers.h"
#include "hbp/pipeline.h"

/* Checks everything in the options that does not depend on cuts: stages, virtual stages, micro-batches,
 * scales, speeds, limits, link, recompute; HBP_E_INVALID names the field, its place, its value and the limit.
 */
hbp_status hbp__pipeline_check(hbp_context *context, const hbp_layers *layers,
                               const hbp_pipeline_options *pipeline);

/* V, at least 1. */
static inline int32_t hbp__pipeline_virtual(const hbp_pipeline_options *pipeline)
{
    return pipeline->virtual_stages > 1 ? pipeline->virtual_stages : 1;
}

/* Micro-batch m's scale of time, and of bytes, for layers of `type`. */
double hbp__time_scale(const hbp_pipeline_options *pipeline, int32_t type, int32_t m);
double hbp__byte_scale(const hbp_pipeline_options *pipeline, int32_t type, int32_t m);

/* Their means over the micro-batches, in the order of the micro-batches. */
double hbp__mean_time_scale(const hbp_pipeline_options *pipeline, int32_t type);
double hbp__mean_byte_scale(const hbp_pipeline_options *pipeline, int32_t type);

/* One way over a link, for `bytes`: latency + bytes / bandwidth, 0 without a link's speed. */
int64_t hbp__transfer_ns(const hbp_pipeline_options *pipeline, double bytes);

/* The most micro-batches whose activations of chunk `chunk` (0 <= chunk < S V) are held at once. 1F1B:
 * min(M, S - stage). Interleaved: as Megatron-LM's order of operations comes to, found by walking it. */
int32_t hbp__pipeline_in_flight(const hbp_pipeline_options *pipeline, int32_t chunk);

/* live.sum[type][n]: the largest byte scales of any n micro-batches, summed, n in [0, M]; an upper bound on
 * what n of them in flight hold in units of the reference micro-batch. */
typedef struct hbp__live {
    hbp__memory memory;
    double *sum[HBP_LAYER_TYPES];
} hbp__live;

hbp_status hbp__live_open(hbp_context *context, const hbp_pipeline_options *pipeline, hbp__live *live);
void hbp__live_close(hbp__live *live);

/* An upper bound on the peak bytes of stage `stage` under `cuts` and `recompute` [layers] (NULL: none), for
 * any order of the micro-batches: its layers' states; of every chunk c and type k round(sum of kept bytes *
 * live.sum[k][in flight of c]); and the largest, over the stage's layers, of round(working bytes *
 * live.sum[k][1]). Saturates. Planners that work on prefix sums come to the same number. */
int64_t hbp__stage_peak_bytes(const hbp_layers *layers, const int32_t *cuts,
                              const hbp_pipeline_options *pipeline, const hbp__live *live,
                              const int32_t *recompute, int32_t stage);

/* What a chunk's layers sum to for the reference micro-batch, by type of layer. */
typedef struct hbp__chunk_sums {
    double forward[HBP_LAYER_TYPES]; /* ns */
    double backward[HBP_LAYER_TYPES];
    double kept[HBP_LAYER_TYPES];    /* bytes */
    double working[HBP_LAYER_TYPES]; /* the most of one layer */
    double speed;
    double cut_bytes; /* 0 behind the last chunk */
    int32_t cut_type;
} hbp__chunk_sums;

/* Rows are chunks, k = 0 .. S V - 1 (chunk k runs on stage k mod S), columns micro-batches as given. Times
 * are divided by the stage's speed, rounded once per chunk and micro-batch: round(sum over types of (sum of
 * the chunk's layers' ns) * time scale / speed). Kept bytes are rounded down for each type, so that no sum of
 * them passes hbp__stage_peak_bytes. */
typedef struct hbp__stage_times {
    hbp__memory memory;
    int32_t stages;
    int32_t chunks; /* S V */
    int32_t micro_batches;
    int32_t room;      /* micro-batches it was opened for */
    int64_t *forward;  /* [chunks * M] */
    int64_t *backward; /* [chunks * M] with recomputation */
    int64_t *kept;     /* [chunks * M] bytes of activations */
    int64_t *working;  /* [chunks * M] most bytes of a layer in recomputation */
    int64_t *state;    /* [chunks] bytes */
    int64_t *transfer; /* [(chunks - 1) * M] one way over the cut behind chunk k; 0 within a stage (S = 1) */
    int64_t *sending;  /* [(chunks - 1) * M] ns of it that keep the sender busy: round(exposed * transfer) */
    double exposed;    /* 1 - link_overlap: share of a transfer that keeps its sender busy */
    hbp__chunk_sums *sums; /* [chunks] */
} hbp__stage_times;

/* Checks the options and the cuts (ascending, from 0 to the number of layers). O(layers + chunks M). */
hbp_status hbp__stage_times_open(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                 const hbp_pipeline_options *pipeline, hbp__stage_times *times);
void hbp__stage_times_close(hbp__stage_times *times);

/* Fills in the times of other micro-batches, at most as many as there is room for, on the same chunks: only
 * the scales and micro_batches of `pipeline` may differ from those it was opened with. `bytes` zero leaves
 * kept and working bytes as they were. Checks nothing, allocates nothing; O(chunks M). */
void hbp__stage_times_fill(hbp__stage_times *times, const hbp_pipeline_options *pipeline, int bytes);

#endif
