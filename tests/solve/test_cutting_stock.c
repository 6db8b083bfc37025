#include "solve/packing/tight_parts.h"

#include "pack_oracle.h"

/* Whether the uses cover every class by patterns that fit. */
static void check_cover(const hbp__relaxation *r, const hbp__classes *classes, int64_t capacity)
{
    double covered[ORACLE_CLASSES] = {0}, packs = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        if (r->column[i] < 0)
            continue;
        int64_t size = 0;
        ck_assert(r->uses[i] >= 0);
        packs += r->uses[i];
        for (int64_t k = r->patterns.offsets[r->column[i]]; k < r->patterns.offsets[r->column[i] + 1]; k++) {
            hbp__run run = r->patterns.run[k];
            size += run.number * classes->size[run.class_index];
            covered[run.class_index] += r->uses[i] * run.number;
        }
        ck_assert_int_le(size, capacity);
    }
    for (int64_t c = 0; c < classes->count; c++)
        ck_assert(covered[c] > (double)classes->number[c] - 1e-4);
    ck_assert(packs < r->packs + 1e-4 && packs > r->packs - 1e-4);
}

START_TEST(relaxes_below_every_packing)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(19, 0, 0);
    for (int trial = 0; trial < 1000; trial++) {
        oracle_mix mix;
        int64_t capacity = 20 + hbp__rng_below(&rng, 100), work = INT64_C(1) << 30, total = 0;
        oracle_draw(&mix, &rng, 5, capacity / 6, capacity - 1, 2);
        hbp__relaxation relaxation;
        OK(context, hbp__relaxation_open(context, &mix.classes, capacity, 1e-6, &work, &relaxation));
        check_cover(&relaxation, &mix.classes, capacity);
        for (int64_t c = 0; c < mix.classes.count; c++)
            total += mix.size[c] * mix.number[c];
        ck_assert(relaxation.packs > (double)total / (double)capacity - 1e-4);
        ck_assert(relaxation.packs <
                  (double)oracle_optimum(&mix.classes, (hbp__room){capacity, INT64_MAX}) + 1e-4);
        hbp__relaxation_close(&relaxation);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(finds_known_relaxations)
{
    hbp_context *context = test_context();
    /* 3 + 3 + 4 fills a pack of 10: 20 threes and 10 fours are 10 packs; without fours, 3 to a pack. */
    int64_t size[] = {3, 4}, number[] = {20, 10}, work = INT64_C(1) << 20;
    hbp__classes classes = {2, size, number, NULL};
    hbp__relaxation relaxation;
    OK(context, hbp__relaxation_open(context, &classes, 10, 1e-6, &work, &relaxation));
    ck_assert(relaxation.packs > 10 - 1e-6 && relaxation.packs < 10 + 1e-6);
    hbp__relaxation_close(&relaxation);
    classes.count = 1;
    OK(context, hbp__relaxation_open(context, &classes, 10, 1e-6, &work, &relaxation));
    ck_assert(relaxation.packs > 20.0 / 3 - 1e-6 && relaxation.packs < 20.0 / 3 + 1e-6);
    hbp__relaxation_close(&relaxation);
    hbp_context_free(context);
}
END_TEST

START_TEST(stops_when_its_work_is_spent)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(20, 0, 0);
    oracle_mix mix;
    oracle_draw(&mix, &rng, 100, 250, 420, 40);
    for (int64_t budget = 0; budget < INT64_C(1) << 26; budget = budget * 4 + 1) {
        int64_t work = budget;
        hbp__relaxation relaxation;
        OK(context, hbp__relaxation_open(context, &mix.classes, 1000, 1e-6, &work, &relaxation));
        check_cover(&relaxation, &mix.classes, 1000);
        hbp__relaxation_close(&relaxation);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("cutting_stock", relaxes_below_every_packing, finds_known_relaxations, stops_when_its_work_is_spent)
