#include "solve/fit_tree.h"

#include "pack_oracle.h"

START_TEST(finds_the_first_that_is_small_enough)
{
    hbp__memory memory = hbp__memory_default();
    hbp__rng rng = hbp__rng_make(6, 0, 0);
    for (int trial = 0; trial < 200; trial++) {
        uint32_t values[150];
        int64_t count = 1 + hbp__rng_below(&rng, 150), room = 1 + hbp__rng_below(&rng, (uint64_t)count);
        hbp__fit_tree tree;
        ck_assert(hbp__fit_tree_open(&memory, room, &tree));
        for (int64_t i = 0; i < count; i++) {
            if (i >= tree.leaves)
                ck_assert(hbp__fit_tree_grow(&tree, i + 1));
            values[i] = hbp__rng_below(&rng, 4) ? hbp__rng_below(&rng, 1000) : HBP__ABSENT;
            hbp__fit_tree_set(&tree, i, values[i]);
        }
        for (int query = 0; query < 100; query++) {
            int64_t from = hbp__rng_below(&rng, (uint64_t)count + 5), expected = -1;
            uint32_t limit = hbp__rng_below(&rng, 300);
            for (int64_t i = from; i < count && expected < 0; i++)
                if (values[i] <= limit)
                    expected = i;
            ck_assert_int_eq(hbp__fit_tree_first(&tree, from, limit), expected);
            int64_t change = hbp__rng_below(&rng, (uint64_t)count);
            values[change] = hbp__rng_below(&rng, 2000);
            hbp__fit_tree_set(&tree, change, values[change]);
            ck_assert_uint_eq(hbp__fit_tree_get(&tree, change), values[change]);
        }
        hbp__fit_tree_close(&tree);
    }
}
END_TEST

TEST_MAIN("fit_tree", finds_the_first_that_is_small_enough)
