#include "documents.h"
#include "failing.h"

#include "base/rng.h"
#include "io/file/file_error.h"
#include "io/json/json_tree.h"

static hbp_status parse(hbp_context *context, const char *text, hbp__document *root)
{
    return hbp__json_tree(context, "x.json", text, (int64_t)strlen(text), root);
}

START_TEST(objects_are_parsed)
{
    hbp_context *context = test_context();
    hbp__document root;
    OK(context, parse(context, " {\"a\": [1, 2.5]} \n", &root));
    ck_assert_int_eq(hbp__value_count(hbp__value_find(root.values, "a")), 2);
    ck_assert(hbp__value_at(hbp__value_find(root.values, "a"), 1)->of.real == 2.5);
    hbp__document_free(&root);
    hbp_context_free(context);
}
END_TEST

START_TEST(bad_text_is_refused_by_line)
{
    hbp_context *context = test_context();
    hbp__document root;
#define REFUSED(text, json)                                                                                  \
    FAILS(context, HBP_E_FORMAT, text, parse(context, json, &root));                                         \
    ck_assert_ptr_null(root.values)
    REFUSED("x.json, line 1: ", "");
    REFUSED("x.json, line 3: ", "{\n\n1}");
    REFUSED("x.json, line 1: ", "{\"a\": 1} 2");
    REFUSED("x.json, line 1: ", "{\"a\": 1");
    REFUSED("x.json, line 1: ", "{\"a\": nan}");
    REFUSED("x.json, line 1: ", "{\"\x80\": 1}");
    REFUSED("x.json is not a JSON object", "[]");
    REFUSED("x.json, line 2: an object that ends here has the key 'b' twice",
            "{\"a\": 1, \"b\": [],\n\"b\": 2}");
    REFUSED("x.json, line 1: a string holds a zero byte", "{\"\\u0000\": 1}");
    REFUSED("x.json, line 1: a string holds half a surrogate pair", "{\"\\ud800x\": 1}");
    REFUSED("x.json, line 1: a string holds half a surrogate pair", "{\"\\udc00\": 1}");
    REFUSED("x.json, line 1: a string is not UTF-8", "{\"a\": \"\xed\xa0\x80\"}");
    REFUSED("x.json, line 1: a number is too large", "{\"a\": 9223372036854775808}");
    REFUSED("x.json, line 1: a number is too large", "{\"a\": 1e400}");
    REFUSED("x.json, line 1: a value is no JSON", "{\"a\": 01}");
    REFUSED("x.json, line 2: something follows the value", "{}\n{}");
    static char deep[100001];
    memset(deep, '[', sizeof deep - 1);
    REFUSED("x.json, line 1: values nest more than 64 deep", deep);
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
        hbp__document_free(&root);
    }
    REFUSED("x.json, line 2: values nest more than 64 deep", nest);
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

/* Many keys are sorted to find one that is there twice. */
START_TEST(paths_are_shown_as_given)
{
    char path[1000];
    ck_assert_str_eq(hbp__show_path("../a/b.json").text, "../a/b.json");
    for (int i = 0; i < (int)sizeof path - 1; i += 3)
        memcpy(path + i, "\xe2\x82\xac", 3); /* a character of three bytes */
    path[sizeof path - 1] = '\0';
    for (int bytes = 240; bytes < 280; bytes += 3) {
        const char *end = path + sizeof path - 1 - bytes;
        const hbp__shown_path shown = hbp__show_path(end);
        if (bytes < HBP__SHOWN_PATH) {
            ck_assert_str_eq(shown.text, end);
        } else { /* no character is cut */
            ck_assert_uint_eq(strlen(shown.text), 3 + 252);
            ck_assert_mem_eq(shown.text, "...\xe2", 4);
        }
    }
}
END_TEST

START_TEST(a_key_is_found_twice_among_many)
{
    hbp_context *context = test_context();
    static char text[40000];
    for (int twice = 0; twice < 2; twice++) {
        hbp__document root;
        size_t at = (size_t)sprintf(text, "{");
        for (int i = 0; i < 2000; i++)
            at += (size_t)sprintf(text + at, "%s\"k%d\": %d", i ? ", " : "", twice && i == 1999 ? 77 : i, i);
        sprintf(text + at, "}");
        if (twice) {
            FAILS(context, HBP_E_FORMAT, "the key 'k77' twice", parse(context, text, &root));
        } else {
            OK(context, parse(context, text, &root));
            ck_assert_int_eq(hbp__value_whole(hbp__value_find(root.values, "k1999")), 1999);
            hbp__document_free(&root);
        }
    }
    hbp_context_free(context);
}
END_TEST

static const char sample[] =
    "{\"a\": [1, -2.5e3, true, false, null, \"\\u00e9\\ud83d\\ude00\\n\\/x\"],\n"
    " \"b\": {\"c\": {}, \"\": [], \"d\": [[], {\"e\": 0.1}]}, \"f\": -0, \"g\": 1E-7}";

/* Jansson is the oracle: both take a text, and find the same in it, or both refuse it. */
START_TEST(what_is_read_is_what_jansson_reads)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    static const char common[] = "{}[]\",:\\u0123456789eE.+-truefalsnl \n\xc3\xa9";
    int taken = 0, rounds = TEST_FEW(100000, 12000);
    for (int round = 0; round < rounds; round++) {
        char text[sizeof sample];
        memcpy(text, sample, sizeof sample);
        size_t bytes = sizeof sample - 1;
        for (uint32_t changes = hbp__rng_below(&rng, 4); changes; changes--) {
            size_t at = hbp__rng_below(&rng, (uint32_t)bytes);
            if (hbp__rng_below(&rng, 3)) {
                text[at] = common[hbp__rng_below(&rng, sizeof common - 1)];
            } else {
                memmove(text + at, text + at + 1, bytes - at - 1);
                bytes--;
            }
        }
        hbp__document root;
        json_t *expected = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
        hbp_status status = hbp__json_tree(context, "x", text, (int64_t)bytes, &root);
        ck_assert_msg((status == HBP_OK) == json_is_object(expected), "%.*s: %s", (int)bytes, text,
                      hbp_context_message(context));
        if (status == HBP_OK) {
            same_as_jansson(root.values, expected);
            taken++;
        }
        json_decref(expected);
        hbp__document_free(&root);
    }
    ck_assert_int_gt(taken, rounds / 4);
    hbp_context_free(context);
}
END_TEST

static hbp_status parse_once(hbp_context *context, void *user)
{
    hbp__document root;
    (void)user;
    hbp_status status = parse(context, sample, &root);
    hbp__document_free(&root);
    return status;
}

START_TEST(failing_allocations_leave_nothing)
{
    failing_sweep(parse_once, NULL);
}
END_TEST

TEST_MAIN("json_tree", objects_are_parsed, bad_text_is_refused_by_line, a_key_is_found_twice_among_many,
          what_is_read_is_what_jansson_reads, failing_allocations_leave_nothing,
          a_file_takes_the_blame_for_values_only, foreign_text_is_made_printable, paths_are_shown_as_given)
