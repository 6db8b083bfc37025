#include "solve/vector/vectors.h"

#include "failing.h"
#include "vector_oracle.h"

START_TEST(never_passes_the_optimum)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    int64_t met = 0, better = 0, trials = 6000;
    for (int64_t trial = 0; trial < trials; trial++) {
        vector_mix mix;
        vector_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 9), (int)(trial % 210));
        int64_t bound, optimum = vector_optimum(&mix.vectors), a = 0, b = 0;
        OK(context, hbp__vector_bound(context, &mix.vectors, &bound));
        for (int64_t i = 0; i < mix.vectors.count; i++) {
            a += mix.a[i];
            b += mix.b[i];
        }
        int64_t total_a = (a + mix.vectors.capacity_a - 1) / mix.vectors.capacity_a;
        int64_t total_b = (b + mix.vectors.capacity_b - 1) / mix.vectors.capacity_b;
        int64_t total = total_a > total_b ? total_a : total_b;
        ck_assert_int_le(bound, optimum);
        ck_assert_int_ge(bound, total);
        met += bound == optimum;
        better += bound > total;
    }
    ck_assert_int_gt(met, trials * 9 / 10);
    ck_assert_int_gt(better, trials / 20);
    hbp_context_free(context);
}
END_TEST

static int64_t bound_of(hbp_context *context, const uint32_t *a, const uint32_t *b, int64_t count)
{
    hbp__vectors vectors = {count, a, b, NULL, 10, 100, INT64_MAX};
    int64_t bound;
    OK(context, hbp__vector_bound(context, &vectors, &bound));
    return bound;
}

START_TEST(sees_what_neither_size_alone_sees)
{
    hbp_context *context = test_context();
    /* Two items over half of the first size, two over half of the second; the latter are too large in the
     * first size to stand with the former, of which 3 + 8 > 10. Alone, each size needs two packs. */
    const uint32_t a[] = {8, 8, 3, 3}, b[] = {1, 1, 60, 60};
    ck_assert_int_eq(bound_of(context, a, b, 4), 4);
    /* Not so where they fit beside the large ones. */
    const uint32_t c[] = {8, 8, 2, 2};
    ck_assert_int_eq(bound_of(context, c, b, 4), 2);
    /* The same with the sizes' parts exchanged: 4 x 30 tokens need two packs beside the large one. */
    const uint32_t d[] = {9, 2, 2, 2, 2}, e[] = {1, 30, 30, 30, 30};
    ck_assert_int_eq(bound_of(context, d, e, 5), 3);
    /* Every item over half stands alone; no item needs no pack. */
    const uint32_t f[] = {6, 6, 6, 0}, g[] = {1, 1, 1, 1};
    ck_assert_int_eq(bound_of(context, f, g, 4), 3);
    ck_assert_int_eq(bound_of(context, f, g, 0), 0);
    hbp__vectors capped = {4, f, g, NULL, 100, 100, 2};
    int64_t bound;
    OK(context, hbp__vector_bound(context, &capped, &bound));
    ck_assert_int_eq(bound, 2);
    hbp_context_free(context);
}
END_TEST

static hbp_status bound_some(hbp_context *context, void *user)
{
    int64_t bound;
    return hbp__vector_bound(context, &((vector_mix *)user)->vectors, &bound);
}

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    vector_mix mix;
    vector_draw(&mix, &rng, 40, 0);
    failing_sweep(bound_some, &mix);
    ck_assert_int_eq(cancel_sweep(bound_some, &mix), 2);
}
END_TEST

TEST_MAIN("vector_bound", never_passes_the_optimum, sees_what_neither_size_alone_sees,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
