#include "failing.h"

#include "base/context.h"
#include "io/msgpack/msgpack_buffer.h"

static hbp_status fill(hbp_context *context, void *user)
{
    (void)user;
    hbp__buffer buffer = {.memory = context->memory};
    msgpack_packer packer = hbp__buffer_packer(&buffer);
    msgpack_pack_map(&packer, 7);
    const int64_t wide[] = {10, 11, INT64_MAX};
    const int32_t narrow[] = {-1, 7};
    hbp__pack_column_i64(&buffer, "wide", wide, 3, 10);
    hbp__pack_column_i32(&buffer, "narrow", narrow, 2, 0);
    hbp__pack_column_i64(&buffer, "empty", NULL, 0, 0);
    hbp__pack_text(&packer, "number");
    msgpack_pack_uint64(&packer, UINT64_MAX);
    hbp__pack_text(&packer, "text");
    hbp__pack_text(&packer, "a");
    hbp__pack_named_i64(&packer, "seven", 7);
    hbp__pack_named_double(&packer, "half", .5);
    if (buffer.failed) {
        hbp__buffer_free(&buffer);
        return hbp__fail_memory(context, "the test");
    }
    msgpack_unpacked object;
    msgpack_unpacked_init(&object);
    size_t at = 0;
    ck_assert_int_eq(msgpack_unpack_next(&object, (const char *)buffer.data, buffer.bytes, &at),
                     MSGPACK_UNPACK_SUCCESS);
    ck_assert_uint_eq(at, buffer.bytes);
    const msgpack_object *map = &object.data;
    static const uint8_t wide_bytes[] = {0, 0, 0, 0, 0,    0,    0,    0,    1,    0,    0,    0,
                                         0, 0, 0, 0, 0xf5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    static const uint8_t narrow_bytes[] = {0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0};
    const uint8_t *column = hbp__unpack_column(map, "wide", 3, 8);
    ck_assert_ptr_nonnull(column);
    ck_assert_int_eq(memcmp(column, wide_bytes, sizeof wide_bytes), 0);
    column = hbp__unpack_column(map, "narrow", 2, 4);
    ck_assert_ptr_nonnull(column);
    ck_assert_int_eq(memcmp(column, narrow_bytes, sizeof narrow_bytes), 0);
    ck_assert_ptr_nonnull(hbp__unpack_column(map, "empty", 0, 8));
    int64_t wide_back[3];
    int32_t narrow_back[2] = {3, 3};
    ck_assert_int_eq(hbp__unpack_column_i64(map, "wide", 3, wide_back), 1);
    ck_assert(wide_back[0] == 0 && wide_back[1] == 1 && wide_back[2] == INT64_MAX - 10);
    ck_assert_int_eq(hbp__unpack_column_i32(map, "wide", 3, narrow_back), 0);
    ck_assert_int_eq(hbp__unpack_column_i32(map, "narrow", 3, narrow_back), 0);
    ck_assert(narrow_back[0] == 3 && narrow_back[1] == 3);
    ck_assert_int_eq(hbp__unpack_column_i32(map, "narrow", 2, narrow_back), 1);
    ck_assert(narrow_back[0] == -1 && narrow_back[1] == 7);
    ck_assert_int_eq(hbp__unpack_column_i64(map, "narrow", 2, wide_back), 0);
    ck_assert_ptr_null(hbp__unpack_column(map, "wide", 2, 8)); /* another count */
    ck_assert_ptr_null(hbp__unpack_column(map, "wide", 6, 4)); /* another type */
    ck_assert_ptr_null(hbp__unpack_column(map, "none", 0, 8));
    ck_assert_ptr_null(hbp__unpack_column(map, "text", 0, 8));
    uint64_t number;
    int64_t small = 5;
    ck_assert_int_eq(hbp__unpack_u64(map, "number", &number), 1);
    ck_assert_uint_eq(number, UINT64_MAX);
    ck_assert_int_eq(hbp__unpack_i64(map, "number", &small), 0); /* past int64 */
    int32_t smaller = 6;
    ck_assert_int_eq(hbp__unpack_number(map, "number", &smaller), 0); /* past int32 */
    ck_assert_int_eq(hbp__unpack_number(map, "seven", &smaller), 1);
    ck_assert_int_eq(hbp__unpack_number(map, "seven", &small), 1);
    ck_assert(smaller == 7 && small == 7);
    ck_assert_int_eq(hbp__unpack_number(map, "half", &smaller), 0);
    ck_assert(hbp__unpack_find(map, "half")->via.f64 == .5);
    ck_assert_int_eq(hbp__unpack_u64(map, "text", &number), 0);
    ck_assert_int_eq(hbp__unpack_u64(map, "numbe", &number), 0);
    ck_assert_ptr_null(hbp__unpack_find(hbp__unpack_find(map, "text"), "a"));
    ck_assert_ptr_null(hbp__unpack_find(NULL, "a"));
    msgpack_unpacked_destroy(&object);
    hbp__buffer_clear(&buffer);
    ck_assert_uint_eq(buffer.bytes, 0);
    hbp__buffer_free(&buffer);
    ck_assert_ptr_null(buffer.data);
    return HBP_OK;
}

START_TEST(columns_and_numbers_come_back)
{
    hbp_context *context = test_context();
    ck_assert_int_eq(fill(context, NULL), HBP_OK);
    hbp_context_free(context);
}
END_TEST

START_TEST(short_memory_is_remembered)
{
    failing_sweep(fill, NULL);
    hbp__buffer buffer = {.memory = hbp__memory_default()};
    ck_assert_ptr_nonnull(hbp__buffer_extend(&buffer, 1));
    ck_assert_ptr_null(hbp__buffer_extend(&buffer, UINT64_MAX));
    ck_assert_ptr_null(hbp__buffer_extend(&buffer, 1)); /* what is there is not whole */
    hbp__buffer_clear(&buffer);
    ck_assert_ptr_nonnull(hbp__buffer_extend(&buffer, 1));
    hbp__buffer_free(&buffer);
}
END_TEST

TEST_MAIN("msgpack_buffer", columns_and_numbers_come_back, short_memory_is_remembered)
