/* A plan as a Chrome trace, of its predicted times alone or beside what a run of it measured. */
#include "base/options.h"
#include "base/scratch.h"
#include "hbp/io.h"
#include "io/plan/measured_trace.h"
#include "io/plan/plan_events.h"

static hbp_status write_trace(hbp_context *context, hbp__plan_tracing *t, int64_t first, int64_t end)
{
    HBP__TRY(hbp__plan_trace_begin(context, t));
    hbp__trace_begin(&t->trace);
    for (int64_t step = first; step < end && t->trace.json.status == HBP_OK; step++) {
        HBP__TRY(hbp__tick(context, "trace", step - first, end - first));
        hbp__plan_trace_step(t, step);
    }
    hbp__trace_end(&t->trace);
    return t->trace.json.status;
}

static hbp_status trace_into(hbp_context *context, const hbp_plan *plan, int64_t first, int64_t end,
                             const char *path)
{
    hbp__atomic_file file;
    HBP__TRY(hbp__atomic_open(context, path, &file));
    hbp__plan_tracing t = {.plan = plan,
                           .trace = {.json = {.context = context, .file = &file},
                                     .ranks = plan->ranks,
                                     .domain_ranks = plan->domain_ranks}};
    return hbp__atomic_end(context, &file, write_trace(context, &t, first, end));
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
                      all.timeline ? hbp__trace_measured(context, plan, all.timeline, first, end, path)
                                   : trace_into(context, plan, first, end, path));
}
