/* Patterns: growing lists of runs, appended in amortised O(runs), and the check that a packing holds every
 * item once. */
#include "solve/packing/patterns.h"

#include <string.h>

void hbp__patterns_open(hbp_context *context, hbp__patterns *patterns)
{
    memset(patterns, 0, sizeof *patterns);
    patterns->memory = context->memory;
}

void hbp__patterns_close(hbp__patterns *patterns)
{
    hbp__delete(&patterns->memory, patterns->times);
    hbp__delete(&patterns->memory, patterns->offsets);
    hbp__delete(&patterns->memory, patterns->run);
    hbp__memory memory = patterns->memory;
    memset(patterns, 0, sizeof *patterns);
    patterns->memory = memory;
}

void hbp__patterns_clear(hbp__patterns *patterns)
{
    patterns->count = patterns->packs = 0;
}

static int grow_patterns(hbp__patterns *patterns)
{
    uint64_t room = (uint64_t)patterns->pattern_room * 2 + 64;
    int64_t *times = hbp__renew(&patterns->memory, patterns->times, room, sizeof *times);
    if (!times)
        return 0;
    patterns->times = times;
    int64_t *offsets = hbp__renew(&patterns->memory, patterns->offsets, room + 1, sizeof *offsets);
    if (!offsets)
        return 0;
    patterns->offsets = offsets;
    patterns->pattern_room = (int64_t)room;
    return 1;
}

static int grow_runs(hbp__patterns *patterns, int64_t wanted)
{
    uint64_t room = (uint64_t)patterns->run_room * 2 + (uint64_t)wanted + 256;
    hbp__run *run = hbp__renew(&patterns->memory, patterns->run, room, sizeof *run);
    if (!run)
        return 0;
    patterns->run = run;
    patterns->run_room = (int64_t)room;
    return 1;
}

hbp_status hbp__patterns_add(hbp_context *context, hbp__patterns *patterns, int64_t times,
                             const hbp__run *run, int64_t runs)
{
    if (patterns->count == patterns->pattern_room && !grow_patterns(patterns))
        return hbp__fail_memory(context, "packing patterns");
    int64_t at = patterns->count ? patterns->offsets[patterns->count] : 0;
    if (at + runs > patterns->run_room && !grow_runs(patterns, runs))
        return hbp__fail_memory(context, "packing patterns");
    memcpy(patterns->run + at, run, (size_t)runs * sizeof *run);
    patterns->offsets[patterns->count] = at;
    patterns->times[patterns->count++] = times;
    patterns->offsets[patterns->count] = at + runs;
    patterns->packs += times;
    return HBP_OK;
}

int64_t hbp__classes_from(const hbp__classes *classes, int64_t size)
{
    int64_t low = 0, high = classes->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (classes->size[middle] < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

hbp_status hbp__patterns_check(hbp_context *context, const hbp__patterns *patterns,
                               const hbp__classes *classes, hbp__room room)
{
    int64_t *seen = hbp__new_zero(&context->memory, (uint64_t)classes->count, sizeof *seen);
    if (!seen)
        return hbp__fail_memory(context, "a packing's check");
    int sound = 1;
    for (int64_t p = 0; p < patterns->count && sound; p++) {
        int64_t size = 0, weight = 0;
        for (int64_t k = patterns->offsets[p]; k < patterns->offsets[p + 1]; k++) {
            hbp__run run = patterns->run[k];
            size += run.number * classes->size[run.class_index];
            weight += run.number * hbp__class_weight(classes, run.class_index);
            seen[run.class_index] += run.number * patterns->times[p];
        }
        sound = size <= room.capacity && weight <= room.max_weight && patterns->times[p] > 0;
    }
    for (int64_t c = 0; c < classes->count && sound; c++)
        sound = seen[c] == classes->number[c];
    hbp__delete(&context->memory, seen);
    return sound ? HBP_OK : hbp__fail(context, HBP_E_INTERNAL, "a packing does not hold every item once");
}
