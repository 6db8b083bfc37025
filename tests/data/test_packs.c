#include "data/packs.h"

#include "costs.h"
#include "failing.h"
#include "keep.h"

START_TEST_IN_CONTEXT(packs_are_columns_over_lengths_they_keep_alive)
{
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_i64(context, (int64_t[]){5, 70000, 3, 9}, 4, NULL, &lengths));
    hbp_packs *packs = hbp__packs_new(context, lengths, 2);
    hbp_lengths_free(lengths);
    static const uint32_t sample[] = {2, 1, 3, 0};
    memcpy(packs->sample, sample, sizeof sample);
    packs->offsets[1] = 1;
    packs->offsets[2] = 4;
    packs->group[0] = 1;
    packs->group[1] = 0;
    packs->sequence_multiple = 4;
    packs->pack_multiple = 64;
    OK(context, hbp__packs_measure(context, packs));
    int64_t count;
    ck_assert_int_eq(hbp_packs_get_offsets(packs, &count)[2], 4);
    ck_assert_int_eq(count, 3);
    ck_assert_int_eq(hbp_packs_get_tokens(packs, &count)[1], 70014);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(hbp_packs_get_padded_tokens(packs, NULL)[0], 64);
    ck_assert_int_eq(hbp_packs_get_padded_tokens(packs, NULL)[1], 70080);
    ck_assert_int_eq(hbp_packs_get_squares(packs, NULL)[1], INT64_C(4900000106));
    ck_assert_int_eq(hbp_packs_get_groups(packs, NULL)[0], 1);
    ck_assert_uint_eq(hbp_packs_get_samples(packs, &count)[1], 1);
    ck_assert_int_eq(count, 4);
    ck_assert_int_eq(hbp_packs_get_bound(packs, 0), -1);
    /* Brief lengths serve as well as looked-up ones; 0 stands for one that does not fit. */
    packs->brief = hbp__new(&context->memory, 4, sizeof *packs->brief);
    static const uint16_t brief[] = {3, 0, 9, 5};
    memcpy(packs->brief, brief, sizeof brief);
    for (int64_t i = 0; i < 4; i++)
        ck_assert_int_eq(hbp__packs_length(packs, i), hbp_lengths_get_length(packs->lengths, sample[i]));
    ck_assert(hbp__packs_reserve(packs, 100));
    ck_assert_int_eq(packs->offsets[2], 4);
    hbp_packs_free(packs);
    hbp_packs_free(NULL);
    ck_assert_ptr_null(hbp_packs_get_tokens(NULL, &count));
    ck_assert_int_eq(count, 0);
}
END_TEST

START_TEST_IN_CONTEXT(vision_units_are_summed_and_left_out_samples_listed)
{
    hbp_lengths *lengths = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = (uint32_t[]){2, 0, 7, 1, 90}};
    OK(context, hbp_lengths_create_i64(context, (int64_t[]){5, 7, 3, 9, 4}, 5, &options, &lengths));
    hbp_packs *packs = keep(hbp__packs_new(context, lengths, 1));
    int64_t count = -1;
    ck_assert_ptr_null(hbp_packs_get_dropped(packs, &count));
    ck_assert_int_eq(count, 0);
    count = -1;
    ck_assert_ptr_null(hbp_packs_get_dropped_reasons(packs, &count));
    ck_assert_int_eq(count, 0);
    ck_assert(packs->max_vision == INT64_MAX);
    ck_assert(hbp__packs_reserve(packs, 3));
    packs->count = 3;
    packs->samples = 4;
    static const uint32_t sample[] = {2, 1, 3, 0};
    memcpy(packs->sample, sample, sizeof sample);
    packs->offsets[1] = 1;
    packs->offsets[2] = packs->offsets[3] = 4;
    packs->dropped = 1;
    packs->dropped_sample = hbp__new(&context->memory, 1, sizeof *packs->dropped_sample);
    packs->dropped_reason = hbp__new(&context->memory, 1, sizeof *packs->dropped_reason);
    packs->dropped_sample[0] = 4;
    packs->dropped_reason[0] = HBP_DROPPED_OVERVISION;
    OK(context, hbp__packs_measure(context, packs));
    ck_assert_int_eq(hbp_packs_get_vision(packs, &count)[0], 7);
    ck_assert_int_eq(count, 3);
    ck_assert_int_eq(hbp_packs_get_vision(packs, NULL)[1], 3);
    ck_assert_int_eq(hbp_packs_get_vision(packs, NULL)[2], 0);
    ck_assert_uint_eq(hbp_packs_get_dropped(packs, &count)[0], 4);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(hbp_packs_get_dropped_reasons(packs, &count)[0], HBP_DROPPED_OVERVISION);
    ck_assert_int_eq(count, 1);
    hbp_lengths_free(lengths);
    ck_assert_ptr_null(hbp_packs_get_vision(NULL, &count));
    ck_assert_int_eq(count, 0);
    lengths = test_long_tail(context, 1, 10, 10);
    packs = keep(hbp__packs_new(context, lengths, 3));
    count = -1;
    ck_assert_ptr_null(hbp_packs_get_vision(packs, &count));
    ck_assert_int_eq(count, 0);
    hbp_lengths_free(lengths);
}
END_TEST

static hbp_status make(hbp_context *context, void *user)
{
    hbp_packs *packs = hbp__packs_new(context, user, 3);
    hbp_packs_free(packs);
    return packs ? HBP_OK : hbp__fail_memory(context, "packs");
}

START_TEST_IN_CONTEXT(nothing_is_left_behind)
{
    hbp_lengths *lengths = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = (uint32_t[]){1, 2, 3}};
    MAKES(context, lengths, hbp_lengths_create_i64(context, (int64_t[]){5, 7, 3}, 3, &options, &lengths));
    failing_sweep(make, lengths);
}
END_TEST

TEST_MAIN("packs", packs_are_columns_over_lengths_they_keep_alive,
          vision_units_are_summed_and_left_out_samples_listed, nothing_is_left_behind)
