#include "solve/vector/vector_run.h"

#include "base/rng.h"
#include "failing.h"

#define CLASSES 5

/* Items of every class, packs, and how unlike packs are: times the squared distance of each from the mean. */
typedef struct total {
    int64_t items[CLASSES], packs;
    double unlike;
} total;

static total count(const hbp__patterns *patterns, const hbp__mix_class *classes, hbp__mix_room room)
{
    total t;
    memset(&t, 0, sizeof t);
    double sum[2] = {0, 0}, squares[2] = {0, 0};
    for (int64_t p = 0; p < patterns->count; p++) {
        int64_t first = 0, second = 0, times = patterns->times[p];
        for (int64_t r = patterns->offsets[p]; r < patterns->offsets[p + 1]; r++) {
            hbp__run run = patterns->run[r];
            ck_assert_int_gt(run.number, 0);
            t.items[run.class_index] += times * run.number;
            first += run.number * classes[run.class_index].first;
            second += run.number * classes[run.class_index].second;
        }
        ck_assert_int_le(first, room.first);
        double share[2] = {(double)first / (double)room.first, (double)second / (double)room.second};
        for (int k = 0; k < 2; k++) {
            sum[k] += (double)times * share[k];
            squares[k] += (double)times * share[k] * share[k];
        }
        t.packs += times;
    }
    for (int k = 0; k < 2; k++)
        t.unlike += squares[k] - sum[k] * sum[k] / (double)t.packs;
    return t;
}

static void draw(hbp_context *context, hbp__rng *rng, hbp__mix_class *classes, hbp__mix_room room,
                 hbp__patterns *patterns)
{
    hbp__patterns_open(context, patterns);
    for (int64_t c = 0; c < CLASSES; c++)
        classes[c] = (hbp__mix_class){1 + c + hbp__rng_below(rng, 3), 1 + hbp__rng_below(rng, 400)};
    for (int64_t p = 0; p < 2 + hbp__rng_below(rng, 8); p++) {
        hbp__run run[CLASSES];
        int64_t runs = 0, left = room.first;
        for (int64_t c = CLASSES - 1; c >= 0; c--) {
            int32_t number = (int32_t)hbp__rng_below(rng, (uint64_t)(left / classes[c].first + 1));
            if (number)
                run[runs++] = (hbp__run){(int32_t)c, number};
            left -= number * classes[c].first;
        }
        if (runs)
            OK(context, hbp__patterns_add(context, patterns, 1 + hbp__rng_below(rng, 1000), run, runs));
    }
}

START_TEST(keeps_items_and_packs_and_makes_them_alike)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(19, 0, 0);
    double before = 0, after = 0;
    for (int trial = 0; trial < 300; trial++) {
        hbp__mix_class classes[CLASSES];
        hbp__mix_room room = {20, 3000};
        hbp__patterns patterns;
        int64_t work = trial % 3 ? INT64_C(1) << 20 : 1000;
        draw(context, &rng, classes, room, &patterns);
        if (!patterns.count) {
            hbp__patterns_close(&patterns);
            continue;
        }
        total was = count(&patterns, classes, room);
        OK(context, hbp__mix_balance(context, classes, CLASSES, room, &work, &patterns));
        total is = count(&patterns, classes, room);
        for (int64_t c = 0; c < CLASSES; c++)
            ck_assert_int_eq(is.items[c], was.items[c]);
        ck_assert_int_eq(is.packs, was.packs);
        ck_assert_int_eq(is.packs, patterns.packs);
        ck_assert(is.unlike < was.unlike + 1e-9 * (1 + was.unlike));
        before += was.unlike;
        after += is.unlike;
        hbp__patterns_close(&patterns);
    }
    ck_assert(after < before / 4);
    hbp_context_free(context);
}
END_TEST

/* Three ones for a three: 18 ones and packs of three fives and a three. */
START_TEST(exchanges_several_for_one)
{
    hbp_context *context = test_context();
    const hbp__mix_class classes[] = {{1, 319}, {3, 894}, {5, 1413}};
    hbp__patterns patterns;
    int64_t work = 1 << 20;
    hbp__patterns_open(context, &patterns);
    OK(context, hbp__patterns_add(context, &patterns, 100, (hbp__run[]){{2, 3}, {1, 1}}, 2));
    OK(context, hbp__patterns_add(context, &patterns, 5, (hbp__run[]){{0, 18}}, 1));
    OK(context, hbp__mix_balance(context, classes, 3, (hbp__mix_room){18, 6016}, &work, &patterns));
    for (int64_t p = 0; p < patterns.count; p++) {
        int64_t first = 0, second = 0;
        for (int64_t r = patterns.offsets[p]; r < patterns.offsets[p + 1]; r++) {
            first += patterns.run[r].number * classes[patterns.run[r].class_index].first;
            second += patterns.run[r].number * classes[patterns.run[r].class_index].second;
        }
        ck_assert_int_eq(first, 18);
        ck_assert_int_lt(second, 5350); /* 18 ones are 5742 */
    }
    hbp__patterns_close(&patterns);
    hbp_context_free(context);
}
END_TEST

static hbp_status mix_some(hbp_context *context, void *user)
{
    (void)user;
    const hbp__mix_class classes[] = {{1, 319}, {3, 894}, {5, 1413}};
    hbp__patterns patterns;
    int64_t work = 1 << 16;
    hbp__patterns_open(context, &patterns);
    hbp_status status = hbp__patterns_add(context, &patterns, 9, (hbp__run[]){{2, 3}, {1, 1}}, 2);
    if (status == HBP_OK)
        status = hbp__patterns_add(context, &patterns, 5, (hbp__run[]){{0, 18}}, 1);
    if (status == HBP_OK)
        status = hbp__mix_balance(context, classes, 3, (hbp__mix_room){18, 6016}, &work, &patterns);
    hbp__patterns_close(&patterns);
    return status;
}

START_TEST(keeps_its_word_when_memory_fails_or_it_is_cancelled)
{
    failing_sweep(mix_some, NULL);
    ck_assert_int_gt(cancel_sweep(mix_some, NULL), 0);
}
END_TEST

TEST_MAIN("vector_mix", keeps_items_and_packs_and_makes_them_alike, exchanges_several_for_one,
          keeps_its_word_when_memory_fails_or_it_is_cancelled)
