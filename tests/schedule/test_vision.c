#include "schedule/vision.h"

#include <math.h>

#include "base/checked.h"
#include "failing.h"
#include "keep.h"

/* Packs with sizes of three sorts: anything, few distinct vision units, nearly full ones. */
static void draw_packs(hbp__rng *rng, int sort, hbp__sized *packs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t vision = sort == 0   ? hbp__rng_below(rng, 1000)
                         : sort == 1 ? 15 + hbp__rng_below(rng, 4)
                                     : 900 + hbp__rng_below(rng, 101);
        int64_t tokens = sort == 0 ? 1 + hbp__rng_below(rng, 4096) : 3000 + hbp__rng_below(rng, 1097);
        packs[i] = (hbp__sized){{vision, tokens, 0}, (uint32_t)i};
    }
}

/* Each pack once, with its own sizes. */
static void check_same_packs(const hbp__sized *before, const hbp__sized *after, int64_t count)
{
    char *seen = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        uint32_t p = after[i].pack;
        ck_assert_uint_lt(p, count);
        ck_assert_int_eq(seen[p]++, 0);
        ck_assert_int_eq(after[i].size[0], before[p].size[0]);
        ck_assert_int_eq(after[i].size[1], before[p].size[1]);
    }
    free(seen);
}

/* DistRatio of one size as published: the mean over micro-batches of sum (most - own) / (most N). */
static double dist(const hbp__sized *packs, int64_t count, int64_t width, int d)
{
    double total = 0;
    int64_t batches = 0;
    for (int64_t first = 0; first < count; first += width, batches++) {
        int64_t end = first + width < count ? first + width : count, most = 0;
        double waiting = 0;
        for (int64_t i = first; i < end; i++)
            most = packs[i].size[d] > most ? packs[i].size[d] : most;
        for (int64_t i = first; i < first + width; i++)
            waiting += (double)(most - (i < end ? packs[i].size[d] : 0));
        total += most ? waiting / (double)(most * width) : 0;
    }
    return total / (double)batches;
}

START_TEST(waste_is_the_published_ratio)
{
    ck_assert_int_eq(hbp__waste(0, 0, 8), 0);
    ck_assert_int_eq(hbp__waste(18, 144, 8), 0);
    ck_assert_int_eq(hbp__waste(18, 143, 8), HBP__WASTE_WHOLE / 144);
    ck_assert_int_eq(hbp__waste(10, 10, 4), HBP__WASTE_WHOLE / 4 * 3);
    ck_assert_int_eq(hbp__waste(INT64_MAX, INT64_MAX, 2), HBP__WASTE_WHOLE / 2);
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    hbp__sized packs[100];
    for (int64_t trial = 0; trial < 200; trial++) {
        int64_t count = 1 + hbp__rng_below(&rng, 100), width = 1 + hbp__rng_below(&rng, 12);
        draw_packs(&rng, (int)trial % 3, packs, count);
        double wanted = dist(packs, count, width, 0) + dist(packs, count, width, 1);
        int64_t batches = hbp__ceil_div(count, width);
        double found = (double)hbp__vision_waste(packs, count, width) / (double)HBP__WASTE_WHOLE;
        ck_assert_double_le(fabs(found / (double)batches - wanted), 1e-8);
    }
}
END_TEST

/* The least waste of all ways to group `count` packs by `width`, the one that is short included. */
static void least(const hbp__sized *packs, int count, int width, int used, int64_t waste, int64_t *best)
{
    int left = count, first = 0;
    while (used >> first & 1)
        first++;
    for (int i = 0; i < count; i++)
        left -= used >> i & 1;
    if (!left)
        *best = waste < *best ? waste : *best;
    if (!left || waste >= *best)
        return;
    for (int set = 1; set < 1 << count; set++) {
        int64_t most[2] = {0, 0}, sum[2] = {0, 0};
        int size = 0;
        for (int i = 0; i < count; i++)
            for (int d = 0; d < 2 && set >> i & 1; d++) {
                size += d == 0;
                sum[d] += packs[i].size[d];
                most[d] = packs[i].size[d] > most[d] ? packs[i].size[d] : most[d];
            }
        int is_short = size == count % width && left % width;
        if ((set & used) || !(set >> first & 1) || (size != width && !is_short))
            continue;
        least(packs, count, width, used | set,
              waste + hbp__waste(most[0], sum[0], width) + hbp__waste(most[1], sum[1], width), best);
    }
}

