#include "data/plan/timeline.h"

#include <math.h>

#include "base/rng.h"
#include "cost/cost.h"
#include "failing.h"
#include "keep.h"

#define MOST 400

/* Rows under construction. */
typedef struct rows {
    int64_t count;
    int64_t step[MOST];
    int32_t micro_batch[MOST];
    int32_t first_rank[MOST];
    int32_t sp[MOST];
    int32_t recompute[MOST];
    int64_t samples[MOST];
    int64_t tokens[MOST];
    int64_t sum_squares[MOST];
    int64_t time_ns[MOST];
    int64_t peak_bytes[MOST];
} rows;

static hbp_cost *make_cost(hbp_context *context)
{
    static const int32_t degrees[] = {1, 2, 4};
    static const double latency[] = {0, 1000, 2000}, slope[] = {0, 3, 2};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = 4;
    t.layers = 8;
    t.ns_per_token = 100;
    t.ns_per_token_squared = .5;
    t.recompute_linear = .3;
    t.recompute_attention = .3;
    t.pack_ns = 5000;
    t.step_ns = 1e9; /* no pack pays it, so no comparison may see it */
    t.static_bytes = 1e6;
    t.activation_bytes = 40;
    t.recomputed_bytes = 4;
    t.limit_bytes = INT64_C(1) << 40;
    t.degrees = 3;
    t.degree = degrees;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = slope;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

/* Packs of `steps` steps in a drawn order; times are the cost's, longer or shorter by up to a fifth. */
static void draw(rows *r, const hbp_cost *cost, uint64_t seed, int64_t steps)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    r->count = 0;
    for (int64_t s = 0; s < steps; s++)
        for (int64_t m = 0, end = 1 + hbp__rng_below(&rng, 4); m < end; m++)
            for (int32_t rank = 0, sp; rank < 4; rank += sp) {
                sp = rank == 0 ? 1 << hbp__rng_below(&rng, 3) : rank == 2 ? 1 << hbp__rng_below(&rng, 2) : 1;
                int64_t i = r->count++;
                ck_assert_int_lt(i, MOST);
                r->step[i] = s * 7;
                r->micro_batch[i] = (int32_t)m;
                r->first_rank[i] = rank;
                r->sp[i] = sp;
                r->recompute[i] = (int32_t)hbp__rng_below(&rng, 9);
                r->samples[i] = hbp__rng_below(&rng, 4) ? 1 : 0;
                r->tokens[i] = r->samples[i] ? 1 + (int64_t)hbp__rng_below(&rng, 5000) : 0;
                r->sum_squares[i] = r->tokens[i] * r->tokens[i];
                int64_t ns = hbp_cost_predict_pack_ns(cost, sp, r->recompute[i], r->tokens[i],
                                                      (double)r->sum_squares[i], 0);
                r->time_ns[i] = ns * (int64_t)(80 + hbp__rng_below(&rng, 40)) / 100;
                int64_t bytes = hbp_cost_predict_pack_bytes(cost, sp, r->recompute[i], r->tokens[i], 0);
                r->peak_bytes[i] = bytes * (int64_t)(90 + hbp__rng_below(&rng, 20)) / 100;
            }
}

/* Row `a` and row `b` change places. */
static void swap(rows *r, int64_t a, int64_t b)
{
#define SWAP(type, column)                                                                                   \
    do {                                                                                                     \
        type swapped = r->column[a];                                                                         \
        r->column[a] = r->column[b];                                                                         \
        r->column[b] = swapped;                                                                              \
    } while (0)
    SWAP(int64_t, step);
    SWAP(int32_t, micro_batch);
    SWAP(int32_t, first_rank);
    SWAP(int32_t, sp);
    SWAP(int32_t, recompute);
    SWAP(int64_t, samples);
    SWAP(int64_t, tokens);
    SWAP(int64_t, sum_squares);
    SWAP(int64_t, time_ns);
    SWAP(int64_t, peak_bytes);
#undef SWAP
}

