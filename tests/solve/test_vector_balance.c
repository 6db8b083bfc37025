#include "solve/vector/vectors.h"

#include "failing.h"
#include "vector_oracle.h"

typedef struct unevenness {
    int64_t over;   /* packs past a capacity */
    double squares; /* of the distances from the means, as shares of the capacities */
} unevenness;

static unevenness measure(const hbp__vectors *v, const hbp__vector_packing *packing)
{
    unevenness u = {0, 0};
    double mean_a = 0, mean_b = 0, packs = (double)packing->packs;
    hbp__vector_load *load = calloc((size_t)packing->packs, sizeof *load);
    for (int64_t i = 0; i < v->count; i++) {
        vector_put(v, &load[packing->pack_of[i]], i, 1);
        mean_a += v->a[i] / packs;
        mean_b += v->b[i] / packs;
    }
    for (int64_t p = 0; p < packing->packs; p++) {
        double a = ((double)load[p].a - mean_a) / (double)v->capacity_a;
        double b = ((double)load[p].b - mean_b) / (double)v->capacity_b;
        u.over += load[p].a > v->capacity_a || load[p].b > v->capacity_b;
        u.squares += a * a + b * b;
        ck_assert_int_le(load[p].weight, v->max_weight);
    }
    free(load);
    return u;
}

START_TEST(never_makes_packs_less_alike)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(16, 0, 0);
    double before = 0, after = 0;
    for (int trial = 0; trial < 2000; trial++) {
        vector_mix mix;
        uint32_t pack_of[ORACLE_ITEMS];
        int64_t packs = 1 + hbp__rng_below(&rng, 12), over;
        vector_draw(&mix, &rng, packs + hbp__rng_below(&rng, (uint64_t)(ORACLE_ITEMS - packs)), trial % 6);
        for (int64_t i = 0; i < mix.vectors.count; i++)
            pack_of[i] = i < packs ? (uint32_t)i : hbp__rng_below(&rng, (uint64_t)packs);
        hbp__vector_packing packing = {packs, pack_of};
        unevenness was = measure(&mix.vectors, &packing);
        OK(context, hbp__vector_balance(context, &mix.vectors, &packing, 20, &over));
        unevenness is = measure(&mix.vectors, &packing);
        ck_assert_int_eq(packing.packs, packs);
        ck_assert_int_eq(over, is.over);
        if (!was.over) {
            ck_assert_int_eq(over, 0);
            ck_assert(is.squares < was.squares + 1e-4);
        }
        before += was.squares;
        after += is.squares;
    }
    ck_assert(after < before / 4);
    hbp_context_free(context);
}
END_TEST

/* Packs that an item fills to the last unit of a large capacity stay as they are: a unit too many is nothing
 * beside how unlike the packs are. */
