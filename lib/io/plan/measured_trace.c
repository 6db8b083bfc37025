#include "io/plan/measured_trace.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "data/plan/timeline.h"
#include "io/plan/plan_events.h"

#define TICK_ROWS 32768

enum { PREDICTED, MEASURED, KINDS };

typedef struct tracing {
    hbp_context *context;
    hbp__plan_tracing plan;
    const hbp_timeline *timeline;
    int64_t first_pack; /* of the steps shown */
    int64_t packs;
    int64_t *rows;  /* [packs] of the timeline; -1: not measured */
    int64_t *until; /* [ranks] when what is shown of each ends, ns */
    int64_t now;    /* of the measured times, where their starts are not known */
    int64_t origin; /* start_ns that is shown ... */
    int64_t shown;  /* ... here; -1: nothing measured has been shown */
    int64_t begun;  /* of the step at hand, when the first pack is shown; -1: none has been */
    int64_t ended;  /* and the last one's end */
    int64_t whole;  /* until when steps are shown */
} tracing;

static int64_t samples_of(const hbp_plan *plan, int64_t pack)
{
    return plan->pack_offsets[pack + 1] - plan->pack_offsets[pack];
}

/* The plan's pack that row `i` is of. */
static hbp_status find_pack(const tracing *t, int64_t i, int64_t *pack)
{
    const hbp_plan *plan = t->plan.plan;
    const hbp_timeline *line = t->timeline;
    int64_t step = line->step[i] - plan->first_step;
    if (step < 0 || step >= plan->steps)
        return hbp__fail(t->context, HBP_E_INVALID, "row %lld is of step %lld; the plan has steps %lld..%lld",
                         (long long)i, (long long)line->step[i], (long long)plan->first_step,
                         (long long)(plan->first_step + plan->steps - 1));
    int64_t count = plan->step_offsets[step + 1] - plan->step_offsets[step];
    if (line->micro_batch[i] >= count)
        return hbp__fail(t->context, HBP_E_INVALID,
                         "row %lld is of micro-batch %d of step %lld, which has %lld in the plan",
                         (long long)i, (int)line->micro_batch[i], (long long)line->step[i], (long long)count);
    *pack = hbp_plan_get_rank_pack(plan, step, line->micro_batch[i], line->first_rank[i]);
    if (plan->pack_ranks[*pack] != line->first_rank[i] || plan->pack_sp[*pack] != line->sp[i])
        return hbp__fail(t->context, HBP_E_INVALID,
                         "row %lld ran on %d ranks from rank %d in micro-batch %d of step %lld; the plan has "
                         "%d from rank %d there",
                         (long long)i, (int)line->sp[i], (int)line->first_rank[i], (int)line->micro_batch[i],
                         (long long)line->step[i], (int)plan->pack_sp[*pack], (int)plan->pack_ranks[*pack]);
    if (line->samples && line->samples[i] != samples_of(plan, *pack))
        return hbp__fail(t->context, HBP_E_INVALID,
                         "row %lld holds %lld samples; the plan's pack %lld has %lld", (long long)i,
                         (long long)line->samples[i], (long long)*pack, (long long)samples_of(plan, *pack));
    return HBP_OK;
}

static hbp_status match_rows(tracing *t)
{
    if (t->timeline->ranks != t->plan.plan->ranks)
        return hbp__fail(t->context, HBP_E_INVALID, "the timeline is of %d ranks; the plan is for %d",
                         (int)t->timeline->ranks, (int)t->plan.plan->ranks);
    for (int64_t k = 0; k < t->packs; k++)
        t->rows[k] = -1;
    for (int64_t i = 0; i < t->timeline->count; i++) {
        int64_t pack = 0;
        if (i % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(t->context, "match", i, t->timeline->count));
        HBP__TRY(find_pack(t, i, &pack));
        int64_t k = pack - t->first_pack;
        if (k < 0 || k >= t->packs)
            continue;
        if (t->rows[k] >= 0)
            return hbp__fail(t->context, HBP_E_INVALID, "rows %lld and %lld are of the same pack, %lld",
                             (long long)t->rows[k], (long long)i, (long long)pack);
        t->rows[k] = i;
    }
    return HBP_OK;
}

/* Row of a pack that is shown, or -1. */
static int64_t row_of(const tracing *t, int64_t pack)
{
    return t->rows[pack - t->first_pack];
}

/* The least start of a step's rows; -1 where it was not measured. 0 where starts are not known. */
static int64_t step_start(const tracing *t, int64_t step)
{
    const hbp_plan *plan = t->plan.plan;
    int64_t least = -1;
    for (int64_t m = plan->step_offsets[step]; m < plan->step_offsets[step + 1]; m++)
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
            int64_t i = row_of(t, p), start = i >= 0 && t->timeline->start_ns ? t->timeline->start_ns[i] : 0;
            if (i >= 0 && (least < 0 || start < least))
                least = start;
        }
    return least;
}

/* A row shows a rank for as long as its group's slowest, so the next may have begun: it is shown from there.
 */
