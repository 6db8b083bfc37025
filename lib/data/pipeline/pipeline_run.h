/* The inside of a pipeline's run. */
#ifndef HBP_DATA_PIPELINE_RUN_H
#define HBP_DATA_PIPELINE_RUN_H

#include <stdint.h>

#include "base/context.h"
#include "data/table/table.h"
#include "hbp/pipeline.h"

/* Every column: X(name, type, table). Operations stand by stage, and in the order of their start. */
#define HBP__PIPELINE_RUN_COLUMNS(X)                                                                         \
    X(stage_busy_ns, int64_t, stages)                                                                        \
    X(stage_bytes, int64_t, stages)                                                                          \
    X(operation_stages, int32_t, operations)                                                                 \
    X(operation_chunks, int32_t, operations)                                                                 \
    X(operation_micro_batches, int32_t, operations)                                                          \
    X(operation_directions, int32_t, operations)                                                             \
    X(operation_starts, int64_t, operations)                                                                 \
    X(operation_ends, int64_t, operations)

struct hbp_pipeline_run {
    hbp__memory memory;
    hbp_pipeline_summary summary; /* struct_size is not kept up */
    int64_t stages;
    int64_t operations;
#define HBP__PIPELINE_RUN_FIELD(name, type, table) type *name;
    HBP__PIPELINE_RUN_COLUMNS(HBP__PIPELINE_RUN_FIELD)
#undef HBP__PIPELINE_RUN_FIELD
};

extern const hbp__table hbp__pipeline_run_table;

/* A run of S stages of V chunks each and M micro-batches, zeroed. */
hbp_status hbp__pipeline_run_new(hbp_context *context, int32_t stages, int32_t virtual_stages,
                                 int32_t micro_batches, hbp_pipeline_run **out);

/* What follows from the columns: peak_bytes, bubble and the digest. total_ns and bound_ns are set. */
void hbp__pipeline_run_seal(hbp_pipeline_run *run);

/* Whether the run is one of 1F1B's operations: each chunk's forward and backward once for each micro-batch,
 * on the chunk's stage, one at a time, and not before what it needs; whether the numbers are those of the
 * columns. HBP_E_INVALID names the first breach. O(operations); takes scratch. */
hbp_status hbp__pipeline_run_check(hbp_context *context, const hbp_pipeline_run *run);

uint64_t hbp__pipeline_run_digest(const hbp_pipeline_run *run);

#endif
