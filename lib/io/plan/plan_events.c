#include "io/plan/plan_events.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/parts.h"

/* Ids of samples in the arguments of a pack. */
#define SHOWN_SAMPLES 8

/* "9,223,372,036,854,775,807" */
#define GROUPED_BYTES 32

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

void hbp__plan_trace_header(hbp__trace_out *trace, const hbp_plan *plan, int64_t first, int64_t end)
{
    hbp__trace_tell_digest(trace, "plan", plan->digest);
    hbp__json_member(&trace->json, ",\"first_step\":", plan->first_step + first);
    hbp__json_member(&trace->json, ",\"steps\":", end - first);
    hbp__json_member(&trace->json, ",\"plan_steps\":", plan->steps);
}

static void put_header(hbp__plan_tracing *t, int64_t first, int64_t end)
{
    hbp__json_out *json = &t->trace.json;
    const hbp_cost *cost = t->cost;
    hbp__plan_trace_header(&t->trace, t->plan, first, end);
    hbp__json_member(json, ",\"ranks\":", t->plan->ranks);
    hbp__json_member(json, ",\"lockstep_ranks\":", t->clock.set);
    hbp__json_put(json, ",\"parts\":");
    hbp__json_put_string(json, cost ? "sums over a pack's layers, one behind the other"
                                    : "none: without a cost, packs are shown whole");
    if (!cost)
        return;
    const struct {
        const char *key;
        const char *name;
    } names[] = {{",\"model\":", cost->model_name}, {",\"machine\":", cost->machine_name}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (*names[i].name) {
            hbp__json_put(json, names[i].key);
            hbp__json_put_string(json, names[i].name);
        }
    hbp__json_member(json, ",\"limit_bytes\":", cost->terms.limit_bytes);
}

/* The limit beside which the counters of memory stand, in every process. */
static void put_limits(hbp__plan_tracing *t)
{
    hbp__trace_out *trace = &t->trace;
    if (!t->cost || t->cost->terms.limit_bytes == INT64_MAX)
        return;
    for (trace->kind = 0; trace->kind < hbp__max_i64(trace->kinds, 1); trace->kind++)
        for (int64_t rank = 0; rank < trace->ranks; rank += trace->domain_ranks) {
            hbp__trace_record(trace, rank);
            hbp__json_put(&trace->json, ",\"ph\":\"C\",\"name\":\"memory limit of a rank\",\"ts\":0.000");
            hbp__json_member(&trace->json, ",\"args\":{\"bytes\":", t->cost->terms.limit_bytes);
            hbp__json_put(&trace->json, "}}");
        }
    trace->kind = 0;
}

hbp_status hbp__plan_trace_open(hbp_context *context, hbp__plan_tracing *t, int64_t first, int64_t end,
                                const char *path)
{
    const hbp_plan *plan = t->plan;
    if (t->cost && t->cost->terms.ranks != plan->ranks)
        return hbp__fail(context, HBP_E_INVALID, "the plan is for %d ranks, the cost for %d",
                         (int)plan->ranks, (int)t->cost->terms.ranks);
    const int64_t counters = (int64_t)plan->ranks * hbp__max_i64(t->trace.kinds, 1);
    t->first = first;
    t->end = end;
    t->trace.ranks = plan->ranks;
    t->trace.domain_ranks = plan->domain_ranks;
    t->trace.shows_steps = 1;
    t->bytes = hbp__take(context, (uint64_t)counters, sizeof *t->bytes);
    t->through = hbp__take_zero(context, (uint64_t)plan->ranks, sizeof *t->through);
    HBP__TRY(hbp__scratch_check(context, "the trace"));
    for (int64_t i = 0; i < counters; i++)
        t->bytes[i] = -1;
    HBP__TRY(hbp__clock_open(context, plan->ranks, plan->lockstep_ranks, &t->clock));
    HBP__TRY(hbp__trace_open(context, path, &t->trace));
    put_header(t, first, end);
    hbp__trace_begin(&t->trace);
    put_limits(t);
    return HBP_OK;
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

/* A count that is not negative, its thousands apart: "41,203". */
static void put_grouped(hbp__json_out *json, int64_t count)
{
    char text[GROUPED_BYTES];
    char *at = text + sizeof text - 1;
    *at = '\0';
    for (int digits = 0; count || !digits; digits++, count /= 10) {
        if (digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + count % 10);
    }
    hbp__json_put(json, at);
}

/* What a pack is: "SP 8, 3 samples, 41,203 tokens". */
static void put_name(hbp__json_out *json, const hbp_plan *plan, int64_t pack, int64_t samples)
{
    if (!samples) {
        hbp__json_put(json, "padding");
        return;
    }
    if (plan->pack_sp[pack] > 1) {
        hbp__json_member(json, "SP ", plan->pack_sp[pack]);
        hbp__json_put(json, ", ");
    }
    put_grouped(json, samples);
    hbp__json_put(json, samples == 1 ? " sample, " : " samples, ");
    put_grouped(json, plan->pack_tokens[pack]);
    hbp__json_put(json, plan->pack_tokens[pack] == 1 ? " token" : " tokens");
}

void hbp__plan_trace_event(hbp__plan_tracing *t, int64_t step, int64_t micro_batch, int64_t pack,
                           int64_t rank, int64_t start_ns, int64_t ns)
{
    const hbp_plan *plan = t->plan;
    hbp__json_out *json = &t->trace.json;
    const int64_t first = plan->pack_offsets[pack], samples = plan->pack_offsets[pack + 1] - first;
    hbp__trace_record(&t->trace, rank);
    hbp__json_put(json, ",\"ph\":\"X\",\"name\":\"");
    put_name(json, plan, pack, samples);
    hbp__json_put(json, samples ? "\",\"cat\":\"pack\"" : "\",\"cat\":\"padding\"");
    hbp__trace_times(&t->trace, start_ns, ns);
    hbp__json_member(json, ",\"args\":{\"step\":", plan->first_step + step);
    hbp__json_member(json, ",\"micro_batch\":", micro_batch);
    hbp__json_member(json, ",\"pack\":", pack);
    hbp__json_member(json, ",\"sp\":", plan->pack_sp[pack]);
    hbp__json_member(json, ",\"recompute\":", plan->pack_recompute[pack]);
    hbp__json_member(json, ",\"tokens\":", plan->pack_tokens[pack]);
    hbp__json_member(json, ",\"padded_tokens\":", plan->pack_padded_tokens[pack]);
    hbp__json_member(json, ",\"squares\":", plan->pack_squares[pack]);
    if (plan->pack_vision)
        hbp__json_member(json, ",\"vision\":", plan->pack_vision[pack]);
    hbp__json_member(json, ",\"samples\":", samples);
    for (int64_t i = 0; i < hbp__min_i64(samples, SHOWN_SAMPLES); i++)
        hbp__json_member(json, i ? "," : ",\"sample_ids\":[", plan->sample_ids[first + i]);
    hbp__json_put(json, samples ? "]" : "");
    hbp__json_member(json, ",\"predicted_ns\":", plan->pack_ns[pack]);
}

void hbp__plan_trace_whole(hbp__plan_tracing *t, int64_t step, int64_t start_ns, int64_t end_ns)
{
    const hbp_plan *plan = t->plan;
    hbp__json_out *json = &t->trace.json;
    hbp__trace_record(&t->trace, HBP__TRACE_STEPS);
    hbp__json_member(json, ",\"ph\":\"X\",\"cat\":\"step\",\"name\":\"step ", plan->first_step + step);
    hbp__json_put(json, "\"");
    hbp__trace_times(&t->trace, start_ns, end_ns - start_ns);
    hbp__json_member(
        json, ",\"args\":{\"micro_batches\":", plan->step_offsets[step + 1] - plan->step_offsets[step]);
    hbp__json_member(json, ",\"samples\":", plan->step_samples[step]);
    hbp__json_member(json, ",\"tokens\":", plan->step_tokens[step]);
    hbp__json_member(json, ",\"predicted_ns\":", plan->step_ns[step]);
    hbp__json_put(json, "}}");
}

/* Covers a rank up to `until`: it waits for the slowest of ranks [first, last]. */
static void put_wait(hbp__plan_tracing *t, int64_t rank, int64_t until, int64_t step, int64_t first,
                     int64_t last)
{
    hbp__json_out *json = &t->trace.json;
    if (t->through[rank] >= until)
        return;
    hbp__trace_record(&t->trace, rank);
    hbp__json_put(json, ",\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"waiting\"");
    hbp__trace_times(&t->trace, t->through[rank], until - t->through[rank]);
    hbp__json_member(json, ",\"args\":{\"step\":", t->plan->first_step + step);
    hbp__json_member(json, ",\"for\":\"ranks ", first);
    hbp__json_member(json, "-", last);
    hbp__json_put(json, "\"}}");
    t->through[rank] = until;
}

/* The parts of a pack's time; the plan's own where there is no cost. */
static hbp_status read_parts(hbp_context *context, const hbp__plan_tracing *t, int64_t pack,
                             hbp_pack_parts *parts)
{
    const hbp_plan *plan = t->plan;
    const int32_t recompute = plan->pack_recompute[pack];
    *parts = (hbp_pack_parts){.struct_size = sizeof *parts};
    if (!t->cost)
        return HBP_OK;
    const int32_t row = hbp__cost_row(t->cost, plan->pack_sp[pack]);
    if (row < 0)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld has SP degree %d, which the cost does not allow",
                         (long long)pack, (int)plan->pack_sp[pack]);
    if (recompute > t->cost->terms.layers)
        return hbp__fail(context, HBP_E_INVALID, "pack %lld recomputes %d layers; the model has %d",
                         (long long)pack, (int)recompute, (int)t->cost->terms.layers);
    const hbp__load load = {.tokens = plan->pack_padded_tokens[pack],
                            .squares = (double)plan->pack_squares[pack],
                            .vision = plan->pack_vision ? plan->pack_vision[pack] : 0};
    const int64_t ns = hbp__cost_pack_ns(t->cost, row, recompute, load);
    if (ns != plan->pack_ns[pack])
        return hbp__fail(context, HBP_E_INVALID,
                         "pack %lld: %lld ns are predicted; the cost gives %lld: the plan was made under "
                         "another",
                         (long long)pack, (long long)plan->pack_ns[pack], (long long)ns);
    *parts = hbp__cost_pack_parts(t->cost, row, recompute, load);
    return HBP_OK;
}

static void put_parts(hbp__plan_tracing *t, int64_t rank, int64_t start, const hbp_pack_parts *parts)
{
    const struct {
        const char *name;
        int64_t ns;
    } rows[] = {{"computation", parts->compute_ns},
                {"vision encoder", parts->vision_ns},
                {"all-to-all", parts->all_to_all_ns},
                {"ZeRO and overhead", parts->fixed_ns}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].ns)
            hbp__trace_part(&t->trace, rank, rows[i].name, start, rows[i].ns);
        start = hbp__add_saturating(start, rows[i].ns);
    }
}

