#include "io/msgpack/msgpack_tree.h"

#include "documents.h"

static void check_tree(hbp_context *context, const char *data, int64_t bytes, const char *json)
{
    hbp__document tree;
    json_t *expected = json_loads(json, 0, NULL);
    ck_assert_ptr_nonnull(expected);
    OK(context, hbp__msgpack_tree(context, "x", data, bytes, &tree));
    same_as_jansson(tree.values, expected);
    json_decref(expected);
    hbp__document_free(&tree);
}

#define TREE(data, json) check_tree(context, data, sizeof data - 1, json)

START_TEST(trees_are_those_of_json)
{
    hbp_context *context = test_context();
    TREE("\x80", "{}");
    TREE("\xde\x00\x01\xa1z\x90", "{\"z\": []}");
    TREE("\x81\xa1z\x93\x01\xff\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", "{\"z\": [1, -1, 1.5]}");
    TREE("\x83\xa1"
         "b\xc3\xa1"
         "a\xc2\xa1"
         "c\xc0",
         "{\"b\": true, \"a\": false, \"c\": null}");
    TREE("\x81\xa0\xa3\xe2\x86\x92", "{\"\": \"\\u2192\"}");
    TREE("\x81\xa1z\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "{\"z\": 9223372036854775807}");
    TREE("\x81\xa1z\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "{\"z\": -9223372036854775808}");
    TREE("\x81\xa1z\xca\x3f\x80\x00\x00", "{\"z\": 1.0}");
    TREE("\x81\xa1z\xd9\x01x", "{\"z\": \"x\"}");
    hbp_context_free(context);
}
END_TEST

#define REFUSE(data, text)                                                                                   \
    {                                                                                                        \
        hbp__document tree;                                                                                  \
        FAILS(context, HBP_E_FORMAT, text, hbp__msgpack_tree(context, "x", data, sizeof data - 1, &tree));   \
        ck_assert_ptr_null(tree.values);                                                                     \
    }

START_TEST(what_json_has_not_is_refused)
{
    hbp_context *context = test_context();
    REFUSE("", "x, byte 0: not msgpack");
    REFUSE("\xc1", "x, byte 0: not msgpack");
    REFUSE("\x81\xa1z", "x, byte 3: not msgpack");
    REFUSE("\x80\x80", "x, byte 1: not msgpack, or more than one object");
    REFUSE("\x90", "x is not a msgpack map");
    REFUSE("\xdf\xff\xff\xff\xff", "not msgpack");
    REFUSE("\x81\x01\x02", "x has a key that is no text");
    REFUSE("\x82\xa1z\x01\xa1z\x02", "x has the key 'z' twice in one map");
    REFUSE("\x81\xa1z\xcf\x80\x00\x00\x00\x00\x00\x00\x00", "x has a number above 2^63 - 1");
    REFUSE("\x81\xa1z\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", "x has a number that is not finite");
    REFUSE("\x81\xa1z\xca\x7f\xc0\x00\x00", "x has a number that is not finite");
    REFUSE("\x81\xa1z\xc4\x01x", "x has binary data or an extension");
    REFUSE("\x81\xa1z\xd4\x01x", "x has binary data or an extension");
    REFUSE("\x81\xa1z\x92\x01\xa1\xff", "x has a text that is not UTF-8");
    REFUSE("\x81\xa1z\xa2x\0", "x has a text with a zero byte");
    REFUSE("\x81\xa2z\0\x01", "x has a text with a zero byte");
    REFUSE("\x81\xa1z\x81\xa1z\x81\xa1z\x81\xa1z\x81\xa1z\x81\xa1z\x81\xa1z\x81\xa1z\x81\xa1z\x01",
           "not msgpack"); /* too deep */
    hbp_context_free(context);
}
END_TEST

START_TEST(maps_are_told_by_their_first_byte)
{
    ck_assert(hbp__msgpack_map("\x80", 1));
    ck_assert(hbp__msgpack_map("\x8f", 1));
    ck_assert(hbp__msgpack_map("\xde", 1));
    ck_assert(hbp__msgpack_map("\xdf", 1));
    ck_assert(!hbp__msgpack_map("\x90", 1));
    ck_assert(!hbp__msgpack_map("{", 1));
    ck_assert(!hbp__msgpack_map(" {", 2));
    ck_assert(!hbp__msgpack_map("\xef\xbb\xbf{", 4));
    ck_assert(!hbp__msgpack_map("", 0));
}
END_TEST

TEST_MAIN("msgpack_tree", trees_are_those_of_json, what_json_has_not_is_refused,
          maps_are_told_by_their_first_byte)
