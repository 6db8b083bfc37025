#include "data/packs.h"

#include "costs.h"
#include "failing.h"

START_TEST(packs_are_columns_over_lengths_they_keep_alive)
{
    hbp_context *context = test_context();
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
    hbp_context_free(context);
}
END_TEST

static hbp_status make(hbp_context *context, void *user)
{
    hbp_packs *packs = hbp__packs_new(context, user, 3);
    hbp_packs_free(packs);
    return packs ? HBP_OK : hbp__fail_memory(context, "packs");
}

START_TEST(nothing_is_left_behind)
{
    hbp_context *context = test_context();
    hbp_lengths *lengths = test_long_tail(context, 1, 10, 10);
    failing_sweep(make, lengths);
    hbp_lengths_free(lengths);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("packs", packs_are_columns_over_lengths_they_keep_alive, nothing_is_left_behind)
