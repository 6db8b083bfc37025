/* hbp__json_save of io/value/value_out.h. */
#include "failing.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "io/file/stream.h"
#include "io/value/value_out.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/hbp-json-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

typedef struct sample {
    const char *text;
    const double *values;
    int count;
} sample;

static void put_sample(hbp__value_out *out, const void *object)
{
    const sample *s = object;
    hbp__put_map(out, 2);
    hbp__put_key(out, "text");
    hbp__put_text(out, s->text);
    hbp__put_key(out, "values");
    hbp__put_list(out, s->count);
    for (int i = 0; i < s->count; i++)
        hbp__put_real(out, s->values[i]);
}

static char *saved(hbp_context *context, const sample *s)
{
    char *text;
    int64_t bytes;
    OK(context, hbp__json_save(context, "a test", put_sample, s, path));
    OK(context, hbp__read_file(context, path, 1 << 20, &text, &bytes));
    ck_assert_int_eq(text[bytes - 1], '\n');
    text[bytes - 1] = '\0';
    return text;
}

static void check_saved(const char *text, const double *values, int count, const char *expected)
{
    hbp_context *context = test_context();
    char *got = saved(context, &(sample){text, values, count});
    ck_assert_str_eq(got, expected);
    hbp__delete(&context->memory, got);
    hbp_context_free(context);
}

START_TEST(few_digits_where_they_suffice)
{
    const double values[] = {.45, 3, -0., .1 + .2};
    make_path();
    check_saved("", values, 3, "{\n  \"text\": \"\",\n  \"values\": [\n    0.45,\n    3,\n    -0.0\n  ]\n}");
    check_saved("", values, 4,
                "{\n  \"text\": \"\",\n  \"values\": [\n    0.45000000000000001,\n    3,\n    -0.0,\n"
                "    0.30000000000000004\n  ]\n}");
    check_saved("", values, 0, "{\n  \"text\": \"\",\n  \"values\": []\n}");
    unlink(path);
}
END_TEST

START_TEST(numbers_and_texts_are_read_back)
{
    hbp_context *context = test_context();
    make_path();
    const double values[] = {0, -0., 9007199254740991., 9007199254740992., -7, 1e300, 5e-324, 1e22, 1.5e-7};
    const int whole[] = {1, 0, 1, 0, 1, 0, 0, 0, 0};
    static const char text[] = "caf\xc3\xa9 \xf0\x9f\x98\x80 \"\\/\b\f\n\r\t\x01\x7f";
    char *got = saved(context, &(sample){text, values, 9});
    for (const char *at = got; *at; at++)
        ck_assert_int_lt((unsigned char)*at, 0x80);
    ck_assert_ptr_nonnull(strstr(got, "caf\\u00E9 \\uD83D\\uDE00 \\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7f"));
    json_t *root = json_loads(got, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(root, "text")), text);
    for (int i = 0; i < 9; i++) {
        json_t *value = json_array_get(json_object_get(root, "values"), (size_t)i);
        ck_assert_int_eq(json_is_integer(value), whole[i]);
        double back = json_number_value(value);
        ck_assert_mem_eq(&back, &values[i], sizeof back);
    }
    /* Jansson's own writing of the document is the same. */
    char *other = json_dumps(root, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17));
    ck_assert_str_eq(got, other);
    free(other);
    json_decref(root);
    hbp__delete(&context->memory, got);
    got = saved(context, &(sample){"a\xffz\x01", values, 0});
    ck_assert_ptr_nonnull(strstr(got, "\"a?z?\""));
    hbp__delete(&context->memory, got);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_path_that_is_not_there_is_told)
{
    hbp_context *context = test_context();
    FAILS(context, HBP_E_SYSTEM, "/tmp/hbp-none/x",
          hbp__json_save(context, "a test", put_sample, &(sample){"", NULL, 0}, "/tmp/hbp-none/x"));
    hbp_context_free(context);
}
END_TEST

static hbp_status save_once(hbp_context *context, void *user)
{
    return hbp__json_save(context, "a test", put_sample, user, path);
}

START_TEST(failed_allocations_leave_nothing)
{
    const double values[] = {.1 + .2};
    sample s = {"x", values, 1};
    make_path();
    failing_sweep(save_once, &s);
    unlink(path);
}
END_TEST

TEST_MAIN("json_save", few_digits_where_they_suffice, numbers_and_texts_are_read_back,
          a_path_that_is_not_there_is_told, failed_allocations_leave_nothing)
