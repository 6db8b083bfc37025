/* Finds, among things that each have a gap, one with the least gap that is large enough: best fit. */
#ifndef HBP_SOLVE_GAP_INDEX_H
#define HBP_SOLVE_GAP_INDEX_H

#include <stdint.h>

#include "base/memory.h"

#define HBP__NO_GAP UINT32_MAX

/* A list for each gap, and a bit for each list that is not empty, in two levels: 4 bytes a thing, 4 bytes and
 * a bit for each gap. Few things with gaps in a wide range are a sorted row instead: 12 bytes a thing. */
typedef struct hbp__gap_index {
    hbp__memory memory;
    int64_t least;     /* smallest gap */
    int64_t range;     /* largest gap - least */
    uint32_t *head;    /* [range + 1]; NULL: a sorted row */
    uint32_t *next;    /* [things] of the list, or those of the row */
    uint64_t *bits;    /* [range / 64 + 1] */
    uint64_t *summary; /* one bit for each word of bits */
    int64_t *gap;      /* [things] of the row, ascending, those added last first */
    int64_t count;     /* in the row */
} hbp__gap_index;

/* Room for `things` things with gaps in [least, most]: as narrow as the caller knows, for memory and time are
 * as wide. None is in yet. 0 when memory is short; close in any case. */
int hbp__gap_index_open(const hbp__memory *memory, int64_t things, int64_t least, int64_t most,
                        hbp__gap_index *index);
void hbp__gap_index_close(hbp__gap_index *index);

/* Puts `thing` in with its gap in [least, most]. It must not be in. O(1), into a row O(things). */
void hbp__gap_index_add(hbp__gap_index *index, uint32_t thing, int64_t gap);

/* Takes out a thing with the least gap >= `size`, the one added last of those; HBP__NO_GAP when there is
 * none. O((most - least) / 4096) at worst, from a row O(things). */
uint32_t hbp__gap_index_take(hbp__gap_index *index, int64_t size);

#endif
