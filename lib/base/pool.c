#include "base/pool.h"

#include <string.h>

/* The least block holds the link: 2^6 bytes. */
#define LEAST_BITS 6

struct hbp__pool_block {
    hbp__pool_block *next;
};

/* Bytes of a block of class c. */
static uint64_t class_bytes(int32_t c)
{
    return (UINT64_C(4) + (uint64_t)(c % 4)) << (c / 4 + LEAST_BITS - 2);
}

/* The class of the least block of at least `bytes`; -1 when there is none. */
static int32_t class_of(uint64_t bytes)
{
    if (bytes > class_bytes(HBP__POOL_CLASSES - 1))
        return -1;
    int32_t power = 0;
    while (class_bytes(4 * power + 3) < bytes)
        power++;
    int32_t c = 4 * power;
    while (class_bytes(c) < bytes)
        c++;
    return c;
}

void hbp__pool_open(hbp__pool *pool, const hbp__memory *below)
{
    memset(pool, 0, sizeof *pool);
    pool->below = *below;
}

void hbp__pool_close(hbp__pool *pool)
{
    for (int32_t c = 0; c < HBP__POOL_CLASSES; c++)
        while (pool->kept[c]) {
            hbp__pool_block *block = pool->kept[c];
            pool->kept[c] = block->next;
            pool->below.release(pool->below.user, block, class_bytes(c));
        }
    pool->kept_bytes = 0;
}

static void *pool_alloc(void *user, uint64_t bytes)
{
    hbp__pool *pool = user;
    int32_t c = class_of(bytes);
    if (c < 0)
        return NULL;
    hbp__pool_block *block = pool->kept[c];
    if (block) {
        pool->kept[c] = block->next;
        pool->kept_bytes -= (int64_t)class_bytes(c);
        return block;
    }
    block = pool->below.alloc(pool->below.user, class_bytes(c));
    if (!block && pool->kept_bytes) {
        hbp__pool_close(pool);
        block = pool->below.alloc(pool->below.user, class_bytes(c));
    }
    pool->taken += block != NULL;
    return block;
}

static void pool_release(void *user, void *block, uint64_t bytes)
{
    hbp__pool *pool = user;
    int32_t c = class_of(bytes);
    hbp__pool_block *released = block;
    released->next = pool->kept[c];
    pool->kept[c] = released;
    pool->kept_bytes += (int64_t)class_bytes(c);
}

static void *pool_resize(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    if (class_of(old_bytes) == class_of(new_bytes))
        return block;
    void *fresh = pool_alloc(user, new_bytes);
    if (!fresh)
        return NULL;
    memcpy(fresh, block, (size_t)(old_bytes < new_bytes ? old_bytes : new_bytes));
    pool_release(user, block, old_bytes);
    return fresh;
}

hbp__memory hbp__pool_memory(hbp__pool *pool)
{
    return (hbp__memory){pool_alloc, pool_resize, pool_release, pool};
}
