#include "solve/packing/tight_parts.h"

#include "failing.h"
#include "pack_oracle.h"

/* Composites fit a pack and are not light, and hold every item once. Returns the items that are light. */
static int64_t check(hbp_context *context, const hbp__glued *glued, const hbp__classes *classes,
                     hbp__room room)
{
    int64_t light = 0;
    hbp__patterns packs, whole;
    hbp__patterns_open(context, &packs);
    hbp__patterns_open(context, &whole);
    OK(context, hbp__patterns_check(context, &glued->parts, classes, room));
    for (int64_t c = 0; c < glued->classes.count; c++) {
        int64_t p = glued->part[c], runs = glued->parts.offsets[p + 1] - glued->parts.offsets[p];
        ck_assert(!c || glued->size[c - 1] <= glued->size[c]);
        ck_assert_int_gt(glued->number[c], 0);
        if (hbp__glue_is_light(glued, room, c)) {
            ck_assert_int_eq(runs, 1);
            light += glued->number[c];
        } else {
            ck_assert_int_ge(glued->size[c] * room.max_weight, glued->weight[c] * room.capacity);
        }
    }
    /* Packs of what is glued are packs of items. */
    OK(context, hbp__histogram_pack(context, &glued->classes, room, HBP__BEST_FIT, &packs));
    OK(context, hbp__glue_write(glued, &packs, &whole));
    ck_assert_int_eq(whole.packs, packs.packs);
    OK(context, hbp__patterns_check(context, &whole, classes, room));
    for (int64_t p = 0; p < whole.count; p++)
        for (int64_t k = whole.offsets[p] + 1; k < whole.offsets[p + 1]; k++)
            ck_assert_int_lt(whole.run[k].class_index, whole.run[k - 1].class_index);
    hbp__patterns_close(&packs);
    hbp__patterns_close(&whole);
    return light;
}

START_TEST(holds_every_item_once)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    int64_t none_light = 0;
    for (int trial = 0; trial < 500; trial++) {
        oracle_mix mix;
        int64_t capacity = 50 + hbp__rng_below(&rng, 2000);
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 300), 1 + hbp__rng_below(&rng, 20), capacity, 30);
        for (int64_t c = 0; c < mix.classes.count; c++)
            mix.weight[c] = 1 + hbp__rng_below(&rng, 3);
        mix.classes.weight = trial % 4 ? NULL : mix.weight;
        hbp__room room = {capacity, 3 + hbp__rng_below(&rng, 30)};
        hbp__glued glued;
        OK(context, hbp__glue_open(context, &mix.classes, room, hbp__rng_below(&rng, 5), &glued));
        none_light += check(context, &glued, &mix.classes, room) == 0;
        hbp__glue_close(&glued);
    }
    ck_assert_int_gt(none_light, 50);
    hbp_context_free(context);
}
END_TEST

START_TEST(glues_what_is_light_and_no_more)
{
    /* Packs of 1000 and at most 10 items: those below 100 are light. One of 110 carries none of 10, one of
     * 300 two, with 20 to spare; 600 is above an eighth of a pack and comes last. */
    hbp_context *context = test_context();
    int64_t size[] = {10, 110, 120, 600}, number[] = {4, 1, 1, 2};
    hbp__classes classes = {4, size, number, NULL};
    hbp__room room = {1000, 10};
    hbp__glued glued;
    OK(context, hbp__glue_open(context, &classes, room, 0, &glued));
    ck_assert_int_eq(check(context, &glued, &classes, room), 0);
    int64_t of[] = {110, 120, 600, 640}, times[] = {1, 1, 1, 1};
    ck_assert_int_eq(glued.classes.count, 4);
    ck_assert_mem_eq(glued.size, of, sizeof of);
    ck_assert_mem_eq(glued.number, times, sizeof times);
    ck_assert_int_eq(glued.weight[3], 5);
    hbp__glue_close(&glued);
    /* One in two stays as it is. */
    OK(context, hbp__glue_open(context, &classes, room, 2, &glued));
    ck_assert_int_eq(check(context, &glued, &classes, room), 2);
    hbp__glue_close(&glued);
    /* Nothing has room for a light one. */
    size[3] = 1000;
    classes = (hbp__classes){2, (int64_t[]){10, 1000}, (int64_t[]){3, 5}, NULL};
    OK(context, hbp__glue_open(context, &classes, room, 0, &glued));
    ck_assert_int_eq(check(context, &glued, &classes, room), 3);
    hbp__glue_close(&glued);
    hbp_context_free(context);
}
END_TEST

static hbp_status glue_once(hbp_context *context, void *user)
{
    const oracle_mix *mix = user;
    hbp__room room = {1000, 10};
    hbp__patterns packs, whole;
    hbp__glued glued;
    hbp__patterns_open(context, &packs);
    hbp__patterns_open(context, &whole);
    hbp_status status = hbp__glue_open(context, &mix->classes, room, 0, &glued);
    if (status >= 0)
        status = hbp__histogram_pack(context, &glued.classes, room, HBP__BEST_FIT, &packs);
    if (status >= 0)
        status = hbp__glue_write(&glued, &packs, &whole);
    hbp__glue_close(&glued);
    hbp__patterns_close(&packs);
    hbp__patterns_close(&whole);
    return status;
}

START_TEST(survives_failing_allocations)
{
    oracle_mix mix;
    hbp__rng rng = hbp__rng_make(32, 0, 0);
    oracle_draw(&mix, &rng, 200, 1, 900, 9);
    failing_sweep(glue_once, &mix);
}
END_TEST

TEST_MAIN("glue", holds_every_item_once, glues_what_is_light_and_no_more, survives_failing_allocations)
