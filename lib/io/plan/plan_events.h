/* The events of a plan in a Chrome trace: a process for each domain, a thread for each rank, an event for
 * each pack on each of its ranks, a counter of each rank's memory. Times are from 0 at the first step. */
#ifndef HBP_IO_PLAN_EVENTS_H
#define HBP_IO_PLAN_EVENTS_H

#include <stdint.h>

#include "data/plan/lockstep.h"
#include "hbp/io.h"
#include "io/json/trace_out.h"

typedef struct hbp__plan_tracing {
    const hbp_plan *plan;
    hbp__trace_out trace;
    int64_t now;    /* ns, of the predicted times */
    int64_t *bytes; /* [kinds or 1][ranks] last value of each counter; -1: none yet */
    hbp__clock clock;
} hbp__plan_tracing;

/* The steps [*first, *end) that the options ask for; HBP_E_INVALID where the plan lacks them. */
hbp_status hbp__trace_range(hbp_context *context, const hbp_plan *plan, const hbp_trace_options *options,
                            int64_t *first, int64_t *end);

/* Room for the counters and clocks, and its release, also after a failure. */
hbp_status hbp__plan_trace_begin(hbp_context *context, hbp__plan_tracing *t);

/* Opens the event of a pack on one of its ranks, which lasts [start_ns, start_ns + ns); the caller may add
 * arguments, each after a comma, and ends it with "}}". */
void hbp__plan_trace_event(hbp__plan_tracing *t, int64_t step, int64_t micro_batch, int64_t pack,
                           int64_t rank, int64_t start_ns, int64_t ns);

/* The counter of a rank's memory, where it changes. */
void hbp__plan_trace_memory(hbp__plan_tracing *t, int64_t rank, int64_t start_ns, int64_t bytes);

/* Everything predicted of a step; `now` moves to its end. */
void hbp__plan_trace_step(hbp__plan_tracing *t, int64_t step);

#endif
