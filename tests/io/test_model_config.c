#include "failing.h"
#include "files.h"
#include "hbp/io.h"

#include <unistd.h>

#include "data/model/model.h"

#define LLAMA                                                                                                \
    "\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, "                       \
    "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"vocab_size\": 128256"

/* What the published files say, without what does not matter here. */
static const struct row {
    const char *preset;
    const char *json;
} rows[] = {
    {"llama-3.1-8b", "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", " LLAMA
                     ", \"attention_bias\": false, \"attention_dropout\": 0.0, \"rms_norm_eps\": 1e-05, "
                     "\"pretraining_tp\": 1, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"llama3\"}, "
                     "\"tie_word_embeddings\": false, \"max_position_embeddings\": 131072}"},
    {"qwen2.5-32b", "{\"model_type\": \"qwen2\", \"hidden_size\": 5120, \"intermediate_size\": 27648, "
                    "\"num_attention_heads\": 40, \"num_hidden_layers\": 64, \"num_key_value_heads\": 8, "
                    "\"sliding_window\": null, \"tie_word_embeddings\": false, \"vocab_size\": 152064}"},
    {"qwen3-8b", "{\"model_type\": \"qwen3\", \"hidden_size\": 4096, \"intermediate_size\": 12288, "
                 "\"head_dim\": 128, \"num_attention_heads\": 32, \"num_hidden_layers\": 36, "
                 "\"num_key_value_heads\": 8, \"tie_word_embeddings\": false, \"vocab_size\": 151936}"},
    {"qwen3-30b-a3b",
     "{\"model_type\": \"qwen3_moe\", \"decoder_sparse_step\": 1, \"head_dim\": 128, \"hidden_size\": 2048, "
     "\"intermediate_size\": 6144, \"mlp_only_layers\": [], \"moe_intermediate_size\": 768, "
     "\"num_attention_heads\": 32, \"num_experts\": 128, \"num_experts_per_tok\": 8, "
     "\"num_hidden_layers\": 48, \"num_key_value_heads\": 4, \"tie_word_embeddings\": false, "
     "\"vocab_size\": 151936}"},
    {"mixtral-8x7b",
     "{\"model_type\": \"mixtral\", \"hidden_size\": 4096, \"intermediate_size\": 14336, "
     "\"num_attention_heads\": 32, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, "
     "\"num_key_value_heads\": 8, \"num_local_experts\": 8, \"vocab_size\": 32000, \"head_dim\": null}"},
    {"deepseek-v3",
     "{\"model_type\": \"deepseek_v3\", \"first_k_dense_replace\": 3, \"hidden_size\": 7168, "
     "\"intermediate_size\": 18432, \"kv_lora_rank\": 512, \"moe_intermediate_size\": 2048, "
     "\"moe_layer_freq\": 1, \"n_routed_experts\": 256, \"n_shared_experts\": 1, "
     "\"num_attention_heads\": 128, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 61, "
     "\"num_key_value_heads\": 128, \"q_lora_rank\": 1536, \"qk_nope_head_dim\": 128, "
     "\"qk_rope_head_dim\": 64, \"v_head_dim\": 128, \"vocab_size\": 129280, \"head_dim\": 64}"},
};

static hbp_status create(hbp_context *context, const char *json, hbp_model **model)
{
    return hbp_model_create_config(context, json, (int64_t)strlen(json), model);
}

START_TEST(published_files_give_the_presets)
{
    hbp_context *context = test_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hbp_model *preset = NULL, *read = NULL;
        OK(context, hbp_model_create_preset(context, rows[i].preset, &preset));
        OK(context, create(context, rows[i].json, &read));
        ck_assert_msg(memcmp(&preset->fields, &read->fields, sizeof read->fields) == 0, "%s", rows[i].preset);
        ck_assert_int_eq(preset->summary.parameters, read->summary.parameters);
        hbp_model_free(preset);
        hbp_model_free(read);
    }
    hbp_context_free(context);
}
END_TEST

static hbp_model_fields fields_of(hbp_context *context, const char *json, const char *name)
{
    hbp_model *model = NULL;
    hbp_model_fields fields = {.struct_size = sizeof fields};
    OK(context, create(context, json, &model));
    ck_assert_str_eq(hbp_model_get_name(model), name);
    OK(context, hbp_model_get_fields(context, model, &fields));
    hbp_model_free(model);
    return fields;
}

