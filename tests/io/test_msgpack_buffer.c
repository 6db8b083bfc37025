#include "failing.h"
#include "unpacked.h"

#include "base/context.h"
#include "base/rng.h"
#include "io/msgpack/msgpack_buffer.h"
#include "io/msgpack/msgpack_read.h"

static hbp_status fill(hbp_context *context, void *user)
{
    (void)user;
    hbp__buffer buffer = {.memory = context->memory};
    hbp__pack_map(&buffer, 7);
    const int64_t wide[] = {10, 11, INT64_MAX};
    const int32_t narrow[] = {-1, 7};
    hbp__pack_column_i64(&buffer, "wide", wide, 3, 10);
    hbp__pack_column_i32(&buffer, "narrow", narrow, 2, 0);
    hbp__pack_column_i64(&buffer, "empty", NULL, 0, 0);
    hbp__pack_text(&buffer, "number");
    hbp__pack_u64(&buffer, UINT64_MAX);
    hbp__pack_text(&buffer, "text");
    hbp__pack_text(&buffer, "a");
    hbp__pack_named_i64(&buffer, "seven", 7);
    hbp__pack_named_double(&buffer, "half", .5);
    if (buffer.failed) {
        hbp__buffer_free(&buffer);
        return hbp__fail_memory(context, "the test");
    }
    hbp__document document = {.memory = context->memory};
    hbp__msgpack_extent extent;
    ck_assert(hbp__msgpack_scan(buffer.data, buffer.bytes, 100, &extent) && extent.bytes == buffer.bytes);
    hbp_status status = hbp__msgpack_read(context, "it", buffer.data, &extent, &document);
    if (status < 0) {
        hbp__document_free(&document);
        hbp__buffer_free(&buffer);
        return status;
    }
    const hbp__value *map = document.values;
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
    ck_assert(hbp__value_find(map, "half")->of.real == .5);
    ck_assert_int_eq(hbp__unpack_u64(map, "text", &number), 0);
    ck_assert_int_eq(hbp__unpack_u64(map, "numbe", &number), 0);
    ck_assert_ptr_null(hbp__value_find(hbp__value_find(map, "text"), "a"));
    ck_assert_ptr_null(hbp__value_find(NULL, "a"));
    hbp__document_free(&document);
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

/* Whatever the number, the count or the length. */
START_TEST(bytes_are_those_of_msgpack_c)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    hbp__buffer buffer = {.memory = hbp__memory_default()}, other = buffer;
    char text[70001];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 20000; i++) {
        msgpack_packer packer = unpacked_packer(&other);
        hbp__buffer_clear(&buffer);
        hbp__buffer_clear(&other);
        const uint64_t bits = hbp__rng_next(&rng) >> hbp__rng_below(&rng, 64);
        const int64_t number = (int64_t)(i % 2 ? bits : 0 - bits);
        const uint32_t count = (uint32_t)(bits % 200000);
        const size_t bytes = bits % 3 ? bits % 300 : bits % sizeof text;
        hbp__pack_i64(&buffer, number);
        msgpack_pack_int64(&packer, number);
        hbp__pack_u64(&buffer, bits);
        msgpack_pack_uint64(&packer, bits);
        hbp__pack_f64(&buffer, (double)number / 3);
        msgpack_pack_double(&packer, (double)number / 3);
        hbp__pack_map(&buffer, count);
        msgpack_pack_map(&packer, count);
        hbp__pack_list(&buffer, count % 40);
        msgpack_pack_array(&packer, count % 40);
        text[bytes] = '\0';
        hbp__pack_text(&buffer, text);
        msgpack_pack_str(&packer, bytes);
        msgpack_pack_str_body(&packer, text, bytes);
        text[bytes] = 'x';
        memcpy(hbp__pack_bin(&buffer, bytes), text, bytes);
        msgpack_pack_bin(&packer, bytes);
        msgpack_pack_bin_body(&packer, text, bytes);
        ck_assert_uint_eq(buffer.bytes, other.bytes);
        ck_assert_mem_eq(buffer.data, other.data, other.bytes);
    }
    hbp__buffer_free(&buffer);
    hbp__buffer_free(&other);
}
END_TEST

TEST_MAIN("msgpack_buffer", columns_and_numbers_come_back, bytes_are_those_of_msgpack_c,
          short_memory_is_remembered)
