#include "failing.h"

#include <math.h>
#include <unistd.h>

#include "io/file/stream.h"
#include "io/json/json_tree.h"

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/hbp-json-XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

static char *saved(hbp_context *context, const json_t *root)
{
    char *text;
    int64_t bytes;
    OK(context, hbp__json_save(context, root, "a test", path));
    OK(context, hbp__read_file(context, path, 1 << 20, &text, &bytes));
    ck_assert_int_eq(text[bytes - 1], '\n');
    text[bytes - 1] = '\0';
    return text;
}

START_TEST(few_digits_where_they_suffice)
{
    hbp_context *context = test_context();
    make_path();
    json_t *root = json_object();
    ck_assert(hbp__json_give(root, "a", hbp__json_double(.45)));
    ck_assert(hbp__json_give(root, "b", hbp__json_double(3)));
    char *text = saved(context, root);
    ck_assert_str_eq(text, "{\n  \"a\": 0.45,\n  \"b\": 3\n}");
    hbp__delete(&context->memory, text);
    ck_assert(hbp__json_give(root, "c", hbp__json_double(.1 + .2)));
    text = saved(context, root);
    ck_assert_ptr_nonnull(strstr(text, "\"c\": 0.30000000000000004"));
    hbp__delete(&context->memory, text);
    json_decref(root);
    unlink(path);
    hbp_context_free(context);
}
END_TEST

START_TEST(kinds_of_numbers_and_texts)
{
    hbp_context *context = test_context();
    const double values[] = {0, -0., 9007199254740991., 9007199254740992., -7, 1e300, 5e-324};
    const int whole[] = {1, 0, 1, 0, 1, 0, 0};
    for (int i = 0; i < 7; i++) {
        json_t *value = hbp__json_double(values[i]);
        ck_assert_int_eq(json_is_integer(value), whole[i]);
        double back = json_number_value(value);
        ck_assert_mem_eq(&back, &values[i], sizeof back);
        json_decref(value);
    }
    json_t *text = hbp__json_text(&context->memory, "a\xffz");
    ck_assert_str_eq(json_string_value(text), "a?z");
    json_decref(text);
    text = hbp__json_text(&context->memory, "caf\xc3\xa9");
    ck_assert_str_eq(json_string_value(text), "caf\xc3\xa9");
    json_decref(text);
    ck_assert(!hbp__json_give(NULL, "a", json_integer(3)));
    hbp_context_free(context);
}
END_TEST

START_TEST(failures_are_told)
{
    hbp_context *context = test_context();
    json_t *root = json_object();
    FAILS(context, HBP_E_NO_MEMORY, "a test", hbp__json_save(context, NULL, "a test", "/tmp/x"));
    FAILS(context, HBP_E_SYSTEM, "/tmp/hbp-none/x",
          hbp__json_save(context, root, "a test", "/tmp/hbp-none/x"));
    json_decref(root);
    hbp_context_free(context);
}
END_TEST

static hbp_status save_once(hbp_context *context, void *user)
{
    return hbp__json_save(context, user, "a test", path);
}

static int64_t left; /* blocks that jansson still gets */

static void *spare_alloc(size_t bytes)
{
    return left-- > 0 ? malloc(bytes) : NULL;
}

/* jansson's own memory runs out at any time. */
START_TEST(jansson_may_run_out)
{
    make_path();
    json_t *root = json_pack("{s:f}", "a", .1 + .2);
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    int64_t live = f.live, blocks = 0;
    json_set_alloc_funcs(spare_alloc, free);
    for (hbp_status status = HBP_E_NO_MEMORY; status != HBP_OK; blocks++) {
        left = blocks;
        status = save_once(context, root);
        ck_assert(status == HBP_OK || status == HBP_E_NO_MEMORY);
        ck_assert_int_eq(f.live, live);
        ck_assert_int_lt(blocks, 1000);
    }
    json_set_alloc_funcs(malloc, free);
    ck_assert_int_gt(blocks, 1);
    /* What is no document has no text. */
    json_t *bare = json_integer(3);
    ck_assert_int_eq(save_once(context, bare), HBP_E_NO_MEMORY);
    ck_assert_int_eq(f.live, live);
    json_decref(bare);
    json_decref(root);
    hbp_context_free(context);
    unlink(path);
}
END_TEST

START_TEST(failed_allocations_leave_nothing)
{
    make_path();
    json_t *root = json_pack("{s:f}", "a", .1 + .2);
    failing_sweep(save_once, root);
    json_decref(root);
    unlink(path);
}
END_TEST

TEST_MAIN("json_save", few_digits_where_they_suffice, kinds_of_numbers_and_texts, failures_are_told,
          jansson_may_run_out, failed_allocations_leave_nothing)
