#include "simulate/plan/bound.h"

#include "keep.h"
#include "simulate/small.h"

START_TEST_IN_CONTEXT(every_row_is_counted_once_under_its_length)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    for (int trial = 0; trial < 50; trial++) {
        small_plan from;
        small_init(&from);
        small_step(&from);
        small_micro_batch(&from);
        int32_t tokens[400];
        int rows = (int)hbp__rng_below(&rng, 401);
        static const uint32_t limits[] = {20, 1 << 20, (1 << 20) + 40, INT32_MAX};
        uint32_t limit = limits[hbp__rng_below(&rng, 4)],
                 least = limit > 1 << 20 && trial % 2 ? (1 << 20) - 5 : 1;
        for (int i = 0; i < rows; i++)
            tokens[i] = (int32_t)(least + hbp__rng_below(&rng, limit - least + 1));
        /* One row a pack, so that no sum is too large. */
        for (int i = 0; i < rows; i++)
            small_pack_array(&from, 0, 1, 0, INT32_MAX, 1, &tokens[i]);
        hbp_plan *plan = small_make(&from, 1);
        int64_t bins = -1, *length = NULL, *count = NULL, total = 0;
        OK(context, hbp__count_lengths(context, plan, &bins, &length, &count));
        for (int64_t b = 0; b < bins; b++) {
            int64_t same = 0;
            for (int i = 0; i < rows; i++)
                same += tokens[i] == length[b];
            ck_assert_int_gt(same, 0);
            ck_assert_int_eq(count[b], same);
            ck_assert(!b || length[b] > length[b - 1]);
            total += same;
        }
        ck_assert_int_eq(total, rows);
        hbp__memory memory = hbp__memory_default();
        hbp__delete(&memory, length);
        hbp__delete(&memory, count);
        hbp_plan_free(plan);
    }
}
END_TEST

TEST_MAIN("histogram", every_row_is_counted_once_under_its_length)
