#include "solve/vector/vector_run.h"

#include "failing.h"
#include "vector_oracle.h"

/* Places all items of the mix in their order; returns the packs. */
static int64_t place_all(hbp_context *context, const vector_mix *mix, hbp__place_rule rule, int64_t packs,
                         uint32_t *pack_of, int64_t *left, uint32_t *order)
{
    hbp__vector_grid grid;
    OK(context, hbp__vector_grid_open(context, &mix->vectors, &grid));
    for (int64_t p = 0; p < packs; p++)
        OK(context, hbp__vector_grid_add(&grid, (hbp__vector_load){0, 0, 0}));
    for (int64_t i = 0; i < mix->vectors.count; i++)
        order[i] = (uint32_t)i;
    OK(context, hbp__vector_place(&grid, rule, order, mix->vectors.count, pack_of, left));
    hbp__vector_load load[ORACLE_ITEMS] = {{0, 0, 0}};
    for (int64_t i = 0; i < mix->vectors.count; i++) {
        int waits = 0;
        for (int64_t k = 0; k < *left; k++)
            waits |= order[k] == i;
        if (!waits)
            vector_put(&mix->vectors, &load[pack_of[i]], i, 1);
    }
    for (int64_t p = 0; p < grid.packs; p++) { /* the loads that the grid keeps are what the packs hold */
        ck_assert_int_eq(load[p].a, grid.load[p].a);
        ck_assert_int_eq(load[p].b, grid.load[p].b);
        ck_assert_int_eq(load[p].weight, grid.load[p].weight);
        ck_assert_int_le(load[p].a, mix->vectors.capacity_a);
        ck_assert_int_le(load[p].b, mix->vectors.capacity_b);
        ck_assert_int_le(load[p].weight, mix->vectors.max_weight);
    }
    packs = grid.packs;
    hbp__vector_grid_close(&grid);
    return packs;
}

START_TEST(places_everything_within_the_capacities)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    int64_t tight = 0, first = 0;
    for (int trial = 0; trial < 2000; trial++) {
        vector_mix mix;
        uint32_t pack_of[ORACLE_ITEMS], order[ORACLE_ITEMS];
        int64_t left;
        vector_draw(&mix, &rng, 1 + hbp__rng_below(&rng, ORACLE_ITEMS), trial % 210);
        int64_t packs = place_all(context, &mix, HBP__PLACE_TIGHT, 0, pack_of, &left, order);
        ck_assert_int_eq(left, 0);
        vector_check(&mix.vectors, &(hbp__vector_packing){packs, pack_of});
        tight += packs;
        first += vector_fit(&mix.vectors, 0, 0);
    }
    ck_assert_int_lt(tight, first + first / 100); /* best fit on the grid is no worse than first fit */
    hbp_context_free(context);
}
END_TEST

START_TEST(spreads_over_the_packs_that_are_there)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(14, 0, 0);
    int64_t lefts = 0;
    for (int trial = 0; trial < 2000; trial++) {
        vector_mix mix;
        uint32_t pack_of[ORACLE_ITEMS], order[ORACLE_ITEMS];
        int64_t left, packs = 1 + hbp__rng_below(&rng, 20);
        vector_draw(&mix, &rng, 1 + hbp__rng_below(&rng, ORACLE_ITEMS), trial % 210);
        ck_assert_int_eq(place_all(context, &mix, HBP__PLACE_BALANCED, packs, pack_of, &left, order), packs);
        for (int64_t k = 1; k < left; k++)
            ck_assert_int_lt(order[k - 1], order[k]); /* what waits keeps its order */
        lefts += left > 0;
    }
    ck_assert_int_gt(lefts, 100);
    ck_assert_int_lt(lefts, 1900);
    hbp_context_free(context);
}
END_TEST

START_TEST(chooses_by_its_rule)
{
    hbp_context *context = test_context();
    uint32_t a[] = {5, 5, 1, 4}, b[] = {50, 10, 60, 40}, pack_of[4], order[4];
    vector_mix mix;
    memset(&mix, 0, sizeof mix);
    memcpy(mix.a, a, sizeof a);
    memcpy(mix.b, b, sizeof b);
    mix.vectors = (hbp__vectors){4, mix.a, mix.b, NULL, 10, 100, INT64_MAX};
    int64_t left;
    /* Tight: the second item beside the first; the third finds 40 tokens left there and opens a pack; the
     * fourth fits that pack alone. */
    ck_assert_int_eq(place_all(context, &mix, HBP__PLACE_TIGHT, 0, pack_of, &left, order), 2);
    ck_assert_int_eq(pack_of[1], pack_of[0]);
    ck_assert_int_ne(pack_of[2], pack_of[0]);
    ck_assert_int_eq(pack_of[3], pack_of[2]);
    /* Even: the second goes to the empty pack, the third to the one with more tokens left. */
    ck_assert_int_eq(place_all(context, &mix, HBP__PLACE_BALANCED, 2, pack_of, &left, order), 2);
    ck_assert_int_eq(left, 0);
    ck_assert_int_ne(pack_of[1], pack_of[0]);
    ck_assert_int_eq(pack_of[2], pack_of[1]);
    ck_assert_int_eq(pack_of[3], pack_of[0]);
    hbp_context_free(context);
}
END_TEST

START_TEST(takes_items_of_a_whole_pack)
{
    hbp_context *context = test_context();
    uint32_t a[] = {10, 10}, b[] = {100, 1}, pack_of[2], order[] = {0, 1};
    hbp__vectors vectors = {2, a, b, NULL, 10, 100, INT64_MAX};
    hbp__vector_grid grid;
    int64_t left;
    OK(context, hbp__vector_grid_open(context, &vectors, &grid));
    OK(context, hbp__vector_grid_add(&grid, (hbp__vector_load){0, 0, 0}));
    OK(context, hbp__vector_place(&grid, HBP__PLACE_TIGHT, order, 2, pack_of, &left));
    ck_assert_int_eq(pack_of[0], 0);
    ck_assert_int_eq(pack_of[1], 1);
    ck_assert_int_eq(grid.packs, 2);
    hbp__vector_grid_close(&grid);
    hbp_context_free(context);
}
END_TEST

static hbp_status place_some(hbp_context *context, void *user)
{
    const vector_mix *mix = user;
    uint32_t pack_of[ORACLE_ITEMS], order[ORACLE_ITEMS];
    for (int64_t i = 0; i < mix->vectors.count; i++)
        order[i] = (uint32_t)i;
    hbp__vector_grid grid;
    int64_t left;
    hbp_status status = hbp__vector_grid_open(context, &mix->vectors, &grid);
    if (status == HBP_OK)
        status = hbp__vector_place(&grid, HBP__PLACE_TIGHT, order, mix->vectors.count, pack_of, &left);
    hbp__vector_grid_close(&grid);
    return status;
}

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    hbp__rng rng = hbp__rng_make(15, 0, 0);
    vector_mix mix;
    vector_draw(&mix, &rng, 60, 0);
    failing_sweep(place_some, &mix);
    ck_assert_int_gt(cancel_sweep(place_some, &mix), 0);
}
END_TEST

TEST_MAIN("vector_grid", places_everything_within_the_capacities, spreads_over_the_packs_that_are_there,
          chooses_by_its_rule, takes_items_of_a_whole_pack,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
