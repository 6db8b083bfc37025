#include "pack/fill/class_fill.h"

#include "fill_check.h"
#include "keep.h"

START_TEST_IN_CONTEXT(counts_items_by_size_and_group)
{
    hbp_groups *groups = keep(check_groups(context, 3, (int64_t[]){10, 20, 100}));
    hbp_lengths *lengths = NULL;
    int64_t length[] = {3, 30, 4, 12, 9, 5, 5, 90}, link[] = {-1, -1, -1, -1, -1, 1, 1, -1};
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 8, &links, &lengths));
    hbp_fill_options options = {
        .struct_size = sizeof options, .sequence_multiple = 4, .pack_multiple = 8, .max_samples = 9};
    hbp__class_fill fill;
    OK(context, hbp__class_fill_open(context, lengths, groups, &options, &fill));
    /* Padded: 4 4 | 12 12 16 (two fives, linked) | 32 92. Packs of 10, 20 and 100 hold 8, 16 and 96. */
    static const int64_t size[] = {4, 12, 16, 32, 92}, number[] = {2, 2, 1, 1, 1}, weight[] = {1, 1, 2, 1, 1};
    ck_assert_int_eq(fill.classes.count, 5);
    ck_assert_mem_eq(fill.size, size, sizeof size);
    ck_assert_mem_eq(fill.number, number, sizeof number);
    ck_assert_mem_eq(fill.weight, weight, sizeof weight);
    static const int64_t from[] = {0, 1, 3, 5};
    ck_assert_mem_eq(fill.from, from, sizeof from);
    ck_assert_int_eq(hbp__class_fill_own(&fill, 1).count, 2);
    ck_assert_int_eq(hbp__class_fill_own(&fill, 1).size[0], 12);
    ck_assert_int_eq(hbp__class_fill_room(&fill, 2).capacity, 96);
    ck_assert_int_eq(hbp__class_fill_room(&fill, 2).max_weight, 9);
    /* Patterns by hand, then names. */
    OK(context, hbp__patterns_add(context, &fill.patterns[0], 1, (hbp__run[]){{0, 2}}, 1));
    OK(context, hbp__patterns_add(context, &fill.patterns[1], 2, (hbp__run[]){{0, 1}}, 1));
    OK(context, hbp__patterns_add(context, &fill.patterns[1], 1, (hbp__run[]){{1, 1}}, 1));
    hbp__class_fill_shift(&fill, 1);
    OK(context, hbp__patterns_add(context, &fill.patterns[2], 1, (hbp__run[]){{4, 1}}, 1));
    OK(context, hbp__patterns_add(context, &fill.patterns[2], 1, (hbp__run[]){{3, 1}}, 1));
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__class_fill_name(&fill, &packs));
    check_packs(packs, lengths, groups, &options);
    ck_assert_int_eq(packs->count, 6);
    ck_assert_int_eq(packs->sample[0], 7);
    ck_assert_int_eq(packs->sample[1], 1);
    hbp__class_fill_close(&fill);
}
END_TEST

TEST_MAIN("class_fill", counts_items_by_size_and_group)
