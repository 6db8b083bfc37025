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

/* A tree made at once is the one that is set entry by entry. */
START_TEST(made_at_once_it_is_the_same)
{
    hbp_context *context = test_context();
    hbp__rng rng = hbp__rng_make(7, 0, 0);
    for (int64_t count = 1; count < 100; count++) {
        uint32_t value[100], order[100];
        hbp__fit_tree tree, other;
        for (int64_t i = 0; i < count; i++) {
            value[i] = hbp__rng_below(&rng, 1000);
            order[i] = (uint32_t)i;
        }
        hbp__rng_shuffle_u32(&rng, order, (uint64_t)count);
        OK(context, hbp__fit_tree_make(context, value, order, count, &tree));
        ck_assert(hbp__fit_tree_open(&tree.memory, count, &other));
        for (int64_t i = 0; i < count; i++)
            hbp__fit_tree_set(&other, i, value[order[i]]);
        ck_assert_int_eq(tree.leaves, other.leaves);
        for (int64_t node = 1; node < 2 * tree.leaves; node++)
            ck_assert_uint_eq(tree.least[node], other.least[node]);
        hbp__fit_tree_close(&tree);
        hbp__fit_tree_close(&other);
    }
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("fit_tree", finds_the_first_that_is_small_enough, made_at_once_it_is_the_same)
