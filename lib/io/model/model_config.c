/* Hugging Face's config.json: the keys of each model_type to the fields of a model. */
#include <stdio.h>
#include <string.h>

#include "data/model/model.h"
#include "hbp/io.h"
#include "io/file/file_error.h"
#include "io/json/json_tree.h"
#include "io/model/config_kinds.h"
#include "io/model/model_config.h"

#define NAME HBP__CONFIG_NAME

typedef struct config {
    hbp_context *context;
    const hbp__value *root;
    char type[HBP__NAME_BYTES];
    hbp_model_fields fields;
    char missing[256]; /* "'hidden_size', 'vocab_size'" */
    int32_t missing_count;
} config;

/* The value of a key; NULL where it is absent or null, which Python writes for None. */
static const hbp__value *find_key(const config *c, const char *key)
{
    const hbp__value *value = hbp__value_find(c->root, key);
    return value && !hbp__value_is(value, HBP__NOTHING) ? value : NULL;
}

/* The keys that are missing, all of them; HBP_OK: none is. */
static hbp_status check_missing(const config *c)
{
    if (!c->missing_count)
        return HBP_OK;
    const char *what = c->missing_count > 1 ? "keys" : "key", *is = c->missing_count > 1 ? "are" : "is";
    if (hbp__value_is(hbp__value_find(c->root, "text_config"), HBP__MAP))
        return hbp__fail(c->context, HBP_E_FORMAT,
                         NAME
                         ": %s %s %s missing; model_type '%s' has its language model under 'text_config': "
                         "give that object as a file of its own",
                         what, c->missing, is, c->type);
    return hbp__fail(c->context, HBP_E_FORMAT, NAME ": %s %s %s missing; model_type is '%s'", what,
                     c->missing, is, c->type);
}

/* A count; an absent one leaves *to as it is. */
static hbp_status read_optional(const config *c, const char *key, int32_t *to)
{
    const hbp__value *value = find_key(c, key);
    if (!value)
        return HBP_OK;
    if (!hbp__value_is(value, HBP__WHOLE))
        return hbp__fail(c->context, HBP_E_FORMAT, NAME ": '%s' is not a whole number", key);
    int64_t count = hbp__value_whole(value);
    if (count < 0 || count > INT32_MAX)
        return hbp__fail(c->context, HBP_E_FORMAT, NAME ": '%s' is %lld; it must be in 0..%d", key,
                         (long long)count, INT32_MAX);
    *to = (int32_t)count;
    return HBP_OK;
}

/* A count that must be there: an absent one is noted, and named with the others. */
static hbp_status read_count(config *c, const char *key, int32_t *to)
{
    if (find_key(c, key))
        return read_optional(c, key, to);
    size_t at = strlen(c->missing);
    snprintf(c->missing + at, sizeof c->missing - at, "%s'%s'", c->missing_count++ ? ", " : "", key);
    return HBP_OK;
}

static hbp_status read_flag(const config *c, const char *key, int32_t *to)
{
    const hbp__value *value = find_key(c, key);
    if (!value)
        return HBP_OK;
    if (!hbp__value_is(value, HBP__BOOLEAN))
        return hbp__fail(c->context, HBP_E_FORMAT, NAME ": '%s' is neither true nor false", key);
    *to = hbp__value_is_true(value);
    return HBP_OK;
}

/* The keys that Llama and most that came after it share. */
static hbp_status read_llama(config *c)
{
    hbp_model_fields *f = &c->fields;
    HBP__TRY(read_count(c, "num_hidden_layers", &f->layers));
    HBP__TRY(read_count(c, "hidden_size", &f->hidden));
    HBP__TRY(read_count(c, "intermediate_size", &f->ffn));
    HBP__TRY(read_count(c, "num_attention_heads", &f->heads));
    HBP__TRY(read_optional(c, "num_key_value_heads", &f->kv_heads));
    HBP__TRY(read_optional(c, "head_dim", &f->head_dim));
    HBP__TRY(read_count(c, "vocab_size", &f->vocab));
    HBP__TRY(read_flag(c, "attention_bias", &f->qkv_bias));
    return read_flag(c, "tie_word_embeddings", &f->tied_embeddings);
}

static hbp_status read_qwen2(config *c)
{
    c->fields.qkv_bias = 1; /* always, and no key says so */
    return read_llama(c);
}

