#include "base/rng.h"
#include "data/lengths/lengths.h"
#include "failing.h"
#include "keep.h"

#define COUNT 5000

#define COLUMNS(...) (&(hbp_lengths_columns){.struct_size = sizeof(hbp_lengths_columns), __VA_ARGS__})

static int64_t lengths_in[COUNT], loss_in[COUNT], links_in[COUNT], vision_in[COUNT];
static int32_t modalilinks_in[COUNT];

static void draw_columns(void)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        lengths_in[i] = 1 + hbp__rng_below(&rng, 4000);
        loss_in[i] = hbp__rng_below(&rng, (uint64_t)lengths_in[i] + 1);
        links_in[i] = (int64_t)hbp__rng_below(&rng, 3000) - 1;
        vision_in[i] = hbp__rng_below(&rng, 6);
        modalilinks_in[i] = (int32_t)hbp__rng_below(&rng, HBP_MAX_MODALITIES);
    }
}

/* The columns from row `begin` on. */
static hbp_lengths_columns columns_from(int64_t begin)
{
    hbp_lengths_columns columns = {.struct_size = sizeof columns};
    columns.loss_tokens = loss_in + begin;
    columns.links = links_in + begin;
    columns.vision = vision_in + begin;
    columns.modalities = modalilinks_in + begin;
    return columns;
}

START_TEST_IN_CONTEXT(pieces_make_what_one_array_makes)
{
    draw_columns();
    uint32_t loss[COUNT];
    for (int i = 0; i < COUNT; i++)
        loss[i] = (uint32_t)loss_in[i];
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss, .links = links_in};
    hbp_lengths *whole, *built;
    MAKES(context, whole, hbp_lengths_create_i64(context, lengths_in, COUNT, &options, &whole));
    hbp_lengths_builder *builder;
    OK(context, hbp_lengths_builder_create(context, &builder));
    for (int64_t begin = 0, piece = 0; begin < COUNT; begin += piece++) {
        int64_t n = piece < COUNT - begin ? piece : COUNT - begin;
        OK(context,
           hbp_lengths_builder_append(context, builder, lengths_in + begin,
                                      COLUMNS(.loss_tokens = loss_in + begin, .links = links_in + begin), n));
    }
    MAKES(context, built, hbp_lengths_builder_finish(context, builder, &built));
    hbp_lengths_builder_free(builder);
    ck_assert_int_eq(built->count, COUNT);
    ck_assert_uint_eq(built->digest, whole->digest);
    ck_assert_int_eq(built->links, whole->links);
    ck_assert_mem_eq(built->length, whole->length, COUNT * sizeof *whole->length);
    ck_assert_mem_eq(built->loss, whole->loss, COUNT * sizeof *whole->loss);
    ck_assert_mem_eq(built->link, whole->link, COUNT * sizeof *whole->link);
}
END_TEST

START_TEST_IN_CONTEXT(pieces_with_a_second_size_too)
{
    draw_columns();
    uint32_t loss[COUNT], vision[COUNT];
    for (int i = 0; i < COUNT; i++) {
        loss[i] = (uint32_t)loss_in[i];
        vision[i] = (uint32_t)vision_in[i];
    }
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .loss_tokens = loss,
                                   .links = links_in,
                                   .vision = vision,
                                   .modalities = modalilinks_in};
    hbp_lengths *whole, *built;
    MAKES(context, whole, hbp_lengths_create_i64(context, lengths_in, COUNT, &options, &whole));
    hbp_lengths_builder *builder;
    MAKES(context, builder, hbp_lengths_builder_create(context, &builder));
    for (int64_t begin = 0, piece = 0; begin < COUNT; begin += piece++) {
        int64_t n = piece < COUNT - begin ? piece : COUNT - begin;
        hbp_lengths_columns columns = columns_from(begin);
        OK(context, hbp_lengths_builder_append(context, builder, lengths_in + begin, &columns, n));
    }
    OK(context, hbp_lengths_builder_finish(context, builder, &built));
    ck_assert_uint_eq(built->digest, whole->digest);
    ck_assert_mem_eq(built->vision, vision, sizeof vision);
    ck_assert_mem_eq(built->modality, whole->modality, COUNT);
    ck_assert_mem_eq(built->link, whole->link, COUNT * sizeof *whole->link);
    ck_assert_int_eq(built->vision_sum, whole->vision_sum);
    hbp_lengths_free(built);
    /* no columns at all, and a caller that knows fewer of them */
    OK(context, hbp_lengths_builder_append(context, builder, lengths_in, NULL, 7));
    OK(context, hbp_lengths_builder_append(context, builder, lengths_in + 7, NULL, 7));
    hbp_lengths_columns older = columns_from(14);
    older.struct_size = 8;
    OK(context, hbp_lengths_builder_append(context, builder, lengths_in + 14, &older, 7));
    OK(context, hbp_lengths_builder_finish(context, builder, &built));
    ck_assert_int_eq(built->count, 21);
    ck_assert(!built->vision && !built->modality && !built->loss && !built->link);
    hbp_lengths_free(built);
}
END_TEST

