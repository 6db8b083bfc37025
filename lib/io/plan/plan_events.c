#include "io/plan/plan_events.h"

#include "base/checked.h"
#include "base/scratch.h"

hbp_status hbp__trace_range(hbp_context *context, const hbp_plan *plan, const hbp_trace_options *options,
                            int64_t *first, int64_t *end)
{
    const int64_t count = options->steps;
    *first = options->first_step;
    if (*first < 0 || *first >= plan->steps || count < 0 || count > plan->steps - *first)
        return hbp__fail(context, HBP_E_INVALID, "%lld steps from step %lld; the plan has %lld",
                         (long long)count, (long long)*first, (long long)plan->steps);
    *end = count ? *first + count : plan->steps;
    return HBP_OK;
}

hbp_status hbp__plan_trace_begin(hbp_context *context, hbp__plan_tracing *t)
{
    int64_t counters = (int64_t)t->plan->ranks * hbp__max_i64(t->trace.kinds, 1);
    t->bytes = hbp__take(context, (uint64_t)counters, sizeof *t->bytes);
    HBP__TRY(hbp__scratch_check(context, "the trace"));
    for (int64_t i = 0; i < counters; i++)
        t->bytes[i] = -1;
    return hbp__clock_open(context, t->plan->ranks, t->plan->lockstep_ranks, &t->clock);
}

void hbp__plan_trace_memory(hbp__plan_tracing *t, int64_t rank, int64_t start_ns, int64_t bytes)
{
    int64_t *last = &t->bytes[(int64_t)t->trace.kind * t->plan->ranks + rank];
    if (*last == bytes)
        return;
    *last = bytes;
    hbp__trace_record(&t->trace, rank);
    hbp__json_member(&t->trace.json, ",\"ph\":\"C\",\"name\":\"memory of rank ", rank);
    hbp__json_put(&t->trace.json, "\",\"ts\":");
    hbp__json_put_us(&t->trace.json, start_ns);
    hbp__json_member(&t->trace.json, ",\"args\":{\"bytes\":", bytes);
    hbp__json_put(&t->trace.json, "}}");
}

void hbp__plan_trace_event(hbp__plan_tracing *t, int64_t step, int64_t micro_batch, int64_t pack,
                           int64_t rank, int64_t start_ns, int64_t ns)
{
    const hbp_plan *plan = t->plan;
    int64_t samples = plan->pack_offsets[pack + 1] - plan->pack_offsets[pack];
    hbp__trace_record(&t->trace, rank);
    hbp__json_put(&t->trace.json, ",\"ph\":\"X\",\"name\":\"");
    if (samples)
        hbp__json_member(&t->trace.json, "SP ", plan->pack_sp[pack]);
    hbp__json_put(&t->trace.json, samples ? "\",\"cat\":\"pack\"" : "padding\",\"cat\":\"padding\"");
    hbp__trace_times(&t->trace, start_ns, ns);
    hbp__json_member(&t->trace.json, ",\"args\":{\"step\":", plan->first_step + step);
    hbp__json_member(&t->trace.json, ",\"micro_batch\":", micro_batch);
    hbp__json_member(&t->trace.json, ",\"pack\":", pack);
    hbp__json_member(&t->trace.json, ",\"sp\":", plan->pack_sp[pack]);
    hbp__json_member(&t->trace.json, ",\"recompute\":", plan->pack_recompute[pack]);
    hbp__json_member(&t->trace.json, ",\"tokens\":", plan->pack_tokens[pack]);
    hbp__json_member(&t->trace.json, ",\"padded_tokens\":", plan->pack_padded_tokens[pack]);
    hbp__json_member(&t->trace.json, ",\"squares\":", plan->pack_squares[pack]);
    if (plan->pack_vision)
        hbp__json_member(&t->trace.json, ",\"vision\":", plan->pack_vision[pack]);
    hbp__json_member(&t->trace.json, ",\"samples\":", samples);
}

void hbp__plan_trace_step(hbp__plan_tracing *t, int64_t step)
{
    const hbp_plan *plan = t->plan;
    int64_t begin = t->now, first = plan->step_offsets[step];
    hbp__clock_start(&t->clock, begin);
    for (int64_t m = first; m < plan->step_offsets[step + 1]; m++) {
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
            int64_t start =
                hbp__clock_run(&t->clock, plan->pack_ranks[p], plan->pack_sp[p], plan->pack_ns[p]);
            for (int32_t i = 0; i < plan->pack_sp[p]; i++) {
                int64_t rank = plan->pack_ranks[p] + i;
                hbp__plan_trace_event(t, step, m - first, p, rank, start, plan->pack_ns[p]);
                hbp__json_put(&t->trace.json, "}}");
                hbp__plan_trace_memory(t, rank, start, plan->pack_bytes[p]);
            }
        }
        hbp__clock_next(&t->clock);
    }
    t->now = hbp__max_i64(hbp__clock_end(&t->clock), hbp__add_saturating(begin, plan->step_ns[step]));
}
