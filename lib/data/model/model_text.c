/* Models described in one line: a preset, a preset with fields replaced, or fields alone. */
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/records.h"
#include "data/model/model.h"

/* All but struct_size, each an int32_t. */
enum { FIELDS = (sizeof(hbp_model_fields) - sizeof(uint32_t)) / sizeof(int32_t) };

_Static_assert((int)FIELDS <= HBP__MOST_FIELDS, "a bit for every field");

/* Behind the struct's own row and that of struct_size. */
static const hbp__record *record_of_field(int64_t index)
{
    return hbp__record_of("hbp_model_fields") + 2 + index;
}

static const char *field_name(int64_t index)
{
    return record_of_field(index)->name;
}

/* The keys of config.json. */
static const hbp__other_word other_words[] = {
    {"num_layers", "layers"},
    {"num_hidden_layers", "layers"},
    {"n_layer", "layers"},
    {"hidden_size", "hidden"},
    {"n_embd", "hidden"},
    {"intermediate_size", "ffn"},
    {"ffn_hidden_size", "ffn"},
    {"num_attention_heads", "heads"},
    {"n_head", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"num_query_groups", "kv_heads"},
    {"vocab_size", "vocab"},
    {"num_experts", "experts"},
    {"num_local_experts", "experts"},
    {"n_routed_experts", "experts"},
    {"n_shared_experts", "experts_shared"},
    {"num_experts_per_tok", "experts_active"},
    {"moe_intermediate_size", "moe_ffn"},
    {"first_k_dense_replace", "dense_layers"},
    {"tie_word_embeddings", "tied_embeddings"},
    {"attention_bias", "qkv_bias"},
    {"q_lora_rank", "mla_q_lora"},
    {"kv_lora_rank", "mla_kv_lora"},
    {"qk_nope_head_dim", "mla_nope_dim"},
    {"qk_rope_head_dim", "mla_rope_dim"},
    {"v_head_dim", "mla_v_dim"},
    {NULL, NULL},
};

static const hbp__field_names names = {"model", field_name, FIELDS, other_words, 0};

/* Replaces the fields that the text gives; what they may be is checked where the model is made. */
static hbp_status replace_fields(hbp_context *context, const hbp__field_values *values, hbp_model_fields *f)
{
    for (int32_t i = 0; i < FIELDS; i++) {
        if (!(values->given >> i & 1))
            continue;
        double value = values->value[i];
        int32_t whole = value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
        if (whole < 0 || (double)whole != value)
            return hbp__fail(context, HBP_E_INVALID, "%s is %.17g; it must be a whole number in 0..%d",
                             field_name(i), value, (int)INT32_MAX);
        memcpy((char *)f + record_of_field(i)->offset, &whole, sizeof whole);
    }
    return HBP_OK;
}

/* `fields` with those replaced that `text` gives from `at` on. */
static hbp_status make_changed(hbp_context *context, const char *text, const char *at,
                               hbp_model_fields fields, hbp_model **out)
{
    hbp__field_values values;
    HBP__TRY(hbp__read_fields(context, &names, text, at, &values));
    hbp_status status = replace_fields(context, &values, &fields);
    if (status >= 0)
        status = hbp__model_make(context, "custom", &fields, out);
    if (status >= 0)
        snprintf((*out)->text, sizeof(*out)->text, "%s", text);
    return status == HBP_E_INVALID || status == HBP_E_OVERFLOW
               ? hbp__fail_in_text(context, status, "model", text)
               : status;
}

hbp_status hbp__model_create_preset(hbp_context *context, const char *text, hbp_model **out)
{
    HBP__TRY(hbp__require(context, text, "text"));
    if (text[strcspn(text, "=,")] == '=')
        return make_changed(context, text, text, (hbp_model_fields){.struct_size = sizeof(hbp_model_fields)},
                            out);
    char name[HBP__FIELD_NAME_BYTES];
    const char *end = hbp__take_name(text, ",", name);
    hbp_model *preset = NULL;
    HBP__TRY(hbp__model_make_preset(context, name, &preset));
    if (!*end) {
        *out = preset;
        return HBP_OK;
    }
    hbp_status status = make_changed(context, text, end + 1, preset->fields, out);
    hbp_model_free(preset);
    return status;
}

hbp_status hbp_model_create_preset(hbp_context *context, const char *text, hbp_model **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__model_create_preset(context, text, out);
}

hbp_status hbp__model_create_variant(hbp_context *context, const hbp_model *base, const char *text,
                                     hbp_model **out)
{
    HBP__TRY(hbp__require(context, base, "base"));
    HBP__TRY(hbp__require(context, text, "text"));
    return make_changed(context, text, text, base->fields, out);
}

hbp_status hbp_model_create_variant(hbp_context *context, const hbp_model *base, const char *text,
                                    hbp_model **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__model_create_variant(context, base, text, out);
}