/* Measured: 4,796 of these 4,800 are the least. */
START_TEST_IN_CONTEXT(few_packs_are_grouped_as_well_as_can_be)
{
    int64_t best_of_all = 0, found_in_all = 0, optimal = 0, trials = 0;
    for (int sort = 0; sort < 3; sort++)
        for (int width = 2; width <= 4; width += 2)
            for (int count = 1; count <= 8; count++)
                for (uint64_t seed = 0; seed < TEST_ROUNDS(100); seed++, trials++) {
                    hbp__sized packs[8], before[8];
                    hbp__rng rng = hbp__rng_make(seed, (uint64_t)count, (uint64_t)width);
                    draw_packs(&rng, sort, before, count);
                    memcpy(packs, before, sizeof packs);
                    OK(context, hbp__vision_order(context, packs, count, width, &rng));
                    check_same_packs(before, packs, count);
                    int64_t best = INT64_MAX, found = hbp__vision_waste(packs, count, width);
                    least(before, count, width, 0, 0, &best);
                    ck_assert_int_ge(found, best);
                    optimal += found == best;
                    found_in_all += found;
                    best_of_all += best;
                }
    ck_assert_int_ge(optimal, trials * 99 / 100);
    ck_assert_int_le(found_in_all, best_of_all + best_of_all / 1000);
}
END_TEST

/* Neither part loses a pack; exchanges never raise the waste; the whole is no worse than sorting by one
 * size, by the other, or by one and then the other. */
START_TEST_IN_CONTEXT(many_packs_are_grouped_better_than_by_sorting)
{
    for (int trial = 0, mark = keep_mark(); trial < TEST_ROUNDS(60); keep_release(mark), trial++) {
        hbp__rng rng = hbp__rng_make((uint64_t)trial, 7, 0);
        int64_t count = 1 + hbp__rng_below(&rng, 3000), width = 1 + hbp__rng_below(&rng, trial % 2 ? 9 : 40);
        hbp__sized *before = keep(malloc((size_t)count * sizeof *before)),
                   *packs = keep(malloc((size_t)count * sizeof *packs));
        draw_packs(&rng, trial % 3, before, count);
        memcpy(packs, before, (size_t)count * sizeof *packs);
        int64_t batches = hbp__ceil_div(count, width), given = hbp__vision_waste(packs, count, width);
        OK(context, hbp__vision_exchange(context, packs, count, width));
        check_same_packs(before, packs, count);
        ck_assert_int_le(hbp__vision_waste(packs, count, width), given);
        memcpy(packs, before, (size_t)count * sizeof *packs);
        OK(context, hbp__vision_strips(context, packs, count, width));
        check_same_packs(before, packs, count);
        int64_t in_strips = hbp__vision_waste(packs, count, width);
        /* Insertion by (one size, the other) on a copy: an order of its own. */
        for (int d = 0; d < 2; d++) {
            hbp__sized *sorted = malloc((size_t)count * sizeof *sorted);
            for (int64_t i = 0; i < count; i++) {
                int64_t at = i;
                for (; at > 0 && (sorted[at - 1].size[d] < before[i].size[d] ||
                                  (sorted[at - 1].size[d] == before[i].size[d] &&
                                   sorted[at - 1].size[!d] < before[i].size[!d]));
                     at--)
                    sorted[at] = sorted[at - 1];
                sorted[at] = before[i];
            }
            ck_assert_int_le(in_strips, hbp__vision_waste(sorted, count, width));
            free(sorted);
        }
        OK(context, hbp__vision_exchange(context, packs, count, width));
        ck_assert_int_le(hbp__vision_waste(packs, count, width), in_strips);
        memcpy(packs, before, (size_t)count * sizeof *packs);
        OK(context, hbp__vision_order(context, packs, count, width, &rng));
        check_same_packs(before, packs, count);
        if (width == 1)
            ck_assert_int_eq(hbp__vision_waste(packs, count, width), 0);
        if (trial % 3 == 2 && batches > 100)
            ck_assert_double_le(dist(packs, count, width, 0) + dist(packs, count, width, 1), 0.04);
    }
}
END_TEST

