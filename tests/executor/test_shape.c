#include "../test.h"
#include "model/shape.h"

static hbp_model *preset(hbp_context *context, const char *name)
{
    hbp_model *model = NULL;
    OK(context, hbp_model_create_preset(context, name, &model));
    return model;
}

START_TEST(presets_keep_their_parameters)
{
    hbp_context *context = test_context();
    const char *names[] = {"llama-3.1-8b", "llama-3.1-70b", "qwen2.5-7b",
                           "qwen2.5-32b",  "qwen3-8b",      "qwen3-32b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hbp_model *model = preset(context, names[i]);
        hbp_model_summary summary = {.struct_size = sizeof summary};
        OK(context, hbp_model_get_summary(context, model, &summary));
        ex_shape shape;
        ex_fault fault = {0};
        ck_assert_int_eq(ex_shape_from_model(model, &shape, &fault), 0);
        /* the library may count a family's small vectors that Llama has not */
        double ratio = (double)ex_shape_parameters(&shape) / (double)summary.parameters;
        ck_assert_msg(ratio > .9999 && ratio < 1.0001, "%s: %g of its parameters", names[i], ratio);
        hbp_model_free(model);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(fields_come_over)
{
    hbp_context *context = test_context();
    hbp_model_fields f = {.struct_size = sizeof f};
    f.layers = 3;
    f.hidden = 48;
    f.ffn = 100;
    f.heads = 6;
    f.kv_heads = 2;
    f.head_dim = 10;
    f.vocab = 77;
    f.tied_embeddings = 5;
    f.qkv_bias = 7;
    hbp_model *model = NULL;
    OK(context, hbp_model_create(context, &f, &model));
    ex_shape s;
    ex_fault fault = {0};
    ck_assert_int_eq(ex_shape_from_model(model, &s, &fault), 0);
    ck_assert_int_eq(s.layers, 3);
    ck_assert_int_eq(s.hidden, 48);
    ck_assert_int_eq(s.ffn, 100);
    ck_assert_int_eq(s.heads, 6);
    ck_assert_int_eq(s.kv_heads, 2);
    ck_assert_int_eq(s.head_dim, 10);
    ck_assert_int_eq(s.vocab, 77);
    ck_assert_int_eq(s.tied_embeddings, 1);
    ck_assert_int_eq(s.qkv_bias, 1);
    ck_assert(s.theta > 1 && s.epsilon > 0);
    /* norms 96, qkv 100 x 48 + 100, out 48 x 60, MLP 3 x 48 x 100 a layer; the final norm; one table */
    ck_assert_int_eq(ex_shape_parameters(&s), 3 * (96 + 4900 + 2880 + 14400) + 48 + 77 * 48);
    s.tied_embeddings = 0;
    s.qkv_bias = 0;
    ck_assert_int_eq(ex_shape_parameters(&s), 3 * (96 + 4800 + 2880 + 14400) + 48 + 2 * 77 * 48);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

static void refuses(hbp_model *model, const char *text)
{
    ex_shape shape = {.layers = -1};
    ex_fault fault = {0};
    ck_assert_int_eq(ex_shape_from_model(model, &shape, &fault), -1);
    ck_assert_int_eq(fault.failed, 1);
    ck_assert_msg(strstr(fault.text, text) != NULL, "'%s' lacks '%s'", fault.text, text);
    ck_assert_int_eq(shape.layers, -1);
    hbp_model_free(model);
}

START_TEST(other_shapes_are_refused_by_name)
{
    hbp_context *context = test_context();
    refuses(preset(context, "mixtral-8x7b"), "mixtral-8x7b has 8 experts");
    refuses(preset(context, "deepseek-v3"), "deepseek-v3 has latent attention (mla_kv_lora 512)");
    refuses(preset(context, "gpt-7b"), "gpt-7b has a plain MLP");
    hbp_model_fields f = {.struct_size = sizeof f};
    f.layers = 1;
    f.hidden = 48;
    f.ffn = 100;
    f.heads = 6;
    f.head_dim = 9;
    f.vocab = 77;
    hbp_model *model = NULL;
    OK(context, hbp_model_create(context, &f, &model));
    refuses(model, "custom has heads of dimension 9, an odd number");
    f.head_dim = 8;
    f.learned_positions = 1;
    OK(context, hbp_model_create(context, &f, &model));
    refuses(model, "custom learns its positions");
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("shape", presets_keep_their_parameters, fields_come_over, other_shapes_are_refused_by_name)
