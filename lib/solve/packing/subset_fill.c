/* Minimum bin slack (Gupta and Ho 1999): each pack's subset sum over bit sets, O(capacity / 64 x items tried)
 * word operations. */
#include "solve/packing/tight_parts.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "solve/packing/packer.h"

/* Words of scratch, at most. */
#define SCRATCH_WORDS (INT64_C(1) << 21)

typedef struct subset {
    hbp_context *context;
    const hbp__classes *classes;
    int64_t capacity;
    int64_t *number;
    int64_t stages; /* classes that a fill looks at, at most: a bound on memory */
    int64_t words;  /* of a set of sums 0..capacity */
    uint64_t *sums; /* [stages + 1][words] sums after each stage */
    int32_t *stage; /* [stages] class of a stage, from the largest down */
    hbp__run *run;  /* [stages + 1] the pattern */
    int64_t *work;
} subset;

/* to |= from << shift, over sets of `words`. */
static void add_shifted(uint64_t *to, const uint64_t *from, int64_t shift, int64_t words)
{
    int64_t skip = shift / 64, bits = shift % 64;
    for (int64_t w = words - 1; w >= skip; w--) {
        uint64_t moved = from[w - skip] << bits;
        if (bits && w > skip)
            moved |= from[w - skip - 1] >> (64 - bits);
        to[w] |= moved;
    }
}

static int has_sum(const uint64_t *set, int64_t sum)
{
    return (int)(set[sum / 64] >> (sum % 64) & 1);
}

/* The largest sum in `set` up to `limit`; 0 is always there. */
static int64_t largest_sum(const uint64_t *set, int64_t limit)
{
    while (!has_sum(set, limit))
        limit--;
    return limit;
}

/* Fills `room` from the classes up to `top`; writes the runs behind the first `runs` and returns how many
 * there are. Stops at the first class that makes an exact fill possible, so that small items are spared. */
static int64_t fill_pack(subset *s, int64_t top, int64_t room, int64_t runs)
{
    int64_t words = room / 64 + 1, stages = 0;
    memset(s->sums, 0, (size_t)words * sizeof *s->sums);
    s->sums[0] = 1;
    for (int64_t c = top; c >= 0 && stages < s->stages; c--) {
        int64_t size = s->classes->size[c], times = hbp__min_i64(s->number[c], room / size);
        if (!times)
            continue;
        const uint64_t *before = s->sums + stages * s->words;
        uint64_t *after = s->sums + (stages + 1) * s->words;
        memcpy(after, before, (size_t)words * sizeof *after);
        for (int64_t k = 1; k <= times; k++)
            add_shifted(after, before, k * size, words);
        *s->work -= words * (times + 1);
        s->stage[stages++] = (int32_t)c;
        if (has_sum(after, room))
            break;
    }
    int64_t sum = largest_sum(s->sums + stages * s->words, room);
    for (int64_t k = stages - 1; k >= 0; k--) {
        const uint64_t *before = s->sums + k * s->words;
        int32_t times = 0;
        while (!has_sum(before, sum)) {
            sum -= s->classes->size[s->stage[k]];
            times++;
        }
        if (times)
            s->run[runs++] = (hbp__run){s->stage[k], times};
    }
    return runs;
}

/* One pattern, as often as the items last. */
static hbp_status pack_one(subset *s, int64_t top, hbp__patterns *patterns)
{
    s->run[0] = (hbp__run){(int32_t)top, 1};
    s->number[top]--;
    int64_t runs = fill_pack(s, top, s->capacity - s->classes->size[top], 1);
    s->number[top]++;
    if (runs > 1 && s->run[runs - 1].class_index == top) { /* the first class again */
        s->run[0].number += s->run[runs - 1].number;
        runs--;
    }
    for (int64_t i = 1, j = runs - 1; i < j; i++, j--) {
        hbp__run swap = s->run[i];
        s->run[i] = s->run[j];
        s->run[j] = swap;
    }
    int64_t times = INT64_MAX;
    for (int64_t k = 0; k < runs; k++)
        times = hbp__min_i64(times, s->number[s->run[k].class_index] / s->run[k].number);
    for (int64_t k = 0; k < runs; k++)
        s->number[s->run[k].class_index] -= times * s->run[k].number;
    return hbp__patterns_add(s->context, patterns, times, s->run, runs);
}

static hbp_status pack_all(subset *s, hbp__patterns *patterns)
{
    int64_t packed = 0;
    for (int64_t top = s->classes->count - 1; top >= 0 && *s->work > 0;) {
        if (!s->number[top]) {
            top--;
            continue;
        }
        if (packed++ % 16 == 0)
            HBP__TRY(hbp__tick(s->context, "pack", 0, 0));
        HBP__TRY(pack_one(s, top, patterns));
    }
    hbp__classes rest = *s->classes;
    rest.number = s->number;
    HBP__TRY(
        hbp__histogram_pack(s->context, &rest, (hbp__room){s->capacity, INT64_MAX}, HBP__BEST_FIT, patterns));
    memset(s->number, 0, (size_t)s->classes->count * sizeof *s->number);
    return HBP_OK;
}

hbp_status hbp__subset_fill(hbp_context *context, const hbp__classes *classes, int64_t capacity,
                            int64_t *number, int64_t *work, hbp__patterns *patterns)
{
    int64_t mark = hbp__scratch_mark(context);
    subset s = {.context = context, .classes = classes, .capacity = capacity, .number = number, .work = work};
    s.words = capacity / 64 + 1;
    s.stages = hbp__min_i64(classes->count, hbp__max_i64(SCRATCH_WORDS / s.words, 1));
    uint64_t count = (uint64_t)s.stages;
    s.sums = hbp__take(context, count + 1, (uint64_t)s.words * sizeof *s.sums);
    s.stage = hbp__take(context, count, sizeof *s.stage);
    s.run = hbp__take(context, count + 1, sizeof *s.run);
    HBP__TRY(hbp__scratch_check(context, "subset sums"));
    HBP__TRY(pack_all(&s, patterns));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
