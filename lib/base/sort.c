#include "base/sort.h"

#include <string.h>

#include "base/scratch.h"

/* Bits of a digit, and of one of few rows, to which all digits would be more than they are. Of fewer still
 * each is put where it belongs. */
enum { DIGIT_BITS = 11, FEW_DIGIT_BITS = 7, FEW_ROWS = 512, INSERTED_ROWS = 32, DIGITS = 1 << DIGIT_BITS };

typedef struct sort_row {
    uint64_t key;
    uint32_t row;
} sort_row;

/* Nobody asks for a sort without a context to stop. */
static hbp_status tick_sort(hbp_context *context, int64_t row, int64_t rows)
{
    return context ? hbp__tick_row(context, "sort", row, rows) : HBP_OK;
}

/* One stable pass by the digit of `bits` at `shift`. */
static hbp_status scatter(hbp_context *context, const sort_row *from, sort_row *to, int64_t count, int shift,
                          int bits, int64_t *starts)
{
    const uint64_t digits = UINT64_C(1) << bits, mask = digits - 1;
    memset(starts, 0, digits * sizeof *starts);
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(tick_sort(context, i, count));
        starts[(from[i].key >> shift) & mask]++;
    }
    int64_t sum = 0;
    for (uint64_t d = 0; d < digits; d++) {
        int64_t here = starts[d];
        starts[d] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(tick_sort(context, i, count));
        to[starts[(from[i].key >> shift) & mask]++] = from[i];
    }
    return HBP_OK;
}

/* `rows` is [2 count] scratch, `starts` [DIGITS]. */
static hbp_status sort_in(hbp_context *context, const uint64_t *keys, uint64_t flip, uint32_t *order,
                          int64_t count, sort_row *rows, int64_t *starts)
{
    sort_row *from = rows, *to = rows + count;
    uint64_t all = ~UINT64_C(0), any = 0;
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(tick_sort(context, i, count));
        uint64_t key = keys[order[i]] ^ flip;
        from[i] = (sort_row){key, order[i]};
        all &= key;
        any |= key;
    }
    const uint64_t differs = all ^ any;
    const int bits = count < FEW_ROWS ? FEW_DIGIT_BITS : DIGIT_BITS;
    for (int shift = 0; shift < 64; shift += bits) {
        if (!((differs >> shift) & ((UINT64_C(1) << bits) - 1)))
            continue;
        HBP__TRY(scatter(context, from, to, count, shift, bits, starts));
        sort_row *swap = from;
        from = to;
        to = swap;
    }
    for (int64_t i = 0; i < count; i++)
        order[i] = from[i].row;
    return HBP_OK;
}

/* In place, stable. */
static void insert_rows(const uint64_t *keys, uint64_t flip, uint32_t *order, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        const uint32_t row = order[i];
        const uint64_t key = keys[row] ^ flip;
        int64_t at = i;
        for (; at > 0 && (keys[order[at - 1]] ^ flip) > key; at--)
            order[at] = order[at - 1];
        order[at] = row;
    }
}

static hbp_status sort_rows(hbp_context *context, const hbp__memory *memory, const uint64_t *keys,
                            uint64_t flip, uint32_t *order, int64_t count)
{
    if (count <= INSERTED_ROWS) {
        insert_rows(keys, flip, order, count);
        return HBP_OK;
    }
    sort_row *rows = hbp__new(memory, (uint64_t)count, 2 * sizeof *rows);
    int64_t *starts = rows ? hbp__new(memory, DIGITS, sizeof *starts) : NULL;
    hbp_status status = starts ? sort_in(context, keys, flip, order, count, rows, starts) : HBP_E_NO_MEMORY;
    hbp__delete(memory, starts);
    hbp__delete(memory, rows);
    return status;
}

int hbp__sort_by_u64(const hbp__memory *memory, const uint64_t *keys, uint32_t *order, int64_t count)
{
    return sort_rows(NULL, memory, keys, 0, order, count) >= 0;
}

int hbp__sort_by_i64(const hbp__memory *memory, const int64_t *keys, uint32_t *order, int64_t count)
{
    return sort_rows(NULL, memory, (const uint64_t *)keys, UINT64_C(1) << 63, order, count) >= 0;
}

static hbp_status order_rows(hbp_context *context, const uint64_t *keys, uint64_t flip, uint32_t *order,
                             int64_t count, const char *what)
{
    hbp_status status = sort_rows(context, &context->memory, keys, flip, order, count);
    return status == HBP_E_NO_MEMORY ? hbp__fail_memory(context, what) : status;
}

hbp_status hbp__order_by_u64(hbp_context *context, const uint64_t *keys, uint32_t *order, int64_t count,
                             const char *what)
{
    return order_rows(context, keys, 0, order, count, what);
}

hbp_status hbp__order_by_i64(hbp_context *context, const int64_t *keys, uint32_t *order, int64_t count,
                             const char *what)
{
    return order_rows(context, (const uint64_t *)keys, UINT64_C(1) << 63, order, count, what);
}

hbp_status hbp__sort_rows_u32(hbp_context *context, void *rows, int64_t bytes, int64_t count,
                              const char *what)
{
    const int64_t mark = hbp__scratch_mark(context);
    uint64_t *key = hbp__take(context, (uint64_t)count, sizeof *key);
    uint32_t *order = hbp__take(context, (uint64_t)count, sizeof *order);
    char *row = rows, *sorted = hbp__take(context, (uint64_t)count, (uint64_t)bytes);
    HBP__TRY(hbp__scratch_check(context, what));
    for (int64_t i = 0; i < count; i++) {
        uint32_t first;
        memcpy(&first, row + i * bytes, sizeof first);
        key[i] = first;
        order[i] = (uint32_t)i;
    }
    HBP__TRY(hbp__order_by_u64(context, key, order, count, what));
    for (int64_t i = 0; i < count; i++)
        memcpy(sorted + i * bytes, row + order[i] * bytes, (size_t)bytes);
    memcpy(row, sorted, (size_t)(count * bytes));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__shuffle(hbp_context *context, hbp__rng *rng, uint32_t *values, int64_t count)
{
    for (int64_t i = count; i > 1; i--) {
        HBP__TRY(hbp__tick_row(context, "shuffle", count - i, count));
        hbp__rng_swap_u32(rng, values, (uint64_t)i);
    }
    return HBP_OK;
}