static void write_event(tracing *t, int64_t step, int64_t micro_batch, int64_t pack, int64_t rank,
                        int64_t start)
{
    const hbp_timeline *line = t->timeline;
    const int64_t i = row_of(t, pack), time = line->time_ns[i], predicted = t->plan.plan->pack_ns[pack];
    int64_t begin = hbp__max_i64(start, t->until[rank]);
    int64_t end = hbp__max_i64(begin, hbp__add_saturating(start, time));
    hbp__json_out *json = &t->plan.trace.json;
    t->until[rank] = end;
    t->begun = t->begun < 0 ? begin : hbp__min_i64(t->begun, begin);
    t->ended = hbp__max_i64(t->ended, end);
    hbp__plan_trace_event(&t->plan, step, micro_batch, pack, rank, begin, end - begin);
    hbp__json_member(json, ",\"measured_ns\":", time);
    if (time) {
        double off = (double)predicted / (double)time - 1;
        hbp__json_put(json, ",\"error\":");
        hbp__json_put_share(json, off < 0 ? -off : off);
    }
    if (line->communication_ns)
        hbp__json_member(json, ",\"communication_ns\":", line->communication_ns[i]);
    if (line->peak_bytes)
        hbp__json_member(json, ",\"peak_bytes\":", line->peak_bytes[i]);
    hbp__json_put(json, "}}");
    if (line->communication_ns && end > begin) {
        int64_t shown = hbp__min_i64(line->communication_ns[i], end - begin);
        if (shown)
            hbp__trace_part(&t->plan.trace, rank, "all-to-all", end - shown, shown);
    }
    if (line->peak_bytes)
        hbp__plan_trace_memory(&t->plan, rank, begin, line->peak_bytes[i]);
}

/* What was measured of a step; without starts, packs begin as soon as their lockstep sets let them. */
static hbp_status write_measured(tracing *t, int64_t step)
{
    const hbp_plan *plan = t->plan.plan;
    const hbp_timeline *line = t->timeline;
    hbp__clock *clock = &t->plan.clock;
    int64_t first = plan->step_offsets[step];
    hbp__clock_start(clock, t->now);
    t->begun = -1;
    t->ended = 0;
    for (int64_t m = first; m < plan->step_offsets[step + 1]; m++) {
        for (int64_t p = plan->micro_batch_offsets[m]; p < plan->micro_batch_offsets[m + 1]; p++) {
            int64_t i = row_of(t, p);
            if (i < 0)
                continue;
            int64_t start = hbp__clock_run(clock, plan->pack_ranks[p], plan->pack_sp[p], line->time_ns[i]);
            if (line->start_ns && line->start_ns[i] < t->origin)
                start = t->shown - hbp__min_i64(t->origin - line->start_ns[i], t->shown);
            else if (line->start_ns)
                start = hbp__add_saturating(t->shown, line->start_ns[i] - t->origin);
            for (int32_t k = 0; k < plan->pack_sp[p]; k++) {
                HBP__TRY(hbp__plan_trace_tick(t->context, &t->plan, step));
                write_event(t, step, m - first, p, plan->pack_ranks[p] + k, start);
            }
        }
        hbp__clock_next(clock);
    }
    t->now = hbp__clock_end(clock);
    if (t->begun >= 0) { /* a rank may begin the next step while another is at work on this one */
        t->begun = hbp__max_i64(t->begun, t->whole);
        t->whole = hbp__max_i64(t->begun, t->ended);
        hbp__plan_trace_whole(&t->plan, step, t->begun, t->whole);
    }
    return HBP_OK;
}

static hbp_status write_steps(tracing *t, int64_t first, int64_t end)
{
    for (int64_t step = first; step < end && t->plan.trace.json.status == HBP_OK; step++) {
        HBP__TRY(hbp__tick(t->context, "trace", step - first, end - first));
        int64_t begin = t->plan.now, start = step_start(t, step);
        t->plan.trace.kind = PREDICTED;
        HBP__TRY(hbp__plan_trace_step(t->context, &t->plan, step));
        if (start < 0) { /* leaves a gap as long as the step was to take */
            t->now = hbp__add_saturating(t->now, t->plan.now - begin);
            continue;
        }
        if (t->shown < 0) {
            t->shown = begin;
            t->origin = start;
        }
        t->plan.trace.kind = MEASURED;
        HBP__TRY(write_measured(t, step));
    }
    hbp__trace_end(&t->plan.trace);
    return HBP_OK;
}

hbp_status hbp__trace_measured(hbp_context *context, const hbp_plan *plan, const hbp_trace_options *options,
                               int64_t first, int64_t end, const char *path)
{
    static const char *const kinds[KINDS] = {"predicted", "measured"};
    tracing t = {.context = context,
                 .plan = {.plan = plan, .cost = options->cost, .trace = {.kinds = KINDS, .names = kinds}},
                 .timeline = options->timeline,
                 .first_pack = plan->micro_batch_offsets[plan->step_offsets[first]],
                 .shown = -1};
    t.packs = plan->micro_batch_offsets[plan->step_offsets[end]] - t.first_pack;
    t.rows = hbp__take(context, (uint64_t)t.packs, sizeof *t.rows);
    t.until = hbp__take_zero(context, (uint64_t)plan->ranks, sizeof *t.until);
    HBP__TRY(hbp__scratch_check(context, "the trace"));
    HBP__TRY(match_rows(&t));
    HBP__TRY(hbp__plan_trace_open(context, &t.plan, first, end, path));
    return hbp__trace_close(context, &t.plan.trace, write_steps(&t, first, end));
}
