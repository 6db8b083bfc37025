#include "solve/packing/packer.h"

#include "failing.h"
#include "pack_oracle.h"

START_TEST(packs_random_mixes)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(41, 0, 0);
    int64_t fits = 0;
    for (int trial = 0; trial < 500; trial++) {
        oracle_mix mix;
        int64_t capacity = 50 + hbp__rng_below(&rng, 800), size = 0, items = 0;
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 100), 1 + hbp__rng_below(&rng, 20), capacity, 20);
        for (int64_t c = 0; c < mix.classes.count; c++) {
            size += mix.size[c] * mix.number[c];
            items += mix.number[c];
            mix.weight[c] = 1 + hbp__rng_below(&rng, 3);
        }
        mix.classes.weight = trial % 4 ? NULL : mix.weight;
        hbp__room room = {capacity, trial % 3 ? 3 + hbp__rng_below(&rng, 30) : INT64_MAX};
        int64_t packs = size / capacity + 1 + hbp__rng_below(&rng, (uint64_t)(1 + size / capacity / 4));
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        OK(context, hbp__level_pack(context, &mix.classes, room, packs, trial % 2 ? 16 : 0, &patterns));
        OK(context, hbp__patterns_check(context, &patterns, &mix.classes, room));
        ck_assert_int_le(patterns.packs, items);
        for (int64_t p = 0; p < patterns.count; p++)
            ck_assert_int_lt(patterns.offsets[p], patterns.offsets[p + 1]);
        fits += patterns.packs <= packs;
        hbp__patterns_close(&patterns);
    }
    ck_assert_int_gt(fits, 100);
    hbp_context_free(context);
}
END_TEST

START_TEST(folds_long_onto_short)
{
    /* Two items a pack: the longest with the shortest, which best fit decreasing does not find. */
    hbp_context *context = test_context();
    int64_t size[] = {1, 2, 3, 7, 8, 9}, number[] = {1, 1, 1, 1, 1, 1};
    hbp__classes classes = {6, size, number, NULL};
    for (int64_t last = 0; last <= 16; last += 16) {
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        OK(context, hbp__level_pack(context, &classes, (hbp__room){10, 2}, 3, last, &patterns));
        ck_assert_int_eq(patterns.packs, 3);
        for (int64_t p = 0; p < patterns.count; p++) {
            const hbp__run *run = patterns.run + patterns.offsets[p];
            ck_assert_int_eq(patterns.offsets[p + 1] - patterns.offsets[p], 2);
            ck_assert_int_eq(size[run[0].class_index] + size[run[1].class_index], 10);
        }
        hbp__patterns_close(&patterns);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(leaves_no_pack_empty)
{
    hbp_context *context = test_context();
    int64_t size[] = {1, 100}, number[] = {5, 40};
    hbp__classes classes = {2, size, number, NULL};
    for (int64_t last = 0; last <= 16; last += 16) {
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        OK(context, hbp__level_pack(context, &classes, (hbp__room){100, 10}, 42, last, &patterns));
        /* Best fit closes one pack with what worst fit spreads over two. */
        ck_assert_int_eq(patterns.packs, last ? 41 : 42);
        hbp__patterns_clear(&patterns);
        OK(context, hbp__level_pack(context, &classes, (hbp__room){100, 10}, 1000, last, &patterns));
        ck_assert_int_eq(patterns.packs, 45);
        hbp__patterns_close(&patterns);
    }
    hbp_context_free(context);
}
END_TEST

static hbp_status pack_once(hbp_context *context, void *user)
{
    const oracle_mix *mix = user;
    hbp__patterns patterns;
    hbp__patterns_open(context, &patterns);
    hbp_status status = hbp__level_pack(context, &mix->classes, (hbp__room){1000, 10}, 90, 16, &patterns);
    hbp__patterns_close(&patterns);
    return status;
}

START_TEST(survives_failing_allocations)
{
    oracle_mix mix;
    hbp__rng rng = hbp__rng_make(42, 0, 0);
    oracle_draw(&mix, &rng, 40, 1, 900, 9);
    failing_sweep(pack_once, &mix);
}
END_TEST

TEST_MAIN("level_pack", packs_random_mixes, folds_long_onto_short, leaves_no_pack_empty,
          survives_failing_allocations)
