#include "solve/vector/vectors.h"

#include "failing.h"
#include "vector_oracle.h"

/* Packs the mix at this effort, checks the packing; returns the packs. */
static int64_t pack(hbp_context *context, const hbp__vectors *vectors, int32_t effort, uint64_t seed,
                    uint32_t *pack_of, int64_t *bound)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    hbp__vector_packing packing = {0, pack_of};
    OK(context, hbp__vector_pack(context, vectors, effort, &rng, &packing, bound));
    vector_check(vectors, &packing);
    ck_assert_int_le(*bound, packing.packs);
    return packing.packs;
}

START_TEST(finds_the_optimum_of_few_items)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    int64_t met = 0, trials = 6000;
    for (int64_t trial = 0; trial < trials; trial++) {
        vector_mix mix;
        uint32_t pack_of[ORACLE_ITEMS];
        int64_t bound;
        vector_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 9), (int)(trial % 210));
        int64_t packs = pack(context, &mix.vectors, 1, (uint64_t)trial, pack_of, &bound);
        int64_t optimum = vector_optimum(&mix.vectors);
        ck_assert_int_ge(packs, optimum);
        ck_assert_int_le(bound, optimum);
        ck_assert_int_le(packs, vector_fit(&mix.vectors, 0, 1));
        ck_assert_int_le(packs, vector_fit(&mix.vectors, 1, 0));
        met += packs == optimum;
    }
    ck_assert_int_ge(met, trials * 995 / 1000);
    hbp_context_free(context);
}
END_TEST

START_TEST(is_never_worse_than_the_simple_ways)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    int64_t better = 0, efforts[3] = {0, 0, 0};
    const int trials = TEST_FEW(500, 100);
    for (int trial = 0; trial < trials; trial++) {
        vector_mix mix;
        uint32_t pack_of[ORACLE_ITEMS];
        int64_t bound, packs[3];
        vector_draw(&mix, &rng, 20 + hbp__rng_below(&rng, ORACLE_ITEMS - 19), trial % 210);
        for (int32_t k = 0; k < 3; k++) {
            packs[k] = pack(context, &mix.vectors, 1 + 2 * k, 3, pack_of, &bound);
            efforts[k] += packs[k];
        }
        int64_t down = vector_fit(&mix.vectors, 0, 1);
        ck_assert_int_le(packs[0], vector_fit(&mix.vectors, 1, 0));
        ck_assert_int_le(packs[0], down);
        better += packs[0] < down;
    }
    ck_assert_int_gt(better * 50, trials * 3);
    ck_assert_int_le(efforts[1], efforts[0]);
    ck_assert_int_le(efforts[2], efforts[1]);
    hbp_context_free(context);
}
END_TEST

/* Items of few first sizes and many second ones, as tiles and tokens are. */
typedef struct tiles {
    uint32_t *a, *b, *pack_of;
    hbp__vectors vectors;
} tiles;

static tiles make_tiles(int64_t count)
{
    tiles t = {malloc((size_t)count * sizeof *t.a),
               malloc((size_t)count * sizeof *t.b),
               malloc((size_t)count * sizeof *t.pack_of),
               {0}};
    hbp__rng rng = hbp__rng_make(8, 0, 0);
    static const uint32_t sizes[] = {5, 5, 5, 5, 5, 3, 3, 3, 1, 0};
    for (int64_t i = 0; i < count; i++) {
        t.a[i] = sizes[hbp__rng_below(&rng, 10)];
        t.b[i] = 260 * t.a[i] + 20 + hbp__rng_below(&rng, 100);
    }
    t.vectors = (hbp__vectors){count, t.a, t.b, NULL, 18, 6016, INT64_MAX};
    return t;
}

static void free_tiles(tiles *t)
{
    free(t->a);
    free(t->b);
    free(t->pack_of);
}

START_TEST(packs_tiles_to_the_bound_and_alike)
{
    hbp_context *context = test_context();
    tiles t = make_tiles(20000);
    int64_t bound, packs = pack(context, &t.vectors, 1, 1, t.pack_of, &bound), total = 0, most = 0;
    for (int64_t i = 0; i < t.vectors.count; i++)
        total += t.a[i];
    ck_assert_int_eq(bound, (total + 17) / 18);
    ck_assert_int_eq(packs, bound);
    int64_t *tokens = calloc((size_t)packs, sizeof *tokens);
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < t.vectors.count; i++) {
        tokens[t.pack_of[i]] += t.b[i];
        mean += (double)t.b[i] / (double)packs;
    }
    for (int64_t p = 0; p < packs; p++) {
        squares += ((double)tokens[p] - mean) * ((double)tokens[p] - mean);
        most = tokens[p] > most ? tokens[p] : most;
    }
    ck_assert(squares / (double)packs < mean * mean * .01 * .01); /* a hundredth of the mean */
    ck_assert((double)most < mean * 1.1);
    free(tokens);
    free_tiles(&t);
    hbp_context_free(context);
}
END_TEST

