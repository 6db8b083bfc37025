/* The steps of a vision-language plan as a Chrome trace: a process for each replica, a row for each stage, an
 * event for each forward and backward, a row of the steps; 0 is the begin of the first step, and all replicas
 * begin a step together. */
#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "hbp/io.h"
#include "io/pipeline/pipeline_trace.h"
#include "io/plan/plan_events.h"
#include "vlm/vlm.h"

typedef struct tracing {
    hbp_context *context;
    const hbp_vlm_plan *plan;
    hbp__trace_out trace;
    int64_t step; /* at hand */
    int64_t now;  /* its begin, ns */
    int32_t replica;
} tracing;

static void on_replica(void *user, int32_t replica)
{
    tracing *t = user;
    t->replica = replica;
}

static void on_operation(void *user, int64_t row, const hbp__operation_run *run)
{
    tracing *t = user;
    const hbp_plan *data = t->plan->data;
    hbp__json_out *json = &t->trace.json;
    int64_t rank = t->replica * t->plan->stages + run->stage;
    int64_t pack = data->micro_batch_offsets[data->step_offsets[t->step] + run->micro_batch] + t->replica;
    (void)row;
    hbp__trace_operation(&t->trace, rank, run->direction, hbp__add_saturating(t->now, run->start_ns),
                         run->end_ns - run->start_ns, run->micro_batch, run->chunk);
    hbp__json_member(json, ",\"step\":", data->first_step + t->step);
    hbp__json_member(json, ",\"pack\":", pack);
    hbp__json_member(json, ",\"vision\":", data->pack_vision[pack]);
    hbp__json_member(json, ",\"tokens\":", data->pack_tokens[pack]);
    hbp__trace_operation_end(&t->trace, run->direction, run->micro_batch);
}

static hbp_status on_end(void *user, int64_t step, int64_t ns)
{
    tracing *t = user;
    const hbp_plan *data = t->plan->data;
    hbp__json_out *json = &t->trace.json;
    hbp__trace_record(&t->trace, HBP__TRACE_STEPS);
    hbp__json_member(json, ",\"ph\":\"X\",\"cat\":\"step\",\"name\":\"step ", data->first_step + step);
    hbp__json_put(json, "\"");
    hbp__trace_times(&t->trace, t->now, hbp__add_saturating(t->now, ns) - t->now);
    hbp__json_member(
        json, ",\"args\":{\"micro_batches\":", data->step_offsets[step + 1] - data->step_offsets[step]);
    hbp__json_member(json, ",\"samples\":", data->step_samples[step]);
    hbp__json_member(json, ",\"predicted_ns\":", ns);
    hbp__json_put(json, "}}");
    t->now = hbp__add_saturating(t->now, ns);
    t->step = step + 1;
    HBP__TRY(hbp__tick(t->context, "trace", step, t->plan->steps));
    return t->trace.json.status;
}

static hbp_status write_trace(tracing *t, int64_t first, int64_t end)
{
    hbp__vlm_replayed r;
    const hbp__vlm_audience audience = {t, on_replica, on_operation, on_end};
    int64_t busy, *step_ns = hbp__take(t->context, (uint64_t)(end - first), sizeof *step_ns);
    HBP__TRY(hbp__scratch_check(t->context, "the trace"));
    hbp__vlm_restore(t->context, t->plan, &r);
    hbp__plan_trace_header(&t->trace, t->plan->data, first, end);
    hbp__trace_begin(&t->trace);
    HBP__TRY(hbp__vlm_replay(&r.run, &r.reference, &r.stages, t->plan->data, first, end, &audience, step_ns,
                             &busy));
    hbp__trace_end(&t->trace);
    return HBP_OK;
}

hbp_status hbp_vlm_plan_trace(hbp_context *context, const hbp_vlm_plan *plan, const char *path,
                              const hbp_trace_options *options)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp_trace_options all;
    int64_t first, end, rows = plan->stages * plan->summary.replicas;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_trace_options"));
    if (all.timeline)
        return hbp__fail(context, HBP_E_INVALID,
                         "`timeline` is of packs; a vision-language plan has none to compare");
    if (all.cost)
        return hbp__fail(context, HBP_E_INVALID,
                         "`cost` is of packs; a vision-language plan has its layers' times");
    HBP__TRY(hbp__trace_range(context, plan->data, &all, &first, &end));
    if (rows > INT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "%lld stages of all replicas; a trace has at most %d rows",
                         (long long)rows, INT32_MAX);
    tracing t = {.context = context,
                 .plan = plan,
                 .step = first,
                 .trace = {.ranks = (int32_t)rows,
                           .domain_ranks = (int32_t)plan->stages,
                           .shows_steps = 1,
                           .process = "replica",
                           .thread = "stage"}};
    HBP__TRY(hbp__trace_open(context, path, &t.trace));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__trace_close(context, &t.trace, hbp__leave(context, mark, write_trace(&t, first, end)));
}
