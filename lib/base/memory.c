#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/pages.h"

/* In front of every block: its size with this header, and a word for whoever strings blocks together; the
 * block stays aligned to 16. */
typedef struct block_header {
    uint64_t bytes;
    union {
        void *next;
        uint64_t padding;
    } link;
} block_header;

static void *default_alloc(void *user, uint64_t bytes)
{
    (void)user;
    const uint64_t page = hbp__pages_for(bytes);
    if (bytes > SIZE_MAX - page)
        return NULL;
    void *block = page ? aligned_alloc((size_t)page, (size_t)((bytes + page - 1) / page * page))
                       : malloc((size_t)bytes);
    hbp__pages_advise(block, bytes);
    return block;
}

static void *default_resize(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes)
{
    (void)user;
    (void)old_bytes;
    void *fresh = new_bytes > SIZE_MAX ? NULL : realloc(block, (size_t)new_bytes);
    hbp__pages_advise(fresh, new_bytes);
    return fresh;
}

static void default_release(void *user, void *block, uint64_t bytes)
{
    (void)user;
    (void)bytes;
    free(block);
}

hbp__memory hbp__memory_default(void)
{
    return (hbp__memory){default_alloc, default_resize, default_release, NULL};
}

/* Bytes of a block with its header; 0 on overflow. */
static uint64_t block_bytes(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!hbp__mul_u64(count, size, &bytes) || !hbp__add_u64(bytes, sizeof(block_header), &bytes) ||
        bytes > PTRDIFF_MAX)
        return 0;
    return bytes;
}

void *hbp__new(const hbp__memory *memory, uint64_t count, uint64_t size)
{
    uint64_t bytes = block_bytes(count, size);
    block_header *header = bytes ? memory->alloc(memory->user, bytes) : NULL;
    if (!header)
        return NULL;
    header->bytes = bytes;
    header->link.next = NULL;
    return header + 1;
}

void *hbp__new_zero(const hbp__memory *memory, uint64_t count, uint64_t size)
{
    void *block = hbp__new(memory, count, size);
    if (block)
        memset(block, 0, (size_t)(count * size));
    return block;
}

char *hbp__new_text(const hbp__memory *memory, const char *text, uint64_t bytes)
{
    char *copy = hbp__new(memory, bytes + 1, 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

void *hbp__renew(const hbp__memory *memory, void *block, uint64_t count, uint64_t size)
{
    if (!block)
        return hbp__new(memory, count, size);
    uint64_t bytes = block_bytes(count, size);
    if (!bytes)
        return NULL;
    block_header *header = (block_header *)block - 1;
    uint64_t old_bytes = header->bytes;
    if (memory->resize) {
        header = memory->resize(memory->user, header, old_bytes, bytes);
        if (!header)
            return NULL;
    } else {
        block_header *fresh = memory->alloc(memory->user, bytes);
        if (!fresh)
            return NULL;
        memcpy(fresh, header, (size_t)(old_bytes < bytes ? old_bytes : bytes));
        memory->release(memory->user, header, old_bytes);
        header = fresh;
    }
    header->bytes = bytes;
    return header + 1;
}

void hbp__delete(const hbp__memory *memory, void *block)
{
    if (!block)
        return;
    block_header *header = (block_header *)block - 1;
    memory->release(memory->user, header, header->bytes);
}

void *hbp__block_next(const void *block)
{
    return ((const block_header *)block - 1)->link.next;
}

void hbp__block_set_next(void *block, void *next)
{
    ((block_header *)block - 1)->link.next = next;
}
