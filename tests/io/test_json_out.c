#include "io/json/json_out.h"

#include <locale.h>
#include <math.h>

#include "files.h"

typedef struct written {
    hbp_context *context;
    hbp__atomic_file file;
    hbp__json_out out;
    char folder[64];
    char path[128];
} written;

static void begin(written *w)
{
    w->context = test_context();
    folder_make(w->folder);
    folder_path(w->path, w->folder, "out.json");
    OK(w->context, hbp__atomic_open(w->context, w->path, &w->file));
    w->out = (hbp__json_out){.context = w->context, .file = &w->file};
}

/* Holds what was written against `want`. */
static void finish(written *w, const char *want)
{
    size_t bytes;
    ck_assert_int_eq(w->out.status, HBP_OK);
    OK(w->context, hbp__atomic_commit(w->context, &w->file));
    char *text = file_read(w->path, &bytes);
    ck_assert_str_eq(text, want);
    free(text);
    folder_remove(w->folder);
    hbp_context_free(w->context);
}

START_TEST(numbers_are_whole_to_their_ends)
{
    written w;
    begin(&w);
    hbp__json_put(&w.out, "[");
    hbp__json_put_i64(&w.out, 0);
    hbp__json_member(&w.out, ",", INT64_MAX);
    hbp__json_member(&w.out, ",", INT64_MIN);
    hbp__json_put(&w.out, ",");
    hbp__json_put_u64(&w.out, UINT64_MAX);
    hbp__json_put(&w.out, ",");
    hbp__json_put_u64(&w.out, 0);
    hbp__json_put(&w.out, "]");
    finish(&w, "[0,9223372036854775807,-9223372036854775808,18446744073709551615,0]");
}
END_TEST

START_TEST(microseconds_have_three_places)
{
    /* a locale with decimal commas, where there is one */
    setlocale(LC_ALL, "de_DE.UTF-8");
    written w;
    begin(&w);
    const int64_t ns[] = {0, 1, 999, 1000, 1001, 1234567, INT64_MAX};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
        hbp__json_put(&w.out, i ? " " : "");
        hbp__json_put_us(&w.out, ns[i]);
    }
    finish(&w, "0.000 0.001 0.999 1.000 1.001 1234.567 9223372036854775.807");
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(shares_have_six_places)
{
    setlocale(LC_ALL, "de_DE.UTF-8");
    written w;
    begin(&w);
    const double share[] = {0, 1e-7, 5e-7, 0.012345, 0.9999996, 1, 1234.5, 1e300};
    for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
        hbp__json_put(&w.out, i ? " " : "");
        hbp__json_put_share(&w.out, share[i]);
    }
    finish(&w, "0.000000 0.000000 0.000001 0.012345 1.000000 1.000000 1234.500000 9223372036854.775807");
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(strings_are_quoted_and_always_utf8)
{
    const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"", "\"\""},
        {"vision[3] of task B", "\"vision[3] of task B\""},
        {"a \"b\" \\ c", "\"a \\u0022b\\u0022 \\u005c c\""},
        {"\x01 tab\t end\n", "\"\\u0001 tab\\u0009 end\\u000a\""},
        {"\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\xed\x9f\xbf \xf4\x8f\xbf\xbf", "\"\xed\x9f\xbf \xf4\x8f\xbf\xbf\""},
        {"\xff x", "\"\\ufffd x\""},                               /* no such byte */
        {"\xc3", "\"\\ufffd\""},                                   /* cut off */
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                        /* overlong */
        {"\xe0\x9f\xbf", "\"\\ufffd\\ufffd\\ufffd\""},             /* overlong */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},             /* surrogate */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}}; /* past the end */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        written w;
        begin(&w);
        hbp__json_put_string(&w.out, cases[i].text);
        finish(&w, cases[i].want);
    }
}
END_TEST

START_TEST(after_a_failure_nothing_is_written)
{
    written w;
    begin(&w);
    hbp__json_put(&w.out, "{");
    w.out.status = HBP_E_SYSTEM;
    hbp__json_put(&w.out, "lost");
    hbp__json_put_i64(&w.out, 5);
    ck_assert_int_eq(w.out.status, HBP_E_SYSTEM);
    w.out.status = HBP_OK;
    hbp__json_put(&w.out, "}");
    finish(&w, "{}");
}
END_TEST

START_TEST(doubles_are_read_back_bit_for_bit)
{
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where there is one */
    written w;
    begin(&w);
    const double values[] = {.45, 0, -0.0, -1.5, 1.0 / 3, .1 + .2, 1e300, 5e-324, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        hbp__json_put(&w.out, i ? "," : "");
        hbp__json_put_f64(&w.out, values[i]);
    }
    finish(&w, "0.45,0.0,-0.0,-1.5,0.3333333333333333,0.30000000000000004,1e300,4.94065645841247e-324,"
               "null,null,null");
    setlocale(LC_ALL, "C");
}
END_TEST

TEST_MAIN("json_out", doubles_are_read_back_bit_for_bit, numbers_are_whole_to_their_ends,
          microseconds_have_three_places, shares_have_six_places, strings_are_quoted_and_always_utf8,
          after_a_failure_nothing_is_written)
