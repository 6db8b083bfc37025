#include "base/pool.h"

#include "base/rng.h"
#include "failing.h"
#include "test.h"

static hbp__memory hooks(failing *f)
{
    *f = (failing){.left = -1};
    return (hbp__memory){failing_alloc, failing_resize, failing_release, f};
}

START_TEST(what_is_released_is_used_again)
{
    failing f;
    hbp__memory below = hooks(&f);
    hbp__pool pool;
    hbp__pool_open(&pool, &below);
    hbp__memory memory = hbp__pool_memory(&pool);
    for (uint64_t bytes = 1; bytes < 5000; bytes += 1 + bytes / 7) {
        void *block = hbp__new(&memory, bytes, 1);
        int64_t taken = pool.taken;
        ck_assert_int_eq(pool.kept_bytes, 0);
        hbp__delete(&memory, block);
        ck_assert_int_ge(pool.kept_bytes, (int64_t)bytes);
        ck_assert_ptr_eq(hbp__new(&memory, bytes, 1), block);
        ck_assert_int_eq(pool.taken, taken);
        hbp__delete(&memory, block);
        hbp__pool_close(&pool);
        ck_assert_int_eq(f.live, 0);
        ck_assert_int_eq(f.bytes, 0);
    }
}
END_TEST

/* A block with its header may be a quarter larger than asked, and 64 bytes. */
START_TEST(little_is_wasted)
{
    failing f;
    hbp__memory below = hooks(&f);
    hbp__pool pool;
    hbp__pool_open(&pool, &below);
    hbp__memory memory = hbp__pool_memory(&pool);
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 40; bytes += 1 + bytes / 5) {
        if (bytes > 1 << 20)
            f.left = 0; /* only the sizes asked for count */
        void *block = hbp__new(&memory, bytes, 1);
        ck_assert(!block == (bytes > 1 << 20));
        ck_assert_int_le(f.bytes, (int64_t)((bytes + 16) * 5 / 4 + 64));
        hbp__delete(&memory, block);
        hbp__pool_close(&pool);
    }
    ck_assert_ptr_null(memory.alloc(memory.user, UINT64_MAX));
    ck_assert_ptr_null(memory.alloc(memory.user, UINT64_MAX / 2));
    ck_assert_int_eq(f.live, 0);
}
END_TEST

enum { BLOCKS = 40 };

/* A random life: every block keeps what was written to it while others come and go, grow and shrink. */
START_TEST(blocks_do_not_overlap)
{
    failing f;
    hbp__memory below = hooks(&f);
    hbp__pool pool;
    hbp__pool_open(&pool, &below);
    hbp__memory memory = hbp__pool_memory(&pool);
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    unsigned char *block[BLOCKS] = {NULL};
    uint64_t size[BLOCKS] = {0};
    for (int turn = 0; turn < 20000; turn++) {
        uint32_t i = hbp__rng_below(&rng, BLOCKS);
        for (uint64_t at = 0; at < size[i]; at += 1 + size[i] / 9)
            ck_assert_uint_eq(block[i][at], i);
        if (hbp__rng_below(&rng, 3) == 0) {
            hbp__delete(&memory, block[i]);
            block[i] = NULL;
            size[i] = 0;
            continue;
        }
        uint64_t bytes = 1 + hbp__rng_below(&rng, 1 << hbp__rng_below(&rng, 14));
        uint64_t kept = bytes < size[i] ? bytes : size[i];
        block[i] = hbp__renew(&memory, block[i], bytes, 1);
        ck_assert_ptr_nonnull(block[i]);
        ck_assert_uint_eq((uintptr_t)block[i] % 16, 0);
        for (uint64_t at = 0; at < kept; at += 1 + kept / 9)
            ck_assert_uint_eq(block[i][at], i);
        memset(block[i], (int)i, bytes);
        size[i] = bytes;
    }
    ck_assert_int_lt(pool.taken, 2000);
    for (int i = 0; i < BLOCKS; i++)
        hbp__delete(&memory, block[i]);
    hbp__pool_close(&pool);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.bytes, 0);
}
END_TEST

/* The allocator below has room for one block at a time. */
static void *one_alloc(void *user, uint64_t bytes)
{
    failing *f = user;
    return f->live ? NULL : failing_alloc(f, bytes);
}

START_TEST(short_memory_makes_it_give_back_what_it_keeps)
{
    failing f = {.left = -1};
    hbp__memory below = {one_alloc, NULL, failing_release, &f};
    hbp__pool pool;
    hbp__pool_open(&pool, &below);
    hbp__memory memory = hbp__pool_memory(&pool);
    hbp__delete(&memory, hbp__new(&memory, 100, 1));
    ck_assert_int_eq(f.live, 1);
    void *large = hbp__new(&memory, 100000, 1);
    ck_assert_ptr_nonnull(large);
    ck_assert_int_eq(pool.kept_bytes, 0);
    ck_assert_ptr_null(hbp__new(&memory, 100, 1));
    ck_assert_ptr_null(hbp__renew(&memory, large, 1000000, 1));
    hbp__delete(&memory, large);
    hbp__pool_close(&pool);
    ck_assert_int_eq(f.live, 0);
    hbp__pool empty;
    memset(&empty, 0, sizeof empty);
    hbp__pool_close(&empty);
}
END_TEST

TEST_MAIN("pool", what_is_released_is_used_again, little_is_wasted, blocks_do_not_overlap,
          short_memory_makes_it_give_back_what_it_keeps)
