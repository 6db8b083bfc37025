#include "solve/packing/tight_pack.h"

#include "base/checked.h"
#include "failing.h"
#include "pack_oracle.h"

/* Packs a mix; checks the packing, its bound and that it is no worse than best fit decreasing. Returns the
 * packs. */
static int64_t pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int32_t effort,
                    int64_t *bound)
{
    hbp__patterns patterns, best_fit;
    hbp__patterns_open(context, &patterns);
    hbp__patterns_open(context, &best_fit);
    OK(context, hbp__tight_pack(context, classes, room, effort, &patterns, bound));
    OK(context, hbp__patterns_check(context, &patterns, classes, room));
    OK(context, hbp__histogram_pack(context, classes, room, HBP__BEST_FIT, &best_fit));
    ck_assert_int_le(patterns.packs, best_fit.packs);
    ck_assert_int_le(*bound, patterns.packs);
    int64_t packs = patterns.packs;
    hbp__patterns_close(&best_fit);
    hbp__patterns_close(&patterns);
    return packs;
}

START_TEST(no_worse_than_best_fit_on_random_mixes)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int trial = 0; trial < 60; trial++) {
        oracle_mix mix;
        int64_t bound, capacity = 50 + hbp__rng_below(&rng, 800);
        int64_t low = 1 + hbp__rng_below(&rng, (uint64_t)capacity / 3);
        int64_t high = low + hbp__rng_below(&rng, (uint64_t)(capacity - low));
        oracle_draw(&mix, &rng, 1 + hbp__rng_below(&rng, 200), low, high, trial % 3 ? 10 : 200);
        for (int64_t c = 0; c < mix.classes.count; c++)
            mix.weight[c] = 1 + hbp__rng_below(&rng, 3);
        mix.classes.weight = trial % 8 == 1 ? mix.weight : NULL;
        hbp__room room = {capacity, trial % 4 == 1 ? 4 : INT64_MAX};
        pack(context, &mix.classes, room, 1, &bound);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(finds_the_optimum_of_small_mixes)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    int64_t found = 0, beaten = 0;
    for (int trial = 0; trial < 2000; trial++) {
        oracle_mix mix;
        int64_t bound, other, capacity = 20 + hbp__rng_below(&rng, 80);
        oracle_draw(&mix, &rng, 6, capacity / 5, capacity / 2, 2);
        hbp__room room = {capacity, INT64_MAX};
        int64_t optimum = oracle_optimum(&mix.classes, room);
        int64_t packs = pack(context, &mix.classes, room, 1, &bound);
        ck_assert_int_ge(packs, optimum);
        ck_assert_int_le(bound, optimum);
        found += packs == optimum;
        beaten += packs < pack(context, &mix.classes, room, 0, &other);
    }
    ck_assert_int_gt(found, 1950);
    ck_assert_int_gt(beaten, 5);
    hbp_context_free(context);
}
END_TEST

START_TEST(finds_the_optimum_under_a_cap)
{
    /* Both dimensions against every packing: two thirds of the items are short, and packs hold few. */
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(16, 0, 0);
    int64_t met = 0, beaten = 0, trials = 3000;
    for (int trial = 0; trial < trials; trial++) {
        oracle_mix mix, most;
        int64_t bound, capacity = 20 + hbp__rng_below(&rng, 80), greedy = 0;
        oracle_draw(&mix, &rng, 3, 1, capacity / 6, 3);
        oracle_draw(&most, &rng, 3, capacity / 6 + 1, capacity, 1);
        for (int64_t c = 0; c < most.classes.count; c++) {
            mix.size[mix.classes.count] = most.size[c];
            mix.number[mix.classes.count++] = most.number[c];
        }
        for (int64_t c = 0; c < mix.classes.count; c++)
            mix.weight[c] = 1 + hbp__rng_below(&rng, 2);
        mix.classes.weight = trial % 4 ? NULL : mix.weight;
        hbp__room room = {capacity, 2 + hbp__rng_below(&rng, 3)};
        int64_t optimum = oracle_optimum(&mix.classes, room);
        int64_t packs = pack(context, &mix.classes, room, trial % 2, &bound);
        ck_assert_int_ge(packs, optimum);
        ck_assert_int_le(bound, optimum);
        hbp__patterns best_fit;
        hbp__patterns_open(context, &best_fit);
        OK(context, hbp__histogram_pack(context, &mix.classes, room, HBP__BEST_FIT, &best_fit));
        greedy = best_fit.packs;
        hbp__patterns_close(&best_fit);
        met += packs == optimum;
        beaten += packs < greedy;
    }
    ck_assert_int_ge(met, trials * 99 / 100);
    ck_assert_int_gt(beaten, 100);
    hbp_context_free(context);
}
END_TEST

START_TEST(takes_what_best_fit_leaves_on_a_narrow_mix)
{
    /* Sizes near a third of a pack: best fit decreasing sets the largest three together, which leaves gaps.
     */
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    oracle_mix mix;
    int64_t bound;
    oracle_draw(&mix, &rng, 60, 240, 420, 60);
    hbp__room room = {1000, INT64_MAX};
    int64_t greedy = pack(context, &mix.classes, room, 0, &bound);
    int64_t tight = pack(context, &mix.classes, room, 1, &bound);
    ck_assert_int_eq(tight, bound);
    ck_assert_int_gt(greedy, bound + bound / 20);
    hbp_context_free(context);
}
END_TEST

/* The histogram of real data up to a limit, where the data is there; what is longer is left out or, with
 * `most` samples, cut. */
