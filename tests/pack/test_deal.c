#include "pack/fill/deal.h"

#include "base/checked.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"

/* Items of the given ascending sizes; nothing linked. */
static hbp__items items_of(uint32_t *size, int64_t count)
{
    hbp__items items = {.memory = hbp__memory_default(), .count = count, .size = size, .multiple = 1};
    return items;
}

/* One run as a deal of its own. */
static int64_t deal_run(hbp_context *context, hbp__fills *fills, const hbp__items *items,
                        const hbp__listing *listing, int64_t run, int64_t width, uint32_t *order,
                        uint32_t *pack_of)
{
    hbp__bin_deal deal;
    hbp__bin_deal_begin(fills, items, listing, width, order, &deal);
    int64_t lost;
    OK(context,
       hbp__bin_deal_run(context, &deal, hbp__size_run(listing, width, run), pack_of + run * width, &lost));
    hbp__bin_deal_end(&deal);
    return lost;
}

START_TEST_IN_CONTEXT(the_longest_item_goes_to_the_quickest_pack)
{
    uint32_t size[] = {1, 2, 4, 10, 20, 30};
    hbp__items items = items_of(size, 6);
    hbp__listing listing = {size, NULL, 6, 6};
    hbp__fills fills;
    OK(context, hbp__fills_open(context, 3, 100, 10, 1, 0, &fills));
    uint32_t order[] = {0, 1, 2}, pack_of[6];
    ck_assert_int_eq(deal_run(context, &fills, &items, &listing, 0, 3, order, pack_of), 0);
    ck_assert_int_eq(deal_run(context, &fills, &items, &listing, 1, 3, order, pack_of), 0);
    /* 30, 20, 10 to packs 0, 1, 2; then 4, 2, 1 to 2, 1, 0. */
    static const uint32_t expected[] = {0, 1, 2, 2, 1, 0};
    ck_assert_mem_eq(pack_of, expected, sizeof expected);
    ck_assert_int_eq(fills.load[0], 31);
    ck_assert_int_eq(fills.load[1], 22);
    ck_assert_int_eq(fills.load[2], 14);
    ck_assert_int_eq(fills.time_ns[0], 31);
    hbp__fills_close(&fills);
}
END_TEST

START_TEST_IN_CONTEXT(time_counts_squares)
{
    uint32_t size[] = {3, 5, 6, 9};
    hbp__items items = items_of(size, 4);
    hbp__listing listing = {size, NULL, 4, 4};
    hbp__fills fills;
    OK(context, hbp__fills_open(context, 2, 100, 10, 2, 0.5, &fills));
    uint32_t order[] = {0, 1}, pack_of[4];
    deal_run(context, &fills, &items, &listing, 0, 2, order, pack_of);
    ck_assert_int_eq(fills.time_ns[0], 59); /* 18 + 40.5, rounded */
    ck_assert_int_eq(fills.time_ns[1], 30);
    hbp__fills_close(&fills);
}
END_TEST

START_TEST_IN_CONTEXT(no_pack_passes_its_capacity_and_nothing_is_lost_silently)
{
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    for (int trial = 0; trial < 1000; trial++) {
        uint32_t size[200], pack_of[200], order[8];
        int64_t count = 1 + hbp__rng_below(&rng, 200), width = 1 + hbp__rng_below(&rng, 8), lost = 0,
                unplaced = 0;
        int64_t step = hbp__rng_below(&rng, 3);
        for (int64_t i = 0; i < count; i++)
            size[i] = (uint32_t)(1 + i * step / 7);
        hbp__items items = items_of(size, count);
        hbp__listing listing = {size, NULL, count, count};
        hbp__fills fills;
        OK(context, hbp__fills_open(context, width, 1 + hbp__rng_below(&rng, 500),
                                    1 + hbp__rng_below(&rng, 40), 3, 0.01, &fills));
        for (int64_t j = 0; j < width; j++)
            order[j] = (uint32_t)j;
        for (int64_t run = 0; run < hbp__ceil_div(count, width); run++)
            lost += deal_run(context, &fills, &items, &listing, run, width, order, pack_of);
        int64_t load[8] = {0}, members[8] = {0};
        for (int64_t k = 0; k < count; k++) {
            if (pack_of[k] == HBP__NO_PACK) {
                unplaced++;
                continue;
            }
            ck_assert_int_lt(pack_of[k], width);
            load[pack_of[k]] += size[count - 1 - k];
            members[pack_of[k]]++;
        }
        ck_assert_int_eq(lost, unplaced);
        for (int64_t j = 0; j < width; j++) {
            ck_assert_int_eq(load[j], fills.load[j]);
            ck_assert_int_eq(members[j], fills.members[j]);
            ck_assert_int_le(load[j], fills.capacity);
            ck_assert_int_le(members[j], fills.max_members);
        }
        hbp__fills_close(&fills);
    }
}
END_TEST

