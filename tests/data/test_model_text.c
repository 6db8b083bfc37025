#include "failing.h"
#include "keep.h"

static hbp_model_fields described(hbp_context *context, const char *text)
{
    hbp_model *model = NULL;
    hbp_model_fields f = {.struct_size = sizeof f};
    OK(context, hbp_model_create_preset(context, text, &model));
    ck_assert_str_eq(hbp_model_get_name(model), strpbrk(text, ",=") ? "custom" : text);
    OK(context, hbp_model_get_fields(context, model, &f));
    hbp_model_free(model);
    return f;
}

START_TEST_IN_CONTEXT(fields_replace_those_of_a_preset)
{
    hbp_model_fields whole = described(context, "llama-3.1-8b");
    hbp_model_fields part = described(context, "llama-3.1-8b,vocab=1024,layers=4");
    ck_assert_int_eq(part.layers, 4);
    ck_assert_int_eq(part.vocab, 1024);
    part.layers = whole.layers;
    part.vocab = whole.vocab;
    ck_assert_mem_eq(&part, &whole, sizeof whole);
    hbp_model_fields narrow = described(context, "llama-3.1-8b,hidden=512,heads=16");
    ck_assert_int_eq(narrow.head_dim, 128);
    ck_assert_int_eq(narrow.kv_heads, 8);
}
END_TEST

START_TEST_IN_CONTEXT(fields_alone_are_a_model)
{
    hbp_model_fields f = described(context, "layers=16,hidden=2048,ffn=8192,heads=32,kv_heads=8,vocab=1000");
    ck_assert_int_eq(f.head_dim, 64);
    ck_assert_int_eq(f.kv_heads, 8);
    ck_assert_int_eq(f.experts, 0);
}
END_TEST

/* Each field's text comes out in its own place: a model with experts, latent attention and all the rest. */
START_TEST_IN_CONTEXT(every_field_has_a_name)
{
    hbp_model_fields f = described(
        context,
        "mlp=1,tied_embeddings=1,learned_positions=1024,layers=9,dense_layers=2,hidden=512,ffn=3,"
        "heads=8,kv_heads=0,head_dim=5,vocab=11,experts=12,experts_active=4,experts_shared=6,moe_ffn=7,"
        "mla_q_lora=13,mla_kv_lora=14,mla_nope_dim=15,mla_rope_dim=16,mla_v_dim=17,qkv_bias=1");
    const hbp_model_fields wanted = {sizeof f, 1,  1, 1024, 9, 2,  512, 3,  8,  8,  5,
                                     11,       12, 4, 6,    7, 13, 14,  15, 16, 17, 1};
    ck_assert_mem_eq(&f, &wanted, sizeof f);
}
END_TEST

START_TEST_IN_CONTEXT(a_variant_has_the_fields_of_its_base)
{
    hbp_model *base = NULL, *variant = NULL;
    MAKES(context, base, hbp_model_create_preset(context, "qwen2.5-7b", &base));
    MAKES(context, variant, hbp_model_create_variant(context, base, "layers=2", &variant));
    hbp_model_fields f = {.struct_size = sizeof f}, text = described(context, "qwen2.5-7b,layers=2");
    OK(context, hbp_model_get_fields(context, variant, &f));
    ck_assert_mem_eq(&f, &text, sizeof f);
    ck_assert_str_eq(hbp_model_get_name(variant), "custom");
    hbp_model *none = base;
    FAILS(context, HBP_E_INVALID, "base is NULL", hbp_model_create_variant(context, NULL, "layers=2", &none));
    ck_assert_ptr_null(none);
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_model_create_variant(context, base, NULL, &none));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_model_create_variant(context, base, "layers=2", NULL));
    FAILS(context, HBP_E_INVALID, "model '': '' is not FIELD=VALUE",
          hbp_model_create_variant(context, base, "", &none));
    FAILS(context, HBP_E_INVALID, "'llama-3.1-8b' is not FIELD=VALUE",
          hbp_model_create_variant(context, base, "llama-3.1-8b", &none));
}
END_TEST

