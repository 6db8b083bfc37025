/* The inside of a partition. */
#ifndef HBP_PIPELINE_PARTITION_H
#define HBP_PIPELINE_PARTITION_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/pipeline.h"
#include "pipeline/stages.h"

struct hbp_layer_partition {
    hbp__memory memory;
    hbp_layer_partition_summary summary;
    int32_t stages;
    int32_t chunks;
    int32_t micro_batches;
    int32_t candidates;
    int32_t room;           /* candidates */
    int32_t *ranked;        /* [candidates] the first is the chosen one, as below */
    int64_t *predicted_ns;  /* [candidates] */
    int64_t *simulated_ns;  /* [candidates] */
    int64_t *cut_bytes;     /* [candidates] */
    double *variance;       /* [candidates] of stages */
    int32_t *cuts;          /* [candidates * (chunks + 1)] */
    int64_t *stage_ns;      /* [stages] */
    int64_t *stage_busy_ns; /* [stages] */
    int64_t *stage_bytes;   /* [stages] */
    int32_t *order;         /* [micro_batches] */
};

/* hbp_partition_layers within a call. HBP_E_INFEASIBLE without a message: *shortage says what lacks. */
hbp_status hbp__partition_layers(hbp_context *context, const hbp_layers *layers,
                                 const hbp_pipeline_options *pipeline,
                                 const hbp_layer_partition_options *options, hbp_layer_partition **out,
                                 hbp__shortage *shortage);

/* Room for `room` candidates. */
hbp_status hbp__partition_new(hbp_context *context, const hbp__stages *stages, int32_t room,
                              hbp_layer_partition **out);

static inline int32_t *hbp__partition_cuts(const hbp_layer_partition *partition, int64_t index)
{
    return partition->cuts + index * (partition->chunks + 1);
}

/* Adds a candidate of unknown simulated time, or adds `ranked` to what it is ranked by already. There is
 * room.
 */
void hbp__partition_add(hbp_layer_partition *partition, const hbp__stages *stages, const int32_t *cuts,
                        int32_t ranked);

/* Sorts the candidates from `first` on by simulated time, then predicted time, then earlier cuts. */
void hbp__partition_sort(hbp_layer_partition *partition, int32_t first);

#endif
