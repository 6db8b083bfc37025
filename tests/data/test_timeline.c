#include "data/plan/timeline.h"

#include "base/rng.h"
#include "failing.h"
#include "keep.h"

#define ROWS 6

/* Two steps on 4 ranks; rows 2 and 5 are dummies. */
typedef struct rows {
    int64_t step[ROWS];
    int32_t micro_batch[ROWS];
    int32_t first_rank[ROWS];
    int32_t sp[ROWS];
    int32_t recompute[ROWS];
    int64_t samples[ROWS];
    int64_t tokens[ROWS];
    int64_t sum_squares[ROWS];
    int64_t start_ns[ROWS];
    int64_t time_ns[ROWS];
    int64_t communication_ns[ROWS];
    int64_t peak_bytes[ROWS];
} rows;

static const rows plain = {
    .step = {0, 0, 0, 1, 1, 1},
    .micro_batch = {0, 0, 0, 0, 1, 1},
    .first_rank = {0, 2, 3, 0, 0, 2},
    .sp = {2, 1, 1, 4, 2, 2},
    .recompute = {0, 3, 0, 1, 0, 0},
    .samples = {2, 1, 0, 5, 1, 0},
    .tokens = {100, 64, 0, 640, 7, 8},
    .sum_squares = {5008, 4096, 0, 5, 49, 64},
    .start_ns = {0, 0, 0, 50, 80, 80},
    .time_ns = {40, 30, 0, 25, 9, 1},
    .communication_ns = {3, 0, 0, 25, 0, 0},
    .peak_bytes = {1000, 900, 0, 2000, 500, 0},
};

static hbp_timeline_columns view(const rows *r)
{
    return (hbp_timeline_columns){.struct_size = sizeof(hbp_timeline_columns),
                                  .ranks = 4,
                                  .count = ROWS,
                                  .step = r->step,
                                  .micro_batch = r->micro_batch,
                                  .first_rank = r->first_rank,
                                  .sp = r->sp,
                                  .recompute = r->recompute,
                                  .samples = r->samples,
                                  .tokens = r->tokens,
                                  .sum_squares = r->sum_squares,
                                  .start_ns = r->start_ns,
                                  .time_ns = r->time_ns,
                                  .communication_ns = r->communication_ns,
                                  .peak_bytes = r->peak_bytes,
                                  .device = " NVIDIA H100, 80 GB  ",
                                  .date = "2026-11-22"};
}

START_TEST_IN_CONTEXT(columns_come_back)
{
    rows r = plain;
    hbp_timeline_columns given = view(&r), got;
    hbp_timeline *timeline;
    OK(context, hbp_timeline_create(context, &given, &timeline));
    memset(&r, -1, sizeof r); /* it keeps nothing of the caller's */
    got = (hbp_timeline_columns){.struct_size = sizeof got};
    OK(context, hbp_timeline_get_columns(context, timeline, &got));
    ck_assert_int_eq(got.ranks, 4);
    ck_assert_int_eq(got.count, ROWS);
    ck_assert_str_eq(got.device, "NVIDIA H100, 80 GB");
    ck_assert_str_eq(got.date, "2026-11-22");
#define SAME(name, type, needed) ck_assert_mem_eq(got.name, plain.name, sizeof plain.name);
    HBP__TIMELINE_COLUMNS(SAME)
#undef SAME
    hbp_timeline_free(timeline);
    hbp_timeline_free(NULL);
}
END_TEST

START_TEST_IN_CONTEXT(columns_may_be_unknown)
{
    hbp_timeline_columns given = view(&plain), got;
    hbp_timeline *timeline;
    given.samples = given.start_ns = given.communication_ns = given.peak_bytes = NULL;
    given.device = "  ";
    given.date = NULL;
    MAKES(context, timeline, hbp_timeline_create(context, &given, &timeline));
    got = (hbp_timeline_columns){.struct_size = sizeof got};
    OK(context, hbp_timeline_get_columns(context, timeline, &got));
    ck_assert(!got.samples && !got.start_ns && !got.communication_ns && !got.peak_bytes);
    ck_assert(!got.device && !got.date);
    /* without a number of samples, a dummy is what has no tokens */
    hbp_measurements m = {.struct_size = sizeof m};
    OK(context, hbp_timeline_get_measurements(context, timeline, &m));
    ck_assert_int_eq(m.count, ROWS - 1);
    ck_assert_ptr_null(m.peak_bytes);
}
END_TEST