START_TEST(gpt2_has_names_of_its_own)
{
    hbp_context *context = test_context();
    const char *json = "{\"model_type\": \"gpt2\", \"n_ctx\": 1024, \"n_embd\": 768, \"n_head\": 12, "
                       "\"n_layer\": 12, \"n_positions\": 1024, \"n_inner\": null, \"vocab_size\": 50257}";
    hbp_model_fields f = fields_of(context, json, "gpt2");
    ck_assert_int_eq(f.mlp, HBP_MLP_PLAIN);
    ck_assert_int_eq(f.ffn, 3072);
    ck_assert_int_eq(f.learned_positions, 1024);
    ck_assert_int_eq(f.tied_embeddings, 1);
    hbp_model *model = NULL;
    OK(context, create(context, json, &model));
    /* 124.44 million as published; biases other than those of q, k and v are not counted. */
    ck_assert_int_eq(model->summary.parameters / 100000, 1243);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

START_TEST(other_types_are_read_as_they_are)
{
    hbp_context *context = test_context();
    hbp_model_fields f = fields_of(context, "{\"model_type\": \"mistral\", " LLAMA "}", "mistral");
    ck_assert_int_eq(f.qkv_bias, 0);
    ck_assert_int_eq(f.mlp, HBP_MLP_GATED);
    f = fields_of(context, "{\"model_type\": \"newcomer\", \"tie_word_embeddings\": true, " LLAMA "}",
                  "newcomer");
    ck_assert_int_eq(f.tied_embeddings, 1);
    ck_assert_int_eq(f.layers, 32);
    f = fields_of(context, "{\"model_type\": \"gpt_neox\", " LLAMA "}", "gpt_neox");
    ck_assert_int_eq(f.mlp, HBP_MLP_PLAIN);
    f = fields_of(context,
                  "{\"model_type\": \"qwen2_moe\", \"num_experts\": 60, \"num_experts_per_tok\": 4, "
                  "\"moe_intermediate_size\": 1408, \"shared_expert_intermediate_size\": 5632, " LLAMA "}",
                  "qwen2_moe");
    ck_assert_int_eq(f.experts_shared, 4);
    ck_assert_int_eq(f.qkv_bias, 1);
    f = fields_of(context,
                  "{\"model_type\": \"qwen3_moe\", \"num_experts\": 8, \"num_experts_per_tok\": 4, "
                  "\"moe_intermediate_size\": 1408, \"mlp_only_layers\": [0, 1], " LLAMA "}",
                  "qwen3_moe");
    ck_assert_int_eq(f.dense_layers, 2);
    ck_assert_int_eq(f.ffn, 14336);
    f = fields_of(context,
                  "{\"model_type\": \"deepseek_v2\", \"kv_lora_rank\": 512, \"q_lora_rank\": null, "
                  "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, "
                  "\"hidden_size\": 2048, \"intermediate_size\": 10944, \"num_hidden_layers\": 27, "
                  "\"num_attention_heads\": 16, \"vocab_size\": 102400}",
                  "deepseek_v2");
    ck_assert_int_eq(f.mla_q_lora, 0);
    ck_assert_int_eq(f.experts, 0);
    hbp_context_free(context);
}
END_TEST

START_TEST(wrong_keys_are_named)
{
    hbp_context *context = test_context();
    hbp_model *model = (hbp_model *)context;
#define REFUSED(text, json)                                                                                  \
    FAILS(context, HBP_E_FORMAT, text, create(context, json, &model));                                       \
    ck_assert_ptr_null(model)
    REFUSED("config.json, line 1: ", "");
    REFUSED("config.json, line 2: ", "{\n\"a\": }");
    REFUSED("config.json, line 1: an object that ends here has the key 'a' twice", "{\"a\": 1, \"a\": 1}");
    REFUSED("config.json is not a JSON object", "[1]");
    REFUSED("key 'model_type' is missing", "{}");
    REFUSED("key 'model_type' is missing or not text", "{\"model_type\": 3}");
    REFUSED("keys 'num_hidden_layers', 'hidden_size', 'intermediate_size', 'num_attention_heads', "
            "'vocab_size' are "
            "missing; model_type is 'llama'",
            "{\"model_type\": \"llama\"}");
    REFUSED("are missing; model_type is 'a?b'", "{\"model_type\": \"a\\nb\"}");
    REFUSED("keys 'n_embd', 'n_head', 'vocab_size', 'n_positions' are missing; model_type is 'gpt2'",
            "{\"model_type\": \"gpt2\", \"n_layer\": 2}");
    REFUSED("it has a 'format', as files of hbp have, and no 'model_type'", "{\"format\": \"hbp-machine\"}");
    REFUSED("keys 'num_local_experts', 'num_experts_per_tok' are missing",
            "{\"model_type\": \"mixtral\", " LLAMA "}");
    REFUSED("keys 'kv_lora_rank', 'qk_nope_head_dim', 'qk_rope_head_dim', 'v_head_dim' are missing",
            "{\"model_type\": \"deepseek_v3\", " LLAMA "}");
    REFUSED("'num_hidden_layers' is not a whole number",
            "{\"model_type\": \"llama\", \"num_hidden_layers\": 3.5}");
    REFUSED("'num_hidden_layers' is -1; it must be in 0..2147483647",
            "{\"model_type\": \"llama\", \"num_hidden_layers\": -1}");
    REFUSED("'num_hidden_layers' is 4294967296",
            "{\"model_type\": \"llama\", \"num_hidden_layers\": 4294967296}");
    REFUSED("'attention_bias' is neither true nor false",
            "{\"model_type\": \"llama\", \"attention_bias\": 1, " LLAMA "}");
    REFUSED("`head_dim` is 16777217; it must be in 0..16777216",
            "{\"model_type\": \"llama\", \"head_dim\": 16777217, " LLAMA "}");
    REFUSED("model_type 'olmoe' is not known, and with 'num_experts' it is not read as llama",
            "{\"model_type\": \"olmoe\", \"num_experts\": 64, " LLAMA "}");
#define MOE "\"num_experts\": 8, \"num_experts_per_tok\": 4, \"moe_intermediate_size\": 100, " LLAMA "}"
    REFUSED("'decoder_sparse_step' is 2", "{\"model_type\": \"qwen3_moe\", \"decoder_sparse_step\": 2, " MOE);
    REFUSED("'mlp_only_layers' is not 0, 1, ...",
            "{\"model_type\": \"qwen3_moe\", \"mlp_only_layers\": [1], " MOE);
    REFUSED(
        "dense_layers is 33; there are 32 layers",
        "{\"model_type\": \"qwen3_moe\", \"mlp_only_layers\": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,"
        "18,19,20,21,22,23,24,25,26,27,28,29,30,31,32], " MOE);
    REFUSED("'shared_expert_intermediate_size', 150, is no multiple of 'moe_intermediate_size', 100",
            "{\"model_type\": \"qwen2_moe\", \"shared_expert_intermediate_size\": 150, " MOE);
    FAILS(context, HBP_E_INVALID, "json is NULL", hbp_model_create_config(context, NULL, 0, &model));
    FAILS(context, HBP_E_INVALID, "bytes is -1", hbp_model_create_config(context, "", -1, &model));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_model_create_config(context, "{}", 2, NULL));
    hbp_context_free(context);
}
END_TEST

START_TEST(a_file_is_read_like_its_text)
{
    hbp_context *context = test_context();
    char path[] = "/tmp/hbp-config-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    size_t bytes = strlen(rows[0].json);
    ck_assert_int_eq(write(file, rows[0].json, bytes), (int64_t)bytes);
    close(file);
    hbp_model *model = NULL;
    OK(context, hbp_model_load(context, path, &model));
    ck_assert_int_eq(model->fields.hidden, 4096);
    hbp_model_free(model);
    unlink(path);
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_model_load(context, path, &model));
    ck_assert_ptr_null(model);
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_model_load(context, NULL, &model));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_model_load(context, path, NULL));
    hbp_context_free(context);
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_model *model;
    hbp_status status = create(context, user, &model);
    hbp_model_free(model);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    char json[2048];
    snprintf(json, sizeof json, "%s", rows[5].json);
    failing_sweep(create_once, json);
}
END_TEST

TEST_MAIN("model_config", published_files_give_the_presets, gpt2_has_names_of_its_own,
          other_types_are_read_as_they_are, wrong_keys_are_named, a_file_is_read_like_its_text,
          failed_allocations_leave_nothing)
