#include "io/file/zipped.h"

#include "io/file/little_endian.h"

#include "failing.h"

START_TEST(numbers_are_little_endian)
{
    uint8_t bytes[8] = {0};
    hbp__put_le(bytes, 0x0123456789abcdefu, 8);
    const uint8_t want[] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
    ck_assert_mem_eq(bytes, want, 8);
    ck_assert_uint_eq(hbp__get_le(bytes, 8), 0x0123456789abcdefu);
    ck_assert_uint_eq(hbp__get_le(bytes, 4), 0x89abcdefu);
    hbp__put_le(bytes, UINT64_MAX, 2);
    ck_assert_uint_eq(hbp__get_le(bytes, 4), 0x89abffffu);
}
END_TEST

/* The check value of CRC-32/ISO-HDLC, which zlib, gzip and PNG use. */
START_TEST(the_crc_is_the_usual_one)
{
    const uint8_t digits[] = "123456789";
    ck_assert_uint_eq(hbp__crc32(digits, 9), 0xcbf43926u);
    ck_assert_uint_eq(hbp__crc32(digits, 0), 0);
    ck_assert_uint_eq(hbp__crc32(NULL, 0), 0);
}
END_TEST

/* zlib takes its memory from the hooks, and gives it back. */
static hbp_status run_zlib(hbp_context *context, void *user)
{
    (void)user;
    z_stream z = hbp__zlib_stream(&context->memory);
    uint8_t in[100] = {1, 2, 3}, out[200];
    if (deflateInit(&z, 1) != Z_OK)
        return hbp__fail_memory(context, "zlib");
    z.next_in = in;
    z.avail_in = sizeof in;
    z.next_out = out;
    z.avail_out = sizeof out;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return HBP_OK;
}

START_TEST(zlib_uses_the_hooks)
{
    failing_sweep(run_zlib, NULL);
}
END_TEST

/* Bytes that deflate little, or to almost nothing. */
static void fill(hbp__buffer *buffer, uint64_t bytes, int plain)
{
    uint32_t state = 12345;
    hbp__buffer_clear(buffer);
    uint8_t *at = hbp__buffer_extend(buffer, bytes);
    ck_assert_ptr_nonnull(at);
    for (uint64_t i = 0; i < bytes; i++) {
        state = state * 1664525 + 1013904223;
        at[i] = plain ? 7 : (uint8_t)(state >> 24);
    }
}

static hbp_status there_and_back(hbp_context *context, void *user)
{
    hbp__buffer from = {.memory = context->memory}, packed = from, back = from;
    hbp__zip in = {.context = context}, out = {.context = context};
    hbp_status status = HBP_OK;
    int whole = 0;
    const uint64_t sizes[] = {0, 1, 1000, 200000};
    for (int i = 0; i < 8 && status == HBP_OK; i++) {
        uint64_t bytes = sizes[i % 4];
        from = (hbp__buffer){.memory = hbp__memory_default()};
        fill(&from, bytes, i / 4);
        status = hbp__zip_deflate(&in, *(int *)user, &from, &packed, "a test");
        if (status == HBP_OK)
            status = hbp__zip_inflate(&out, packed.data, packed.bytes, bytes, &back, "a test", &whole);
        if (status == HBP_OK) {
            ck_assert(whole && back.bytes == bytes && memcmp(back.data, from.data, bytes) == 0);
            /* One byte too few, one too many, a cut stream and one with more behind it. */
            const int64_t raw[] = {-1, 1, 0, 0}, stored[] = {0, 0, -1, 1};
            *hbp__buffer_extend(&packed, 1) = 0;
            packed.bytes--;
            for (int wrong = bytes == 0; wrong < 4 && status == HBP_OK; wrong++) {
                status = hbp__zip_inflate(&out, packed.data, packed.bytes + (uint64_t)stored[wrong],
                                          bytes + (uint64_t)raw[wrong], &back, "a test", &whole);
                ck_assert(status != HBP_OK || !whole);
            }
        }
        hbp__buffer_free(&from);
    }
    hbp__zip_close(&in);
    hbp__zip_close(&out);
    hbp__zip_close(&out);
    hbp__buffer_free(&packed);
    hbp__buffer_free(&back);
    return status;
}

START_TEST(what_is_zipped_comes_back_and_nothing_else_does)
{
    hbp_context *context = test_context();
    for (int level = 0; level <= 9; level++)
        OK(context, there_and_back(context, &level));
    hbp_context_free(context);
    int level = 1;
    failing_sweep(there_and_back, &level);
}
END_TEST

TEST_MAIN("zipped", numbers_are_little_endian, the_crc_is_the_usual_one, zlib_uses_the_hooks,
          what_is_zipped_comes_back_and_nothing_else_does)
