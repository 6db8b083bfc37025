/* Distinct sets of ranks: the communicators of a schedule. */
#ifndef HBP_DATA_RANK_SETS_H
#define HBP_DATA_RANK_SETS_H

#include <stdint.h>

#include "base/context.h"

/* Numbered as they came; found by hash. Zero to begin with. */
typedef struct hbp__rank_sets {
    hbp__memory memory;
    int32_t count;
    int32_t room;
    int64_t *offset; /* [count + 1] in rank; NULL while there is none */
    int32_t *rank;
    int64_t rank_room;
    int32_t *slot; /* [slots] number + 1, 0: free; open addressing */
    int64_t slots; /* a power of two, at least twice `count` */
} hbp__rank_sets;

/* *number gets that of the set of `ranks` [count], ascending, which is added when it is new. O(count). */
hbp_status hbp__rank_sets_add(hbp_context *context, hbp__rank_sets *sets, const int32_t *ranks, int64_t count,
                              int32_t *number);
void hbp__rank_sets_close(hbp__rank_sets *sets);

#endif
