/* A lower bound on packs under two capacities: either size alone, weight, and large items of one size with
 * all that fits beside none of them. O(count) but for the sort. */
#include "solve/vector/vectors.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/packing/tight_pack.h"

/* One size in ascending order, with the other of the same items. */
typedef struct sorted_size {
    const hbp__vectors *vectors;
    const uint32_t *own, *other;
    int64_t capacity, other_capacity;
    uint32_t *order;        /* [count] items by own size */
    int64_t *size, *number; /* [count] classes of positive sizes */
} sorted_size;

/* Classes of the positive own sizes. */
static hbp_status classes_of(hbp_context *context, sorted_size *w, hbp__classes *made)
{
    int64_t classes = 0;
    for (int64_t i = 0; i < w->vectors->count; i++) {
        HBP__TRY(hbp__tick_row(context, "bound", i, w->vectors->count));
        int64_t size = w->own[w->order[i]];
        if (!size)
            continue;
        if (!classes || w->size[classes - 1] != size) {
            w->size[classes] = size;
            w->number[classes++] = 0;
        }
        w->number[classes - 1]++;
    }
    *made = (hbp__classes){classes, w->size, w->number, NULL};
    return HBP_OK;
}

/* Large items and those that none of them stands with. As the threshold falls from the largest size to half
 * of the capacity, order[from, count) are large, and order[low, from), which exclude them, lose items at both
 * ends. */
static hbp_status large_and_others(hbp_context *context, const sorted_size *w, int64_t *bound)
{
    int64_t count = w->vectors->count, half = w->capacity / 2, other_half = w->other_capacity / 2;
    int64_t from = count, low = 0, best = 0;
    int64_t other = 0, wide = 0; /* of order[low, from) */
    for (int64_t i = 0; i < count; i++) {
        other += w->other[i];
        wide += w->other[i] > other_half;
        HBP__TRY(hbp__tick_row(context, "bound", i, count));
    }
    while (from > 0 && w->own[w->order[from - 1]] > half) {
        int64_t x = w->own[w->order[from - 1]];
        for (; from > 0 && w->own[w->order[from - 1]] == x; from--) {
            HBP__TRY(hbp__tick_row(context, "bound", from, count));
            other -= w->other[w->order[from - 1]];
            wide -= w->other[w->order[from - 1]] > other_half;
        }
        for (; low < from && w->own[w->order[low]] <= w->capacity - x; low++) {
            HBP__TRY(hbp__tick_row(context, "bound", low, count));
            other -= w->other[w->order[low]];
            wide -= w->other[w->order[low]] > other_half;
        }
        int64_t rest = hbp__max_i64(wide, hbp__ceil_div(other, w->other_capacity));
        best = hbp__max_i64(best, count - from + rest);
    }
    *bound = hbp__max_i64(*bound, best);
    return HBP_OK;
}

static hbp_status sort_size(hbp_context *context, sorted_size *w, uint64_t *keys)
{
    int64_t count = w->vectors->count;
    int ascending = 1;
    for (int64_t i = 0; i < count; i++) {
        keys[i] = w->own[i];
        w->order[i] = (uint32_t)i;
        ascending &= !i || w->own[i - 1] <= w->own[i];
        HBP__TRY(hbp__tick_row(context, "bound", i, count));
    }
    return ascending ? HBP_OK : hbp__order_by_u64(context, keys, w->order, count, "the sizes of items");
}

static hbp_status bound_size(hbp_context *context, sorted_size *w, int64_t *bound)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t rows = (uint64_t)w->vectors->count;
    w->order = hbp__take(context, rows, sizeof *w->order);
    w->size = hbp__take(context, rows, 2 * sizeof *w->size); /* first the keys */
    HBP__TRY(hbp__scratch_check(context, "the sizes of items"));
    HBP__TRY(sort_size(context, w, (uint64_t *)w->size));
    hbp__classes classes;
    w->number = w->size + rows;
    HBP__TRY(classes_of(context, w, &classes));
    *bound = hbp__max_i64(*bound, hbp__pack_bound(&classes, (hbp__room){w->capacity, INT64_MAX}));
    HBP__TRY(large_and_others(context, w, bound));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__vector_bound(hbp_context *context, const hbp__vectors *vectors, int64_t *bound)
{
    sorted_size a = {.vectors = vectors,
                     .own = vectors->a,
                     .other = vectors->b,
                     .capacity = vectors->capacity_a,
                     .other_capacity = vectors->capacity_b};
    sorted_size b = {.vectors = vectors,
                     .own = vectors->b,
                     .other = vectors->a,
                     .capacity = vectors->capacity_b,
                     .other_capacity = vectors->capacity_a};
    int64_t weight = 0;
    for (int64_t i = 0; i < vectors->count; i++)
        weight += hbp__vector_weight(vectors, i);
    *bound = hbp__max_i64(vectors->count > 0, hbp__ceil_div(weight, vectors->max_weight));
    HBP__TRY(hbp__tick(context, "bound", 0, 2));
    HBP__TRY(bound_size(context, &a, bound));
    HBP__TRY(hbp__tick(context, "bound", 1, 2));
    return bound_size(context, &b, bound);
}
