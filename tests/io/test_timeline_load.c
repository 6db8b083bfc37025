#include "hbp/io.h"
#include "io/plan/timeline_file.h"

#include "harm.h"
#include "timelines.h"

static hbp_status load_text(hbp_context *context, const char *bytes, hbp_timeline **out)
{
    hbp__stream *in;
    *out = NULL;
    hbp_status status = hbp__stream_open_memory(context, "x", bytes, (int64_t)strlen(bytes), &in);
    if (status < 0)
        return status;
    status = hbp__timeline_load_stream(context, in, out);
    ck_assert((status >= 0) == (*out != NULL));
    hbp__stream_close(in);
    return status;
}

static const char *const columns = "step,micro_batch,first_rank,sp,recompute,tokens,sum_squares,time_ns\n";

START_TEST(columns_come_in_any_order_and_unit)
{
    hbp_context *context = test_context();
    hbp_timeline *t;
    OK(context,
       load_text(context,
                 "\xef\xbb\xbf# device:  NVIDIA H100, 80 GB; HBM3\r\n"
                 "#date:2026-11-22\n"
                 "# a comment, with \"half a quote\n"
                 "\n"
                 "time_ms;sp; tokens ;colour;sum_squares;recompute;first_rank;micro_batch;step;peak_gib;"
                 "start_us\r\n"
                 "# another\n"
                 "1.5;2;10;red;52;0;4;1;7;0.5;1e3\r\n"
                 "0.000001;1;3;\"a;b\";9;+5;0;0;2;1;0",
                 &t));
    ck_assert_int_eq(t->ranks, 6); /* no comment says, so as many as occur */
    ck_assert_int_eq(t->count, 2);
    ck_assert_str_eq(t->device, "NVIDIA H100, 80 GB; HBM3");
    ck_assert_str_eq(t->date, "2026-11-22");
    ck_assert(t->time_ns[0] == 1500000 && t->time_ns[1] == 1);
    ck_assert(t->sp[0] == 2 && t->sp[1] == 1);
    ck_assert(t->tokens[0] == 10 && t->tokens[1] == 3);
    ck_assert(t->sum_squares[0] == 52 && t->sum_squares[1] == 9);
    ck_assert(t->recompute[0] == 0 && t->recompute[1] == 5);
    ck_assert(t->first_rank[0] == 4 && t->first_rank[1] == 0);
    ck_assert(t->micro_batch[0] == 1 && t->micro_batch[1] == 0);
    ck_assert(t->step[0] == 7 && t->step[1] == 2);
    ck_assert(t->peak_bytes[0] == 536870912 && t->peak_bytes[1] == 1073741824);
    ck_assert(t->start_ns[0] == 1000000 && t->start_ns[1] == 0);
    ck_assert(!t->samples && !t->communication_ns);
    hbp_timeline_free(t);
    OK(context, load_text(context,
                          "# ranks: 8\nstep\tmicro_batch\tfirst_rank\tsp\trecompute\ttokens\tsum_squares\t"
                          "time_ns\n0\t0\t0\t1\t0\t1\t1\t1\n",
                          &t));
    ck_assert_int_eq(t->ranks, 8);
    ck_assert_str_eq(t->device, "");
    hbp_timeline_free(t);
    /* The last of two comments holds, all of it. */
    OK(context, load_text(context,
                          "# device: a long name\n# device: short\nstep,micro_batch,first_rank,sp,recompute,"
                          "tokens,sum_squares,time_ns\n0,0,0,1,0,1,1,1\n",
                          &t));
    ck_assert_str_eq(t->device, "short");
    hbp_timeline_free(t);
    /* As numpy and data frames write columns that were floats on the way. */
    OK(context, load_text(context,
                          "step,micro_batch,first_rank,sp,recompute,tokens,sum_squares,time_ns\n"
                          "5.000000000000000000e+00,0.0,2.,1.0,3e0,5530.0,7.645225e+06,1.25e3\n",
                          &t));
    ck_assert(t->step[0] == 5 && t->micro_batch[0] == 0 && t->first_rank[0] == 2 && t->sp[0] == 1);
    ck_assert(t->recompute[0] == 3 && t->tokens[0] == 5530 && t->sum_squares[0] == 7645225);
    ck_assert(t->time_ns[0] == 1250);
    hbp_timeline_free(t);
    hbp_context_free(context);
}
END_TEST

