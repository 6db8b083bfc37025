#include "failing.h"

#include "data/model/vlm.h"
#include "keep.h"

static hbp_model *small_language(hbp_context *context)
{
    hbp_model_fields f = {.struct_size = sizeof f};
    f.layers = 3;
    f.hidden = 24;
    f.ffn = 50;
    f.heads = 6;
    f.kv_heads = 2;
    f.vocab = 100;
    hbp_model *model = NULL;
    OK(context, hbp_model_create(context, &f, &model));
    return model;
}

static hbp_vlm_fields small(void)
{
    hbp_vlm_fields f = {.struct_size = sizeof f};
    f.vision_mlp = HBP_MLP_PLAIN;
    f.vision_layers = 2;
    f.vision_hidden = 8;
    f.vision_ffn = 20;
    f.vision_heads = 2;
    f.patch_values = 12;
    f.tokens_per_unit = 5;
    f.projected_per_unit = 3;
    f.projector_input = 16;
    return f;
}

START_TEST_IN_CONTEXT(a_small_model_by_hand)
{
    hbp_model *language = keep(small_language(context));
    hbp_vlm_fields f = small();
    hbp_vlm *vlm = NULL;
    OK(context, hbp_vlm_create(context, &f, language, &vlm));
    ck_assert_str_eq(hbp_vlm_get_name(vlm), "custom");
    hbp_vlm_fields read = {.struct_size = sizeof read};
    OK(context, hbp_vlm_get_fields(context, vlm, &read));
    ck_assert_int_eq(read.vision_head_dim, 4);
    ck_assert_int_eq(read.attention_tokens, 5);
    ck_assert_int_eq(read.projector_hidden, 24);
    hbp_vlm_summary s = {.struct_size = sizeof s};
    OK(context, hbp_vlm_get_summary(context, vlm, &s));
    hbp_model_summary of_language = {.struct_size = sizeof of_language};
    OK(context, hbp_model_get_summary(context, language, &of_language));
    /* Four projections of 8 x 8 with biases on three, two matrices of 8 x 20, two norms. */
    int64_t layer = 4 * 64 + 24 + 2 * 160 + 16;
    ck_assert_int_eq(s.layers, 2 + 3 + 5);
    ck_assert_int_eq(s.vision_parameters, 2 * layer + 12 * 8 + 8 + 5 * 8);
    ck_assert_int_eq(s.projector_parameters, 32 + 16 * 24 + 24 + 24 * 24 + 24);
    ck_assert_int_eq(s.language_parameters, of_language.parameters);
    /* Scores and their product with the values: 2 x 2 flops a head, dimension and pair of tokens. */
    ck_assert_double_eq(s.vision_flops_per_unit, 5. * 2 * 96 + 2 * (5. * 2 * (double)layer + 4. * 8 * 25) +
                                                     3. * 2 * (16 * 24 + 24 * 24));
    ck_assert_double_eq(s.language_flops_per_token, of_language.forward_flops_per_token);
    ck_assert_double_eq(s.language_flops_per_token_squared, of_language.forward_flops_per_token_squared);
    hbp_vlm_free(vlm);

    f.vision_mlp = HBP_MLP_GATED;
    f.vision_head_dim = 7;
    f.attention_tokens = 50;
    f.projector_hidden = 9;
    OK(context, hbp_vlm_create(context, &f, language, &vlm));
    OK(context, hbp_vlm_get_summary(context, vlm, &s));
    layer = 4 * 8 * 14 + 3 * 14 + 3 * 160 + 16;
    ck_assert_int_eq(s.vision_parameters, 2 * layer + 12 * 8 + 8 + 5 * 8);
    ck_assert_int_eq(s.projector_parameters, 32 + 16 * 9 + 9 + 9 * 24 + 24);
    ck_assert_double_eq(s.vision_flops_per_unit, 5. * 2 * 96 +
                                                     2 * (5. * 2 * (double)layer + 4. * 14 * 5 * 50) +
                                                     3. * 2 * (16 * 9 + 9 * 24));
    hbp_vlm_free(vlm);
}
END_TEST

START_TEST(the_language_model_is_a_copy)
{
    hbp_context *context = test_context();
    hbp_model *language = small_language(context);
    hbp_vlm_fields f = small();
    hbp_vlm *vlm = NULL;
    OK(context, hbp_vlm_create(context, &f, language, &vlm));
    hbp_model_free(language);
    const hbp_model *copy = hbp_vlm_get_language(vlm);
    hbp_model_fields read = {.struct_size = sizeof read};
    OK(context, hbp_model_get_fields(context, copy, &read));
    ck_assert_int_eq(read.hidden, 24);
    ck_assert_str_eq(hbp_model_get_name(copy), "custom");
    hbp_context_free(context); /* the model outlives it */
    ck_assert_str_eq(hbp_vlm_get_name(vlm), "custom");
    hbp_vlm_free(vlm);
    hbp_vlm_free(NULL);
    ck_assert_ptr_null(hbp_vlm_get_name(NULL));
    ck_assert_ptr_null(hbp_vlm_get_language(NULL));
}
END_TEST

