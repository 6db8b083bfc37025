#include "solve/tight_pack.h"

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

/* The histogram of real data up to a limit, where the data is there. */
static int read_mix(const char *name, int64_t limit, int64_t *size, int64_t *number, hbp__classes *classes)
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
    while (fread(&length, sizeof length, 1, file) == 1)
        if (length <= limit)
            count[length]++;
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
    if (!read_mix("vlm_tokens.npy", 4096, size, number, &classes))
        return;
    hbp_context *context = test_context();
    int64_t bound, packs = pack(context, &classes, (hbp__room){4096, INT64_MAX}, 1, &bound);
    ck_assert_int_eq(bound, 19601);
    ck_assert_int_le(packs, 19622);
    hbp_context_free(context);
}
END_TEST

static int32_t cancel_at(void *user, const hbp_progress *progress)
{
    (void)progress;
    return --*(int64_t *)user < 0;
}

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

START_TEST(survives_failing_allocations)
{
    oracle_mix mix;
    hbp__rng rng = hbp__rng_make(15, 0, 0);
    oracle_draw(&mix, &rng, 12, 250, 420, 9);
    hbp_status status = HBP_E_NO_MEMORY;
    for (int64_t allowed = 0; status != HBP_OK && allowed < 200; allowed++) {
        oracle_memory memory = {1 << 20, 0};
        hbp_allocator allocator = {.struct_size = sizeof allocator,
                                   .alloc = oracle_alloc,
                                   .release = oracle_release,
                                   .user = &memory};
        hbp_context_options options = {.struct_size = sizeof options, .allocator = &allocator};
        hbp_context *context = NULL;
        ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
        memory.allowed = allowed;
        hbp__patterns patterns;
        hbp__patterns_open(context, &patterns);
        int64_t bound;
        status = hbp__tight_pack(context, &mix.classes, (hbp__room){1000, INT64_MAX}, 1, &patterns, &bound);
        ck_assert(status == HBP_OK || status == HBP_E_NO_MEMORY);
        hbp__patterns_close(&patterns);
        hbp_context_free(context);
        ck_assert_int_eq(memory.held, 0);
    }
}
END_TEST

TEST_MAIN("tight_pack", no_worse_than_best_fit_on_random_mixes, finds_the_optimum_of_small_mixes,
          takes_what_best_fit_leaves_on_a_narrow_mix, packs_vision_language_samples_at_4096, hears_a_cancel,
          survives_failing_allocations)