/* The columns and then one row. */
static const char *one_row(char *to, const char *before, const char *row)
{
    snprintf(to, 1000, "%s%s%s", before, columns, row);
    return to;
}

START_TEST(bad_files_are_refused)
{
    hbp_context *context = test_context();
    hbp_timeline *t;
    char text[1000], longer[400];
#define REFUSES(message, bytes)           FAILS(context, HBP_E_FORMAT, message, load_text(context, bytes, &t))
#define REFUSES_ROW(message, before, row) REFUSES(message, one_row(text, before, row))
    REFUSES("x has no column step", "");
    REFUSES("x has no column step", "# ranks: 4\n");
    REFUSES("x has no column step", "a,b\n1,2\n");
    REFUSES("x has no column step", "a,b\nof another kind\n");
    REFUSES("x has no column time_ns", "step,micro_batch,first_rank,sp,recompute,tokens,sum_squares\n");
    REFUSES("x holds no packs", columns);
    REFUSES("x, line 1: two columns for time_ns", "time_ns,time_ms\n1,1\n");
    REFUSES_ROW("x, line 2: more fields than the header has", "", "0,0,0,1,0,1,1,1,9\n");
    REFUSES_ROW("x, line 2: fewer fields than the header has", "", "0,0,0,1,0,1,1\n");
    REFUSES_ROW("x, line 2: step is 'zero'; it is a whole number", "", "zero,0,0,1,0,1,1,1\n");
    REFUSES_ROW("x, line 2: sp is '1.5'; it is a whole number", "", "0,0,0,1.5,0,1,1,1\n");
    REFUSES_ROW("x, line 2: sum_squares is '1e16'; it is a whole number", "", "0,0,0,1,0,1e9,1e16,1\n");
    REFUSES_ROW("x, line 2: step is '-1.5'; it is a whole number", "", "-1.5,0,0,1,0,1,1,1\n");
    REFUSES_ROW("x, line 2: step is 'nan'; it is a whole number", "", "nan,0,0,1,0,1,1,1\n");
    REFUSES_ROW("x, line 2: tokens is '99999999999999999999'", "", "0,0,0,1,0,99999999999999999999,1,1\n");
    REFUSES_ROW("x, line 2: time_ns is '-1'; it is a number from 0 up", "", "0,0,0,1,0,1,1,-1\n");
    REFUSES_ROW("x, line 2: time_ns is ''; it is a number from 0 up", "", "0,0,0,1,0,1,1,\n");
    REFUSES_ROW("x, line 2: time_ns is '1e30'; it is at most 2^62 ns or bytes", "", "0,0,0,1,0,1,1,1e30\n");
    REFUSES_ROW("x, line 3: time_ns is 0; it must be at least 1", "# c\n", "0,0,0,1,0,1,1,0\n");
    REFUSES_ROW("x, line 3: sp is 2; it must be in 1..1", "# ranks: 1\n", "0,0,0,2,0,1,1,1\n");
    REFUSES_ROW("x, line 4: first_rank is 2; it must be in 0..1", "# ranks: 2\n\n", "0,0,2,1,0,1,1,1\n");
    REFUSES_ROW("x, line 2: first_rank is -5; it must be in 0..0", "", "0,0,-5,1,0,1,1,1\n");
    REFUSES_ROW("x, line 2: sp is 4294967297; it must be in 1..1", "", "0,0,0,4294967297,0,1,1,1\n");
    REFUSES_ROW("x, line 2: micro_batch is 2147483648", "", "0,2147483648,0,1,0,1,1,1\n");
    REFUSES_ROW("x, line 2: step is -1; it must be at least 0", "", "-1,0,0,1,0,1,1,1\n");
    REFUSES_ROW("x, line 3: sum_squares is 5; it must be in 1..4", "", "0,0,0,1,0,1,1,1\n0,0,0,1,0,2,5,1\n");
    REFUSES("x, line 1: ranks is '0'; it is a whole number from 1", "# ranks: 0\n");
    REFUSES("x, line 1: ranks is '4 of them'", "# ranks: 4 of them\n");
    REFUSES("x, line 1: ranks is '4294967296'", "# ranks: 4294967296\n");
    REFUSES("x, line 1: device is 'H100?80'; control characters", "# device: H100\t80\n");
    snprintf(longer, sizeof longer, "# date: %0128d\n", 7);
    REFUSES("it may have 127 bytes", longer);
    REFUSES("a quote opens and does not close", "step,\"sp\n1,1\n");
#undef REFUSES
#undef REFUSES_ROW
    FAILS(context, HBP_E_SYSTEM, "nowhere", hbp_timeline_load(context, "/nowhere/nowhere", &t));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_timeline_load(context, NULL, &t));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_timeline_load(context, "x", NULL));
    hbp_context_free(context);
}
END_TEST

