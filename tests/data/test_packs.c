#include "data/packs/packs.h"

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
    hbp_packs_view view = packs_view(packs);
    ck_assert_int_eq(view.pack_offsets[2], 4);
    ck_assert_int_eq(view.pack_tokens[1], 70014);
    ck_assert_int_eq(view.packs, 2);
    ck_assert_int_eq(view.pack_padded_tokens[0], 64);
    ck_assert_int_eq(view.pack_padded_tokens[1], 70080);
    ck_assert_int_eq(view.pack_squares[1], INT64_C(4900000106));
    ck_assert_int_eq(view.pack_groups[0], 1);
    ck_assert_uint_eq(view.sample_indices[1], 1);
    ck_assert_int_eq(view.samples, 4);
    ck_assert_int_eq(view.groups, 0);
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
    hbp_packs_view none = {.struct_size = sizeof none};
    ck_assert_int_eq(hbp_packs_get_view(NULL, &none), HBP_E_INVALID);
    ck_assert_ptr_null(none.pack_tokens);
    ck_assert_int_eq(none.packs, 0);
}
END_TEST

START_TEST_IN_CONTEXT(vision_units_are_summed_and_left_out_samples_listed)
{
    hbp_lengths *lengths = NULL;
    hbp_lengths_options options = {.struct_size = sizeof options, .vision = (uint32_t[]){2, 0, 7, 1, 90}};
    OK(context, hbp_lengths_create_i64(context, (int64_t[]){5, 7, 3, 9, 4}, 5, &options, &lengths));
    hbp_packs *packs = keep(hbp__packs_new(context, lengths, 1));
    hbp_packs_view view = packs_view(packs);
    ck_assert_ptr_null(view.dropped_indices);
    ck_assert_int_eq(view.dropped, 0);
    ck_assert_ptr_null(view.dropped_reasons);
    ck_assert(packs->max_vision[0] == INT64_MAX && packs->max_vision[HBP_MAX_GROUPS - 1] == INT64_MAX);
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
    view = packs_view(packs);
    ck_assert_int_eq(view.pack_vision[0], 7);
    ck_assert_int_eq(view.packs, 3);
    ck_assert_int_eq(view.pack_vision[1], 3);
    ck_assert_int_eq(view.pack_vision[2], 0);
    ck_assert_uint_eq(view.dropped_indices[0], 4);
    ck_assert_int_eq(view.dropped, 1);
    ck_assert_int_eq(view.dropped_reasons[0], HBP_DROPPED_OVERVISION);
    ck_assert_int_eq(view.dropped, 1);
    hbp_lengths_free(lengths);
    lengths = test_long_tail(context, 1, 10, 10);
    packs = keep(hbp__packs_new(context, lengths, 3));
    ck_assert_ptr_null(packs_view(packs).pack_vision);
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
