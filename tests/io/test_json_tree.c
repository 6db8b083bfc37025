#include "test.h"

#include "io/file/file_error.h"
#include "io/json/json_tree.h"

static hbp_status parse(hbp_context *context, const char *text, json_t **root)
{
    return hbp__json_tree(context, "x.json", text, (int64_t)strlen(text), root);
}

START_TEST(objects_are_parsed)
{
    hbp_context *context = test_context();
    json_t *root = NULL;
    OK(context, parse(context, " {\"a\": [1, 2.5]} \n", &root));
    ck_assert_int_eq((int64_t)json_array_size(json_object_get(root, "a")), 2);
    json_decref(root);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_text_is_refused_by_line)
{
    hbp_context *context = test_context();
    json_t *root = NULL;
#define REFUSED(text, json)                                                                                  \
    FAILS(context, HBP_E_FORMAT, text, parse(context, json, &root));                                         \
    ck_assert_ptr_null(root)
    REFUSED("x.json, line 1: ", "");
    REFUSED("x.json, line 3: ", "{\n\n1}");
    REFUSED("x.json, line 1: ", "{\"a\": 1} 2");
    REFUSED("x.json, line 1: ", "{\"a\": 1");
    REFUSED("x.json, line 1: ", "{\"a\": nan}");
    REFUSED("x.json, line 1: ", "{\"\x80\": 1}");
    REFUSED("x.json is not a JSON object", "[]");
    static char deep[100001];
    memset(deep, '[', sizeof deep - 1);
    REFUSED("x.json, line 1: values nest 100000 deep; at most 64", deep);
    /* 64 deep is fine, 65 is not; brackets in strings count nowhere, and a quote behind a backslash ends
     * none. */
    char nest[300] = "{\"[[\\\"[{\":\n", *end = nest + strlen(nest);
    for (int depth = 63; depth <= 64; depth++) {
        memset(end, '[', (size_t)depth);
        memset(end + depth, ']', (size_t)depth);
        strcpy(end + 2 * depth, "}");
        if (depth == 64)
            break;
        OK(context, parse(context, nest, &root));
        json_decref(root);
    }
    REFUSED("x.json, line 2: values nest 65 deep; at most 64", nest);
    FAILS(context, HBP_E_INVALID, "bytes is -3", hbp__json_tree(context, "x", "", -3, &root));
    FAILS(context, HBP_E_FORMAT, "x has 4194305 bytes; at most 4194304",
          hbp__json_tree(context, "x", "", HBP__JSON_MOST + 1, &root));
    FAILS(context, HBP_E_FORMAT, "x, line 1", hbp__json_tree(context, "x", NULL, 0, &root));
    hbp_context_free(context);
}
END_TEST

START_TEST(a_file_takes_the_blame_for_values_only)
{
    hbp_context *context = test_context();
    hbp__fail(context, HBP_E_INVALID, "a is %d", 3);
    ck_assert_int_eq(hbp__blame_file(context, "f", HBP_E_INVALID), HBP_E_FORMAT);
    ck_assert_str_eq(hbp_context_message(context), "f: a is 3");
    hbp__fail(context, HBP_E_OVERFLOW, "b");
    ck_assert_int_eq(hbp__blame_file(context, "f", HBP_E_OVERFLOW), HBP_E_FORMAT);
    hbp__fail(context, HBP_E_NO_MEMORY, "c");
    ck_assert_int_eq(hbp__blame_file(context, "f", HBP_E_NO_MEMORY), HBP_E_NO_MEMORY);
    ck_assert_str_eq(hbp_context_message(context), "c");
    ck_assert_int_eq(hbp__blame_file(context, "f", HBP_OK), HBP_OK);
    hbp_context_free(context);
}
END_TEST

START_TEST(foreign_text_is_made_printable)
{
    char to[6];
    hbp__printable(to, sizeof to, "a\n\x80~\x7f");
    ck_assert_str_eq(to, "a??~?");
    hbp__printable(to, sizeof to, "abcdefgh");
    ck_assert_str_eq(to, "abcde");
    ck_assert_str_eq(hbp__file_name("/a/b.json"), "b.json");
    ck_assert_str_eq(hbp__file_name("b.json"), "b.json");
    ck_assert_str_eq(hbp__file_name("a/"), "a/");
}
END_TEST

TEST_MAIN("json_tree", objects_are_parsed, bad_text_is_refused_by_line,
          a_file_takes_the_blame_for_values_only, foreign_text_is_made_printable)
