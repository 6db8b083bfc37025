#include "pack/vision/level_fill.h"

#include "base/checked.h"
#include "failing.h"
#include "keep.h"

enum { ITEMS = 120 };

typedef struct drawn {
    uint32_t a[ITEMS], b[ITEMS], weight[ITEMS], pack_of[ITEMS];
    hbp__vectors items;
    hbp__vector_levels levels;
    hbp__level_packing packing;
} drawn;

static void draw(drawn *d, uint64_t seed, int64_t count, int64_t levels)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    d->levels.count = levels;
    for (int64_t g = 0, tokens = 64; g < levels; g++, tokens *= 4)
        d->levels.level[g] =
            (hbp__vector_level){.largest = tokens - hbp__rng_below(&rng, (uint64_t)tokens / 2),
                                .tokens = tokens,
                                .vision = hbp__rng_below(&rng, 1 + (uint64_t)tokens / 16),
                                .width = 1 + hbp__rng_below(&rng, 4)};
    hbp__vector_level *last = &d->levels.level[levels - 1];
    last->largest = last->tokens;
    last->vision = 1 + last->tokens / 16;
    for (int64_t i = 0; i < count; i++) {
        uint64_t most = hbp__rng_below(&rng, 4) ? 40 : (uint64_t)last->tokens;
        d->b[i] = 1 + hbp__rng_below(&rng, hbp__min_i64((int64_t)most, last->tokens));
        d->a[i] = hbp__rng_below(&rng, 2) ? hbp__rng_below(&rng, (uint64_t)last->vision + 1) : 0;
        d->weight[i] = 1 + hbp__rng_below(&rng, 3);
    }
    int has_weight = seed % 3 == 1;
    d->items = (hbp__vectors){.count = count,
                              .a = d->a,
                              .b = d->b,
                              .weight = has_weight ? d->weight : NULL,
                              .max_weight = seed % 2 ? 8 : INT64_MAX};
    d->packing.pack_of = d->pack_of;
}

/* The first level whose packs are meant for an item. */
static int64_t level_of(const drawn *d, int64_t i)
{
    int64_t g = 0;
    while (g + 1 < d->levels.count &&
           (d->b[i] > d->levels.level[g].largest || d->a[i] > d->levels.level[g].vision))
        g++;
    return g;
}

static int64_t level_of_pack(const drawn *d, int64_t pack)
{
    int64_t g = d->levels.count - 1;
    for (int64_t end = d->packing.packs[g]; pack >= end; end += d->packing.packs[g])
        g--;
    return g;
}

/* Every item is in a pack of its level or one above, which hold it; packs are numbered without a gap; those
 * past what the level's own items take are places of its last micro-batch. */
static void check(const drawn *d)
{
    int64_t packs = 0, a[ITEMS] = {0}, b[ITEMS] = {0}, weight[ITEMS] = {0}, own[ITEMS] = {0};
    for (int64_t g = 0; g < d->levels.count; g++)
        packs += d->packing.packs[g];
    for (int64_t i = 0; i < d->items.count; i++) {
        int64_t p = d->pack_of[i];
        ck_assert_int_lt(p, packs);
        ck_assert_int_ge(level_of_pack(d, p), level_of(d, i));
        own[p] += level_of_pack(d, p) == level_of(d, i);
        a[p] += d->a[i];
        b[p] += d->b[i];
        weight[p] += hbp__vector_weight(&d->items, i);
    }
    for (int64_t p = 0; p < packs; p++) {
        const hbp__vector_level *level = &d->levels.level[level_of_pack(d, p)];
        ck_assert_int_gt(weight[p], 0);
        ck_assert_int_le(a[p], level->vision);
        ck_assert_int_le(b[p], level->tokens);
        ck_assert_int_le(weight[p], d->items.max_weight);
    }
    for (int64_t g = d->levels.count - 1, p = 0; g >= 0; g--) {
        int64_t with_own = 0, end = p + d->packing.packs[g];
        for (; p < end; p++)
            with_own += own[p] > 0;
        ck_assert_int_le(d->packing.bound[g], with_own);
        ck_assert_int_le(d->packing.packs[g], hbp__round_up(with_own, d->levels.level[g].width));
    }
}

