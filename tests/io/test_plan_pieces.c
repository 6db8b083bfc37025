/* Files of plans that tell which pieces of split samples were dropped. */
#include "hbp/io.h"
#include "plan_changes.h"

#include <jansson.h>

static hbp_plan *make(hbp_context *context, uint64_t seed, int64_t count)
{
    hbp_lengths *all = plans_lengths(context, seed, count, 30, 1, 0), *lengths = NULL;
    OK(context, hbp_lengths_limit(context, all, 12, HBP_OVERLONG_SPLIT, &lengths));
    plans_shape shape = plans_draw(seed);
    shape.ranks = shape.domain_ranks = 2;
    shape.left_over = 3;
    shape.pieces = 1;
    hbp_plan *plan = plans_make(&shape, lengths);
    OK(context, hbp__plan_check(context, plan));
    ck_assert_int_eq(plan->dropped, 3);
    ck_assert(plan->dropped_first_tokens && plan->dropped_tokens);
    hbp_lengths_free(all);
    hbp_lengths_free(lengths);
    return plan;
}

START_TEST(pieces_come_back_as_they_were)
{
    int by_degree_seen[2] = {0, 0};
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_plan *plan = make(context, seed, 10 + (int64_t)seed * 9), *back;
        hbp_plan_save_options options = {.struct_size = sizeof options, .level = (int32_t)(seed % 11) - 1};
        size_t bytes;
        uint8_t *data = saved(context, plan, &options, &bytes);
        ck_assert_int_eq(data[hbp__format_version_at(HBP__PLAN_FORMAT)], 3);
        OK(context, load_memory(context, data, bytes, &back));
        expect_same(plan, back);
        ck_assert_uint_eq(back->digest, plan->digest);
        /* A part lists nothing dropped, and is as old as without: padding by degree makes it new as well. */
        hbp_plan *slice;
        OK(context, hbp__plan_slice(context, plan, 0, plan->steps, &slice));
        int by_degree = plan->sequence_multiple_per_sp || plan->pack_multiple_per_sp;
        ck_assert_ptr_null(slice->dropped_tokens);
        ck_assert_int_eq(hbp__plan_format_version(slice), by_degree ? 3 : 1);
        by_degree_seen[by_degree]++;
        hbp_plan_free(slice);
        hbp_plan_free(back);
        /* The digest covers both columns. */
        uint64_t digest = plan->digest;
        plan->dropped_first_tokens[2]++;
        hbp__plan_seal(plan);
        ck_assert_uint_ne(plan->digest, digest);
        plan->dropped_first_tokens[2]--;
        plan->dropped_tokens[1]++;
        hbp__plan_seal(plan);
        ck_assert_uint_ne(plan->digest, digest);
        hbp_plan_free(plan);
        free(data);
    }
    ck_assert(by_degree_seen[0] && by_degree_seen[1]);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_view_gives_both_columns)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 3, 12);
    hbp_plan_view view = plan_view(plan);
    ck_assert_int_eq(view.dropped, 3);
    ck_assert_ptr_eq(view.dropped_first_tokens, plan->dropped_first_tokens);
    ck_assert_ptr_eq(view.dropped_tokens, plan->dropped_tokens);
    hbp_plan_free(plan);
    plan = drawn_plan(context, 9, 60); /* split, one left over, pieces not told */
    ck_assert(plan->sample_first_tokens && plan->dropped == 1);
    view = plan_view(plan);
    ck_assert_ptr_null(view.dropped_first_tokens);
    ck_assert_ptr_null(view.dropped_tokens);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

START_TEST(values_that_cannot_be)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 3, 12);
    int64_t first = plan->dropped_first_tokens[1];
    plan->dropped_first_tokens[1] = -1;
    FAILS(context, HBP_E_INVALID, "dropped row 1: the first token is -1", hbp__plan_check(context, plan));
    plan->dropped_first_tokens[1] = INT64_C(1) << 31;
    FAILS(context, HBP_E_INVALID, "dropped row 1: the first token is 2147483648",
          hbp__plan_check(context, plan));
    plan->dropped_first_tokens[1] = first;
    plan->dropped_tokens[2] = -5;
    FAILS(context, HBP_E_INVALID, "dropped row 2: the tokens is -5", hbp__plan_check(context, plan));
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

START_TEST(json_tells_them)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 3, 12);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "plan.json");
    OK(context, hbp_plan_write_json(context, plan, path));
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *row;
    json_t *dropped = json_object_get(root, "dropped");
    ck_assert_int_eq((int64_t)json_array_size(dropped), 3);
    size_t i;
    json_array_foreach(dropped, i, row)
    {
        ck_assert_int_eq(json_integer_value(json_object_get(row, "id")), plan->dropped_ids[i]);
        ck_assert_int_eq(json_integer_value(json_object_get(row, "first_token")),
                         plan->dropped_first_tokens[i]);
        ck_assert_int_eq(json_integer_value(json_object_get(row, "tokens")), plan->dropped_tokens[i]);
    }
    json_decref(root);
    hbp_plan_free(plan);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

START_TEST_IN_CONTEXT(a_changed_byte_does_no_harm)
{
    hbp_plan *original = keep(make(context, 21, 8));
    const harm_kind kind = plan_kind(original);
    size_t bytes;
    uint8_t *data = keep(saved(context, original, &small_options, &bytes));
    harm_found(&kind, data, bytes);
    expect_no_harm(data, bytes, original);
}
END_TEST

/* Readers of version 2 would find a chunk larger than they expect. */
START_TEST(an_older_version_has_no_pieces)
{
    hbp_context *context = test_context();
    hbp_plan *plan = make(context, 5, 20), *back;
    size_t bytes;
    uint8_t *data = saved(context, plan, &small_options, &bytes);
    for (int version = 1; version < 3; version++) {
        change_version(data, bytes, version);
        ck_assert_int_eq(load_memory(context, data, bytes, &back), HBP_E_FORMAT);
    }
    hbp_plan_free(plan);
    free(data);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0, when dropped pieces came to be told. */
START_TEST(the_golden_file_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    hbp_plan *plan = golden_plan(context, "pieces.msgpack", UINT64_C(0x5c0e043ce0701c42));
    ck_assert_int_eq(plan->dropped, 3);
    hbp_plan_free(plan);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("plan_pieces", pieces_come_back_as_they_were, a_view_gives_both_columns, values_that_cannot_be,
          json_tells_them, a_changed_byte_does_no_harm, an_older_version_has_no_pieces,
          the_golden_file_is_read_and_written_as_ever)
