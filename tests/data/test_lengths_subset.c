#include "data/lengths/lengths_subset.h"

#include "failing.h"
#include "keep.h"

static hbp_lengths *whole(hbp_context *context)
{
    static const int64_t length[] = {50, 20, 30, 40, 10, 60};
    static const uint32_t loss[] = {5, 20, 0, 4, 1, 6};
    static const int64_t link[] = {7, -1, 7, 9, 9, 7};
    static const uint32_t vision[] = {0, 3, 1, 4, 0, 2};
    static const int32_t kinds[] = {0, 1, 6, 1, 0, 1};
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .loss_tokens = loss,
                                   .links = link,
                                   .vision = vision,
                                   .modalities = kinds};
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, length, 6, &options, &lengths));
    return lengths;
}

START_TEST_IN_CONTEXT(a_part_keeps_its_second_size)
{
    hbp_lengths *lengths = keep(whole(context)), *part = NULL, *split = NULL;
    static const uint32_t index[] = {5, 2, 0};
    MAKES(context, part, hbp__lengths_subset(context, lengths, index, 3, &part));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(hbp_lengths_get_vision(part, i), hbp_lengths_get_vision(lengths, index[i]));
        ck_assert_int_eq(hbp_lengths_get_modality(part, i), hbp_lengths_get_modality(lengths, index[i]));
    }
    ck_assert_int_eq(part->vision_sum, 3);
    ck_assert_int_eq(part->modalities, 1 << 6 | 3);
    /* kinds that follow from the vision units need no column */
    MAKES(context, part, hbp__lengths_subset(context, lengths, (uint32_t[]){0, 1, 3}, 3, &part));
    ck_assert_ptr_null(part->modality);
    ck_assert_int_eq(hbp_lengths_get_modality(part, 1), 1);
    /* a later piece of a split sample */
    const uint32_t long_one[] = {25}, units[] = {8};
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = units};
    MAKES(context, lengths, hbp_lengths_create_u32(context, long_one, 1, &options, &lengths));
    MAKES(context, split, hbp_lengths_limit(context, lengths, 10, HBP_OVERLONG_SPLIT, &split));
    MAKES(context, part, hbp__lengths_subset(context, split, (uint32_t[]){2, 1}, 2, &part));
    ck_assert_int_eq(part->vision_sum, 0);
    ck_assert_int_eq(part->modalities, 2);
    ck_assert_uint_eq(part->first[0], 20);
}
END_TEST

START_TEST_IN_CONTEXT(a_part_keeps_names_losses_and_links)
{
    hbp_lengths *lengths = keep(whole(context)), *part = NULL, *smaller = NULL;
    static const uint32_t index[] = {5, 3, 1, 0};
    MAKES(context, part, hbp__lengths_subset(context, lengths, index, 4, &part));
    ck_assert_int_eq(part->count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(hbp_lengths_get_length(part, i), hbp_lengths_get_length(lengths, index[i]));
        ck_assert_uint_eq(part->origin[i], index[i]);
        ck_assert_uint_eq(part->loss[i], lengths->loss[index[i]]);
    }
    ck_assert_uint_eq(part->link[0], part->link[3]);
    ck_assert_uint_ne(part->link[0], HBP__FREE);
    ck_assert_uint_eq(part->link[1], HBP__FREE); /* its mate stayed behind */
    MAKES(context, smaller, hbp__lengths_subset(context, part, (uint32_t[]){2, 0}, 2, &smaller));
    ck_assert_uint_eq(smaller->origin[0], 1);
    ck_assert_uint_eq(smaller->origin[1], 5);
    ck_assert_int_eq(smaller->tokens, 80);
}
END_TEST

START_TEST_IN_CONTEXT(a_histogram_has_parts_too)
{
    hbp_lengths *lengths = NULL, *part = NULL;
    MAKES(context, lengths,
          hbp_lengths_create_histogram(context, (int64_t[]){9, 4}, (int64_t[]){2, 3}, 2, &lengths));
    MAKES(context, part, hbp__lengths_subset(context, lengths, (uint32_t[]){4, 0}, 2, &part));
    ck_assert_int_eq(hbp_lengths_get_length(part, 0), 9);
    ck_assert_int_eq(hbp_lengths_get_length(part, 1), 4);
}
END_TEST

static hbp_status take(hbp_context *context, void *user)
{
    hbp_lengths *part = NULL;
    hbp_status status = hbp__lengths_subset(context, user, (uint32_t[]){0, 2, 5}, 3, &part);
    ck_assert_int_eq(status == HBP_OK, part != NULL);
    hbp_lengths_free(part);
    return status;
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_lengths *lengths = keep(whole(context));
    failing_sweep(take, lengths);
}
END_TEST

TEST_MAIN("lengths_subset", a_part_keeps_names_losses_and_links, a_part_keeps_its_second_size,
          a_histogram_has_parts_too, nothing_is_left_behind)
