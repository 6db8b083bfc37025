/* Classes as rows of a linear program: the loss that a row may have is bisected, O(classes log); rows are
 * drawn from their classes, largest first. */
#include "solve/packing/tight_parts.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

/* Runs of a pattern of classes, at most: packs of more different items than this are never cut from rows. */
#define RUNS 256

/* Splits classes into rows that each lose at most `loss`, from the largest down, writing them when `coarse`
 * is not NULL. Returns the number of rows. */
static int64_t split_classes(const hbp__classes *classes, const int64_t *number, int64_t loss,
                             hbp__coarse *coarse)
{
    int64_t rows = 0, size = 0, lost = 0;
    for (int64_t c = classes->count - 1; c >= 0; c--) {
        if (!number[c])
            continue;
        int64_t more;
        int joins = rows && hbp__mul_i64(size - classes->size[c], number[c], &more) &&
                    hbp__add_i64(lost, more, &more) && more <= loss;
        if (joins) {
            lost = more;
        } else {
            rows++;
            size = classes->size[c];
            lost = 0;
        }
        if (!coarse)
            continue;
        if (!joins) {
            coarse->size[rows - 1] = size;
            coarse->left[rows - 1] = 0;
            coarse->top[rows - 1] = c;
        }
        coarse->left[rows - 1] += number[c];
        coarse->first[rows - 1] = c;
    }
    return rows;
}

static void reverse_values(int64_t *values, int64_t count)
{
    for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
        int64_t swap = values[i];
        values[i] = values[j];
        values[j] = swap;
    }
}

hbp_status hbp__coarse_open(hbp_context *context, const hbp__classes *classes, const int64_t *number,
                            int64_t rows, hbp__coarse *coarse)
{
    memset(coarse, 0, sizeof *coarse);
    int64_t low = 0, high = INT64_MAX / 2;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (split_classes(classes, number, middle, NULL) <= rows)
            high = middle;
        else
            low = middle + 1;
    }
    int64_t count = split_classes(classes, number, low, NULL);
    coarse->size = hbp__take(context, (uint64_t)count, 5 * sizeof *coarse->size);
    HBP__TRY(hbp__scratch_check(context, "rows of classes"));
    coarse->number = coarse->size + count;
    coarse->top = coarse->number + count;
    coarse->first = coarse->top + count;
    coarse->left = coarse->first + count;
    split_classes(classes, number, low, coarse);
    reverse_values(coarse->size, count);
    reverse_values(coarse->top, count);
    reverse_values(coarse->first, count);
    reverse_values(coarse->left, count);
    memcpy(coarse->number, coarse->left, (size_t)count * sizeof *coarse->number);
    coarse->rows = (hbp__classes){count, coarse->size, coarse->number, NULL};
    return HBP_OK;
}

/* Appends `wanted` items of one row to the runs [at], as the row's classes have them; counts nothing down.
 * Returns the runs there are then, or -1 when there is no room; *times falls to what the first class tried
 * lasts for. */
static int64_t draw_items(const hbp__coarse *coarse, const int64_t *number, hbp__run wanted, hbp__run *run,
                          int64_t at, int64_t *times)
{
    int64_t left = wanted.number;
    for (int64_t c = coarse->top[wanted.class_index]; left; c--) {
        if (!number[c])
            continue;
        if (at == RUNS)
            return -1;
        int64_t take = hbp__min_i64(left, number[c]);
        run[at++] = (hbp__run){(int32_t)c, (int32_t)take};
        *times = hbp__min_i64(*times, number[c] / take);
        left -= take;
    }
    return at;
}

hbp_status hbp__coarse_use(hbp_context *context, hbp__coarse *coarse, int64_t times, const hbp__run *run,
                           int64_t runs, int64_t *number, hbp__patterns *patterns, int64_t *used)
{
    hbp__run fine[RUNS];
    *used = 0;
    for (int64_t k = 0; k < runs; k++)
        times = hbp__min_i64(times, coarse->left[run[k].class_index] / run[k].number);
    while (*used < times) {
        int64_t at = 0, equal = times - *used;
        for (int64_t k = 0; k < runs && at >= 0; k++)
            at = draw_items(coarse, number, run[k], fine, at, &equal);
        if (at < 0)
            return HBP_OK;
        HBP__TRY(hbp__patterns_add(context, patterns, equal, fine, at));
        for (int64_t k = 0; k < at; k++)
            number[fine[k].class_index] -= equal * fine[k].number;
        for (int64_t k = 0; k < runs; k++) {
            int64_t row = run[k].class_index;
            coarse->left[row] -= equal * run[k].number;
            while (coarse->top[row] > coarse->first[row] && !number[coarse->top[row]])
                coarse->top[row]--;
        }
        *used += equal;
    }
    return HBP_OK;
}
