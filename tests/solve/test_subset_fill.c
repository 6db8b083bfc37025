#include "solve/packing/tight_parts.h"

#include "pack_oracle.h"

START_TEST(packs_everything_and_fills_exactly)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(16, 0, 0);
    for (int trial = 0; trial < 300; trial++) {
        oracle_mix mix;
        int64_t capacity = 40 + hbp__rng_below(&rng, 500), work = trial % 5 ? INT64_C(1) << 30 : 400;
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 60), 1, capacity, 8);
        int64_t number[ORACLE_CLASSES];
        memcpy(number, mix.number, sizeof number);
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        OK(context, hbp__subset_fill(context, &mix.classes, capacity, number, &work, &patterns));
        OK(context, hbp__patterns_check(context, &patterns, &mix.classes, (hbp__room){capacity, INT64_MAX}));
        for (int64_t c = 0; c < mix.classes.count; c++)
            ck_assert_int_eq(number[c], 0);
        hbp__patterns_close(&patterns);
    }
    hbp_context_free(context);
}
END_TEST

/* The largest sum up to `room` of the items from `item` on, by trying all subsets. */
static int64_t best_sum(const int64_t *size, int64_t items, int64_t item, int64_t room)
{
    if (item == items)
        return 0;
    int64_t best = best_sum(size, items, item + 1, room);
    if (size[item] <= room) {
        int64_t with = size[item] + best_sum(size, items, item + 1, room - size[item]);
        best = with > best ? with : best;
    }
    return best;
}

START_TEST(leaves_the_least_room_beside_the_largest)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(17, 0, 0);
    for (int trial = 0; trial < 1000; trial++) {
        oracle_mix mix;
        int64_t capacity = 40 + hbp__rng_below(&rng, 200), work = INT64_C(1) << 30;
        oracle_draw(&mix, &rng, 6, 3, capacity, 2);
        int64_t size[16], items = 0, number[ORACLE_CLASSES];
        memcpy(number, mix.number, sizeof number);
        for (int64_t c = mix.classes.count - 1; c >= 0; c--)
            for (int64_t i = 0; i < number[c]; i++)
                size[items++] = mix.size[c];
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        OK(context, hbp__subset_fill(context, &mix.classes, capacity, number, &work, &patterns));
        int64_t sum = 0;
        for (int64_t k = patterns.offsets[0]; k < patterns.offsets[1]; k++)
            sum += patterns.run[k].number * mix.size[patterns.run[k].class_index];
        ck_assert_int_eq(patterns.run[0].class_index, mix.classes.count - 1);
        ck_assert_int_eq(sum, size[0] + best_sum(size, items, 1, capacity - size[0]));
        hbp__patterns_close(&patterns);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("subset_fill", packs_everything_and_fills_exactly, leaves_the_least_room_beside_the_largest)