static hbp_timeline *make(hbp_context *context, const rows *r, int with_bytes)
{
    const hbp_timeline_columns columns = {.struct_size = sizeof columns,
                                          .ranks = 4,
                                          .count = r->count,
                                          .step = r->step,
                                          .micro_batch = r->micro_batch,
                                          .first_rank = r->first_rank,
                                          .sp = r->sp,
                                          .recompute = r->recompute,
                                          .samples = r->samples,
                                          .tokens = r->tokens,
                                          .sum_squares = r->sum_squares,
                                          .time_ns = r->time_ns,
                                          .peak_bytes = with_bytes ? r->peak_bytes : NULL};
    hbp_timeline *timeline = NULL;
    OK(context, hbp_timeline_create(context, &columns, &timeline));
    return timeline;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_quantiles(double *error, int64_t count, double median, double p95, double most)
{
    ck_assert_int_gt(count, 0);
    qsort(error, (size_t)count, sizeof *error, ascending);
    ck_assert(median == error[(count * 50 + 99) / 100 - 1]);
    ck_assert(p95 < 0 || p95 == error[(count * 95 + 99) / 100 - 1]);
    ck_assert(most == error[count - 1]);
}

/* Everything again by loops over all rows for every step and micro-batch. */
static void check(const rows *r, const hbp_cost *cost, const hbp_timeline_report *report, int with_bytes)
{
    double error[MOST], bytes[MOST];
    int64_t packs = 0, steps = 0, all = 0, all_predicted = 0;
    double busy = 0, busy_predicted = 0;
    for (int64_t i = 0; i < r->count; i++) {
        if (!r->samples[i])
            continue;
        double predicted = (double)hbp_cost_predict_pack_ns(cost, r->sp[i], r->recompute[i], r->tokens[i],
                                                            (double)r->sum_squares[i], 0);
        double held = (double)hbp_cost_predict_pack_bytes(cost, r->sp[i], r->recompute[i], r->tokens[i], 0);
        error[packs] = fabs(predicted - (double)r->time_ns[i]) / (double)r->time_ns[i];
        busy += (double)r->sp[i] * (double)r->time_ns[i];
        busy_predicted += (double)r->sp[i] * predicted;
        bytes[packs++] = fabs(held - (double)r->peak_bytes[i]) / (double)r->peak_bytes[i];
    }
    ck_assert_int_eq(report->packs, packs);
    check_quantiles(error, packs, report->median_pack_error, report->p95_pack_error, report->max_pack_error);
    if (with_bytes)
        check_quantiles(bytes, packs, report->median_bytes_error, -1, report->max_bytes_error);
    else
        ck_assert(report->median_bytes_error == 0 && report->max_bytes_error == 0);
    for (int64_t s = 0; s < MOST; s++) {
        int64_t sum = 0, sum_predicted = 0;
        for (int32_t m = 0; m < 4; m++) {
            int64_t slowest = 0, slowest_predicted = 0;
            for (int64_t i = 0; i < r->count; i++) {
                if (r->step[i] != s || r->micro_batch[i] != m || !r->samples[i])
                    continue;
                int64_t predicted = hbp_cost_predict_pack_ns(cost, r->sp[i], r->recompute[i], r->tokens[i],
                                                             (double)r->sum_squares[i], 0);
                slowest = r->time_ns[i] > slowest ? r->time_ns[i] : slowest;
                slowest_predicted = predicted > slowest_predicted ? predicted : slowest_predicted;
            }
            sum += slowest;
            sum_predicted += slowest_predicted;
        }
        all += sum;
        all_predicted += sum_predicted;
        if (sum)
            error[steps++] = fabs((double)sum_predicted - (double)sum) / (double)sum;
    }
    ck_assert_int_eq(report->steps, steps);
    check_quantiles(error, steps, report->median_step_error, report->p95_step_error, report->max_step_error);
    ck_assert_int_eq(report->measured_ns, all);
    ck_assert_int_eq(report->predicted_ns, all_predicted);
    ck_assert_int_eq(report->ranks, 4);
    /* Drawn rows may overlap; then nothing is idle. */
    double idle = 1 - busy / (4 * (double)all),
           idle_predicted = 1 - busy_predicted / (4 * (double)all_predicted);
    ck_assert_double_eq_tol(report->measured_idle, idle > 0 ? idle : 0, 1e-9);
    ck_assert_double_eq_tol(report->predicted_idle, idle_predicted > 0 ? idle_predicted : 0, 1e-9);
}

START_TEST_IN_CONTEXT(errors_are_those_of_plain_loops)
{
    hbp_cost *cost = keep(make_cost(context));
    for (uint64_t seed = 0; seed < 40; seed++) {
        rows r;
        draw(&r, cost, seed, 1 + (int64_t)seed % 20);
        hbp__rng rng = hbp__rng_make(seed, 1, 0);
        for (int64_t i = 0; seed % 3 && i < r.count; i++) /* rows may come in any order */
            swap(&r, i, hbp__rng_below(&rng, (uint64_t)r.count));
        int real = 0;
        for (int64_t i = 0; i < r.count; i++)
            real |= r.samples[i] > 0;
        if (!real)
            continue;
        hbp_timeline *timeline = make(context, &r, seed & 1);
        hbp_timeline_report report = {.struct_size = sizeof report};
        OK(context, hbp_timeline_compare(context, timeline, cost, &report));
        check(&r, cost, &report, seed & 1);
        hbp_timeline_free(timeline);
    }
}
END_TEST

START_TEST_IN_CONTEXT(what_was_measured_as_predicted_has_no_error)
{
    hbp_cost *cost = keep(make_cost(context));
    rows r;
    draw(&r, cost, 3, 12);
    for (int64_t i = 0; i < r.count; i++)
        r.time_ns[i] =
            hbp_cost_predict_pack_ns(cost, r.sp[i], r.recompute[i], r.tokens[i], (double)r.sum_squares[i], 0);
    hbp_timeline *timeline = keep(make(context, &r, 0));
    hbp_timeline_report report = {.struct_size = sizeof report};
    OK(context, hbp_timeline_compare(context, timeline, cost, &report));
    ck_assert(report.max_pack_error == 0 && report.max_step_error == 0);
    ck_assert_int_eq(report.predicted_ns, report.measured_ns);
    ck_assert_int_gt(report.measured_ns, 0);
}
END_TEST

START_TEST_IN_CONTEXT(a_run_of_padding_has_no_packs)
{
    hbp_cost *cost = keep(make_cost(context));
    rows r;
    draw(&r, cost, 3, 1);
    for (int64_t i = 0; i < r.count; i++)
        r.samples[i] = 0;
    hbp_timeline *timeline = keep(make(context, &r, 1));
    hbp_timeline_report report = {.struct_size = sizeof report};
    OK(context, hbp_timeline_compare(context, timeline, cost, &report));
    ck_assert_int_eq(report.packs, 0);
    ck_assert_int_eq(report.steps, 0);
    ck_assert(report.max_pack_error == 0 && report.max_bytes_error == 0);
}
END_TEST

START_TEST_IN_CONTEXT(rows_that_the_cost_does_not_know_are_named)
{
    hbp_cost *cost = keep(make_cost(context));
    rows r;
    draw(&r, cost, 5, 3);
    hbp_timeline_report report = {.struct_size = sizeof report};
    r.sp[2] = 3;
    r.first_rank[2] = 0;
    hbp_timeline *timeline = keep(make(context, &r, 0));
    FAILS(context, HBP_E_INVALID, "row 2 ran on 3 ranks, which is not an SP degree of the cost",
          hbp_timeline_compare(context, timeline, cost, &report));
    r.sp[2] = 1;
    r.recompute[1] = 9;
    timeline = keep(make(context, &r, 0));
    FAILS(context, HBP_E_INVALID, "row 1 recomputed 9 layers; the cost has 8",
          hbp_timeline_compare(context, timeline, cost, &report));
    FAILS(context, HBP_E_INVALID, "timeline is NULL", hbp_timeline_compare(context, NULL, cost, &report));
    FAILS(context, HBP_E_INVALID, "cost is NULL", hbp_timeline_compare(context, timeline, NULL, &report));
    FAILS(context, HBP_E_INVALID, "report is NULL", hbp_timeline_compare(context, timeline, cost, NULL));
}
END_TEST

typedef struct compare_case {
    hbp_timeline *timeline;
    hbp_cost *cost;
} compare_case;

static hbp_status compare_once(hbp_context *context, void *user)
{
    const compare_case *c = user;
    hbp_timeline_report report = {.struct_size = sizeof report};
    return hbp_timeline_compare(context, c->timeline, c->cost, &report);
}

START_TEST_IN_CONTEXT(short_memory_and_cancelling_leave_nothing)
{
    compare_case c = {.cost = keep(make_cost(context))};
    rows r;
    draw(&r, c.cost, 9, 6);
    c.timeline = keep(make(context, &r, 1));
    failing_sweep(compare_once, &c);
    ck_assert_int_eq(cancel_sweep(compare_once, &c), 2);
}
END_TEST

TEST_MAIN("timeline", errors_are_those_of_plain_loops, what_was_measured_as_predicted_has_no_error,
          a_run_of_padding_has_no_packs, rows_that_the_cost_does_not_know_are_named,
          short_memory_and_cancelling_leave_nothing)
