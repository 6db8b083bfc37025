#include "data/packs/items.h"

#include "base/checked.h"
#include "costs.h"
#include "failing.h"
#include "keep.h"

START_TEST_IN_CONTEXT(items_ascend_and_name_every_sample_once)
{
    for (int64_t multiple = 1; multiple <= 16; multiple *= 4) {
        hbp_lengths *lengths = test_long_tail(context, 1, 3000, 5000);
        hbp__items items;
        OK(context, hbp__items_open(context, lengths, multiple, 8192, 3, 0, &items));
        ck_assert_int_eq(items.count, 3000);
        char seen[3000] = {0};
        for (int64_t i = 0; i < items.count; i++) {
            int64_t length = hbp_lengths_get_length(lengths, items.sample[i]);
            ck_assert_int_eq(items.size[i], hbp__round_up(length, multiple));
            ck_assert(i == 0 || items.size[i - 1] <= items.size[i]);
            ck_assert_int_eq(seen[items.sample[i]]++, 0);
            ck_assert_int_eq(hbp__items_members(&items, i), 1);
            ck_assert_int_eq(hbp__items_squares(&items, i), (int64_t)items.size[i] * items.size[i]);
        }
        hbp__items_close(&items);
        hbp_lengths_free(lengths);
    }
}
END_TEST

static hbp_lengths *linked(hbp_context *context)
{
    static const int64_t length[] = {5, 9, 3, 4, 2, 7};
    static const int64_t link[] = {1, -1, 8, 1, 8, 1};
    hbp_lengths_options options = {.struct_size = sizeof options, .links = link};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, length, 6, &options, &lengths));
    return lengths;
}

START_TEST_IN_CONTEXT(tied_samples_are_one_item)
{
    hbp_lengths *lengths = keep(linked(context));
    hbp__items items;
    OK(context, hbp__items_open(context, lengths, 1, 100, 0, 0, &items));
    ck_assert_int_eq(items.count, 3);
    static const uint32_t sizes[] = {5, 9, 16};
    static const int64_t squares[] = {13, 81, 90}, members[] = {2, 1, 3};
    uint32_t out[3];
    unsigned seen = 0;
    for (int64_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(items.size[i], sizes[i]);
        ck_assert_int_eq(hbp__items_squares(&items, i), squares[i]);
        ck_assert_int_eq(hbp__items_members(&items, i), members[i]);
        ck_assert_int_eq(hbp__items_write(&items, i, out), members[i]);
        for (int64_t k = 0; k < members[i]; k++)
            seen |= 1u << out[k];
    }
    ck_assert_uint_eq(seen, 63);
    hbp__items_close(&items);
    OK(context, hbp__items_open(context, lengths, 8, 100, 0, 0, &items));
    ck_assert_uint_eq(items.size[2], 24);
    hbp__items_close(&items);
    FAILS(context, HBP_E_INFEASIBLE,
          "with its linked samples has 16 tokens with padding; the longest pack holds 15",
          hbp__items_open(context, lengths, 1, 15, 0, 0, &items));
    hbp__items_close(&items);
}
END_TEST

static hbp_status open_and_close(hbp_context *context, void *user)
{
    hbp__items items;
    hbp_status status = hbp__items_open(context, user, 1, 100, 0, 0, &items);
    hbp__items_close(&items);
    return status;
}

START_TEST_IN_CONTEXT(failing_allocations_leave_nothing)
{
    hbp_lengths *lengths = keep(linked(context));
    failing_sweep(open_and_close, lengths);
}
END_TEST

TEST_MAIN("items", items_ascend_and_name_every_sample_once, tied_samples_are_one_item,
          failing_allocations_leave_nothing)
