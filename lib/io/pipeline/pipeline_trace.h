/* Operations of pipelines in Chrome traces. */
#ifndef HBP_IO_PIPELINE_TRACE_H
#define HBP_IO_PIPELINE_TRACE_H

#include "io/json/trace_out.h"

/* Opens the record of an operation in a row: HBP_FORWARD or HBP_BACKWARD of a chunk for a micro-batch, its
 * arguments begun with these two. The caller adds members, each after a comma, and closes it. */
void hbp__trace_operation(hbp__trace_out *trace, int64_t row, int32_t direction, int64_t start_ns, int64_t ns,
                          int32_t micro_batch, int32_t chunk);
void hbp__trace_operation_end(hbp__trace_out *trace, int32_t direction, int32_t micro_batch);

#endif
