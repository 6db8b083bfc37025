#include "pack/fill/item_fill.h"

#include "fill_check.h"
#include "keep.h"

START_TEST_IN_CONTEXT(names_the_samples_of_packs)
{
    hbp_groups *groups = keep(check_groups(context, 2, (int64_t[]){20, 60}));
    hbp_lengths *lengths = NULL;
    int64_t length[] = {10, 20, 30, 5, 6}, link[] = {-1, -1, -1, 3, 3};
    hbp_lengths_options links = {.struct_size = sizeof links, .links = link};
    MAKES(context, lengths, hbp_lengths_create_i64(context, length, 5, &links, &lengths));
    hbp__items items;
    OK(context, hbp__items_open(context, lengths, 1, 60, 0, 0, &items));
    uint32_t *weight = NULL;
    OK(context, hbp__items_weights(context, &items, &weight));
    static const uint32_t samples[] = {1, 2, 1, 1};
    ck_assert_int_eq(items.count, 4);
    ck_assert_mem_eq(weight, samples, sizeof samples);
    OK(context, hbp__items_check_weights(context, &items, weight, 2));
    FAILS(context, HBP_E_INFEASIBLE, "linked to 1 others; a pack holds at most 1 samples",
          hbp__items_check_weights(context, &items, weight, 1));
    /* Ascending: 10; 5 + 6; 20; 30. */
    const uint32_t pack_of[] = {1, 0, 1, 1};
    const int32_t group[] = {0, 1};
    hbp_packs *packs = NULL;
    MAKES(context, packs, hbp__item_fill_name(context, &items, pack_of, 2, group, &packs));
    hbp_fill_options options = {.struct_size = sizeof options, .sequence_multiple = 1, .pack_multiple = 1};
    check_packs(packs, lengths, groups, &options);
    static const uint32_t expected[] = {3, 4, 0, 1, 2};
    ck_assert_mem_eq(packs->sample, expected, sizeof expected);
    ck_assert_int_eq(packs->group[0], 0);
    ck_assert_int_eq(packs->group[1], 1);
    hbp__items_close(&items);
}
END_TEST

TEST_MAIN("item_fill", names_the_samples_of_packs)
