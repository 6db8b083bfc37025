/* hbp__rank_sets_* (lib/data/tasks/rank_sets.c). */
#include "data/tasks/rank_sets.h"

#include "base/rng.h"
#include "failing.h"
#include "keep.h"

/* A set of ranks below 10 as bits, listed; returns how many. */
static int64_t list(uint32_t bits, int32_t *ranks)
{
    int64_t count = 0;
    for (int32_t r = 0; r < 10; r++)
        if (bits >> r & 1)
            ranks[count++] = r;
    return count;
}

START_TEST_IN_CONTEXT(numbers_come_in_order)
{
    hbp__rank_sets sets = {0};
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    int32_t number_of[1024], ranks[10], seen = 0;
    for (int i = 0; i < 1024; i++)
        number_of[i] = -1;
    for (int i = 0; i < 5000; i++) {
        uint32_t bits = 1 + hbp__rng_below(&rng, 1023);
        int64_t count = list(bits, ranks);
        int32_t number = -1;
        OK(context, hbp__rank_sets_add(context, &sets, ranks, count, &number));
        if (number_of[bits] < 0)
            number_of[bits] = seen++;
        ck_assert_int_eq(number, number_of[bits]);
        ck_assert_int_eq(sets.count, seen);
    }
    for (uint32_t bits = 1; bits < 1024; bits++) {
        int64_t count = list(bits, ranks);
        if (number_of[bits] < 0)
            continue;
        int64_t first = sets.offset[number_of[bits]];
        ck_assert_int_eq(sets.offset[number_of[bits] + 1] - first, count);
        ck_assert_mem_eq(&sets.rank[first], ranks, (size_t)count * sizeof *ranks);
    }
    ck_assert_int_gt(seen, 900);
    hbp__rank_sets_close(&sets);
    ck_assert_ptr_null(sets.rank);
}
END_TEST

static hbp_status add_many(hbp_context *context, void *user)
{
    (void)user;
    hbp__rank_sets sets = {0};
    hbp_status status = HBP_OK;
    for (uint32_t bits = 1; bits < 200 && status >= 0; bits++) {
        int32_t ranks[10], number;
        int64_t count = list(bits, ranks);
        status = hbp__rank_sets_add(context, &sets, ranks, count, &number);
        if (status >= 0)
            ck_assert_int_eq(number, bits - 1);
    }
    hbp__rank_sets_close(&sets);
    return status;
}

/* A set that could not be added leaves those before as they are. */
START_TEST(allocations_fail)
{
    failing_sweep(add_many, NULL);
    failing f;
    hbp_context *context = failing_context(&f, NULL, NULL);
    hbp__rank_sets sets = {0};
    int32_t ranks[10], number;
    for (uint32_t bits = 1; bits < 300; bits++) {
        int64_t count = list(bits, ranks);
        for (f.left = 0;; f.left = -1)
            if (hbp__rank_sets_add(context, &sets, ranks, count, &number) >= 0)
                break;
        f.left = 0; /* those that are there need no memory */
        ck_assert_int_eq(number, bits - 1);
        for (uint32_t before = 1; before < bits; before++) {
            count = list(before, ranks);
            OK(context, hbp__rank_sets_add(context, &sets, ranks, count, &number));
            ck_assert_int_eq(number, before - 1);
        }
        f.left = -1;
    }
    hbp__rank_sets_close(&sets);
    hbp_context_free(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

START_TEST(nothing_to_close)
{
    hbp__rank_sets sets = {0};
    hbp__rank_sets_close(&sets);
    ck_assert_int_eq(sets.count, 0);
}
END_TEST

TEST_MAIN("rank_sets", numbers_come_in_order, allocations_fail, nothing_to_close)
