#include "io/plan_format.h"

#include "failing.h"
#include "plans.h"

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

/* The bytes of a chunk are those of a plan's columns, spelt out here. */
START_TEST(bytes_of_a_chunk)
{
    const hbp__plan_rows steps = {2, 3, 5, 7, 0};
    int64_t plain = 3 * 8 + 4 * 2 * 8 + 4 * 8 + 3 * 8 + 6 * 8 + 5 * (3 * 4 + 7 * 8) + 7 * (8 + 4);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, 0), plain);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, HBP__PLAN_SPLIT), plain + 7 * 8);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, HBP__PLAN_LOSS), plain + 7 * 4);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, HBP__PLAN_SPLIT | HBP__PLAN_LOSS), plain + 7 * 12);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, HBP__PLAN_VISION), plain + 5 * 16 + 7 * 4);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, HBP__PLAN_MODALITIES), plain + 3 * 8 + 7 * 4);
    const hbp__plan_rows dropped = {0, 0, 0, 0, 11};
    ck_assert_int_eq(hbp__plan_chunk_bytes(&dropped, 0), 11 * 12);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&dropped, HBP__PLAN_SPLIT | HBP__PLAN_LOSS), 11 * 12);
}
END_TEST

START_TEST(rows_that_cannot_be)
{
    const int64_t huge = INT64_C(1) << 60;
    const hbp__plan_rows wrong[] = {{-1, 1, 1, 1, 0},   {1, -1, 1, 1, 0},  {1, 1, INT64_MIN, 1, 0},
                                    {1, 1, 1, -5, 0},   {1, 1, 1, 1, -1},  {1, 1, 1, 1, 1},
                                    {0, 1, 0, 0, 0},    {0, 0, 0, 1, 1},   {huge, 1, 1, 1, 0},
                                    {1, 1, 1, huge, 0}, {0, 0, 0, 0, huge}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int32_t optional = 0; optional < 2 * HBP__PLAN_MODALITIES; optional++)
            ck_assert_int_eq(hbp__plan_chunk_bytes(&wrong[i], optional), -1);
}
END_TEST

START_TEST(tables_of_a_chunk)
{
    const hbp__plan_rows steps = {1, 1, 1, 0, 0}, dropped = {0, 0, 0, 0, 1};
    for (int table = HBP__ON_steps; table <= HBP__ON_dropped; table++) {
        ck_assert_int_eq(hbp__plan_chunk_has(&steps, table), table != HBP__ON_dropped);
        ck_assert_int_eq(hbp__plan_chunk_has(&dropped, table), table == HBP__ON_dropped);
    }
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

TEST_MAIN("plan_format", numbers_are_little_endian, the_crc_is_the_usual_one, bytes_of_a_chunk,
          rows_that_cannot_be, tables_of_a_chunk, zlib_uses_the_hooks)