static hbp_status put_pack(hbp_context *context, hbp__plan_tracing *t, int64_t step, int64_t micro_batch,
                           int64_t pack)
{
    const hbp_plan *plan = t->plan;
    const int32_t first = plan->pack_ranks[pack], sp = plan->pack_sp[pack], set = t->clock.set;
    const int64_t last = hbp__min_i64(((int64_t)first + sp - 1) / set * set + set, plan->ranks) - 1;
    const int64_t ns = plan->pack_ns[pack], start = hbp__clock_run(&t->clock, first, sp, ns);
    hbp_pack_parts parts;
    HBP__TRY(read_parts(context, t, pack, &parts));
    for (int64_t rank = first; rank < first + sp; rank++) {
        HBP__TRY(hbp__plan_trace_tick(context, t, step));
        /* It begins once all lockstep sets that it meets are free. */
        put_wait(t, rank, start, step, first / set * set, last);
        hbp__plan_trace_event(t, step, micro_batch, pack, rank, start, ns);
        hbp__json_put(&t->trace.json, "}}");
        put_parts(t, rank, start, &parts);
        hbp__plan_trace_memory(t, rank, start, plan->pack_bytes[pack]);
        t->through[rank] = hbp__add_saturating(start, ns);
    }
    return HBP_OK;
}