static hbp_status load_bytes(hbp_context *context, const void *user, const void *data, size_t bytes,
                             void **out)
{
    hbp__stream *in;
    hbp_timeline *timeline = NULL;
    (void)user;
    *out = NULL;
    HBP__TRY(hbp__stream_open_memory(context, "x", data, (int64_t)bytes, &in));
    hbp_status status = hbp__timeline_load_stream(context, in, &timeline);
    hbp__stream_close(in);
    *out = timeline;
    return status;
}

static hbp_status open_timeline(hbp_context *context, const void *user, const char *path, void **out)
{
    hbp_timeline *timeline = NULL;
    (void)user;
    hbp_status status = hbp_timeline_load(context, path, &timeline);
    *out = timeline;
    return status;
}

static hbp_status save_timeline(hbp_context *context, const void *user, const char *path)
{
    return hbp_timeline_save(context, user, path);
}

static void free_timeline(hbp_context *context, const void *user, void *timeline)
{
    (void)context, (void)user;
    hbp_timeline_free(timeline);
}

/* One that could have been made of its columns. */
static void expect_made(hbp_context *context, const void *user, void *object)
{
    const hbp_timeline *t = object;
    hbp_timeline *again = NULL;
    (void)user;
    hbp_timeline_columns c = {.struct_size = sizeof c,
                              .ranks = t->ranks,
                              .count = t->count,
                              .device = *t->device ? t->device : NULL,
                              .date = *t->date ? t->date : NULL};
#define GIVE(name, type, needed) c.name = t->name;
    HBP__TIMELINE_COLUMNS(GIVE)
#undef GIVE
    OK(context, hbp_timeline_create(context, &c, &again));
    expect_same_timeline(t, again);
    hbp_timeline_free(again);
}

static harm_kind timeline_kind(const hbp_timeline *timeline)
{
    return (harm_kind){.load = load_bytes,
                       .release = free_timeline,
                       .expect = expect_made,
                       .save = save_timeline,
                       .open = open_timeline,
                       .user = timeline};
}

static uint8_t *saved(hbp_context *context, const hbp_timeline *timeline, size_t *bytes)
{
    char folder[64], path[128];
    folder_make(folder);
    OK(context, hbp_timeline_save(context, timeline, folder_path(path, folder, "timeline.csv")));
    uint8_t *data = (uint8_t *)file_read(path, bytes);
    folder_remove(folder);
    return data;
}

START_TEST(harm_is_found_or_makes_another_timeline)
{
    hbp_context *context = test_context();
    hbp_timeline *timeline = drawn_timeline(context, 31, 4);
    const harm_kind kind = timeline_kind(timeline);
    size_t bytes, header = 0;
    uint8_t *data = saved(context, timeline, &bytes);
    while (strncmp((const char *)data + header, "step,", 5) != 0)
        header++;
    header +=
        (size_t)(strchr((const char *)data + header, '\n') - (const char *)data - (ptrdiff_t)header) + 1;
    harm_done(&kind, data, bytes, header + 1); /* rows less, and digits, are another timeline */
    free(data);
    hbp_timeline_free(timeline);
    hbp_context_free(context);
}
END_TEST

START_TEST(short_memory_and_cancelling_leave_nothing)
{
    hbp_context *context = test_context();
    hbp_timeline *timeline = drawn_timeline(context, 15, 700); /* rows pass their first room */
    const harm_kind kind = timeline_kind(timeline);
    size_t bytes;
    uint8_t *data = saved(context, timeline, &bytes);
    harm_looks looks = harm_survived(&kind, data, bytes);
    ck_assert_int_gt(looks.load, 2);
    ck_assert_int_eq(looks.save, 1);
    ck_assert_int_gt(looks.open, 2);
    free(data);
    hbp_timeline_free(timeline);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("timeline_load", columns_come_in_any_order_and_unit, bad_files_are_refused,
          harm_is_found_or_makes_another_timeline, short_memory_and_cancelling_leave_nothing)