/* A bin of equal runs is dealt at once as it would be run by run, or not at all. */
START_TEST_IN_CONTEXT(equal_runs_are_dealt_at_once)
{
    hbp__rng rng = hbp__rng_make(22, 0, 0);
    int64_t done = 0;
    for (int trial = 0; trial < 1000; trial++) {
        enum { MOST = 40, WIDTH = 4 };
        uint32_t size[MOST], order[WIDTH], pack_of[MOST];
        const int64_t width = 1 + hbp__rng_below(&rng, WIDTH), runs = 1 + hbp__rng_below(&rng, MOST / WIDTH),
                      count = runs * width - (width > 1 && hbp__rng_below(&rng, 5) == 0), first = width;
        for (int64_t i = 0; i < count; i++)
            size[i] = (uint32_t)(1 + i / width - (hbp__rng_below(&rng, 100) == 0 && i > width));
        hbp__items items = items_of(size, count);
        const hbp__listing listing = {size, NULL, count, count};
        const int64_t capacity = 1 + hbp__rng_below(&rng, 80), most = 1 + hbp__rng_below(&rng, 12);
        hbp__fills at_once, by_runs;
        hbp__sized_run run[MOST];
        OK(context, hbp__fills_open(context, 2 * width, capacity, most, 3, 0.01, &at_once));
        OK(context, hbp__fills_open(context, 2 * width, capacity, most, 3, 0.01, &by_runs));
        for (int64_t i = 0; i < runs; i++)
            run[i] = hbp__size_run(&listing, width, i);
        if (hbp__bin_deal_alike(&at_once, &items, &listing, width, first, run, runs)) {
            hbp__bin_deal deal;
            int64_t lost;
            for (int64_t j = 0; j < width; j++)
                order[j] = (uint32_t)(first + j);
            hbp__bin_deal_begin(&by_runs, &items, &listing, width, order, &deal);
            for (int64_t i = 0; i < runs; i++) {
                ck_assert(hbp__bin_deal_is_alike(&deal, run[i]));
                OK(context, hbp__bin_deal_run(context, &deal, run[i], pack_of, &lost));
                for (int64_t k = 0; k < width; k++)
                    ck_assert_uint_eq(pack_of[k], first + k);
            }
            hbp__bin_deal_end(&deal);
            done++;
        }
        const size_t bytes = (size_t)(2 * width) * sizeof *by_runs.load;
        ck_assert_mem_eq(at_once.load, by_runs.load, bytes);
        ck_assert_mem_eq(at_once.time_ns, by_runs.time_ns, bytes);
        ck_assert_mem_eq(at_once.members, by_runs.members, bytes);
        hbp__fills_close(&at_once);
        hbp__fills_close(&by_runs);
    }
    ck_assert_int_gt(done, 100);
    ck_assert_int_lt(done, 900);
}
END_TEST

static hbp_status open_and_grow(hbp_context *context, void *user)
{
    (void)user;
    hbp__fills fills;
    hbp_status status = hbp__fills_open(context, 1, 10, 10, 1, 1, &fills);
    if (status >= 0 && !hbp__fills_grow(&fills))
        status = HBP_E_NO_MEMORY;
    hbp__fills_close(&fills);
    return status;
}

