#include "io/pipeline/pipeline_trace.h"
#include "hbp/io.h"

#include "data/pipeline/pipeline_run.h"

void hbp__trace_operation(hbp__trace_out *trace, int64_t row, int32_t direction, int64_t start_ns, int64_t ns,
                          int32_t micro_batch, int32_t chunk)
{
    const int forward = direction == HBP_FORWARD;
    hbp__trace_record(trace, row);
    hbp__json_put(&trace->json, ",\"ph\":\"X\",\"cat\":");
    hbp__json_put_string(&trace->json, forward ? "forward" : "backward");
    hbp__json_put(&trace->json,
                  forward ? ",\"cname\":\"thread_state_running\"" : ",\"cname\":\"rail_response\"");
    hbp__trace_times(trace, start_ns, ns);
    hbp__json_member(&trace->json, ",\"args\":{\"micro_batch\":", micro_batch);
    hbp__json_member(&trace->json, ",\"chunk\":", chunk);
}

void hbp__trace_operation_end(hbp__trace_out *trace, int32_t direction, int32_t micro_batch)
{
    hbp__json_member(&trace->json, direction == HBP_FORWARD ? "},\"name\":\"F" : "},\"name\":\"B",
                     micro_batch);
    hbp__json_put(&trace->json, "\"}");
}

static hbp_status write_trace(hbp_context *context, const hbp_pipeline_run *run, hbp__trace_out *trace)
{
    hbp__trace_tell_digest(trace, "run", run->summary.digest);
    hbp__trace_begin(trace);
    for (int64_t i = 0; i < run->operations && trace->json.status == HBP_OK; i++) {
        const int32_t direction = run->operation_directions[i], m = run->operation_micro_batches[i];
        if (i % HBP__TICK_ROWS == 0)
            HBP__TRY(hbp__tick(context, "trace", i, run->operations));
        hbp__trace_operation(trace, run->operation_stages[i], direction, run->operation_starts[i],
                             run->operation_ends[i] - run->operation_starts[i], m, run->operation_chunks[i]);
        hbp__trace_operation_end(trace, direction, m);
    }
    hbp__trace_end(trace);
    return HBP_OK;
}

hbp_status hbp_pipeline_run_trace(hbp_context *context, const hbp_pipeline_run *run, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__trace_out trace = {.ranks = (int32_t)run->stages,
                            .domain_ranks = (int32_t)run->stages,
                            .process = "pipeline",
                            .thread = "stage"};
    HBP__TRY(hbp__trace_open(context, path, &trace));
    return hbp__trace_close(context, &trace, write_trace(context, run, &trace));
}
