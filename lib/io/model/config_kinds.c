#include "io/model/config_kinds.h"

#include <stdio.h>
#include <string.h>

#include "data/model/model.h"
#include "io/file/file_error.h"

#define NAME "config.json"
/* What to do instead. */
#define FIELDS "give the fields of a model that costs the same (as the text layers=...,hidden=...)"

/* Keys that only models have whose layers are not all alike, or do not attend to all that came before. */
static const struct {
    const char *key, *what;
} foreign[] = {
    {"hybrid_override_pattern", "state-space layers"}, /* Nemotron-H */
    {"mamba_d_ssm", "state-space layers"},             /* Falcon-H1 */
    {"mamba_d_state", "state-space layers"},           /* Jamba, Zamba, Bamba, Granite 4 */
    {"mamba_d_conv", "state-space layers"},
    {"ssm_state_size", "state-space layers"},
    {"state_size", "state-space layers"}, /* Mamba */
    {"attn_layer_period", "layers without attention"},
    {"hybrid_layer_ids", "layers without attention"},
    {"layers_block_type", "layers without attention"},
    {"full_attention_interval", "linear attention"}, /* Qwen3-Next */
    {"linear_num_value_heads", "linear attention"},
    {"linear_attn_config", "linear attention"},    /* Kimi Linear */
    {"attn_type_list", "linear attention"},        /* MiniMax-01 */
    {"attention_hidden_size", "linear attention"}, /* RWKV */
    {"block_types", "recurrent layers"},           /* RecurrentGemma */
    {"block_configs", "layers that differ"},       /* Nemotron-NAS */
    {"attention_chunk_size", "chunked attention"}, /* Llama 4 */
    {"local_attention", "local attention"},        /* ModernBERT */
    {"attention_types", "local attention"},        /* GPT-Neo */
    {"index_topk", "sparse attention"},            /* DeepSeek-V3.2 */
};

static const char *const encoders[] = {
    "bert",        "roberta", "distilbert", "albert",    "electra",    "deberta", "deberta-v2",
    "xlm-roberta", "mpnet",   "modernbert", "camembert", "nomic_bert", "esm",     "t5",
    "mt5",         "umt5",    "bart",       "mbart",     "pegasus",    "marian",  "whisper",
};

/* Windows are there unless a flag says no: a missing flag means no. */
static const char *const flagged[] = {"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"};
/* Some layers have windows whether or not the file says how long. */
static const char *const windowed[] = {"gemma2", "gemma3_text", "cohere2"};

static int is_one_of(const char *type, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(type, types[i]) == 0)
            return 1;
    return 0;
}

static hbp_status refuse_encoder(hbp_context *context, const char *type, const char *key, const char *value)
{
    return hbp__fail(context, HBP_E_FORMAT,
                     NAME
                     ": model_type '%s' with '%s' %s is an encoder or has one; only decoders are modelled",
                     type, key, value);
}

static hbp_status check_decoder(hbp_context *context, const hbp__value *root, const char *type)
{
    const hbp__value *classes = hbp__value_find(root, "architectures");
    if (hbp__value_is_true(hbp__value_find(root, "is_encoder_decoder")))
        return refuse_encoder(context, type, "is_encoder_decoder", "true");
    HBP__EACH(classes, each)
    {
        const char *name = hbp__value_text(each);
        size_t length = name ? strlen(name) : 0, tail = strlen("ForMaskedLM");
        if (length >= tail && strcmp(name + length - tail, "ForMaskedLM") == 0)
            return refuse_encoder(context, type, "architectures", "...ForMaskedLM");
    }
    if (is_one_of(type, encoders, sizeof encoders / sizeof *encoders))
        return refuse_encoder(context, type, "model_type", "itself");
    return HBP_OK;
}

/* Whether windows are turned off: by their length, by the flag, or by its absence where that means no. */
static int has_no_window(const hbp__value *root, const char *type)
{
    const hbp__value *use = hbp__value_find(root, "use_sliding_window");
    const hbp__value *window = hbp__value_find(root, "sliding_window");
    if (hbp__value_is(window, HBP__NOTHING) ||
        (hbp__value_is(window, HBP__WHOLE) && hbp__value_whole(window) <= 0))
        return 1;
    if (hbp__value_is(use, HBP__BOOLEAN))
        return !hbp__value_is_true(use);
    return is_one_of(type, flagged, sizeof flagged / sizeof *flagged);
}

static hbp_status refuse_window(hbp_context *context, const char *type, const char *key, const char *value)
{
    return hbp__fail(
        context, HBP_E_FORMAT,
        NAME ": model_type '%s' with '%s'%s has sliding windows, which are not modelled; where no sample is "
             "longer than the window, \"sliding_window\": null makes it plain attention, else " FIELDS,
        type, key, value);
}

static hbp_status check_windows(hbp_context *context, const hbp__value *root, const char *type)
{
    const hbp__value *window = hbp__value_find(root, "sliding_window");
    char value[32] = "";
    if (has_no_window(root, type))
        return HBP_OK;
    if (hbp__value_is(window, HBP__WHOLE))
        snprintf(value, sizeof value, " %lld", (long long)hbp__value_whole(window));
    if (window)
        return refuse_window(context, type, "sliding_window", value);
    if (hbp__value_is_true(hbp__value_find(root, "use_sliding_window")))
        return refuse_window(context, type, "use_sliding_window", " true");
    if (is_one_of(type, windowed, sizeof windowed / sizeof *windowed))
        return refuse_window(context, type, "model_type", " itself");
    return HBP_OK;
}

/* layer_types names the kind of every layer. */
static hbp_status check_layers(hbp_context *context, const hbp__value *root, const char *type)
{
    const hbp__value *layers = hbp__value_find(root, "layer_types");
    HBP__EACH(layers, layer)
    {
        const char *kind = hbp__value_text(layer);
        if (!kind || strcmp(kind, "full_attention") == 0)
            continue;
        if (strcmp(kind, "sliding_attention") == 0) {
            if (has_no_window(root, type))
                continue;
            return refuse_window(context, type, "layer_types", " \"sliding_attention\"");
        }
        char text[HBP__NAME_BYTES];
        hbp__printable(text, sizeof text, kind);
        return hbp__fail(
            context, HBP_E_FORMAT,
            NAME ": model_type '%s' with 'layer_types' \"%s\": only full attention is modelled; " FIELDS,
            type, text);
    }
    return HBP_OK;
}

hbp_status hbp__config_is_plain(hbp_context *context, const hbp__value *root, const char *type)
{
    HBP__TRY(check_decoder(context, root, type));
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const hbp__value *value = hbp__value_find(root, foreign[i].key);
        if (value && !hbp__value_is(value, HBP__NOTHING))
            return hbp__fail(context, HBP_E_FORMAT,
                             NAME ": model_type '%s' with '%s' has %s, which are not modelled; " FIELDS, type,
                             foreign[i].key, foreign[i].what);
    }
    HBP__TRY(check_layers(context, root, type));
    return check_windows(context, root, type);
}
