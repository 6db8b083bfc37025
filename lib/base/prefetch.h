/* Asks for memory before it is needed. */
#ifndef HBP_BASE_PREFETCH_H
#define HBP_BASE_PREFETCH_H

#include <stdint.h>

/* Every line of a cache that `values` [count >= 1] lie in, or may: they are then used in no order. A hint. */
static inline void hbp__prefetch_u32(const uint32_t *values, int64_t count)
{
    enum { LINE = 64 / sizeof *values };
    for (int64_t i = 0; i < count - 1; i += LINE)
        __builtin_prefetch(values + i, 1);
    __builtin_prefetch(values + count - 1, 1);
}

#endif
