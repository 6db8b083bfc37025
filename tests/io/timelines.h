/* Drawn timelines, and comparing them. */
#ifndef HBP_TESTS_IO_TIMELINES_H
#define HBP_TESTS_IO_TIMELINES_H

#include "base/rng.h"
#include "data/plan/timeline.h"
#include "failing.h"

/* `count` rows on up to 9 ranks; bits 0..3 of the seed say which of the columns that may be unknown are. */
static inline hbp_timeline *drawn_timeline(hbp_context *context, uint64_t seed, int64_t count)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    int32_t *small = malloc((size_t)count * 4 * sizeof *small), ranks = 1 + hbp__rng_below(&rng, 9);
    int64_t *large = malloc((size_t)count * 8 * sizeof *large);
    ck_assert(small && large);
    hbp_timeline_columns c = {.struct_size = sizeof c, .ranks = ranks, .count = count};
    int32_t *micro_batch = small, *first = small + count, *sp = small + 2 * count;
    int32_t *recompute = small + 3 * count;
    int64_t *step = large, *samples = large + count, *tokens = large + 2 * count,
            *squares = large + 3 * count;
    int64_t *start = large + 4 * count, *time = large + 5 * count, *wait = large + 6 * count;
    int64_t *bytes = large + 7 * count;
    for (int64_t i = 0; i < count; i++) {
        step[i] = (int64_t)(hbp__rng_next(&rng) >> (1 + seed % 60));
        micro_batch[i] = (int32_t)hbp__rng_below(&rng, 9);
        sp[i] = 1 + (int32_t)hbp__rng_below(&rng, (uint64_t)ranks);
        first[i] = (int32_t)hbp__rng_below(&rng, (uint64_t)(ranks - sp[i] + 1));
        recompute[i] = (int32_t)hbp__rng_below(&rng, 40);
        samples[i] = hbp__rng_below(&rng, 3);
        tokens[i] = samples[i] + hbp__rng_below(&rng, 100000);
        squares[i] = samples[i] + (tokens[i] * tokens[i] - samples[i]) / (1 + hbp__rng_below(&rng, 9));
        start[i] = (int64_t)(hbp__rng_next(&rng) >> 2);
        time[i] = 1 + (int64_t)(hbp__rng_next(&rng) >> (2 + seed % 60));
        wait[i] = time[i] / (1 + hbp__rng_below(&rng, 4));
        bytes[i] = 1 + (int64_t)(hbp__rng_next(&rng) >> 20);
        if (!(seed & 1) && tokens[i] && !squares[i])
            squares[i] = 1; /* not told apart from a pack of one sample */
    }
    c.step = step, c.micro_batch = micro_batch, c.first_rank = first, c.sp = sp, c.recompute = recompute;
    c.tokens = tokens, c.sum_squares = squares, c.time_ns = time;
    c.samples = seed & 1 ? samples : NULL;
    c.start_ns = seed & 2 ? start : NULL;
    c.communication_ns = seed & 4 ? wait : NULL;
    c.peak_bytes = seed & 8 ? bytes : NULL;
    c.device = seed % 3 ? "NVIDIA H100, 80 GB; HBM3 \xc3\xa9" : NULL;
    c.date = seed % 5 ? "2026-11-22" : NULL;
    hbp_timeline *timeline = NULL;
    OK(context, hbp_timeline_create(context, &c, &timeline));
    free(small);
    free(large);
    return timeline;
}

static inline void expect_same_timeline(const hbp_timeline *a, const hbp_timeline *b)
{
    ck_assert_int_eq(a->ranks, b->ranks);
    ck_assert_int_eq(a->count, b->count);
    ck_assert_str_eq(a->device, b->device);
    ck_assert_str_eq(a->date, b->date);
#define SAME(name, type, needed)                                                                             \
    ck_assert_int_eq(a->name == NULL, b->name == NULL);                                                      \
    ck_assert(!a->name || memcmp(a->name, b->name, (size_t)a->count * sizeof(type)) == 0);
    HBP__TIMELINE_COLUMNS(SAME)
#undef SAME
}

#endif