/* Thousands of values in both sizes; every way of packing has its turn. */
START_TEST(packs_many_values_near_the_bound)
{
    enum { ITEMS = 20000 };
    static uint32_t a[ITEMS], b[ITEMS], pack_of[ITEMS];
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(9, 0, 0);
    for (int64_t i = 0; i < ITEMS; i++) {
        a[i] = hbp__rng_below(&rng, 3001);
        b[i] = 1 + hbp__rng_below(&rng, 4000);
    }
    static const int64_t capacity[][3] = {/* first, second, thousandths above the bound */
                                          {8192, 16384, 12}, {16384, 16384, 5}, {8192, 8192, 15},
                                          {6000, 30000, 12}, {3000, 4000, 35},  {100000, 30000, 5}};
    for (size_t k = 0; k < sizeof capacity / sizeof *capacity; k++) {
        hbp__vectors v = {ITEMS, a, b, NULL, capacity[k][0], capacity[k][1], INT64_MAX};
        int64_t bound, packs = pack(context, &v, 1, k, pack_of, &bound);
        ck_assert_msg(packs * 1000 <= bound * (1000 + capacity[k][2]), "%lld of %lld under %lld, %lld",
                      (long long)packs, (long long)bound, (long long)v.capacity_a, (long long)v.capacity_b);
    }
    hbp__vectors capped = {ITEMS, a, b, NULL, 100000, 100000, 7};
    int64_t bound;
    ck_assert_int_eq(pack(context, &capped, 1, 0, pack_of, &bound), (ITEMS + 6) / 7);
    hbp_context_free(context);
}
END_TEST

START_TEST(draws_by_the_generator_alone)
{
    hbp_context *context = test_context();
    tiles t = make_tiles(5000);
    uint32_t *other = malloc((size_t)t.vectors.count * sizeof *other);
    int64_t bound, same = 0;
    int64_t packs = pack(context, &t.vectors, 1, 1, t.pack_of, &bound);
    ck_assert_int_eq(pack(context, &t.vectors, 1, 1, other, &bound), packs);
    ck_assert_mem_eq(t.pack_of, other, (size_t)t.vectors.count * sizeof *other);
    ck_assert_int_eq(pack(context, &t.vectors, 1, 2, other, &bound), packs);
    for (int64_t i = 1; i < t.vectors.count; i++)
        same += (t.pack_of[i] == t.pack_of[i - 1]) && (other[i] == other[i - 1]);
    ck_assert_int_lt(same, 20); /* another draw, other companions */
    free(other);
    free_tiles(&t);
    hbp_context_free(context);
}
END_TEST

/* Largest sizes that the types allow. */
START_TEST(holds_the_largest_numbers)
{
    hbp_context *context = test_context();
    const uint32_t a[] = {INT32_MAX, INT32_MAX - 1, 1, INT32_MAX / 2, INT32_MAX / 2, 0};
    const uint32_t b[] = {INT32_MAX, 1, INT32_MAX - 1, INT32_MAX / 2, INT32_MAX / 2, 1};
    uint32_t pack_of[6];
    int64_t bound;
    hbp__vectors v = {6, a, b, NULL, INT32_MAX, INT32_MAX, INT64_MAX};
    ck_assert_int_eq(pack(context, &v, 1, 0, pack_of, &bound), 3);
    ck_assert_int_eq(bound, 3);
    const uint32_t one[] = {1, 0, 1, 1, 0, 1};
    v = (hbp__vectors){6, one, b, NULL, 1, INT32_MAX, INT64_MAX};
    ck_assert_int_eq(pack(context, &v, 1, 0, pack_of, &bound), 4);
    hbp_context_free(context);
}
END_TEST

static hbp_status pack_some(hbp_context *context, void *user)
{
    const hbp__vectors *v = user;
    uint32_t *pack_of = malloc((size_t)v->count * sizeof *pack_of);
    hbp__vector_packing packing = {0, pack_of};
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int64_t bound;
    hbp_status status = hbp__vector_pack(context, v, 2, &rng, &packing, &bound);
    free(pack_of);
    return status;
}

/* Few values of large numbers: tables of the capacity would not fit, nor end. */
START_TEST(needs_no_table_of_a_large_capacity)
{
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    uint32_t a[54], b[54], pack_of[54];
    for (uint32_t i = 0; i < 54; i++) {
        a[i] = 100000000 + i % 5 * 90000000;
        b[i] = 1 + i % 7 * 300000;
    }
    hbp__vectors v = {54, a, b, NULL, INT64_C(1560000000), INT64_C(8388608), INT64_MAX};
    int64_t before = f.bytes, bound;
    for (int32_t effort = 1; effort <= 3; effort++)
        ck_assert_int_ge(pack(context, &v, effort, 1, pack_of, &bound), bound);
    ck_assert_int_lt(f.peak_bytes - before, INT64_C(16) << 20);
    hbp_context_free(context);
}
END_TEST

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    tiles t = make_tiles(300);
    failing_sweep(pack_some, &t.vectors);
    ck_assert_int_gt(cancel_sweep(pack_some, &t.vectors), 5);
    t.vectors.capacity_b = 1450; /* fewer tokens than tiles: another way is the best */
    failing_sweep(pack_some, &t.vectors);
    free_tiles(&t);
}
END_TEST

TEST_MAIN("vector_pack", finds_the_optimum_of_few_items, is_never_worse_than_the_simple_ways,
          packs_tiles_to_the_bound_and_alike, packs_many_values_near_the_bound, draws_by_the_generator_alone,
          holds_the_largest_numbers, needs_no_table_of_a_large_capacity,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
