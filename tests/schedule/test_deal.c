#include "schedule/vision.h"

#include <math.h>

#include "failing.h"
#include "keep.h"
#include "schedule/deal.h"

/* Every row once; a step's rows ascend; of any stretch of rows each step has its share, to within one and a
 * half. */
START_TEST_IN_CONTEXT(each_step_has_its_share_of_each_stretch)
{
    for (int trial = 0; trial < 300; trial++) {
        hbp__rng rng = hbp__rng_make((uint64_t)trial, 0, 0);
        int64_t count = hbp__rng_below(&rng, 200), size = 1 + hbp__rng_below(&rng, 20), base = trial % 7;
        uint32_t rows[200];
        char seen[200] = {0};
        OK(context, hbp__deal_stretches(context, base, count, size, &rng, rows));
        for (int64_t first = 0; first < count; first += size) {
            int64_t mine = first + size < count ? size : count - first;
            for (int64_t j = 0; j < mine; j++) {
                int64_t row = rows[first + j] - base;
                ck_assert(row >= 0 && row < count);
                ck_assert_int_eq(seen[row]++, 0);
                ck_assert(j == 0 || rows[first + j] > rows[first + j - 1]);
                double share = (double)row * (double)mine / (double)count;
                ck_assert_double_le(fabs(share - (double)j), 1.5);
            }
        }
    }
}
END_TEST

START_TEST_IN_CONTEXT(neighbours_change_places)
{
    uint32_t rows[3][120];
    for (int run = 0; run < 3; run++) {
        hbp__rng rng = hbp__rng_make(run == 2, 0, 0);
        OK(context, hbp__deal_stretches(context, 0, 120, 10, &rng, rows[run]));
    }
    ck_assert_mem_eq(rows[0], rows[1], sizeof rows[0]);
    ck_assert_mem_ne(rows[0], rows[2], sizeof rows[0]);
}
END_TEST

static hbp_status deal_once(hbp_context *context, void *user)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    return hbp__deal_stretches(context, 0, 100, 7, &rng, user);
}

START_TEST(nothing_is_left_behind)
{
    uint32_t rows[100];
    failing_sweep(deal_once, rows);
}
END_TEST

TEST_MAIN("deal", each_step_has_its_share_of_each_stretch, neighbours_change_places, nothing_is_left_behind)
