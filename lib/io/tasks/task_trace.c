/* A task schedule as a Chrome trace: an event for each slice on each of its ranks, from 0 at the step's
 * start. A rank's memory over time needs the graph, so its peak is in the schedule and not here. */
#include "data/tasks/task_run.h"
#include "data/tasks/task_schedule.h"
#include "hbp/io.h"
#include "io/json/trace_out.h"

/* Colours by task, of the names that Chrome's viewer knows; Perfetto colours by name. */
static const char *const colours[] = {"thread_state_running", "rail_response", "thread_state_iowait",
                                      "cq_build_passed",      "rail_idle",     "rail_animation",
                                      "generic_work",         "olive"};

typedef struct tracing {
    hbp__trace_out trace;
    const hbp_task_schedule *schedule;
    const int64_t *starts; /* [slices] */
    const int64_t *ends;
} tracing;

static void write_event(tracing *t, int64_t slice, int64_t wave, int32_t rank)
{
    const hbp_task_schedule *s = t->schedule;
    hbp__json_out *json = &t->trace.json;
    int32_t m = s->slice_meta_ops[slice], task = s->meta_op_tasks[m];
    hbp__trace_record(&t->trace, rank);
    hbp__json_put(json, ",\"ph\":\"X\",\"cat\":");
    hbp__json_put_string(json, s->task_names[task]);
    hbp__json_put(json, ",\"cname\":\"");
    hbp__json_put(json, colours[task % (int32_t)(sizeof colours / sizeof *colours)]);
    hbp__json_put(json, "\"");
    hbp__trace_times(&t->trace, t->starts[slice], t->ends[slice] - t->starts[slice]);
    hbp__json_member(json, ",\"args\":{\"slice\":", slice);
    hbp__json_member(json, ",\"wave\":", wave);
    hbp__json_put(json, ",\"task\":");
    hbp__json_put_string(json, s->task_names[task]);
    hbp__json_member(json, ",\"meta_op\":", m);
    hbp__json_member(json, ",\"gpus\":", s->slice_gpus[slice]);
    hbp__json_member(json, ",\"first\":", s->slice_firsts[slice]);
    hbp__json_member(json, ",\"operators\":", s->slice_operators[slice]);
    hbp__json_put(json, "},\"name\":\"");
    hbp__json_put_escaped(json, s->meta_op_names[m]);
    hbp__json_member(json, " x ", s->slice_operators[slice]);
    hbp__json_put(json, "\"}");
}

static hbp_status write_trace(hbp_context *context, tracing *t)
{
    const hbp_task_schedule *s = t->schedule;
    hbp__trace_tell_digest(&t->trace, "schedule", s->digest);
    hbp__trace_begin(&t->trace);
    for (int64_t wave = 0; wave < s->waves && t->trace.json.status == HBP_OK; wave++) {
        HBP__TRY(hbp__tick(context, "trace", wave, s->waves));
        for (int64_t slice = s->wave_offsets[wave]; slice < s->wave_offsets[wave + 1]; slice++) {
            int32_t group = s->slice_groups[slice];
            for (int64_t i = s->group_offsets[group]; i < s->group_offsets[group + 1]; i++)
                write_event(t, slice, wave, s->group_ranks[i]);
        }
    }
    hbp__trace_end(&t->trace);
    return HBP_OK;
}

hbp_status hbp_task_schedule_trace(hbp_context *context, const hbp_task_schedule *schedule,
                                   const hbp_task_run *run, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    HBP__TRY(hbp__require(context, path, "path"));
    if (run && (run->slices != schedule->slices || run->summary.schedule_digest != schedule->digest))
        return hbp__fail(context, HBP_E_INVALID, "the run is of schedule %016llx; the schedule is %016llx",
                         (unsigned long long)run->summary.schedule_digest,
                         (unsigned long long)schedule->digest);
    const hbp_task_summary *summary = &schedule->summary;
    tracing t = {.trace = {.ranks = summary->gpus, .domain_ranks = summary->domain_gpus},
                 .schedule = schedule,
                 .starts = run ? run->slice_starts : schedule->slice_starts,
                 .ends = run ? run->slice_ends : schedule->slice_ends};
    HBP__TRY(hbp__trace_open(context, path, &t.trace));
    return hbp__trace_close(context, &t.trace, write_trace(context, &t));
}