START_TEST_IN_CONTEXT(measurements_are_the_rows_without_padding)
{
    hbp_timeline_columns given = view(&plain);
    hbp_timeline *timeline;
    MAKES(context, timeline, hbp_timeline_create(context, &given, &timeline));
    hbp_measurements m = {.struct_size = sizeof m};
    OK(context, hbp_timeline_get_measurements(context, timeline, &m));
    ck_assert_int_eq(m.count, 4);
    for (int i = 0, at = 0; i < ROWS; i++) {
        if (!plain.samples[i])
            continue;
        ck_assert_int_eq(m.sp[at], plain.sp[i]);
        ck_assert_int_eq(m.recompute[at], plain.recompute[i]);
        ck_assert_int_eq(m.tokens[at], plain.tokens[i]);
        ck_assert_int_eq(m.sum_squares[at], plain.sum_squares[i]);
        ck_assert_int_eq(m.time_ns[at], plain.time_ns[i]);
        ck_assert_int_eq(m.peak_bytes[at], plain.peak_bytes[i]);
        at++;
    }
    given.count = 2; /* without dummies, the columns themselves */
    MAKES(context, timeline, hbp_timeline_create(context, &given, &timeline));
    hbp_timeline_columns got = {.struct_size = sizeof got};
    OK(context, hbp_timeline_get_columns(context, timeline, &got));
    OK(context, hbp_timeline_get_measurements(context, timeline, &m));
    ck_assert_int_eq(m.count, 2);
    ck_assert(m.sp == got.sp && m.time_ns == got.time_ns && m.peak_bytes == got.peak_bytes);
}
END_TEST

