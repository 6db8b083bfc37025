/* Checked allocation through the caller's hooks. Every block carries its size, so that release needs no
 * bookkeeping. */
#ifndef HBP_BASE_MEMORY_H
#define HBP_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "hbp/base.h"

/* A private copy of the caller's allocator, complete; objects keep one and so outlive their context. */
typedef struct hbp__memory {
    void *(*alloc)(void *user, uint64_t bytes);
    void *(*resize)(void *user, void *block, uint64_t old_bytes, uint64_t new_bytes);
    void (*release)(void *user, void *block, uint64_t bytes);
    void *user;
} hbp__memory;

/* The allocator over malloc, realloc and free. */
hbp__memory hbp__memory_default(void);

/* Room for count x size bytes, uninitialised, aligned to 16; NULL when there is none or the product
 * overflows. A count of 0 yields a block that may not be read. */
void *hbp__new(const hbp__memory *memory, uint64_t count, uint64_t size);

/* The same, zeroed. */
void *hbp__new_zero(const hbp__memory *memory, uint64_t count, uint64_t size);

/* A copy of `text` [bytes] and a zero behind it; NULL when memory is short. */
char *hbp__new_text(const hbp__memory *memory, const char *text, uint64_t bytes);

/* Changes a block (or NULL) to count x size bytes; on failure returns NULL and leaves the block as it is. */
void *hbp__renew(const hbp__memory *memory, void *block, uint64_t count, uint64_t size);

/* Releases a block; NULL is allowed. */
void hbp__delete(const hbp__memory *memory, void *block);

/* The block that was set to follow this one, kept beside its size; NULL of a new one. Resizing keeps it. */
void *hbp__block_next(const void *block);
void hbp__block_set_next(void *block, void *next);

#endif
