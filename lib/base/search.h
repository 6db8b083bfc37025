/* Places in ascending values. */
#ifndef HBP_BASE_SEARCH_H
#define HBP_BASE_SEARCH_H

#include <stdint.h>

/* The last of `rows` ascending values, at least one, that is not above `value`; 0 where all are. O(log
 * rows). */
static inline int64_t hbp__last_at_most(const int64_t *values, int64_t rows, int64_t value)
{
    int64_t low = 0, high = rows;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (values[middle] <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
