#include "simulate/histogram.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

/* Lengths up to this are counted in a table; longer samples are few, so they are sorted. */
#define TABLE_LENGTHS (INT64_C(1) << 20)

hbp_status hbp__count_lengths(hbp_context *context, const hbp_plan *plan, int64_t *bins, int64_t **length,
                              int64_t **count)
{
    const hbp__memory *memory = &context->memory;
    int64_t longest = 0, tail = 0, used = 0;
    for (int64_t i = 0; i < plan->samples; i++) {
        longest = hbp__max_i64(longest, plan->sample_tokens[i]);
        tail += plan->sample_tokens[i] > TABLE_LENGTHS;
    }
    int64_t table = hbp__min_i64(longest, TABLE_LENGTHS);
    int64_t mark = hbp__scratch_mark(context);
    int64_t *counts = hbp__take_zero(context, (uint64_t)table + 1, sizeof *counts);
    uint64_t *keys = hbp__take(context, (uint64_t)tail, sizeof *keys);
    uint32_t *order = hbp__take(context, (uint64_t)tail, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the histogram of the plan's samples"));
    for (int64_t i = 0; i < plan->samples; i++)
        if (plan->sample_tokens[i] <= TABLE_LENGTHS)
            used += !counts[plan->sample_tokens[i]]++;
    *length = hbp__new(memory, (uint64_t)(used + tail), sizeof **length);
    *count = hbp__new(memory, (uint64_t)(used + tail), sizeof **count);
    if (!*length || !*count)
        return hbp__fail_memory(context, "the histogram of the plan's samples");
    used = 0;
    for (int64_t tokens = 1; tokens <= table; tokens++)
        if (counts[tokens]) {
            (*length)[used] = tokens;
            (*count)[used++] = counts[tokens];
        }
    tail = 0;
    for (int64_t i = 0; i < plan->samples; i++)
        if (plan->sample_tokens[i] > TABLE_LENGTHS) {
            order[tail] = (uint32_t)tail;
            keys[tail++] = (uint64_t)plan->sample_tokens[i];
        }
    if (!hbp__sort_by_u64(memory, keys, order, tail))
        return hbp__fail_memory(context, "the histogram of the plan's samples");
    for (int64_t i = 0; i < tail; i++) {
        int64_t tokens = (int64_t)keys[order[i]];
        if (used && (*length)[used - 1] == tokens) {
            (*count)[used - 1]++;
        } else {
            (*length)[used] = tokens;
            (*count)[used++] = 1;
        }
    }
    *bins = used;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
