#include "io/value/value_out.h"

#include "base/context.h"
#include "failing.h"

static hbp__value_out begin(hbp__buffer *buffer, int json)
{
    return (hbp__value_out){.json = {.buffer = buffer, .escapes = HBP__ESCAPE_SHORT},
                            .lines = json ? HBP__LINES_OUTER : 0};
}

/* {"name": "a \"b\" \\", "empty": {}, "rows": [[1, -2], {}, []], "map": {"x": [{"y": 9223372036854775807}]}}
 */
static void put_sample(hbp__value_out *out)
{
    hbp__put_map(out, 4);
    hbp__put_key(out, "name");
    hbp__put_text(out, "a \"b\" \\");
    hbp__put_key(out, "empty");
    hbp__put_map(out, 0);
    hbp__put_key(out, "rows");
    hbp__put_list(out, 3);
    hbp__put_list(out, 2);
    hbp__put_i64(out, 1);
    hbp__put_i64(out, -2);
    hbp__put_map(out, 0);
    hbp__put_list(out, 0);
    hbp__put_key(out, "map");
    hbp__put_map(out, 1);
    hbp__put_key(out, "x");
    hbp__put_list(out, 1);
    hbp__put_map(out, 1);
    hbp__put_key(out, "y");
    hbp__put_i64(out, INT64_MAX);
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
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    hbp__value_out out = begin(&buffer, 1);
    put_sample(&out);
    ck_assert(!buffer.failed);
    ck_assert_int_eq(out.depth, 0);
    ck_assert_uint_eq(buffer.bytes, sizeof expected - 1);
    ck_assert_mem_eq(buffer.data, expected, sizeof expected - 1);
    hbp__buffer_free(&buffer);
}
END_TEST

START_TEST(msgpack_has_the_same_values)
{
    static const uint8_t expected[] = "\x84\xa4name\xa7"
                                      "a \"b\" \\\xa5"
                                      "empty\x80\xa4rows\x93\x92\x01\xfe\x80\x90\xa3map\x81\xa1x\x91\x81\xa1y"
                                      "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff";
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    hbp__value_out out = begin(&buffer, 0);
    put_sample(&out);
    ck_assert(!buffer.failed);
    ck_assert_int_eq(out.depth, 0);
    ck_assert_uint_eq(buffer.bytes, sizeof expected - 1);
    ck_assert_mem_eq(buffer.data, expected, sizeof expected - 1);
    hbp__buffer_free(&buffer);
}
END_TEST

START_TEST(a_value_alone_is_a_document)
{
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    hbp__value_out out = begin(&buffer, 1);
    hbp__put_list(&out, 0);
    ck_assert_mem_eq(buffer.data, "[]\n", 3);
    hbp__put_i64(&out, 7);
    ck_assert_mem_eq(buffer.data, "[]\n7\n", 5);
    hbp__buffer_free(&buffer);
}
END_TEST

START_TEST(what_nests_too_deep_fails)
{
    for (int json = 0; json < 2; json++) {
        hbp__buffer buffer = {.memory = hbp__memory_default()};
        hbp__value_out out = begin(&buffer, json);
        for (int depth = 0; depth < HBP__VALUE_DEPTH; depth++)
            hbp__put_list(&out, 1);
        ck_assert(!buffer.failed);
        hbp__put_list(&out, 1);
        ck_assert(buffer.failed);
        hbp__buffer_free(&buffer);
    }
}
END_TEST

static hbp_status put_and_free(hbp_context *context, void *user)
{
    hbp__buffer buffer = {.memory = context->memory};
    hbp__value_out out = begin(&buffer, *(int *)user);
    out.json.context = context;
    for (int i = 0; i < 100; i++)
        put_sample(&out);
    hbp_status status = buffer.failed ? hbp__fail_memory(context, "values") : HBP_OK;
    hbp__buffer_free(&buffer);
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