START_TEST_IN_CONTEXT(pieces_with_a_shift_too)
{
    draw_columns();
    uint32_t loss[COUNT];
    for (int i = 0; i < COUNT; i++)
        loss[i] = (uint32_t)loss_in[i];
    hbp_lengths_options options = {.struct_size = sizeof options, .loss_tokens = loss, .shifted_loss = 1};
    hbp_lengths *whole, *built;
    MAKES(context, whole, hbp_lengths_create_i64(context, lengths_in, COUNT, &options, &whole));
    hbp_lengths_builder *builder;
    MAKES(context, builder, hbp_lengths_builder_create(context, &builder));
    for (int64_t begin = 0; begin < COUNT; begin += COUNT / 2)
        OK(context,
           hbp_lengths_builder_append(context, builder, lengths_in + begin,
                                      COLUMNS(.loss_tokens = loss_in + begin, .shifted_loss = 1), COUNT / 2));
    MAKES(context, built, hbp_lengths_builder_finish(context, builder, &built));
    ck_assert_uint_eq(built->digest, whole->digest);
    ck_assert_int_eq(built->shifted_loss, 1);
    ck_assert_int_eq(built->loss_tokens, whole->loss_tokens);
}
END_TEST

START_TEST_IN_CONTEXT(bad_columns_are_refused_by_sample)
{
    const int64_t good[] = {4, 2}, negative[] = {0, -1}, wide[] = {INT32_MAX, INT64_C(1) << 31};
    const int32_t kinds[] = {61, 0}, past[] = {0, 62}, below[] = {-1, 0};
    hbp_lengths_columns all = {.struct_size = sizeof all, .vision = good, .modalities = kinds}, bad = all;
    hbp_lengths *out;
    hbp_lengths_builder *builder;
    MAKES(context, builder, hbp_lengths_builder_create(context, &builder));
    OK(context, hbp_lengths_builder_append(context, builder, good, &all, 2));
    bad.vision = negative;
    FAILS(context, HBP_E_INVALID, "sample 3 has -1 vision units; the fewest allowed is 0",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    bad.vision = wide;
    FAILS(context, HBP_E_OVERFLOW, "sample 3 has 2147483648 vision units; the most allowed is 2147483647",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    bad.vision = NULL;
    FAILS(context, HBP_E_INVALID, "vision units come with every piece or with none; sample 2",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    bad = all;
    bad.modalities = past;
    FAILS(context, HBP_E_INVALID, "sample 3 is of modality 62; modalities are numbered 0 to 61",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    bad.modalities = below;
    FAILS(context, HBP_E_INVALID, "sample 2 is of modality -1",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    bad.modalities = NULL;
    FAILS(context, HBP_E_INVALID, "modalities come with every piece or with none; sample 2",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    FAILS(context, HBP_E_INVALID, "vision units come with every piece",
          hbp_lengths_builder_append(context, builder, good, NULL, 2));
    bad = all;
    bad.shifted_loss = 7;
    FAILS(context, HBP_E_INVALID, "shifted_loss is 1 for sample 2 and 0 for those before",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    bad.struct_size = 3;
    FAILS(context, HBP_E_INVALID, "hbp_lengths_columns.struct_size is 3",
          hbp_lengths_builder_append(context, builder, good, &bad, 2));
    FAILS(context, HBP_E_INVALID, "builder is NULL",
          hbp_lengths_builder_append(context, NULL, good, &all, 2));
    OK(context, hbp_lengths_builder_append(context, builder, good, &all, 2));
    MAKES(context, out, hbp_lengths_builder_finish(context, builder, &out));
    ck_assert_int_eq(out->vision_sum, 12);
    ck_assert_int_eq(hbp_lengths_get_modality(out, 2), 61);
}
END_TEST

START_TEST_IN_CONTEXT(a_bad_piece_is_refused_and_the_rest_stands)
{
    const int64_t good[] = {4, 2}, bad[] = {4, 0}, loss[] = {4, 0}, much[] = {1, 3}, links[] = {-1, -2};
    const int64_t wide[] = {4, INT64_C(1) << 31};
    hbp_lengths *out;
    hbp_lengths_builder *builder;
    OK(context, hbp_lengths_builder_create(context, &builder));
    FAILS(context, HBP_E_INVALID, "has 0 samples", hbp_lengths_builder_finish(context, builder, &out));
    ck_assert_ptr_null(out);
    OK(context, hbp_lengths_builder_append(context, builder, NULL, NULL, 0));
    OK(context, hbp_lengths_builder_append(context, builder, good, COLUMNS(.loss_tokens = loss), 2));
    FAILS(context, HBP_E_INVALID, "sample 3 has 0 tokens",
          hbp_lengths_builder_append(context, builder, bad, COLUMNS(.loss_tokens = loss), 2));
    FAILS(context, HBP_E_OVERFLOW, "sample 3 has 2147483648 tokens",
          hbp_lengths_builder_append(context, builder, wide, COLUMNS(.loss_tokens = loss), 2));
    FAILS(context, HBP_E_INVALID, "sample 3 has 3 loss tokens but 2 tokens",
          hbp_lengths_builder_append(context, builder, good, COLUMNS(.loss_tokens = much), 2));
    FAILS(context, HBP_E_INVALID, "loss tokens come with every piece or with none; sample 2",
          hbp_lengths_builder_append(context, builder, good, NULL, 2));
    FAILS(
        context, HBP_E_INVALID, "links come with every piece or with none; sample 2",
        hbp_lengths_builder_append(context, builder, good, COLUMNS(.loss_tokens = loss, .links = links), 2));
    FAILS(context, HBP_E_INVALID, "lengths is NULL",
          hbp_lengths_builder_append(context, builder, NULL, COLUMNS(.loss_tokens = loss), 2));
    FAILS(context, HBP_E_INVALID, "count is -1",
          hbp_lengths_builder_append(context, builder, good, COLUMNS(.loss_tokens = loss), -1));
    FAILS(context, HBP_E_OVERFLOW, "the most allowed",
          hbp_lengths_builder_append(context, builder, good, COLUMNS(.loss_tokens = loss), INT64_MAX));
    OK(context, hbp_lengths_builder_append(context, builder, good, COLUMNS(.loss_tokens = loss), 2));
    OK(context, hbp_lengths_builder_finish(context, builder, &out));
    ck_assert_int_eq(out->count, 4);
    ck_assert_int_eq(out->tokens, 12);
    ck_assert_int_eq(out->loss_tokens, 8);
    hbp_lengths_free(out);
    /* the builder is as new */
    OK(context, hbp_lengths_builder_append(context, builder, good, NULL, 2));
    FAILS(context, HBP_E_INVALID, "links come with",
          hbp_lengths_builder_append(context, builder, good, COLUMNS(.links = links), 2));
    OK(context, hbp_lengths_builder_finish(context, builder, &out));
    ck_assert_int_eq(out->loss_tokens, 6);
    hbp_lengths_free(out);
    FAILS(context, HBP_E_INVALID, "sample 1 has link -2",
          hbp_lengths_builder_append(context, builder, good, COLUMNS(.links = links), 2));
    hbp_lengths_builder_free(builder);
    hbp_lengths_builder_free(NULL);
    FAILS(context, HBP_E_INVALID, "builder is NULL", hbp_lengths_builder_finish(context, NULL, &out));
}
END_TEST

static hbp_status build(hbp_context *context, void *user)
{
    (void)user;
    hbp_lengths *out = NULL;
    hbp_lengths_builder *builder;
    hbp_status status = hbp_lengths_builder_create(context, &builder);
    for (int64_t begin = 0; status >= 0 && begin < COUNT; begin += COUNT / 5) {
        hbp_lengths_columns columns = columns_from(begin);
        status = hbp_lengths_builder_append(context, builder, lengths_in + begin, &columns, COUNT / 5);
    }
    if (status >= 0)
        status = hbp_lengths_builder_finish(context, builder, &out);
    ck_assert((status == HBP_OK) == (out != NULL));
    hbp_lengths_builder_free(builder);
    hbp_lengths_free(out);
    return status;
}

START_TEST(failed_allocations_and_cancels_leave_nothing)
{
    draw_columns();
    failing_sweep(build, NULL);
    ck_assert_int_gt(cancel_sweep(build, NULL), 5);
}
END_TEST

/* A first piece that runs out of memory half-way may be followed by one with other columns. */
START_TEST(a_failed_first_piece_leaves_no_column_behind)
{
    for (int64_t n = 0; n < 5; n++) {
        failing f;
        hbp_context *context = failing_context(&f, NULL, NULL);
        const int64_t good[] = {4, 2}, loss[] = {4, 0}, links[] = {5, 5};
        const int32_t kinds[] = {3, 4};
        const hbp_lengths_columns columns = {.struct_size = sizeof columns,
                                             .loss_tokens = loss,
                                             .links = links,
                                             .vision = good,
                                             .modalities = kinds};
        hbp_lengths *out;
        hbp_lengths_builder *builder;
        OK(context, hbp_lengths_builder_create(context, &builder));
        f.left = n;
        FAILS(context, HBP_E_NO_MEMORY, "memory",
              hbp_lengths_builder_append(context, builder, good, &columns, 2));
        f.left = -1;
        OK(context, hbp_lengths_builder_append(context, builder, good, NULL, 2));
        OK(context, hbp_lengths_builder_finish(context, builder, &out));
        ck_assert_int_eq(out->loss_tokens, 6);
        ck_assert(!out->link && !out->vision && !out->modality);
        hbp_lengths_free(out);
        hbp_lengths_builder_free(builder);
        hbp_context_free(context);
        ck_assert_int_eq(f.live, 0);
    }
}
END_TEST

TEST_MAIN("lengths_builder", pieces_make_what_one_array_makes, pieces_with_a_second_size_too,
          pieces_with_a_shift_too, bad_columns_are_refused_by_sample,
          a_bad_piece_is_refused_and_the_rest_stands, failed_allocations_and_cancels_leave_nothing,
          a_failed_first_piece_leaves_no_column_behind)
