/* How far a cost's predictions are from what a run measured. */
#include <string.h>

#include "base/options.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "cost/cost.h"
#include "data/plan/lockstep.h"
#include "data/plan/timeline.h"
#include "solve/relative_errors.h"

#define TICK_ROWS 32768

enum { MEASURED, PREDICTED, CLOCKS };

typedef struct comparing {
    hbp_context *context;
    const hbp_timeline *timeline;
    const hbp_cost *cost;
    int64_t *predicted; /* [rows] ns */
    uint32_t *order;    /* [rows] by step and micro-batch */
    hbp__relative_errors errors;
    hbp_timeline_report report;
    double busy[2];  /* rank-time of packs, measured and predicted */
    double whole[2]; /* rank-time of steps */
} comparing;

static hbp_status tick(const comparing *c, int64_t i)
{
    return i % TICK_ROWS ? HBP_OK : hbp__tick(c->context, "compare", i, c->timeline->count);
}

static hbp_status sort_errors(comparing *c)
{
    return hbp__relative_errors_sort(c->context, &c->errors, "errors of a timeline");
}

static hbp__load load_of(const hbp_timeline *t, int64_t i)
{
    return (hbp__load){.tokens = t->tokens[i], .squares = (double)t->sum_squares[i]};
}

static hbp_status predict_rows(comparing *c)
{
    const hbp_timeline *t = c->timeline;
    const hbp_cost *cost = c->cost;
    for (int64_t i = 0; i < t->count; i++) {
        HBP__TRY(tick(c, i));
        int32_t row = hbp__cost_row(cost, t->sp[i]);
        if (row < 0)
            return hbp__fail(c->context, HBP_E_INVALID,
                             "row %lld ran on %d ranks, which is not an SP degree of the cost", (long long)i,
                             (int)t->sp[i]);
        if (t->recompute[i] > cost->terms.layers)
            return hbp__fail(c->context, HBP_E_INVALID, "row %lld recomputed %d layers; the cost has %d",
                             (long long)i, (int)t->recompute[i], (int)cost->terms.layers);
        c->predicted[i] = hbp__cost_pack_ns(cost, row, t->recompute[i], load_of(t, i));
    }
    return HBP_OK;
}

static hbp_status compare_packs(comparing *c)
{
    const hbp_timeline *t = c->timeline;
    hbp_timeline_report *r = &c->report;
    for (int64_t i = 0; i < t->count; i++)
        if (!hbp__timeline_is_padding(t, i))
            hbp__relative_errors_add(&c->errors, (double)c->predicted[i], (double)t->time_ns[i]);
    HBP__TRY(sort_errors(c));
    r->packs = c->errors.count;
    r->median_pack_error = hbp__relative_errors_quantile(&c->errors, 50);
    r->p95_pack_error = hbp__relative_errors_quantile(&c->errors, 95);
    r->max_pack_error = hbp__relative_errors_quantile(&c->errors, 100);
    return HBP_OK;
}

static hbp_status compare_bytes(comparing *c)
{
    const hbp_timeline *t = c->timeline;
    c->errors.count = 0;
    for (int64_t i = 0; i < t->count && t->peak_bytes; i++)
        if (!hbp__timeline_is_padding(t, i)) {
            int32_t row = hbp__cost_row(c->cost, t->sp[i]);
            int64_t predicted = hbp__cost_pack_bytes(c->cost, row, t->recompute[i], load_of(t, i));
            hbp__relative_errors_add(&c->errors, (double)predicted, (double)t->peak_bytes[i]);
        }
    HBP__TRY(sort_errors(c));
    c->report.median_bytes_error = hbp__relative_errors_quantile(&c->errors, 50);
    c->report.max_bytes_error = hbp__relative_errors_quantile(&c->errors, 100);
    return HBP_OK;
}

/* Rows by step, and by micro-batch within a step: the sort is stable, so the lesser key goes first. */
static hbp_status sort_rows(comparing *c)
{
    const hbp_timeline *t = c->timeline;
    int64_t mark = hbp__scratch_mark(c->context);
    int64_t *key = hbp__take(c->context, (uint64_t)t->count, sizeof *key);
    HBP__TRY(hbp__scratch_check(c->context, "rows of a timeline"));
    for (int64_t i = 0; i < t->count; i++) {
        key[i] = t->micro_batch[i];
        c->order[i] = (uint32_t)i;
    }
    HBP__TRY(hbp__order_by_i64(c->context, key, c->order, t->count, "rows of a timeline"));
    HBP__TRY(hbp__order_by_i64(c->context, t->step, c->order, t->count, "rows of a timeline"));
    hbp__scratch_release(c->context, mark);
    return HBP_OK;
}

/* The end of the rows of one micro-batch from row `i` of the order on. */
static int64_t find_end(const comparing *c, int64_t i)
{
    const hbp_timeline *t = c->timeline;
    int64_t end = i;
    while (end < t->count && t->step[c->order[end]] == t->step[c->order[i]] &&
           t->micro_batch[c->order[end]] == t->micro_batch[c->order[i]])
        end++;
    return end;
}

