#include "schedule/microbatch.h"

#include "base/rng.h"
#include "schedule/deal.h"
#include "test.h"

/* After the curriculum, each group's share of every prefix is off by less than one step (and half a step for
 * each other group's rounding): the k-th of n falls due at (k - 1/2) / n. */
START_TEST(every_prefix_is_close_to_the_mixture)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    for (int trial = 0; trial < 400; trial++) {
        int64_t groups = 1 + hbp__rng_below(&rng, 5), count[5], total = 0, seen[5] = {0};
        for (int64_t g = 0; g < groups; g++)
            total += count[g] = hbp__rng_below(&rng, 4) ? hbp__rng_below(&rng, 200) : 0;
        int32_t order[1000];
        hbp__interleave(count, groups, 0, order);
        for (int64_t i = 0; i < total; i++) {
            seen[order[i]]++;
            for (int64_t g = 0; g < groups; g++) {
                double share = (double)count[g] * (double)(i + 1) / (double)total;
                double off = (double)seen[g] - share, most = 1 + (double)groups / 2;
                ck_assert(off > -most && off < most);
            }
        }
        for (int64_t g = 0; g < groups; g++)
            ck_assert_int_eq(seen[g], count[g]);
    }
}
END_TEST

START_TEST(the_curriculum_comes_first)
{
    int64_t count[] = {6, 3};
    int32_t order[9];
    hbp__interleave(count, 2, 4, order);
    static const int32_t expected[] = {0, 0, 0, 0, 1, 0, 1, 0, 1};
    ck_assert_mem_eq(order, expected, sizeof expected);
    hbp__interleave(count, 2, 100, order);
    static const int32_t all[] = {0, 0, 0, 0, 0, 0, 1, 1, 1};
    ck_assert_mem_eq(order, all, sizeof all);
    hbp__interleave(count, 2, 0, order);
    ck_assert_int_eq(order[0] + order[1] + order[2], 1);
}
END_TEST

TEST_MAIN("curriculum", every_prefix_is_close_to_the_mixture, the_curriculum_comes_first)
