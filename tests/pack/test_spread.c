#include "pack/fill/spread.h"

#include "base/checked.h"
#include "base/rng.h"
#include "failing.h"
#include "pack/tuning.h"
#include "test.h"

/* Sizes ascending, as items are. */
static int64_t draw_sizes(hbp__rng *rng, uint32_t *size, int64_t count, int64_t longest)
{
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t x = 1 + hbp__rng_below(rng, (uint64_t)longest);
        int64_t at = i;
        for (; at > 0 && size[at - 1] > x; at--)
            size[at] = size[at - 1];
        size[at] = x;
        total += x;
    }
    return total;
}

START_TEST(runs_keep_to_the_room_there_is)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(11, 0, 0);
    for (int trial = 0; trial < 500; trial++) {
        uint32_t size[400], bin_of[400];
        int64_t count = 1 + hbp__rng_below(&rng, 400), width = 1 + hbp__rng_below(&rng, 8), capacity = 100;
        int64_t total = draw_sizes(&rng, size, count, 1 + hbp__rng_below(&rng, 60)), lost = -1,
                expected_lost = 0;
        int64_t bins_wanted = 1 + hbp__rng_below(&rng, (uint64_t)(total / capacity / width + 2));
        int64_t max_items = hbp__rng_below(&rng, 2) ? 3 : 1000;
        hbp__bins bins;
        OK(context, hbp__bins_open(context, bins_wanted, width, capacity, max_items, &bins));
        hbp__listing listing = {size, NULL, count, count};
        OK(context, hbp__bins_spread(&bins, &listing, bin_of, &lost));
        int64_t *load = calloc((size_t)bins_wanted, sizeof *load),
                *runs = calloc((size_t)bins_wanted, sizeof *runs);
        for (int64_t run = 0; run < hbp__ceil_div(count, width); run++)
            for (int64_t k = run * width; k < hbp__min_i64((run + 1) * width, count); k++) {
                if (bin_of[run] == HBP__NO_BIN) {
                    expected_lost += size[count - 1 - k];
                    continue;
                }
                ck_assert_uint_lt(bin_of[run], bins_wanted);
                load[bin_of[run]] += size[count - 1 - k];
                runs[bin_of[run]] += k == run * width;
            }
        ck_assert_int_eq(lost, expected_lost);
        for (int64_t b = 0; b < bins_wanted; b++) {
            ck_assert_int_eq(load[b] + bins.gap[b], capacity * width);
            ck_assert_int_ge(bins.gap[b], 0);
            ck_assert_int_le(runs[b], max_items);
        }
        free(load);
        free(runs);
    }
    hbp_context_free(context);
}
END_TEST

/* The bin with most room, the lower of two, an item at a time: where worst fit decreasing puts a run; also
 * from bins that hold something. Only the last runs, which go best fit, differ.
 */
START_TEST(most_runs_go_where_most_room_is)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(13, 0, 0);
    int64_t same = 0;
    for (int trial = 0; trial < 500; trial++) {
        enum { MOST = 400, BINS = 12 };
        uint32_t size[MOST], bin_of[MOST];
        const int64_t count = 1 + hbp__rng_below(&rng, MOST), width = 1 + hbp__rng_below(&rng, 4),
                      number = 1 + hbp__rng_below(&rng, BINS);
        const int64_t total = draw_sizes(&rng, size, count, 1 + hbp__rng_below(&rng, 12));
        int64_t gap[BINS], room[BINS], lost, tail = 0;
        hbp__bins bins;
        OK(context,
           hbp__bins_open(context, number, width, 1 + total / number / width + hbp__rng_below(&rng, 20),
                          hbp__rng_below(&rng, 2) ? 5 : 1000, &bins));
        for (int64_t b = 0; b < number; b++) {
            bins.gap[b] -= hbp__rng_below(&rng, 2) * hbp__min_i64(bins.gap[b], 3);
            gap[b] = bins.gap[b];
            tail += gap[b] / HBP__FILL_TAIL;
            room[b] = bins.room[b] -= hbp__rng_below(&rng, 3);
        }
        const hbp__listing listing = {size, NULL, count, count};
        OK(context, hbp__bins_spread(&bins, &listing, bin_of, &lost));
        const int64_t runs = hbp__ceil_div(count, width);
        for (int64_t run = 0; run < runs; run++, same++) {
            uint32_t best = HBP__NO_BIN;
            int64_t tokens = 0;
            for (int64_t k = run * width; k < hbp__min_i64((run + 1) * width, count); k++)
                tokens += size[count - 1 - k];
            for (uint32_t b = 0; b < number; b++)
                if (room[b] > 0 && (best == HBP__NO_BIN || gap[b] > gap[best]))
                    best = b;
            if (best != HBP__NO_BIN && size[count - 1 - run * width] * width > gap[best])
                best = HBP__NO_BIN;
            if (bin_of[run] != best) {
                int64_t rest = 0;
                for (int64_t k = run * width; k < count; k++)
                    rest += size[count - 1 - k];
                ck_assert_int_le(rest, tail);
                break;
            }
            if (best != HBP__NO_BIN) {
                gap[best] -= tokens;
                room[best]--;
            }
        }
    }
    ck_assert_int_gt(same, 1000);
    hbp_context_free(context);
}
END_TEST

