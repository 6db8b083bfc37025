#include "base/sort.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     (1 << DIGIT_BITS)

typedef struct sort_row {
    uint64_t key;
    uint32_t row;
} sort_row;

/* One stable pass by the digit at `shift`. */
static void scatter(const sort_row *from, sort_row *to, int64_t count, int shift, int64_t *starts)
{
    memset(starts, 0, DIGITS * sizeof *starts);
    for (int64_t i = 0; i < count; i++)
        starts[(from[i].key >> shift) & (DIGITS - 1)]++;
    int64_t sum = 0;
    for (int d = 0; d < DIGITS; d++) {
        int64_t here = starts[d];
        starts[d] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[starts[(from[i].key >> shift) & (DIGITS - 1)]++] = from[i];
}

static int sort_rows(const hbp__memory *memory, const uint64_t *keys, uint64_t flip, uint32_t *order,
                     int64_t count)
{
    if (count < 2)
        return 1;
    sort_row *rows = hbp__new(memory, (uint64_t)count, 2 * sizeof *rows);
    int64_t *starts = rows ? hbp__new(memory, DIGITS, sizeof *starts) : NULL;
    if (!starts) {
        hbp__delete(memory, rows);
        return 0;
    }
    sort_row *from = rows, *to = rows + count;
    uint64_t all = ~UINT64_C(0), any = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t key = keys[order[i]] ^ flip;
        from[i] = (sort_row){key, order[i]};
        all &= key;
        any |= key;
    }
    uint64_t differs = all ^ any;
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!((differs >> shift) & (DIGITS - 1)))
            continue;
        scatter(from, to, count, shift, starts);
        sort_row *swap = from;
        from = to;
        to = swap;
    }
    for (int64_t i = 0; i < count; i++)
        order[i] = from[i].row;
    hbp__delete(memory, starts);
    hbp__delete(memory, rows);
    return 1;
}

int hbp__sort_by_u64(const hbp__memory *memory, const uint64_t *keys, uint32_t *order, int64_t count)
{
    return sort_rows(memory, keys, 0, order, count);
}

int hbp__sort_by_i64(const hbp__memory *memory, const int64_t *keys, uint32_t *order, int64_t count)
{
    return sort_rows(memory, (const uint64_t *)keys, UINT64_C(1) << 63, order, count);
}
