/* A model's layers and a pipeline's options as numbers on which partitions are weighed: sums up to each layer
 * instead of layers. */
#ifndef HBP_PIPELINE_STAGES_H
#define HBP_PIPELINE_STAGES_H

#include <stdint.h>

#include "base/context.h"
#include "data/pipeline/layers.h"
#include "hbp/pipeline.h"
#include "pipeline/shortage.h"
#include "simulate/pipeline/stage_times.h"
#include "solve/chain/chain.h"

typedef struct hbp__stages {
    const hbp_layers *layers;
    const hbp_pipeline_options *pipeline;
    int32_t stages;
    int32_t chunks;   /* S V */
    int uneven;       /* nonzero: micro-batches differ */
    hbp__chain chain; /* parts are chunks; its value is V times the predicted time, before rounding up, where
                         V is 1; where it is more, loads are of stages */
    hbp__live live;
    int64_t *ns;      /* [HBP_LAYER_TYPES * (layers + 1)] sums of forward, backward and recomputation, by type
                       */
    int64_t *kept;    /* [HBP_LAYER_TYPES * (layers + 1)] */
    int64_t *state;   /* [layers + 1] */
    int64_t *working; /* [levels * layers] most working bytes of 2^level layers from i on */
    int64_t *toll;    /* [layers + 1] transfers of the mean micro-batch over a cut, there and back */
    int64_t *side;    /* [layers + 1] exposed share of it, one way */
    double *factor;   /* [chunks * types] */
    int32_t *in_flight; /* [chunks] */
    int32_t *reach;     /* [chunks * (layers + 1)]; NULL without limits */
} hbp__stages;

/* `pipeline` has been checked. HBP_E_OVERFLOW when a predicted time might pass 2^62 ns. O(layers log layers +
 * chunks layers). Borrows layers and options; its columns are scratch, close releases `live`. */
hbp_status hbp__stages_open(hbp_context *context, const hbp_layers *layers,
                            const hbp_pipeline_options *pipeline, hbp__stages *stages);
void hbp__stages_close(hbp__stages *stages);

/* hbp__stage_peak_bytes, in O(V): of the chunks of `stage` below `chunks`. */
int64_t hbp__stages_peak(const hbp__stages *stages, const int32_t *cuts, int32_t chunks, int32_t stage);

/* Whether every stage is within its limit. O(S V). */
int hbp__stages_fit(const hbp__stages *stages, const int32_t *cuts);

/* What the formula in hbp/pipeline.h comes to: W_s into load [S], and V times the prediction before it is
 * rounded up. O(S V). */
int64_t hbp__stages_weigh(const hbp__stages *stages, const int32_t *cuts, int64_t *load);

/* The prediction of that. */
static inline int64_t hbp__stages_predict(const hbp__stages *stages, int64_t weighed)
{
    return hbp__ceil_div(weighed, stages->chunks / stages->stages);
}

/* Sent on over all cuts by the reference micro-batch. */
int64_t hbp__stages_cut_bytes(const hbp__stages *stages, const int32_t *cuts);

/* Variance of `load` [S]. */
double hbp__stages_variance(const hbp__stages *stages, const int64_t *load);

/* The stage that lacks most under `cuts`. `how` is its message's begin: "the balanced partition does not
 * fit". */
hbp__shortage hbp__stages_shortage(const hbp__stages *stages, const int32_t *cuts, const char *how);

/* The partition that misses the limits by least, for V = 1: the largest lack of a stage is least. O(chunks
 * layers log bytes). */
hbp_status hbp__stages_nearest(hbp_context *context, hbp__stages *stages, int32_t *cuts);

#endif