/* Packs in bins of the width of least surplus in [low, high). */
static int64_t fewest_packs(int64_t least, int64_t low, int64_t high)
{
    int64_t fewest = INT64_MAX;
    for (int64_t width = low; width < high; width++)
        fewest = hbp__min_i64(fewest, hbp__round_up(least, width));
    return fewest;
}

/* Whole micro-batches; of single packs the width that rounds up least, and a narrower one only where that
 * adds more than a share of them. */
START_TEST(bins_are_as_wide_as_rounding_allows)
{
    ck_assert_int_eq(hbp__bin_width(4, 100), 4);
    ck_assert_int_eq(hbp__bin_width(4, 16 * HBP__FILL_MIN_BINS), HBP__FILL_MIN_WIDTH);
    ck_assert_int_eq(hbp__bin_width(24, 1), 24);
    for (int64_t least = 1; least < 100000; least += 1 + least / 50) {
        int64_t usual = 1;
        while (usual < HBP__FILL_MIN_WIDTH && least >= 2 * usual * HBP__FILL_MIN_BINS)
            usual *= 2;
        const int64_t width = hbp__bin_width(1, least), packs = hbp__round_up(least, width);
        const int64_t wide = fewest_packs(least, usual, 2 * usual), much = least / HBP__FILL_MOST_LOST;
        if (wide - least <= much)
            ck_assert_int_eq(packs, wide);
        else if (packs - least > much)
            ck_assert_int_eq(packs, fewest_packs(least, usual / 2 + 1, 2 * usual));
        ck_assert_msg(packs - least <= least / 128 + 2, "%lld packs in bins of %lld", (long long)least,
                      (long long)width);
    }
}
END_TEST

/* Room for all, with 3 tokens a pack to spare: no bin is behind by more than the tail and what there is to
 * spare. */
START_TEST(bins_come_out_even)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(12, 0, 0);
    uint32_t size[4000], bin_of[4000];
    int64_t total = draw_sizes(&rng, size, 4000, 50), width = 8, count = 20, lost;
    int64_t capacity = total / count / width + 3;
    hbp__bins bins;
    OK(context, hbp__bins_open(context, count, width, capacity, INT64_MAX, &bins));
    hbp__listing listing = {size, NULL, 4000, 4000};
    OK(context, hbp__bins_spread(&bins, &listing, bin_of, &lost));
    ck_assert_int_eq(lost, 0);
    for (int64_t b = 0; b < count; b++)
        ck_assert_int_le(bins.gap[b], capacity * width / 16 + 3 * width * count);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_listing_may_name_its_items)
{
    hbp_context *context = test_context();
    static const uint32_t size[] = {1, 2, 3, 5, 8, 13}, item[] = {5, 3, 1};
    uint32_t bin_of[3];
    int64_t lost;
    hbp__bins bins;
    OK(context, hbp__bins_open(context, 2, 1, 14, 10, &bins));
    hbp__listing listing = {size, item, 0, 3};
    OK(context, hbp__bins_spread(&bins, &listing, bin_of, &lost));
    ck_assert_uint_eq(bin_of[0], 0);
    ck_assert_uint_eq(bin_of[1], 1);
    ck_assert_uint_eq(bin_of[2], 1);
    ck_assert_int_eq(bins.gap[0], 1);
    ck_assert_int_eq(bins.gap[1], 7);
    hbp_context_free(context);
}
END_TEST

static hbp_status spread_three(hbp_context *context, void *user)
{
    (void)user;
    static const uint32_t size[] = {1, 2, 3};
    uint32_t bin_of[3];
    int64_t lost;
    hbp__bins bins;
    hbp__listing listing = {size, NULL, 3, 3};
    HBP__TRY(hbp__bins_open(context, 2, 1, 10, 10, &bins));
    return hbp__bins_spread(&bins, &listing, bin_of, &lost);
}

START_TEST(without_memory_nothing_is_left)
{
    failing_sweep(spread_three, NULL);
}
END_TEST

TEST_MAIN("spread", runs_keep_to_the_room_there_is, most_runs_go_where_most_room_is, bins_come_out_even,
          bins_are_as_wide_as_rounding_allows, a_listing_may_name_its_items, without_memory_nothing_is_left)