static const struct wrong {
    const char *text, *message;
} wrongs[] = {
    {"llama-3.1-8b,layer=4",
     "model 'llama-3.1-8b,layer=4': there is no field 'layer'; the nearest is 'layers'"},
    {"llama-3-8,layers=4", "no model preset 'llama-3-8'; the nearest is 'llama-3-8b'"},
    {"llama-3.1-8b:4", "no model preset 'llama-3.1-8b:4'; the nearest is 'llama-3.1-8b'"},
    {"llama-3.1-8b,", "model 'llama-3.1-8b,': '' is not FIELD=VALUE"},
    {"llama-3.1-8b,layers", "'layers' is not FIELD=VALUE"},
    {",layers=4", "no model preset ''"},
    {"=", "'=' is not FIELD=VALUE"},
    {"llama-3.1-8b,layers=4,layers=5", "layers is given twice"},
    {"llama-3.1-8b,layers=0", "model 'llama-3.1-8b,layers=0': `layers` is 0; it must be in 1..16777216"},
    {"llama-3.1-8b,layers=-1", "layers is -1; it must be a whole number in 0..2147483647"},
    {"llama-3.1-8b,layers=1.5", "layers is 1.5; it must be a whole number in 0..2147483647"},
    {"llama-3.1-8b,layers=3e9", "layers is 3000000000; it must be a whole number in 0..2147483647"},
    {"llama-3.1-8b,layers=nan", "layers is 'nan'; it must be a finite decimal number"},
    {"llama-3.1-8b,layers=1e999", "layers is '1e999'; it must be a finite decimal number"},
    {"llama-3.1-8b,layers= 4", "layers is ' 4'; it must be a finite decimal number"},
    {"llama-3.1-8b,kv_heads=5",
     "model 'llama-3.1-8b,kv_heads=5': kv_heads is 5, which does not divide heads, 32"},
    {"llama-3.1-8b,qkv_bias=-1", "qkv_bias is -1; it must be a whole number in 0..2147483647"},
    {"layers=16,colour=1", "model 'layers=16,colour=1': there is no field 'colour'"},
    {"layers=16",
     "model 'layers=16': 4 fields are 0 or not given; set them, for example hidden=4096,ffn=14336,heads=32,"
     "vocab=128256"},
    {"layers=16,ffn=64,heads=8,vocab=99", "`hidden` is 0; it must be in 1..16777216"},
    {"llama-3.1-8b,num_hidden_layers=4", "there is no field 'num_hidden_layers'; the nearest is 'layers'"},
    {"llama-3.1-8b,vocab=128K", "vocab is '128K'; it must be a finite decimal number, without a unit"},
    {"ck", "no model preset 'ck'; there are llama-3-8b, llama-3.1-8b"},
};

START_TEST_IN_CONTEXT(wrong_texts_are_named)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        hbp_model *model = (hbp_model *)context;
        FAILS(context, HBP_E_INVALID, wrongs[i].message,
              hbp_model_create_preset(context, wrongs[i].text, &model));
        ck_assert_ptr_null(model);
    }
    hbp_model *model = NULL;
    FAILS(context, HBP_E_OVERFLOW, "model 'llama-3.1-8b,layers=16777216,ffn=16777216,hidden=16777216': ",
          hbp_model_create_preset(context, "llama-3.1-8b,layers=16777216,ffn=16777216,hidden=16777216",
                                  &model));
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_model *model = NULL, *variant = NULL;
    hbp_status status = hbp_model_create_preset(context, user, &model);
    if (status >= 0)
        status = hbp_model_create_variant(context, model, "layers=3", &variant);
    hbp_model_free(variant);
    hbp_model_free(model);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(create_once, "qwen3-8b,layers=4");
    failing_sweep(create_once, "layers=4,hidden=64,ffn=8,heads=4,vocab=100");
}
END_TEST

TEST_MAIN("model_text", fields_replace_those_of_a_preset, fields_alone_are_a_model, every_field_has_a_name,
          a_variant_has_the_fields_of_its_base, wrong_texts_are_named, failed_allocations_leave_nothing)
