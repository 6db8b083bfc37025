/* The events of a plan in a Chrome trace: a process for each node, a thread for each rank, and one for the
 * steps. A rank's thread is covered from the begin of a step to its end: by its packs, by waiting for the
 * others, and by what is paid once a step. With the cost that the plan was made under, the parts of a pack's
 * time stand below it: sums over its layers, one behind the other. Times are from 0 at the first step. */
#ifndef HBP_IO_PLAN_EVENTS_H
#define HBP_IO_PLAN_EVENTS_H

#include <stdint.h>

#include "base/context.h"
#include "data/plan/lockstep.h"
#include "hbp/io.h"
#include "io/json/trace_out.h"

typedef struct hbp__plan_tracing {
    const hbp_plan *plan;
    const hbp_cost *cost; /* NULL: packs are shown whole */
    hbp__trace_out trace;
    int64_t first;    /* step of the trace */
    int64_t end;      /* past the last one */
    int64_t since;    /* rows since the last look at a request to cancel */
    int64_t now;      /* ns, of the predicted times */
    int64_t *bytes;   /* [kinds or 1][ranks] last value of each counter; -1: none yet */
    int64_t *through; /* [ranks] until when each is covered by what was predicted */
    hbp__clock clock;
} hbp__plan_tracing;

/* The steps [*first, *end) that the options ask for; HBP_E_INVALID where the plan lacks them. */
hbp_status hbp__trace_range(hbp_context *context, const hbp_plan *plan, const hbp_trace_options *options,
                            int64_t *first, int64_t *end);

/* What is said of the plan in the trace's metadata, each after a comma. */
void hbp__plan_trace_header(hbp__trace_out *trace, const hbp_plan *plan, int64_t first, int64_t end);

/* Opens a trace of steps [first, end) in `path`, with its metadata and names; the caller has filled plan,
 * cost and kinds in. Takes scratch; a failure leaves nothing open. HBP_E_INVALID for a cost of other ranks.
 */
hbp_status hbp__plan_trace_open(hbp_context *context, hbp__plan_tracing *t, int64_t first, int64_t end,
                                const char *path);

/* Opens the event of a pack on one of its ranks, which lasts [start_ns, start_ns + ns); the caller may add
 * arguments, each after a comma, and ends it with "}}". */
void hbp__plan_trace_event(hbp__plan_tracing *t, int64_t step, int64_t micro_batch, int64_t pack,
                           int64_t rank, int64_t start_ns, int64_t ns);

/* Looks up now and then as events of a step are written, which takes some microseconds each. HBP_E_CANCELLED.
 */
static inline hbp_status hbp__plan_trace_tick(hbp_context *context, hbp__plan_tracing *t, int64_t step)
{
    enum { ROWS_AN_EVENT = 16 };
    return hbp__tick_rows(context, "trace", &t->since, ROWS_AN_EVENT, step - t->first, t->end - t->first);
}

/* The counter of a rank's memory, where it changes. */
void hbp__plan_trace_memory(hbp__plan_tracing *t, int64_t rank, int64_t start_ns, int64_t bytes);

/* A step among the steps, over [start_ns, end_ns). */
void hbp__plan_trace_whole(hbp__plan_tracing *t, int64_t step, int64_t start_ns, int64_t end_ns);

/* Everything predicted of a step; `now` moves to its end. HBP_E_INVALID names the pack for which the cost
 * predicts another time than the plan. */
hbp_status hbp__plan_trace_step(hbp_context *context, hbp__plan_tracing *t, int64_t step);

#endif
