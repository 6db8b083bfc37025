#include "io/graph/value_out.h"

#include "base/context.h"
#include "failing.h"

/* {"name": "a \"b\" \\", "empty": {}, "rows": [[1, -2], {}, []], "map": {"x": [{"y": 9223372036854775807}]}}
 */
static void put_sample(hbp__value_out *out)
{
    hbp__value_map(out, 4);
    hbp__value_key(out, "name");
    hbp__value_text(out, "a \"b\" \\");
    hbp__value_key(out, "empty");
    hbp__value_map(out, 0);
    hbp__value_key(out, "rows");
    hbp__value_list(out, 3);
    hbp__value_list(out, 2);
    hbp__value_i64(out, 1);
    hbp__value_i64(out, -2);
    hbp__value_map(out, 0);
    hbp__value_list(out, 0);
    hbp__value_key(out, "map");
    hbp__value_map(out, 1);
    hbp__value_key(out, "x");
    hbp__value_list(out, 1);
    hbp__value_map(out, 1);
    hbp__value_key(out, "y");
    hbp__value_i64(out, INT64_MAX);
}

START_TEST(json_has_lines)
{
    static const char expected[] = "{\n"
                                   "  \"name\": \"a \\\"b\\\" \\\\\",\n"
                                   "  \"empty\": {},\n"
                                   "  \"rows\": [\n"
                                   "    [1, -2],\n"
                                   "    {},\n"
                                   "    []\n"
                                   "  ],\n"
                                   "  \"map\": {\n"
                                   "    \"x\": [{\"y\": 9223372036854775807}]\n"
                                   "  }\n"
                                   "}\n";
    hbp__value_out out = {.buffer.memory = hbp__memory_default(), .json = 1};
    put_sample(&out);
    ck_assert(!out.buffer.failed);
    ck_assert_int_eq(out.depth, 0);
    ck_assert_uint_eq(out.buffer.bytes, sizeof expected - 1);
    ck_assert_mem_eq(out.buffer.data, expected, sizeof expected - 1);
    hbp__buffer_free(&out.buffer);
}
END_TEST

START_TEST(msgpack_has_the_same_values)
{
    static const uint8_t expected[] = "\x84\xa4name\xa7"
                                      "a \"b\" \\\xa5"
                                      "empty\x80\xa4rows\x93\x92\x01\xfe\x80\x90\xa3map\x81\xa1x\x91\x81\xa1y"
                                      "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff";
    hbp__value_out out = {.buffer.memory = hbp__memory_default()};
    put_sample(&out);
    ck_assert(!out.buffer.failed);
    ck_assert_int_eq(out.depth, 0);
    ck_assert_uint_eq(out.buffer.bytes, sizeof expected - 1);
    ck_assert_mem_eq(out.buffer.data, expected, sizeof expected - 1);
    hbp__buffer_free(&out.buffer);
}
END_TEST

START_TEST(a_value_alone_is_a_document)
{
    hbp__value_out out = {.buffer.memory = hbp__memory_default(), .json = 1};
    hbp__value_list(&out, 0);
    ck_assert_mem_eq(out.buffer.data, "[]\n", 3);
    hbp__value_i64(&out, 7);
    ck_assert_mem_eq(out.buffer.data, "[]\n7\n", 5);
    hbp__buffer_free(&out.buffer);
}
END_TEST

START_TEST(what_nests_too_deep_fails)
{
    for (int json = 0; json < 2; json++) {
        hbp__value_out out = {.buffer.memory = hbp__memory_default(), .json = json};
        for (int depth = 0; depth < HBP__VALUE_DEPTH; depth++)
            hbp__value_list(&out, 1);
        ck_assert(!out.buffer.failed);
        hbp__value_list(&out, 1);
        ck_assert(out.buffer.failed);
        hbp__buffer_free(&out.buffer);
    }
}
END_TEST

static hbp_status put_and_free(hbp_context *context, void *user)
{
    hbp__value_out out = {.buffer.memory = context->memory, .json = *(int *)user};
    for (int i = 0; i < 100; i++)
        put_sample(&out);
    hbp_status status = out.buffer.failed ? hbp__fail_memory(context, "values") : HBP_OK;
    hbp__buffer_free(&out.buffer);
    return status;
}

START_TEST(failing_allocations_leave_nothing)
{
    for (int json = 0; json < 2; json++)
        failing_sweep(put_and_free, &json);
}
END_TEST

TEST_MAIN("value_out", json_has_lines, msgpack_has_the_same_values, a_value_alone_is_a_document,
          what_nests_too_deep_fails, failing_allocations_leave_nothing)