START_TEST_IN_CONTEXT(packs_grow_by_one_and_fail_clean)
{
    failing_sweep(open_and_grow, NULL);
    hbp__fills fills;
    OK(context, hbp__fills_open(context, 1, 10, 10, 1, 1, &fills));
    fills.load[0] = 7;
    for (int i = 0; i < 500; i++)
        ck_assert(hbp__fills_grow(&fills));
    ck_assert_int_eq(fills.count, 501);
    ck_assert_int_eq(fills.load[0], 7);
    ck_assert_int_eq(fills.load[500] + fills.members[500] + fills.time_ns[500], 0);
    hbp__fills_close(&fills);
}
END_TEST

static int32_t count_look(void *user, const hbp_progress *progress)
{
    (void)progress;
    ++*(int64_t *)user;
    return 0;
}

/* Full packs: looking through a wide run of them for each item is heard about. */
START_TEST(a_wide_run_looks_up)
{
    enum { WIDTH = 3000 };
    int64_t looks = 0;
    hbp_context_options options = {
        .struct_size = sizeof options, .progress = count_look, .progress_user = &looks};
    hbp_context *context;
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_OK);
    uint32_t *size = malloc(WIDTH * sizeof *size), *order = malloc(WIDTH * sizeof *order),
             *pack_of = malloc(WIDTH * sizeof *pack_of);
    for (uint32_t i = 0; i < WIDTH; i++) {
        size[i] = 1 + i;
        order[i] = i;
    }
    hbp__items items = items_of(size, WIDTH);
    hbp__listing listing = {size, NULL, WIDTH, WIDTH};
    hbp__fills fills;
    OK(context, hbp__fills_open(context, WIDTH, 10000, 10, 1, 0, &fills));
    for (int64_t i = 0; i < WIDTH; i++)
        fills.load[i] = fills.capacity;
    ck_assert_int_eq(deal_run(context, &fills, &items, &listing, 0, WIDTH, order, pack_of), WIDTH);
    ck_assert_int_gt(looks, 20);
    hbp__fills_close(&fills);
    free(size);
    free(order);
    free(pack_of);
    hbp_context_free(context);
}
END_TEST

/* Packs in the reverse of their order, some of them equal: sorted by time, ties by their number. */
START_TEST_IN_CONTEXT(packs_far_from_their_order_are_sorted)
{
    enum { WIDTH = 300, FIRST = 40 };
    uint32_t size[WIDTH], order[WIDTH], pack_of[WIDTH];
    hbp__fills fills;
    OK(context, hbp__fills_open(context, FIRST + WIDTH, 10000, 10, 1, 0, &fills));
    for (int64_t i = 0; i < WIDTH; i++) {
        size[i] = 1;
        order[i] = (uint32_t)(FIRST + i);
        fills.time_ns[FIRST + i] = (WIDTH - i) / 3;
    }
    size[WIDTH - 1] = 2; /* not equal, so that they are dealt by time */
    hbp__items items = items_of(size, WIDTH);
    hbp__listing listing = {size, NULL, WIDTH, WIDTH};
    ck_assert_int_eq(deal_run(context, &fills, &items, &listing, 0, WIDTH, order, pack_of), 0);
    for (int64_t k = 1; k < WIDTH; k++) {
        const uint32_t a = pack_of[k - 1], b = pack_of[k];
        const int64_t time_a = (WIDTH - (a - FIRST)) / 3, time_b = (WIDTH - (b - FIRST)) / 3;
        ck_assert(time_a < time_b || (time_a == time_b && a < b));
    }
    hbp__fills_close(&fills);
}
END_TEST

TEST_MAIN("deal", the_longest_item_goes_to_the_quickest_pack, time_counts_squares,
          no_pack_passes_its_capacity_and_nothing_is_lost_silently, packs_grow_by_one_and_fail_clean,
          equal_runs_are_dealt_at_once, a_wide_run_looks_up, packs_far_from_their_order_are_sorted)