/* Where one size is the same for all, sorting by the other cannot be far from what is found. */
START_TEST_IN_CONTEXT(one_size_alone_is_sorted)
{
    for (int d = 0; d < 2; d++) {
        hbp__sized packs[1000];
        hbp__rng rng = hbp__rng_make(3, 0, 0);
        for (int64_t i = 0; i < 1000; i++) {
            packs[i] = (hbp__sized){{0, 0, 0}, (uint32_t)i};
            packs[i].size[d] = (i * 37) % 1000 + 1000;
        }
        OK(context, hbp__vision_order(context, packs, 1000, 8, &rng));
        /* Eight consecutive numbers wait for 28 / (8 most) at the most: less than 3.5 / 1000. */
        ck_assert_double_le(dist(packs, 1000, 8, d), 0.0035);
        ck_assert_double_eq(dist(packs, 1000, 8, !d), 0);
    }
}
END_TEST

/* Packs alike in vision units and tokens are put together by time: eight consecutive of 200 times apart. */
START_TEST_IN_CONTEXT(time_decides_among_packs_alike)
{
    static hbp__sized packs[3200];
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (int64_t i = 0; i < 3200; i++)
        packs[i] =
            (hbp__sized){{1 + i % 4, 1000 + 100 * (i / 4 % 4), 2000 + (i / 16) * 7 % 200}, (uint32_t)i};
    OK(context, hbp__vision_order(context, packs, 3200, 8, &rng));
    ck_assert_double_eq(dist(packs, 3200, 8, HBP__VISION), 0);
    ck_assert_double_eq(dist(packs, 3200, 8, HBP__TOKENS), 0);
    ck_assert_double_le(dist(packs, 3200, 8, HBP__TIME), 3.6 / 2000);
}
END_TEST

/* Who of equal packs goes where is a draw; the same seed draws the same. */
START_TEST_IN_CONTEXT(equal_packs_change_places)
{
    hbp__sized packs[3][400];
    for (int run = 0; run < 3; run++) {
        hbp__rng rng = hbp__rng_make(run == 2, 0, 0);
        for (int64_t i = 0; i < 400; i++)
            packs[run][i] = (hbp__sized){{i % 4, 100 + i % 5, 0}, (uint32_t)i};
        OK(context, hbp__vision_order(context, packs[run], 400, 4, &rng));
        ck_assert_int_eq(hbp__vision_waste(packs[run], 400, 4), 0);
    }
    int64_t moved = 0;
    for (int64_t i = 0; i < 400; i++) {
        ck_assert_uint_eq(packs[0][i].pack, packs[1][i].pack);
        moved += packs[0][i].pack != packs[2][i].pack;
    }
    ck_assert_int_gt(moved, 200);
}
END_TEST

typedef struct inputs {
    hbp__sized packs[20000];
    int64_t count;
} inputs;

static hbp_status order_once(hbp_context *context, void *user)
{
    static hbp__sized packs[20000];
    const inputs *in = user;
    memcpy(packs, in->packs, sizeof packs);
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    return hbp__vision_order(context, packs, in->count, 2, &rng);
}

/* Pairs of micro-batches that one exchange makes even, so many of them that each can meet few others: where
 * the first met more, none would be left for the last. */
START_TEST_IN_CONTEXT(every_micro_batch_meets_another_however_many_there_are)
{
    enum { COUNT = 600000, WIDTH = 4 };
    hbp__sized *packs = malloc(COUNT * sizeof *packs);
    ck_assert_ptr_nonnull(packs);
    for (int64_t i = 0; i < COUNT; i++) {
        int64_t m = i / WIDTH, is_other = i % WIDTH == 0;
        packs[i] = (hbp__sized){{1 + m / 2 * 2 + (m % 2 ^ is_other), 0, 0}, (uint32_t)i};
    }
    ck_assert_int_gt(hbp__vision_waste(packs, COUNT, WIDTH), 0);
    OK(context, hbp__vision_exchange(context, packs, COUNT, WIDTH));
    ck_assert_int_eq(hbp__vision_waste(packs, COUNT, WIDTH), 0);
    free(packs);
}
END_TEST

START_TEST(nothing_is_left_behind)
{
    static inputs in;
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    draw_packs(&rng, 0, in.packs, 20000);
    in.count = 8;
    failing_sweep(order_once, &in);
    in.count = TEST_SANITIZED ? 5000 : 20000;
    failing_sweep(order_once, &in);
    in.count = 5000; /* as many calls as reports: quadratic */
    ck_assert_int_gt(cancel_sweep(order_once, &in), 10);
}
END_TEST

TEST_MAIN("vision", waste_is_the_published_ratio, few_packs_are_grouped_as_well_as_can_be,
          many_packs_are_grouped_better_than_by_sorting, one_size_alone_is_sorted,
          time_decides_among_packs_alike, equal_packs_change_places,
          every_micro_batch_meets_another_however_many_there_are, nothing_is_left_behind)