/* All wait for the last, and what is paid once a step follows: gradients, weights, optimiser. */
static void end_step(hbp__plan_tracing *t, int64_t step, int64_t begin)
{
    const hbp_plan *plan = t->plan;
    const int64_t last = hbp__clock_end(&t->clock);
    t->now = hbp__max_i64(last, hbp__add_saturating(begin, plan->step_ns[step]));
    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        put_wait(t, rank, last, step, 0, plan->ranks - 1);
        if (t->now == last)
            continue;
        hbp__trace_record(&t->trace, rank);
        hbp__json_put(&t->trace.json, ",\"ph\":\"X\",\"cat\":\"step end\",\"name\":\"optimiser step\"");
        hbp__trace_times(&t->trace, last, t->now - last);
        hbp__json_member(&t->trace.json, ",\"args\":{\"step\":", plan->first_step + step);
        hbp__json_put(&t->trace.json, "}}");
        t->through[rank] = t->now;
    }
    hbp__plan_trace_whole(t, step, begin, t->now);
}

hbp_status hbp__plan_trace_step(hbp_context *context, hbp__plan_tracing *t, int64_t step)
{
    const hbp_plan *plan = t->plan;
    const int64_t begin = t->now, first = plan->step_offsets[step];
    hbp__clock_start(&t->clock, begin);
    for (int64_t m = first; m < plan->step_offsets[step + 1]; m++) {
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++)
            HBP__TRY(put_pack(context, t, step, m - first, p));
        hbp__clock_next(&t->clock);
    }
    end_step(t, step, begin);
    return HBP_OK;
}