static hbp_status read_mixtral(config *c)
{
    hbp_model_fields *f = &c->fields;
    HBP__TRY(read_llama(c));
    HBP__TRY(read_count(c, "num_local_experts", &f->experts));
    HBP__TRY(read_count(c, "num_experts_per_tok", &f->experts_active));
    f->moe_ffn = f->ffn;
    f->ffn = 0;
    return HBP_OK;
}

/* mlp_only_layers names dense layers; only a run of leading ones is a model that hbp_model_fields describes.
 */
static hbp_status read_dense_layers(config *c)
{
    int32_t every = 1;
    HBP__TRY(read_optional(c, "decoder_sparse_step", &every));
    if (every != 1)
        return hbp__fail(c->context, HBP_E_FORMAT, NAME ": 'decoder_sparse_step' is %d; only 1 is known",
                         (int)every);
    const hbp__value *dense = find_key(c, "mlp_only_layers");
    if (!dense)
        return HBP_OK;
    int32_t count = 0;
    HBP__EACH(dense, layer)
    {
        if (!hbp__value_is(layer, HBP__WHOLE) || layer->of.whole != count++)
            return hbp__fail(c->context, HBP_E_FORMAT,
                             NAME
                             ": 'mlp_only_layers' is not 0, 1, ...; only leading dense layers are known");
    }
    c->fields.dense_layers = count;
    return HBP_OK;
}

static hbp_status read_qwen3_moe(config *c)
{
    hbp_model_fields *f = &c->fields;
    HBP__TRY(read_llama(c));
    HBP__TRY(read_count(c, "num_experts", &f->experts));
    HBP__TRY(read_count(c, "num_experts_per_tok", &f->experts_active));
    HBP__TRY(read_count(c, "moe_intermediate_size", &f->moe_ffn));
    HBP__TRY(read_dense_layers(c));
    if (!f->dense_layers)
        f->ffn = 0;
    return HBP_OK;
}

static hbp_status read_qwen2_moe(config *c)
{
    hbp_model_fields *f = &c->fields;
    int32_t shared = 0;
    f->qkv_bias = 1;
    HBP__TRY(read_qwen3_moe(c));
    HBP__TRY(read_count(c, "shared_expert_intermediate_size", &shared));
    if (!f->moe_ffn || shared % f->moe_ffn)
        return hbp__fail(c->context, HBP_E_FORMAT,
                         NAME ": 'shared_expert_intermediate_size', %d, is no multiple of "
                              "'moe_intermediate_size', %d",
                         (int)shared, (int)f->moe_ffn);
    f->experts_shared = shared / f->moe_ffn;
    return HBP_OK;
}

static hbp_status read_deepseek(config *c)
{
    hbp_model_fields *f = &c->fields;
    int32_t every = 1;
    HBP__TRY(read_llama(c));
    f->head_dim = 0; /* of the rotary part, where it is there */
    HBP__TRY(read_optional(c, "q_lora_rank", &f->mla_q_lora));
    HBP__TRY(read_count(c, "kv_lora_rank", &f->mla_kv_lora));
    HBP__TRY(read_count(c, "qk_nope_head_dim", &f->mla_nope_dim));
    HBP__TRY(read_count(c, "qk_rope_head_dim", &f->mla_rope_dim));
    HBP__TRY(read_count(c, "v_head_dim", &f->mla_v_dim));
    HBP__TRY(read_optional(c, "n_routed_experts", &f->experts));
    if (!f->experts)
        return HBP_OK;
    HBP__TRY(read_count(c, "num_experts_per_tok", &f->experts_active));
    HBP__TRY(read_optional(c, "n_shared_experts", &f->experts_shared));
    HBP__TRY(read_count(c, "moe_intermediate_size", &f->moe_ffn));
    HBP__TRY(read_optional(c, "first_k_dense_replace", &f->dense_layers));
    HBP__TRY(read_optional(c, "moe_layer_freq", &every));
    if (every != 1)
        return hbp__fail(c->context, HBP_E_FORMAT, NAME ": 'moe_layer_freq' is %d; only 1 is known",
                         (int)every);
    return HBP_OK;
}

