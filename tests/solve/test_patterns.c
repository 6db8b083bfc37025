#include "solve/packing/patterns.h"

#include "pack_oracle.h"

START_TEST(adds_clears_and_checks)
{
    hbp_context *context = test_context();
    int64_t size[] = {2, 3, 7}, number[] = {9, 5, 0};
    hbp__classes classes = {3, size, number, NULL};
    hbp__room room = {10, INT64_MAX};
    hbp__patterns patterns;
    hbp__patterns_open(context, &patterns);
    for (int round = 0; round < 2; round++) {
        OK(context, hbp__patterns_add(context, &patterns, 2, (hbp__run[]){{1, 2}, {0, 2}}, 2));
        OK(context, hbp__patterns_add(context, &patterns, 1, (hbp__run[]){{0, 5}}, 1));
        FAILS(context, HBP_E_INTERNAL, "every item once",
              hbp__patterns_check(context, &patterns, &classes, room));
        OK(context, hbp__patterns_add(context, &patterns, 1, (hbp__run[]){{1, 1}}, 1));
        OK(context, hbp__patterns_check(context, &patterns, &classes, room));
        ck_assert_int_eq(patterns.packs, 4);
        ck_assert_int_eq(patterns.offsets[3], 4);
        room.capacity = 9;
        FAILS(context, HBP_E_INTERNAL, "every item once",
              hbp__patterns_check(context, &patterns, &classes, room));
        room = (hbp__room){10, 4};
        FAILS(context, HBP_E_INTERNAL, "every item once",
              hbp__patterns_check(context, &patterns, &classes, room));
        room.max_weight = INT64_MAX;
        hbp__patterns_clear(&patterns);
        ck_assert_int_eq(patterns.packs, 0);
    }
    hbp__patterns_close(&patterns);
    hbp_context_free(context);
}
END_TEST

START_TEST(finds_the_first_class_of_a_size)
{
    int64_t size[] = {2, 3, 3, 7}, number[] = {1, 1, 1, 1};
    hbp__classes classes = {4, size, number, NULL};
    static const int64_t first[] = {0, 0, 0, 1, 3, 3, 3, 3, 4};
    for (int64_t s = 0; s < 9; s++)
        ck_assert_int_eq(hbp__classes_from(&classes, s), first[s]);
}
END_TEST

TEST_MAIN("patterns", adds_clears_and_checks, finds_the_first_class_of_a_size)
