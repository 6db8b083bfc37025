#include "solve/packing/packer.h"

#include "pack_oracle.h"

START_TEST(fills_gaps_without_opening_packs)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int trial = 0; trial < 200; trial++) {
        oracle_mix mix;
        oracle_draw(&mix, &rng, 20, 1, 100, 20);
        hbp__room room = {100, INT64_MAX};
        int64_t middle = mix.classes.count / 2, packs, total = 0;
        hbp__patterns patterns;
        hbp__packer packer;
        hbp__patterns_open(context, &patterns);
        hbp__packer_open(context, HBP__BEST_FIT, room, &packer);
        for (int64_t c = mix.classes.count - 1; c >= middle; c--)
            OK(context, hbp__packer_place(&packer, &mix.classes, c, mix.number[c], NULL));
        OK(context, hbp__packer_write(&packer, &patterns));
        hbp__packer_close(&packer);
        packs = patterns.packs;

        hbp__packer_open(context, HBP__BEST_FIT, room, &packer);
        for (int64_t p = 0; p < patterns.count; p++)
            OK(context,
               hbp__packer_take(&packer, &mix.classes, patterns.times[p], patterns.run + patterns.offsets[p],
                                patterns.offsets[p + 1] - patterns.offsets[p]));
        int64_t smallest = INT64_MAX;
        for (int64_t c = middle - 1; c >= 0; c--) {
            int64_t left = -1;
            OK(context, hbp__packer_place(&packer, &mix.classes, c, mix.number[c], &left));
            ck_assert_int_ge(left, 0);
            ck_assert_int_le(left, mix.number[c]);
            mix.number[c] -= left;
            if (left)
                smallest = mix.size[c];
        }
        hbp__patterns_clear(&patterns);
        OK(context, hbp__packer_write(&packer, &patterns));
        hbp__packer_close(&packer);
        OK(context, hbp__patterns_check(context, &patterns, &mix.classes, room));
        ck_assert_int_eq(patterns.packs, packs);
        /* What stayed out fits in no pack. */
        for (int64_t p = 0; p < patterns.count; p++) {
            total = 0;
            for (int64_t k = patterns.offsets[p]; k < patterns.offsets[p + 1]; k++)
                total += patterns.run[k].number * mix.size[patterns.run[k].class_index];
            ck_assert_int_lt(100 - total, smallest);
        }
        hbp__patterns_close(&patterns);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("packer", fills_gaps_without_opening_packs)
