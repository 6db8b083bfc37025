/* Best fit by a list for each gap and two levels of bits, or a sorted row. */
#include "solve/gap_index.h"

#include <string.h>

#include "base/bits.h"

/* Ranges up to this, and so many gaps for each thing, are worth a list for each gap. */
#define RANGE_OF_LISTS (INT64_C(1) << 22)
#define GAPS_A_THING   4096

static int open_row(int64_t things, hbp__gap_index *index)
{
    index->gap = hbp__new(&index->memory, (uint64_t)things, sizeof *index->gap);
    index->next = hbp__new(&index->memory, (uint64_t)things, sizeof *index->next);
    return index->gap && index->next;
}

int hbp__gap_index_open(const hbp__memory *memory, int64_t things, int64_t least, int64_t most,
                        hbp__gap_index *index)
{
    *index = (hbp__gap_index){.memory = *memory, .least = least, .range = most - least};
    if (index->range > RANGE_OF_LISTS && index->range / GAPS_A_THING > things)
        return open_row(things, index);
    uint64_t gaps = (uint64_t)index->range + 1, words = (uint64_t)index->range / 64 + 1;
    index->head = hbp__new(memory, gaps, sizeof *index->head);
    index->next = hbp__new(memory, (uint64_t)things, sizeof *index->next);
    index->bits = hbp__new_zero(memory, words, sizeof *index->bits);
    index->summary = hbp__new_zero(memory, words / 64 + 1, sizeof *index->summary);
    if (!index->head || !index->next || !index->bits || !index->summary)
        return 0;
    memset(index->head, 0xff, gaps * sizeof *index->head); /* HBP__NO_GAP */
    return 1;
}

void hbp__gap_index_close(hbp__gap_index *index)
{
    hbp__delete(&index->memory, index->head);
    hbp__delete(&index->memory, index->next);
    hbp__delete(&index->memory, index->bits);
    hbp__delete(&index->memory, index->summary);
    hbp__delete(&index->memory, index->gap);
    index->gap = NULL;
    index->head = index->next = NULL;
    index->bits = index->summary = NULL;
}

/* The first in the row with a gap of at least `gap`. */
static int64_t find_in_row(const hbp__gap_index *index, int64_t gap)
{
    int64_t low = 0, high = index->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (index->gap[middle] < gap)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Moves what stands in the row from `from` on to `to`. */
static void move_row(hbp__gap_index *index, int64_t to, int64_t from)
{
    const size_t rows = (size_t)(index->count - from);
    memmove(index->gap + to, index->gap + from, rows * sizeof *index->gap);
    memmove(index->next + to, index->next + from, rows * sizeof *index->next);
    index->count += to - from;
}

static uint32_t take_from_row(hbp__gap_index *index, int64_t size)
{
    const int64_t at = find_in_row(index, size);
    if (at == index->count)
        return HBP__NO_GAP;
    const uint32_t thing = index->next[at];
    move_row(index, at, at + 1);
    return thing;
}

void hbp__gap_index_add(hbp__gap_index *index, uint32_t thing, int64_t gap)
{
    if (!index->head) {
        const int64_t at = find_in_row(index, gap);
        move_row(index, at + 1, at);
        index->gap[at] = gap;
        index->next[at] = thing;
        return;
    }
    gap -= index->least;
    index->next[thing] = index->head[gap];
    index->head[gap] = thing;
    index->bits[gap / 64] |= UINT64_C(1) << (gap % 64);
    index->summary[gap / 4096] |= UINT64_C(1) << (gap / 64 % 64);
}

/* The first bit at or after `from` in `words`, -1 when there is none below `count` words. */
static int64_t next_bit(const uint64_t *words, int64_t count, int64_t from)
{
    int64_t w = from / 64;
    if (w >= count)
        return -1;
    uint64_t word = words[w] & (~UINT64_C(0) << (from % 64));
    while (!word) {
        if (++w == count)
            return -1;
        word = words[w];
    }
    return w * 64 + hbp__lowest_bit(word);
}

/* The least gap above `least` by `size` or more that some thing has, less `least`; or -1. */
static int64_t least_gap(const hbp__gap_index *index, int64_t size)
{
    int64_t words = index->range / 64 + 1, w = size / 64;
    uint64_t word = index->bits[w] & (~UINT64_C(0) << (size % 64));
    if (!word) {
        w = next_bit(index->summary, words / 64 + 1, w + 1);
        if (w < 0)
            return -1;
        word = index->bits[w];
    }
    return w * 64 + hbp__lowest_bit(word);
}

uint32_t hbp__gap_index_take(hbp__gap_index *index, int64_t size)
{
    if (!index->head)
        return take_from_row(index, size);
    int64_t above = size > index->least ? size - index->least : 0;
    int64_t gap = above <= index->range ? least_gap(index, above) : -1;
    if (gap < 0)
        return HBP__NO_GAP;
    uint32_t thing = index->head[gap];
    index->head[gap] = index->next[thing];
    if (index->head[gap] == HBP__NO_GAP) {
        index->bits[gap / 64] &= ~(UINT64_C(1) << (gap % 64));
        if (!index->bits[gap / 64])
            index->summary[gap / 4096] &= ~(UINT64_C(1) << (gap / 64 % 64));
    }
    return thing;
}
