/* A plan as a Chrome trace, of its predicted times alone or beside what a run of it measured. */
#include "base/options.h"
#include "base/scratch.h"
#include "hbp/io.h"
#include "io/plan/measured_trace.h"
#include "io/plan/plan_events.h"

static hbp_status write_steps(hbp_context *context, hbp__plan_tracing *t, int64_t first, int64_t end)
{
    for (int64_t step = first; step < end && t->trace.json.status == HBP_OK; step++) {
        HBP__TRY(hbp__tick(context, "trace", step - first, end - first));
        HBP__TRY(hbp__plan_trace_step(context, t, step));
    }
    hbp__trace_end(&t->trace);
    return HBP_OK;
}

static hbp_status write_trace(hbp_context *context, const hbp_plan *plan, const hbp_trace_options *options,
                              int64_t first, int64_t end, const char *path)
{
    hbp__plan_tracing t = {.plan = plan, .cost = options->cost};
    HBP__TRY(hbp__plan_trace_open(context, &t, first, end, path));
    return hbp__trace_close(context, &t.trace, write_steps(context, &t, first, end));
}

hbp_status hbp_plan_trace(hbp_context *context, const hbp_plan *plan, const char *path,
                          const hbp_trace_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_trace_options all;
    int64_t first, end;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_trace_options"));
    HBP__TRY(hbp__trace_range(context, plan, &all, &first, &end));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark,
                      all.timeline ? hbp__trace_measured(context, plan, &all, first, end, path)
                                   : write_trace(context, plan, &all, first, end, path));
}
