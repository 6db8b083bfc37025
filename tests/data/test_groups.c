#include "data/packs/groups.h"

#include "costs.h"
#include "keep.h"

START_TEST_IN_CONTEXT(a_view_shows_the_columns)
{
    hbp_cost *cost = keep(test_cost(context));
    hbp_groups *groups = NULL;
    OK(context, hbp_groups_create(context, cost, 2, (int64_t[]){4096, 32768}, (int32_t[]){1, 4}, NULL, 131072,
                                  &groups));
    hbp_groups_view view = groups_view(groups);
    ck_assert_int_eq(view.thresholds[1], 32768);
    ck_assert_int_eq(view.groups, 2);
    ck_assert_int_eq(view.pack_lengths[0], 4096);
    ck_assert_int_eq(view.sp[1], 4);
    ck_assert_int_eq(view.recompute[0], 0);
    ck_assert_int_eq(view.packs[1], 4);
    ck_assert_int_eq(view.micro_batches[0], 2);
    ck_assert_int_eq(view.tokens[0], 0);
    ck_assert_int_gt(view.step_ns[0], 0);
    ck_assert_int_eq(view.tokens_per_step, 131072);
    ck_assert_str_eq(view.candidate_texts[0], "4096 x SP 1, 32768 x SP 4");
    ck_assert_int_eq(view.candidates, 1);
    /* The coefficients are the cost's. */
    for (int64_t g = 0; g < 2; g++) {
        int64_t tokens = groups->pack_length[g];
        double ns = groups->token_ns[g] * (double)tokens + groups->square_ns[g] * 1e8 + groups->fixed_ns[g];
        int64_t expected =
            hbp_cost_predict_pack_ns(cost, groups->sp[g], groups->recompute[g], tokens, 1e8, 0);
        ck_assert(ns - (double)expected < 2 && (double)expected - ns < 2);
    }
    hbp_groups_free(groups);
    hbp_groups_free(NULL);
    hbp_groups_view none = {.struct_size = sizeof none};
    ck_assert_int_eq(hbp_groups_get_view(NULL, &none), HBP_E_INVALID);
    ck_assert_ptr_null(none.sp);
    ck_assert_int_eq(none.groups, 0);
}
END_TEST

START_TEST(a_long_description_is_cut)
{
    int64_t length[HBP_MAX_GROUPS];
    int32_t sp[HBP_MAX_GROUPS];
    char text[HBP__CANDIDATE_TEXT + 8];
    memset(text, 7, sizeof text);
    for (int g = 0; g < HBP_MAX_GROUPS; g++) {
        length[g] = INT64_MAX - g;
        sp[g] = 1000000;
    }
    hbp__groups_describe(length, sp, HBP_MAX_GROUPS, text);
    ck_assert_uint_lt(strlen(text), HBP__CANDIDATE_TEXT);
    for (int i = HBP__CANDIDATE_TEXT; i < HBP__CANDIDATE_TEXT + 8; i++)
        ck_assert_int_eq(text[i], 7);
}
END_TEST

TEST_MAIN("groups", a_view_shows_the_columns, a_long_description_is_cut)
