#include "io/plan/plan_format.h"

#include "plans.h"

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
    ck_assert_int_eq(hbp__plan_chunk_bytes(&dropped, HBP__PLAN_PIECES), 11 * 24);
    ck_assert_int_eq(hbp__plan_chunk_bytes(&steps, HBP__PLAN_PIECES), plain);
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
        for (int32_t optional = 0; optional < 2 * HBP__PLAN_PIECES; optional++)
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

TEST_MAIN("plan_format", bytes_of_a_chunk, rows_that_cannot_be, tables_of_a_chunk)
