/* A plan as a Chrome trace beside what a run of it measured: each domain is two processes, one of predicted
 * and one of measured times. */
#ifndef HBP_IO_MEASURED_TRACE_H
#define HBP_IO_MEASURED_TRACE_H

#include <stdint.h>

#include "base/context.h"
#include "hbp/plan.h"

/* Writes steps [first, end) to `path`; takes scratch. HBP_E_INVALID names the row that the plan lacks. */
hbp_status hbp__trace_measured(hbp_context *context, const hbp_plan *plan, const hbp_timeline *timeline,
                               int64_t first, int64_t end, const char *path);

#endif
