#include "base/memory.h"

#include "failing.h"
#include "test.h"

static hbp__memory hooks(failing *f, int with_resize)
{
    *f = (failing){.left = -1};
    return (hbp__memory){failing_alloc, with_resize ? failing_resize : NULL, failing_release, f};
}

START_TEST(blocks_are_aligned_counted_and_given_back)
{
    failing f;
    hbp__memory memory = hooks(&f, 1);
    for (uint64_t count = 0; count < 70; count++) {
        unsigned char *block = hbp__new(&memory, count, 3);
        ck_assert_ptr_nonnull(block);
        ck_assert_uint_eq((uintptr_t)block % 16, 0);
        memset(block, 0xa5, count * 3);
        hbp__delete(&memory, block);
    }
    hbp__delete(&memory, NULL);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.bytes, 0);
}
END_TEST

START_TEST(sizes_past_what_memory_can_hold_are_refused_without_asking)
{
    failing f;
    hbp__memory memory = hooks(&f, 1);
    ck_assert_ptr_null(hbp__new(&memory, UINT64_MAX, 2));
    ck_assert_ptr_null(hbp__new(&memory, UINT64_MAX / 2, 2));
    ck_assert_ptr_null(hbp__new(&memory, UINT64_MAX, 1));
    ck_assert_ptr_null(hbp__new_zero(&memory, UINT64_MAX / 8, 16));
    int *block = hbp__new(&memory, 1, sizeof *block);
    ck_assert_ptr_null(hbp__renew(&memory, block, UINT64_MAX, 4));
    hbp__delete(&memory, block);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

START_TEST(zeroed_means_zeroed)
{
    hbp__memory memory = hbp__memory_default();
    unsigned char *block = hbp__new_zero(&memory, 1000, 1);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(block[i], 0);
    hbp__delete(&memory, block);
}
END_TEST

/* Blocks for large pages: every size about two of them, grown and cut. */
START_TEST(large_blocks_are_blocks_as_any)
{
    hbp__memory memory = hbp__memory_default();
    const uint64_t page = UINT64_C(1) << 21;
    for (uint64_t bytes = 2 * page - 100; bytes < 2 * page + 100; bytes += 33) {
        unsigned char *block = hbp__new(&memory, bytes, 1);
        ck_assert_ptr_nonnull(block);
        memset(block, 1, bytes);
        hbp__delete(&memory, block);
    }
    for (uint64_t pages = 1; pages < 6; pages++) {
        const uint64_t count = pages * page + 12345;
        unsigned char *block = hbp__new(&memory, count, 1);
        ck_assert_ptr_nonnull(block);
        for (uint64_t i = 0; i < count; i += 4096)
            block[i] = (unsigned char)(i >> 12);
        block = hbp__renew(&memory, block, 2 * count, 1);
        ck_assert_ptr_nonnull(block);
        memset(block + count, 7, count);
        block = hbp__renew(&memory, block, count / 2, 1);
        ck_assert_ptr_nonnull(block);
        for (uint64_t i = 0; i < count / 2; i += 4096)
            ck_assert_int_eq(block[i], (unsigned char)(i >> 12));
        hbp__delete(&memory, block);
    }
}
END_TEST

/* With the caller's resize, and without one. */
START_TEST(growing_and_shrinking_keep_what_fits)
{
    failing f;
    hbp__memory memory = hooks(&f, _i);
    uint32_t *block = hbp__renew(&memory, NULL, 10, sizeof *block);
    for (uint32_t i = 0; i < 10; i++)
        block[i] = i * i;
    block = hbp__renew(&memory, block, 1000, sizeof *block);
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_uint_eq(block[i], i * i);
    block = hbp__renew(&memory, block, 4, sizeof *block);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(block[i], i * i);
    f.left = 0;
    ck_assert_ptr_null(hbp__renew(&memory, block, 100, sizeof *block));
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(block[i], i * i);
    hbp__delete(&memory, block);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.bytes, 0);
}
END_TEST

TEST_MAIN_LOOPS("memory", NULL, NULL, {blocks_are_aligned_counted_and_given_back, 0, 1},
                {sizes_past_what_memory_can_hold_are_refused_without_asking, 0, 1},
                {zeroed_means_zeroed, 0, 1}, {large_blocks_are_blocks_as_any, 0, 1},
                {growing_and_shrinking_keep_what_fits, 0, 2})