static int read_mix(const char *name, int64_t limit, int64_t most, int64_t *size, int64_t *number,
                    hbp__classes *classes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", HBP_DATA_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "skipped: no %s\n", path);
        return 0;
    }
    int64_t *count = calloc((size_t)limit + 1, sizeof *count), bins = 0;
    uint32_t length;
    ck_assert_int_eq(fseek(file, 128, SEEK_SET), 0);
    for (int64_t i = 0; (!most || i < most) && fread(&length, sizeof length, 1, file) == 1; i++)
        if (length <= limit || most)
            count[hbp__min_i64(length, limit)]++;
    fclose(file);
    for (int64_t s = 1; s <= limit; s++) {
        if (count[s]) {
            size[bins] = s;
            number[bins++] = count[s];
        }
    }
    free(count);
    *classes = (hbp__classes){bins, size, number, NULL};
    return 1;
}

START_TEST(packs_vision_language_samples_at_4096)
{
    static int64_t size[4097], number[4097];
    hbp__classes classes;
    if ((TEST_SANITIZED && !TEST_LONG) || !read_mix("vlm_tokens.npy", 4096, 0, size, number, &classes))
        return;
    hbp_context *context = test_context();
    int64_t bound, packs = pack(context, &classes, (hbp__room){4096, INT64_MAX}, 1, &bound);
    ck_assert_int_eq(bound, 19601);
    ck_assert_int_le(packs, 19622);
    hbp_context_free(context);
}
END_TEST

START_TEST(packs_documents_at_most_200_together)
{
    /* Best fit decreasing ends with packs of 200 of the shortest documents, half empty. */
    static int64_t size[32769], number[32769];
    hbp__classes classes;
    if (!read_mix("wikipedia.npy", 32768, 100000, size, number, &classes))
        return;
    hbp_context *context = test_context();
    int64_t bound, packs = pack(context, &classes, (hbp__room){32768, 200}, 0, &bound);
    ck_assert_int_eq(bound, 2998);
    ck_assert_int_le(packs, bound + 2);
    packs = pack(context, &classes, (hbp__room){32768, 34}, 0, &bound);
    ck_assert_int_le(packs, bound + bound / 500);
    hbp_context_free(context);
}
END_TEST

static int32_t cancel_at(void *user, const hbp_progress *progress)
{
    (void)progress;
    return --*(int64_t *)user < 0;
}

/* Of thousands of sizes, where the work runs out: what a lower effort finds a higher one finds as well. */
START_TEST(more_effort_is_never_worse)
{
    enum { SIZES = 4000 };
    static int64_t size[SIZES], number[SIZES];
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < (uint64_t)TEST_ROUNDS(1); seed++) {
        hbp__rng rng = hbp__rng_make(14, seed, 0);
        for (int64_t c = 0; c < SIZES; c++) {
            size[c] = 900 + c;
            number[c] = hbp__rng_below(&rng, 6);
        }
        const hbp__classes classes = {SIZES, size, number, NULL};
        int64_t bound, before = INT64_MAX;
        static const int32_t efforts[] = {0, HBP__BRIEF_EFFORT, 1, 2};
        for (int i = 0; i < TEST_FEW(4, 2); i++) {
            const int64_t packs = pack(context, &classes, (hbp__room){8192, INT64_MAX}, efforts[i], &bound);
            ck_assert_int_le(packs, before);
            before = packs;
        }
        ck_assert_int_gt(before, bound); /* there was more to search for */
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(hears_a_cancel)
{
    oracle_mix mix;
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    oracle_draw(&mix, &rng, 60, 320, 460, 60);
    for (int64_t wanted = 0; wanted < 20; wanted += 3) {
        int64_t ticks = wanted, bound;
        hbp_context_options options = {
            .struct_size = sizeof options, .progress = cancel_at, .progress_user = &ticks};
        hbp_context *context = NULL;
        ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        ck_assert_int_eq(
            hbp__tight_pack(context, &mix.classes, (hbp__room){1000, INT64_MAX}, 2, &patterns, &bound),
            HBP_E_CANCELLED);
        hbp__patterns_close(&patterns);
        hbp_context_free(context);
    }
}
END_TEST

typedef struct narrow {
    oracle_mix mix;
    hbp__room room;
} narrow;

static hbp_status pack_once(hbp_context *context, void *user)
{
    const narrow *of = user;
    hbp__patterns patterns;
    int64_t bound;
    hbp__patterns_open(context, &patterns);
    hbp_status status = hbp__tight_pack(context, &of->mix.classes, of->room, 1, &patterns, &bound);
    hbp__patterns_close(&patterns);
    return status;
}

static void fail_allocations(int64_t low, int64_t high, hbp__room room)
{
    narrow of = {.room = room};
    hbp__rng rng = hbp__rng_make(15, 0, 0);
    oracle_draw(&of.mix, &rng, 12, low, high, 9);
    failing_sweep(pack_once, &of);
}

START_TEST(survives_failing_allocations)
{
    fail_allocations(250, 420, (hbp__room){1000, INT64_MAX});
    fail_allocations(1, 700, (hbp__room){1000, 3});
}
END_TEST

TEST_MAIN("tight_pack", no_worse_than_best_fit_on_random_mixes, finds_the_optimum_of_small_mixes,
          finds_the_optimum_under_a_cap, takes_what_best_fit_leaves_on_a_narrow_mix,
          packs_vision_language_samples_at_4096, packs_documents_at_most_200_together,
          more_effort_is_never_worse, hears_a_cancel, survives_failing_allocations)
