/* A cache of blocks over another allocator: what is released is kept for the next that asks for as much. */
#ifndef HBP_BASE_POOL_H
#define HBP_BASE_POOL_H

#include <stdint.h>

#include "base/memory.h"

/* Sizes of blocks: 4, 5, 6 and 7 times every power of two, so that a fifth of a block at most is unused. */
#define HBP__POOL_CLASSES 200

typedef struct hbp__pool_block hbp__pool_block;

/* One thread at a time. */
typedef struct hbp__pool {
    hbp__memory below;
    hbp__pool_block *kept[HBP__POOL_CLASSES]; /* released blocks, by class */
    int64_t kept_bytes;                       /* in them */
    int64_t taken;                            /* blocks asked from below so far */
} hbp__pool;

void hbp__pool_open(hbp__pool *pool, const hbp__memory *below);

/* Gives every kept block back; all others must have been released. Also a zeroed pool. */
void hbp__pool_close(hbp__pool *pool);

/* Memory whose blocks come from the pool, which must outlive them. O(1) beside what lies below. When
 * there is no memory left, the kept blocks go back and the request is tried once more. */
hbp__memory hbp__pool_memory(hbp__pool *pool);

#endif
