/* A plan as a Chrome trace beside what a run of it measured: each node is two processes, one of predicted
 * and one of measured times. */
#ifndef HBP_IO_MEASURED_TRACE_H
#define HBP_IO_MEASURED_TRACE_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/io.h"

/* Writes steps [first, end) and the options' timeline to `path`; takes scratch. HBP_E_INVALID names the row
 * that the plan lacks. */
hbp_status hbp__trace_measured(hbp_context *context, const hbp_plan *plan, const hbp_trace_options *options,
                               int64_t first, int64_t end, const char *path);

#endif