START_TEST(capacities_are_kept_to_the_unit)
{
    enum { ITEMS = 12 };
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        const uint32_t most = 1000 + (uint32_t)hbp__rng_below(&rng, 10000000);
        uint32_t a[ITEMS], b[ITEMS], pack_of[ITEMS];
        int64_t packs = 2 + hbp__rng_below(&rng, 3), over;
        for (int i = 0; i < ITEMS; i++) { /* all fit one pack in b */
            pack_of[i] = i < packs ? (uint32_t)i : 1 + (uint32_t)hbp__rng_below(&rng, (uint64_t)packs - 1);
            a[i] = i ? (uint32_t)hbp__rng_below(&rng, 2) : most;
            b[i] = (uint32_t)hbp__rng_below(&rng, most / ITEMS);
        }
        hbp__vectors vectors = {ITEMS, a, b, NULL, most, most, INT64_MAX};
        hbp__vector_packing packing = {packs, pack_of};
        ck_assert_int_eq(measure(&vectors, &packing).over, 0);
        OK(context, hbp__vector_balance(context, &vectors, &packing, 20, &over));
        ck_assert_int_eq(over, 0);
        ck_assert_int_eq(measure(&vectors, &packing).over, 0);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(exchanges_and_moves)
{
    hbp_context *context = test_context();
    /* {9, 8} and {1, 2} become {9, 1} and {8, 2} or the like; both sizes agree. */
    uint32_t a[] = {9, 8, 1, 2}, b[] = {90, 80, 10, 20}, pack_of[] = {0, 0, 1, 1};
    hbp__vectors vectors = {4, a, b, NULL, 10, 100, INT64_MAX};
    hbp__vector_packing packing = {2, pack_of};
    int64_t over;
    OK(context, hbp__vector_balance(context, &vectors, &packing, 8, &over));
    ck_assert_int_eq(over, 0);
    ck_assert_int_ne(pack_of[0], pack_of[1]);
    ck_assert_int_eq(measure(&vectors, &packing).over, 0);
    /* A move: one of four moves to the pack that holds none of them. */
    uint32_t c[] = {3, 3, 3, 3}, d[] = {1, 1, 1, 1}, moved[] = {0, 0, 0, 0};
    vectors = (hbp__vectors){4, c, d, NULL, 10, 100, INT64_MAX};
    packing = (hbp__vector_packing){2, moved};
    OK(context, hbp__vector_balance(context, &vectors, &packing, 8, &over));
    ck_assert_int_eq(over, 0);
    ck_assert_int_eq(moved[0] + moved[1] + moved[2] + moved[3], 2);
    /* Where a move is barred by the cap on weight, only exchanges are left. */
    uint32_t e[] = {5, 5, 1, 1}, full[] = {0, 0, 1, 1};
    vectors = (hbp__vectors){4, e, d, NULL, 10, 100, 2};
    packing = (hbp__vector_packing){2, full};
    OK(context, hbp__vector_balance(context, &vectors, &packing, 8, &over));
    ck_assert_int_ne(full[0], full[1]);
    ck_assert_int_ne(full[2], full[3]);
    packing.packs = 0;
    vectors.count = 0;
    OK(context, hbp__vector_balance(context, &vectors, &packing, 8, &over));
    hbp_context_free(context);
}
END_TEST

/* Packs of many items, more than a round looks at. */
START_TEST(looks_at_all_items_in_time)
{
    enum { PACKS = 16, ITEMS = PACKS * 100 };
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(17, 0, 0);
    static uint32_t a[ITEMS], b[ITEMS], pack_of[ITEMS];
    for (int64_t i = 0; i < ITEMS; i++) {
        a[i] = hbp__rng_below(&rng, 50);
        b[i] = 1 + hbp__rng_below(&rng, 1000);
        pack_of[i] = (uint32_t)(i % PACKS);
    }
    hbp__vectors vectors = {ITEMS, a, b, NULL, 3000, 60000, INT64_MAX};
    hbp__vector_packing packing = {PACKS, pack_of};
    int64_t over;
    double before = measure(&vectors, &packing).squares;
    OK(context, hbp__vector_balance(context, &vectors, &packing, 40, &over));
    ck_assert_int_eq(over, 0);
    ck_assert(measure(&vectors, &packing).squares < before / 100);
    hbp_context_free(context);
}
END_TEST

/* Of a pack of 22 items a round looks at twelve, and the next one at the last twelve. Only the last item of
 * the first pack makes the two more alike: the other large one is all that the pack has of the second size.
 */
START_TEST(the_next_round_looks_at_the_last_items)
{
    enum { ITEMS = 22 };
    hbp_context *context = test_context();
    uint32_t a[2 * ITEMS] = {30}, b[2 * ITEMS] = {100}, pack_of[2 * ITEMS] = {0};
    for (int i = 0; i < ITEMS; i++) {
        b[ITEMS + i] = 4;
        pack_of[ITEMS + i] = 1;
    }
    a[ITEMS - 1] = 8;
    b[ITEMS - 1] = 4;
    hbp__vectors vectors = {2 * ITEMS, a, b, NULL, 100, 250, ITEMS};
    hbp__vector_packing packing = {2, pack_of};
    int64_t over;
    OK(context, hbp__vector_balance(context, &vectors, &packing, 8, &over));
    ck_assert_int_eq(pack_of[0], 0);
    ck_assert_int_eq(pack_of[ITEMS - 1], 1);
    hbp_context_free(context);
}
END_TEST

static hbp_status even_some(hbp_context *context, void *user)
{
    const vector_mix *mix = user;
    uint32_t pack_of[ORACLE_ITEMS];
    for (int64_t i = 0; i < mix->vectors.count; i++)
        pack_of[i] = (uint32_t)(i % 8);
    hbp__vector_packing packing = {8, pack_of};
    int64_t over;
    return hbp__vector_balance(context, &mix->vectors, &packing, 4, &over);
}

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    hbp__rng rng = hbp__rng_make(18, 0, 0);
    vector_mix mix;
    vector_draw(&mix, &rng, 60, 0);
    failing_sweep(even_some, &mix);
    ck_assert_int_gt(cancel_sweep(even_some, &mix), 0);
}
END_TEST

TEST_MAIN("vector_balance", never_makes_packs_less_alike, capacities_are_kept_to_the_unit,
          exchanges_and_moves, looks_at_all_items_in_time, the_next_round_looks_at_the_last_items,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