/* One value changed at a time: each is told by its row. */
/* What stands between two steps: from the last end of the one to the first start of the other. */
START_TEST_IN_CONTEXT(time_between_steps)
{
    enum { COUNT = 14 };
    /* Of 3 and 4 and of 6 and 7 there is a time between, those two overlap; 9 begins with its second
     * micro-batch, 11 lacks one; before 13 the clock begins anew; 20 to 21. Rows in any order. */
    static const int64_t step[COUNT] = {7, 3, 4, 4, 6, 3, 8, 9, 10, 11, 11, 12, 13, 14};
    static const int32_t batch[COUNT] = {0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 2, 0, 0, 0};
    static const int64_t start[COUNT] = {990,  10,   150,  140,  900,  20, 1200,
                                         1300, 1400, 1500, 1600, 1700, 3,  100};
    static const int64_t time[COUNT] = {5, 100, 10, 30, 100, 60, 10, 10, 10, 10, 10, 10, 10, 10};
    int32_t zeros[COUNT] = {0}, sp[COUNT];
    int64_t ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = sp[i] = 1;
    hbp_timeline_columns given = {.struct_size = sizeof given,
                                  .ranks = 4,
                                  .count = COUNT,
                                  .step = step,
                                  .micro_batch = batch,
                                  .first_rank = zeros,
                                  .sp = sp,
                                  .recompute = zeros,
                                  .tokens = ones,
                                  .sum_squares = ones,
                                  .start_ns = start,
                                  .time_ns = time};
    hbp_timeline *timeline;
    MAKES(context, timeline, hbp_timeline_create(context, &given, &timeline));
    hbp_measurements m = {.struct_size = sizeof m};
    OK(context, hbp_timeline_get_measurements(context, timeline, &m));
    static const int64_t expected[] = {140 - 110, 0, 1200 - 995, 100 - 13};
    ck_assert_int_eq(m.steps, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(m.step_ns[i], expected[i]);
    given.start_ns = NULL;
    MAKES(context, timeline, hbp_timeline_create(context, &given, &timeline));
    OK(context, hbp_timeline_get_measurements(context, timeline, &m));
    ck_assert_int_eq(m.steps, 0);
    ck_assert_ptr_null(m.step_ns);
}
END_TEST

START_TEST_IN_CONTEXT(values_without_sense_are_refused)
{
    hbp_timeline *timeline;
#define REFUSES(change, message)                                                                             \
    do {                                                                                                     \
        rows r = plain;                                                                                      \
        hbp_timeline_columns given = view(&r);                                                               \
        change;                                                                                              \
        timeline = NULL;                                                                                     \
        FAILS(context, HBP_E_INVALID, message, hbp_timeline_create(context, &given, &timeline));             \
        ck_assert_ptr_null(timeline);                                                                        \
    } while (0)
    REFUSES(r.step[3] = -1, "step[3] is -1; it must be at least 0");
    REFUSES(r.micro_batch[1] = -2, "micro_batch[1] is -2; it must be in 0..2147483647");
    REFUSES(r.first_rank[1] = -1, "first_rank[1] is -1; it must be in 0..3");
    REFUSES(r.first_rank[0] = 3, "first_rank[0] is 3; it must be in 0..2");
    REFUSES(r.sp[0] = 0, "sp[0] is 0; it must be in 1..4");
    REFUSES(r.sp[0] = 5, "sp[0] is 5; it must be in 1..4");
    REFUSES(r.recompute[2] = -1, "recompute[2] is -1");
    REFUSES(r.samples[4] = -1, "samples[4] is -1");
    REFUSES(r.tokens[0] = 1, "tokens[0] is 1; it must be in 2..2147483647");
    REFUSES(r.tokens[0] = INT64_C(1) << 31, "tokens[0] is 2147483648");
    REFUSES(r.sum_squares[3] = 4, "sum_squares[3] is 4; it must be in 5..409600");
    REFUSES(r.sum_squares[1] = 4097, "sum_squares[1] is 4097; it must be in 1..4096");
    REFUSES(r.time_ns[3] = 0, "time_ns[3] is 0; it must be at least 1");
    REFUSES(r.time_ns[2] = -1, "time_ns[2] is -1; it must be at least 0");
    REFUSES(r.start_ns[0] = -1, "start_ns[0] is -1");
    REFUSES(r.start_ns[0] = INT64_MAX - 39, "start_ns[0] is 9223372036854775768; it must be in");
    REFUSES(r.communication_ns[3] = 26, "communication_ns[3] is 26; it must be in 0..25");
    REFUSES(r.peak_bytes[4] = 0, "peak_bytes[4] is 0; it must be at least 1");
    REFUSES(given.ranks = 0, "ranks is 0");
    REFUSES(given.count = 0, "`count` is 0; it must be in 1..4294967294");
    REFUSES(given.count = -1, "`count` is -1; it must be in 1..4294967294");
    REFUSES(given.step = NULL, "step is NULL");
    REFUSES(given.time_ns = NULL, "time_ns is NULL");
    REFUSES(given.device = "H100\n# ranks: 9", "byte 4 of device is 10; control characters");
    REFUSES(given.date = "\x7f", "byte 0 of date is 127");
    char longer[200] = {0};
    memset(longer, 'x', 128);
    REFUSES(given.device = longer, "device has 128 bytes; it may have 127");
    REFUSES(given.struct_size = 0, "struct_size is 0");
#undef REFUSES
    FAILS(context, HBP_E_INVALID, "columns is NULL", hbp_timeline_create(context, NULL, &timeline));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_timeline_create(context, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "timeline is NULL", hbp_timeline_get_columns(context, NULL, NULL));
    FAILS(context, HBP_E_INVALID, "timeline is NULL", hbp_timeline_get_measurements(context, NULL, NULL));
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_timeline *timeline = NULL;
    hbp_status status = hbp_timeline_create(context, user, &timeline);
    ck_assert((status >= 0) == (timeline != NULL));
    hbp_timeline_free(timeline);
    return status;
}

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_timeline_columns given = view(&plain);
    failing_sweep(create_once, &given);
    ck_assert_int_eq(cancel_sweep(create_once, &given), 1);
}
END_TEST

TEST_MAIN("timeline", columns_come_back, columns_may_be_unknown, measurements_are_the_rows_without_padding,
          time_between_steps, values_without_sense_are_refused, short_memory_and_cancelling_leave_nothing)