static void run_pack(comparing *c, hbp__clock *clocks, uint32_t row)
{
    const hbp_timeline *t = c->timeline;
    const int64_t ns[CLOCKS] = {t->time_ns[row], c->predicted[row]};
    for (int i = 0; i < CLOCKS; i++) {
        hbp__clock_run(&clocks[i], t->first_rank[row], t->sp[row], ns[i]);
        c->busy[i] += (double)t->sp[row] * (double)ns[i];
    }
}

static double idle(const comparing *c, int clock)
{
    return c->whole[clock] > c->busy[clock] ? 1 - c->busy[clock] / c->whole[clock] : 0;
}

/* Steps are compared by when their lockstep sets are through with the packs that were measured: of a step
 * that was measured in part, the same part is predicted. */
static hbp_status compare_steps(comparing *c, hbp__clock *clocks)
{
    const hbp_timeline *t = c->timeline;
    hbp_timeline_report *r = &c->report;
    c->errors.count = 0;
    for (int64_t i = 0; i < t->count;) {
        int64_t step = t->step[c->order[i]];
        hbp__clock_start(&clocks[MEASURED], 0);
        hbp__clock_start(&clocks[PREDICTED], 0);
        while (i < t->count && t->step[c->order[i]] == step) {
            for (int64_t end = find_end(c, i); i < end; i++) {
                uint32_t row = c->order[i];
                HBP__TRY(tick(c, i));
                if (hbp__timeline_is_padding(t, row))
                    continue;
                run_pack(c, clocks, row);
            }
            hbp__clock_next(&clocks[MEASURED]);
            hbp__clock_next(&clocks[PREDICTED]);
        }
        int64_t measured = hbp__clock_end(&clocks[MEASURED]), predicted = hbp__clock_end(&clocks[PREDICTED]);
        c->whole[MEASURED] += (double)t->ranks * (double)measured;
        c->whole[PREDICTED] += (double)t->ranks * (double)predicted;
        r->measured_ns = hbp__add_saturating(r->measured_ns, measured);
        r->predicted_ns = hbp__add_saturating(r->predicted_ns, predicted);
        if (measured) /* else of padding packs alone */
            hbp__relative_errors_add(&c->errors, (double)predicted, (double)measured);
    }
    HBP__TRY(sort_errors(c));
    r->steps = c->errors.count;
    r->measured_idle = idle(c, MEASURED);
    r->predicted_idle = idle(c, PREDICTED);
    r->median_step_error = hbp__relative_errors_quantile(&c->errors, 50);
    r->p95_step_error = hbp__relative_errors_quantile(&c->errors, 95);
    r->max_step_error = hbp__relative_errors_quantile(&c->errors, 100);
    return HBP_OK;
}

static hbp_status compare_by_clocks(comparing *c)
{
    hbp__clock clocks[CLOCKS];
    int32_t set = c->cost->terms.lockstep_ranks;
    for (int i = 0; i < CLOCKS; i++)
        HBP__TRY(hbp__clock_open(c->context, c->timeline->ranks, set, &clocks[i]));
    return compare_steps(c, clocks);
}

static hbp_status compare_rows(comparing *c, hbp_timeline_report *report)
{
    uint64_t rows = (uint64_t)c->timeline->count;
    c->predicted = hbp__take(c->context, rows, sizeof *c->predicted);
    c->order = hbp__take(c->context, rows, sizeof *c->order);
    HBP__TRY(hbp__scratch_check(c->context, "rows of a timeline"));
    if (!hbp__relative_errors_begin(&c->context->memory, c->timeline->count, &c->errors))
        return hbp__fail_memory(c->context, "rows of a timeline");
    c->report = (hbp_timeline_report){.struct_size = sizeof c->report, .ranks = c->timeline->ranks};
    HBP__TRY(predict_rows(c));
    HBP__TRY(compare_packs(c));
    HBP__TRY(compare_bytes(c));
    HBP__TRY(sort_rows(c));
    HBP__TRY(compare_by_clocks(c));
    return hbp__struct_write(c->context, report, &c->report, sizeof c->report, "hbp_timeline_report");
}

static hbp_status compare_timeline(hbp_context *context, const hbp_timeline *timeline, const hbp_cost *cost,
                                   hbp_timeline_report *report)
{
    HBP__TRY(hbp__require(context, timeline, "timeline"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    HBP__TRY(hbp__require(context, report, "report"));
    comparing c = {.context = context, .timeline = timeline, .cost = cost};
    hbp_status status = compare_rows(&c, report);
    hbp__relative_errors_end(&context->memory, &c.errors);
    return status;
}

hbp_status hbp_timeline_compare(hbp_context *context, const hbp_timeline *timeline, const hbp_cost *cost,
                                hbp_timeline_report *report)
{
    HBP__TRY(hbp__enter(context));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, compare_timeline(context, timeline, cost, report));
}