START_TEST_IN_CONTEXT(every_item_is_in_a_pack_that_is_for_it)
{
    int64_t above = 0, levels_used = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        drawn d;
        hbp__rng rng = hbp__rng_make(seed, 1, 0);
        draw(&d, seed, 1 + (int64_t)seed % ITEMS, 1 + (int64_t)seed % 4);
        OK(context, hbp__level_fill(context, &d.items, &d.levels, 1 + (int32_t)seed % 3, &rng, &d.packing));
        check(&d);
        for (int64_t i = 0; i < d.items.count; i++)
            above += level_of_pack(&d, d.pack_of[i]) > level_of(&d, i);
        for (int64_t g = 0; g < d.levels.count; g++)
            levels_used += d.packing.packs[g] > 0;
    }
    ck_assert_int_gt(above, 5000);
    ck_assert_int_gt(levels_used, 600);
}
END_TEST

/* What no gap takes: an item stays below only where no pack above holds it beside what is there. */
START_TEST_IN_CONTEXT(gaps_are_filled_before_packs_are_opened)
{
    int64_t missed = 0, below = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        drawn d;
        hbp__rng rng = hbp__rng_make(seed, 1, 0);
        draw(&d, 6 * seed, ITEMS, 2);
        OK(context, hbp__level_fill(context, &d.items, &d.levels, 1, &rng, &d.packing));
        const hbp__vector_level *top = &d.levels.level[1];
        int64_t a[ITEMS] = {0}, b[ITEMS] = {0};
        for (int64_t i = 0; i < ITEMS; i++)
            if (level_of_pack(&d, d.pack_of[i]) == 1) {
                a[d.pack_of[i]] += d.a[i];
                b[d.pack_of[i]] += d.b[i];
            }
        for (int64_t i = 0; i < ITEMS; i++) {
            if (level_of_pack(&d, d.pack_of[i]) == 1)
                continue;
            int fits = 0;
            for (int64_t p = 0; p < d.packing.packs[1]; p++)
                fits |= a[p] + d.a[i] <= top->vision && b[p] + d.b[i] <= top->tokens;
            missed += fits; /* the grid looks at few packs of a cell */
            below++;
        }
    }
    ck_assert_int_gt(below, 100);
    ck_assert_int_le(missed * 20, below);
}
END_TEST

/* Two levels of items that have room for nothing else: by hand. */
START_TEST_IN_CONTEXT(places_of_the_last_micro_batch_are_taken)
{
    drawn d = {.a = {0}, .b = {100, 100, 100, 10, 10, 10, 10}};
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    d.items = (hbp__vectors){.count = 7, .a = d.a, .b = d.b, .max_weight = INT64_MAX};
    d.levels = (hbp__vector_levels){2, {{10, 10, 1, 4}, {100, 100, 9, 4}}};
    d.packing.pack_of = d.pack_of;
    OK(context, hbp__level_fill(context, &d.items, &d.levels, 1, &rng, &d.packing));
    ck_assert_int_eq(d.packing.packs[1], 4);
    ck_assert_int_eq(d.packing.bound[1], 3);
    ck_assert_int_eq(d.packing.packs[0], 0);
    d.levels.level[1].width = 3;
    OK(context, hbp__level_fill(context, &d.items, &d.levels, 1, &rng, &d.packing));
    ck_assert_int_eq(d.packing.packs[1], 3);
    ck_assert_int_eq(d.packing.packs[0], 4);
    /* An item of units that its own level has no room for is of the next. */
    d.a[3] = 2;
    d.levels.level[1].width = 4;
    OK(context, hbp__level_fill(context, &d.items, &d.levels, 1, &rng, &d.packing));
    ck_assert_int_eq(d.packing.packs[1], 4);
    ck_assert_int_eq(level_of_pack(&d, d.pack_of[3]), 1);
}
END_TEST

static hbp_status once(hbp_context *context, void *user)
{
    drawn *d = user;
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    return hbp__level_fill(context, &d->items, &d->levels, 1, &rng, &d->packing);
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    drawn d;
    draw(&d, 7, ITEMS, 3);
    failing_sweep(once, &d);
    (void)context;
}
END_TEST

TEST_MAIN("level fill", every_item_is_in_a_pack_that_is_for_it, gaps_are_filled_before_packs_are_opened,
          places_of_the_last_micro_batch_are_taken, nothing_is_left_behind)