START_TEST(heads_are_padded_for_tensor_parallelism)
{
    hbp_vlm_fields f = small();
    f.vision_heads = 25;
    f.vision_head_dim = 4;
    ck_assert_int_eq(hbp__vlm_encoder(&f, 1).heads, 25);
    ck_assert_int_eq(hbp__vlm_encoder(&f, 4).heads, 28);
    ck_assert_int_eq(hbp__vlm_encoder(&f, 8).kv_heads, 32);
    ck_assert_int_eq(hbp__vlm_encoder(&f, 5).heads, 25);
}
END_TEST

#define WRONG(text, field, value)                                                                            \
    do {                                                                                                     \
        hbp_vlm_fields wrong = small();                                                                      \
        wrong.field = value;                                                                                 \
        FAILS(context, HBP_E_INVALID, text, hbp_vlm_create(context, &wrong, language, &vlm));                \
        ck_assert_ptr_null(vlm);                                                                             \
    } while (0)

START_TEST_IN_CONTEXT(wrong_fields_are_named)
{
    hbp_model *language = keep(small_language(context));
    hbp_vlm *vlm = (hbp_vlm *)context;
    WRONG("`vision_mlp` is 2; it must be in 0..1", vision_mlp, 2);
    WRONG("`vision_layers` is 0; it must be in 1..16777216", vision_layers, 0);
    WRONG("`vision_hidden` is -1; it must be in 1..16777216", vision_hidden, -1);
    WRONG("`vision_ffn` is 0; it must be in 1..16777216", vision_ffn, 0);
    WRONG("`vision_heads` is 0; it must be in 1..16777216", vision_heads, 0);
    WRONG("`vision_head_dim` is -4; it must be in 0..16777216", vision_head_dim, -4);
    WRONG("`patch_values` is 0; it must be in 1..16777216", patch_values, 0);
    WRONG("`tokens_per_unit` is 16777217; it must be in 1..16777216", tokens_per_unit, (1 << 24) + 1);
    WRONG("`attention_tokens` is -1; it must be in 0..16777216", attention_tokens, -1);
    WRONG("`projected_per_unit` is 0; it must be in 1..16777216", projected_per_unit, 0);
    WRONG("`projector_input` is 0; it must be in 1..16777216", projector_input, 0);
    WRONG("`projector_hidden` is -1; it must be in 0..16777216", projector_hidden, -1);
    WRONG("vision_head_dim is 0 and vision_hidden, 8, is no multiple of vision_heads, 3; set vision_head_dim",
          vision_heads, 3);
    WRONG("hbp_vlm_fields.struct_size is 3", struct_size, 3);

    hbp_vlm_fields f = small();
    f.vision_layers = f.vision_hidden = f.vision_ffn = 1 << 24;
    FAILS(context, HBP_E_OVERFLOW, "model custom has too many parameters",
          hbp_vlm_create(context, &f, language, &vlm));
    f = small();
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_vlm_create(context, &f, language, NULL));
    FAILS(context, HBP_E_INVALID, "fields is NULL", hbp_vlm_create(context, NULL, language, &vlm));
    FAILS(context, HBP_E_INVALID, "language is NULL", hbp_vlm_create(context, &f, NULL, &vlm));
    FAILS(context, HBP_E_INVALID, "vlm is NULL", hbp_vlm_get_fields(context, NULL, &f));
    OK(context, hbp_vlm_create(context, &f, language, &vlm));
    FAILS(context, HBP_E_INVALID, "fields is NULL", hbp_vlm_get_fields(context, vlm, NULL));
    FAILS(context, HBP_E_INVALID, "summary is NULL", hbp_vlm_get_summary(context, vlm, NULL));
    FAILS(context, HBP_E_INVALID, "vlm is NULL", hbp_vlm_get_summary(context, NULL, NULL));
    hbp_vlm_free(vlm);
    ck_assert_int_eq(hbp_vlm_create(NULL, &f, language, &vlm), HBP_E_INVALID);
}
END_TEST

START_TEST(structs_have_the_recorded_sizes)
{
    ck_assert_uint_eq(sizeof(hbp_vlm_fields), 52);
    ck_assert_uint_eq(sizeof(hbp_vlm_summary), 56);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_vlm_fields f = small();
    hbp_vlm *vlm = NULL;
    hbp_status status = hbp_vlm_create(context, &f, user, &vlm);
    ck_assert_int_eq(status == HBP_OK, vlm != NULL);
    hbp_vlm_free(vlm);
    return status;
}

START_TEST_IN_CONTEXT(failed_allocations_leave_nothing)
{
    hbp_model *language = keep(small_language(context));
    failing_sweep(create_once, language);
}
END_TEST

TEST_MAIN("vlm", a_small_model_by_hand, the_language_model_is_a_copy, heads_are_padded_for_tensor_parallelism,
          wrong_fields_are_named, structs_have_the_recorded_sizes, failed_allocations_leave_nothing)