static hbp_status read_gpt2(config *c)
{
    hbp_model_fields *f = &c->fields;
    f->mlp = HBP_MLP_PLAIN;
    f->tied_embeddings = 1;
    f->qkv_bias = 1;
    HBP__TRY(read_count(c, "n_layer", &f->layers));
    HBP__TRY(read_count(c, "n_embd", &f->hidden));
    HBP__TRY(read_count(c, "n_head", &f->heads));
    HBP__TRY(read_count(c, "vocab_size", &f->vocab));
    HBP__TRY(read_count(c, "n_positions", &f->learned_positions));
    f->ffn = f->hidden < INT32_MAX / 4 ? 4 * f->hidden : f->hidden;
    HBP__TRY(read_optional(c, "n_inner", &f->ffn));
    return read_flag(c, "tie_word_embeddings", &f->tied_embeddings);
}

static hbp_status read_gpt_neox(config *c)
{
    c->fields.mlp = HBP_MLP_PLAIN;
    c->fields.qkv_bias = 1;
    return read_llama(c);
}

/* Gemma's keys are Llama's; what its class presumes differs. */
static hbp_status read_gemma(config *c)
{
    c->fields.tied_embeddings = 1;
    c->fields.head_dim = 256;
    return read_llama(c);
}

static hbp_status read_cohere(config *c)
{
    c->fields.tied_embeddings = 1;
    return read_llama(c);
}

/* Another type is Llama-like when it has Llama's keys and nothing that Llama has not. */
static hbp_status read_other(config *c)
{
    static const char *const foreign[] = {"num_experts",     "num_local_experts", "n_routed_experts",
                                          "moe_num_experts", "kv_lora_rank",      "num_experts_per_tok"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (find_key(c, foreign[i]))
            return hbp__fail(c->context, HBP_E_FORMAT,
                             NAME ": model_type '%s' is not known, and with '%s' it is not read as llama",
                             c->type, foreign[i]);
    return read_llama(c);
}

static hbp_status read_fields(config *c)
{
    static const struct {
        const char *type;
        hbp_status (*read)(config *c);
    } types[] = {
        {"llama", read_llama},         {"mistral", read_llama},        {"mixtral", read_mixtral},
        {"qwen2", read_qwen2},         {"qwen3", read_llama},          {"qwen2_moe", read_qwen2_moe},
        {"qwen3_moe", read_qwen3_moe}, {"deepseek_v2", read_deepseek}, {"deepseek_v3", read_deepseek},
        {"gpt2", read_gpt2},           {"gpt_neox", read_gpt_neox},    {"gemma", read_gemma},
        {"gemma2", read_gemma},        {"gemma3_text", read_gemma},    {"cohere", read_cohere},
    };
    const hbp__value *type = hbp__value_find(c->root, "model_type");
    if (hbp__value_find(c->root, "format"))
        return hbp__fail(c->context, HBP_E_FORMAT,
                         NAME
                         ": it has a 'format', as files of hbp have, and no 'model_type': it is no model");
    if (!hbp__value_is(type, HBP__TEXT))
        return hbp__fail(c->context, HBP_E_FORMAT, NAME ": key 'model_type' is missing or not text");
    hbp__printable(c->type, sizeof c->type, hbp__value_text(type));
    HBP__TRY(hbp__config_is_plain(c->context, c->root, c->type));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].type, c->type) == 0)
            return types[i].read(c);
    return read_other(c);
}

/* What follows from a key that is missing is not what is said. */
static hbp_status read_type(config *c)
{
    hbp_status status = read_fields(c);
    return c->missing_count ? check_missing(c) : status;
}

hbp_status hbp__config_read(hbp_context *context, const char *json, int64_t bytes, hbp_model **out)
{
    config c = {.context = context, .fields = {.struct_size = sizeof(hbp_model_fields)}};
    hbp__document document;
    HBP__TRY(hbp__json_tree(context, NAME, json, bytes, &document));
    c.root = document.values;
    hbp_status status = read_type(&c);
    hbp__document_free(&document);
    HBP__TRY(status);
    return hbp__blame_file(context, NAME, hbp__model_make(context, c.type, &c.fields, out));
}

hbp_status hbp_model_create_config(hbp_context *context, const char *json, int64_t bytes, hbp_model **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, json, "json"));
    return hbp__config_read(context, json, bytes, out);
}
