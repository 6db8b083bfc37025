#include <string.h>

#include "data/model/model.h"
#include "hbp/io.h"
#include "test.h"

/* Keys of a model that can be read; those of a row come before. */
#define PLAIN                                                                                                \
    "\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, "                       \
    "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"vocab_size\": 32000}"
#define TYPE(type) "{\"model_type\": \"" type "\", "

static hbp_status create(hbp_context *context, const char *json, hbp_model **model)
{
    return hbp_model_create_config(context, json, (int64_t)strlen(json), model);
}

START_TEST(what_is_not_plain_attention_is_named)
{
    /* As the published files have it, without what does not matter here. */
    static const struct {
        const char *json, *says;
    } rows[] = {
        /* Mistral-7B-v0.1, Phi-3-mini-4k-instruct */
        {TYPE("mistral") "\"sliding_window\": 4096, " PLAIN,
         "model_type 'mistral' with 'sliding_window' 4096"},
        {TYPE("phi3") "\"sliding_window\": 2047, " PLAIN, "model_type 'phi3' with 'sliding_window' 2047"},
        {TYPE("mistral") "\"sliding_window\": 4096, " PLAIN, "\"sliding_window\": null makes it plain"},
        {TYPE("mistral") "\"sliding_window\": 4096, " PLAIN, "(as the text layers="},
        {TYPE("qwen2") "\"sliding_window\": 4096, \"use_sliding_window\": true, " PLAIN,
         "'sliding_window' 4096"},
        {TYPE("qwen3") "\"use_sliding_window\": true, " PLAIN, "'use_sliding_window' true"},
        /* gemma-2-9b, gemma-3-1b-pt, cohere2 with nothing said, gpt-oss-20b */
        {TYPE("gemma2") "\"sliding_window\": 4096, \"sliding_window_size\": 4096, " PLAIN,
         "model_type 'gemma2' with 'sliding_window' 4096"},
        {TYPE("gemma2") PLAIN, "model_type 'gemma2' with 'model_type' itself has sliding windows"},
        {TYPE("gemma3_text") "\"sliding_window\": 512, \"sliding_window_pattern\": 6, " PLAIN,
         "model_type 'gemma3_text' with 'sliding_window' 512"},
        {TYPE("gpt_oss") "\"layer_types\": [\"full_attention\", \"sliding_attention\"], \"sliding_window\": "
                         "128, " PLAIN,
         "model_type 'gpt_oss' with 'layer_types' \"sliding_attention\""},
        {TYPE("novel") "\"layer_types\": [\"sliding_attention\"], " PLAIN,
         "'layer_types' \"sliding_attention\""},
        {TYPE("llama4_text") "\"attention_chunk_size\": 8192, " PLAIN, "'attention_chunk_size' has chunked"},
        {TYPE("qwen3_next") "\"full_attention_interval\": 4, " PLAIN, "'full_attention_interval' has linear"},
        {TYPE("qwen3_next") "\"layer_types\": [\"linear_attention\", \"full_attention\"], " PLAIN,
         "model_type 'qwen3_next' with 'layer_types' \"linear_attention\": only full attention"},
        {TYPE("lfm2") "\"layer_types\": [\"co\\nv\"], " PLAIN, "\"co?v\": only full attention"},
        /* Nemotron-H-8B, Falcon-H1, Jamba, Zamba2, mamba-2.8b, Nemotron-51B */
        {TYPE("nemotron_h") "\"hybrid_override_pattern\": \"M-M-M-M*-\", " PLAIN,
         "model_type 'nemotron_h' with 'hybrid_override_pattern' has state-space layers"},
        {TYPE("falcon_h1") "\"mamba_d_ssm\": 3072, " PLAIN, "'mamba_d_ssm' has state-space layers"},
        {TYPE("jamba") "\"mamba_d_state\": 16, \"num_experts\": 16, " PLAIN,
         "'mamba_d_state' has state-space"},
        {TYPE("zamba2") "\"hybrid_layer_ids\": [6, 12], " PLAIN, "'hybrid_layer_ids' has layers without"},
        {TYPE("mamba") "\"state_size\": 16, \"num_hidden_layers\": 64}", "'state_size' has state-space"},
        {TYPE("nemotron-nas") "\"block_configs\": [], " PLAIN, "'block_configs' has layers that differ"},
        {TYPE("deepseek_v32") "\"index_topk\": 2048, " PLAIN, "'index_topk' has sparse attention"},
        /* bert-base-uncased and its like, t5-base */
        {TYPE("bert") "\"architectures\": [\"BertForMaskedLM\"], " PLAIN,
         "model_type 'bert' with 'architectures' ...ForMaskedLM is an encoder"},
        {TYPE("roberta") PLAIN, "model_type 'roberta' with 'model_type' itself is an encoder"},
        {TYPE("t5") "\"is_encoder_decoder\": true, \"d_model\": 768}",
         "model_type 't5' with 'is_encoder_decoder'"},
        /* gemma-3-4b-pt keeps the language model apart. */
        {TYPE("gemma3") "\"text_config\": {\"hidden_size\": 2560}}", "language model under 'text_config'"},
    };
    hbp_context *context = test_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hbp_model *model = (hbp_model *)context;
        FAILS(context, HBP_E_FORMAT, rows[i].says, create(context, rows[i].json, &model));
        ck_assert_ptr_null(model);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(plain_attention_is_read)
{
    static const char *const rows[] = {
        TYPE("mistral") "\"sliding_window\": null, " PLAIN, /* v0.2 and later */
        TYPE("mistral") PLAIN,
        TYPE("phi3") "\"sliding_window\": 0, " PLAIN,
        /* Qwen2.5 gives a length that it does not use. */
        TYPE("qwen2") "\"sliding_window\": 131072, \"use_sliding_window\": false, \"max_window_layers\": "
                      "28, " PLAIN,
        TYPE("qwen2") "\"sliding_window\": 131072, " PLAIN,
        TYPE("qwen2") "\"sliding_window\": null, \"use_sliding_window\": true, " PLAIN,
        TYPE("qwen3") "\"sliding_window\": null, \"use_sliding_window\": false, \"layer_types\": "
                      "[\"full_attention\", \"full_attention\"], " PLAIN,
        TYPE("gemma2") "\"sliding_window\": null, \"layer_types\": [\"sliding_attention\"], " PLAIN,
        TYPE("llama") "\"architectures\": [\"LlamaForCausalLM\", null, \"LM\"], \"mamba_d_state\": "
                      "null, " PLAIN,
    };
    hbp_context *context = test_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hbp_model *model = NULL;
        OK(context, create(context, rows[i], &model));
        ck_assert_int_eq(model->fields.layers, 32);
        hbp_model_free(model);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(tied_embeddings_are_counted_once)
{
    /* Of google/gemma-2b, gemma-7b and, its windows away, gemma-2-9b: the parameters published, in millions.
     */
    static const struct {
        const char *json;
        int64_t millions;
    } rows[] = {
        {TYPE("gemma") "\"head_dim\": 256, \"hidden_size\": 2048, \"intermediate_size\": 16384, "
                       "\"num_attention_heads\": 8, \"num_hidden_layers\": 18, \"num_key_value_heads\": 1, "
                       "\"vocab_size\": 256000}",
         2506},
        {TYPE("gemma") "\"hidden_size\": 3072, \"intermediate_size\": 24576, \"num_attention_heads\": 16, "
                       "\"num_hidden_layers\": 28, \"num_key_value_heads\": 16, \"vocab_size\": 256000}",
         8538},
        {TYPE("gemma2") "\"sliding_window\": null, \"head_dim\": 256, \"hidden_size\": 3584, "
                        "\"intermediate_size\": 14336, \"num_attention_heads\": 16, \"num_hidden_layers\": "
                        "42, "
                        "\"num_key_value_heads\": 8, \"vocab_size\": 256000}",
         9242},
    };
    hbp_context *context = test_context();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hbp_model *model = NULL;
        OK(context, create(context, rows[i].json, &model));
        ck_assert_int_eq(model->fields.tied_embeddings, 1);
        ck_assert_int_eq(model->fields.head_dim, 256);
        int64_t off = model->summary.parameters - rows[i].millions * 1000000;
        ck_assert_int_le(off < 0 ? -off : off, rows[i].millions * 1000);
        hbp_model_free(model);
    }
    /* A file that says otherwise is believed. */
    hbp_model *model = NULL;
    OK(context, create(context, TYPE("gemma") "\"tie_word_embeddings\": false, " PLAIN, &model));
    ck_assert_int_eq(model->fields.tied_embeddings, 0);
    hbp_model_free(model);
    OK(context, create(context, TYPE("cohere") PLAIN, &model));
    ck_assert_int_eq(model->fields.tied_embeddings, 1);
    hbp_model_free(model);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("config_kinds", what_is_not_plain_attention_is_named, plain_attention_is_read,
          tied_embeddings_are_counted_once)
