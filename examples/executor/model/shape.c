#include "model/shape.h"

#include <hbp/io.h>
#include <stddef.h>
#include <string.h>

/* Llama's own; a plan says nothing of either, and neither changes a time. */
static const float THETA = 10000;
static const float EPSILON = 1e-5F;

static int ends_in_json(const char *text, size_t length)
{
    return length >= 5 && memcmp(text + length - 5, ".json", 5) == 0;
}

hbp_model *ex_model_read(hbp_context *context, const char *text, ex_fault *fault)
{
    const int is_file = ends_in_json(text, strlen(text)) || ends_in_json(text, strcspn(text, ","));
    hbp_model *model = NULL;
    hbp_status status =
        is_file ? hbp_model_load(context, text, &model) : hbp_model_create_preset(context, text, &model);
    if (status < 0)
        ex_fail(fault, "%s", hbp_context_message(context));
    return model;
}

int ex_shape_from_model(const hbp_model *model, ex_shape *shape, ex_fault *fault)
{
    hbp_context *context = NULL;
    if (hbp_context_create(NULL, &context) != HBP_OK)
        return ex_fail(fault, "no memory for a context");
    hbp_model_fields f = {.struct_size = sizeof f};
    const char *name = hbp_model_get_name(model);
    if (hbp_model_get_fields(context, model, &f) != HBP_OK) {
        ex_fail(fault, "%s: %s", name, hbp_context_message(context));
        hbp_context_free(context);
        return -1;
    }
    hbp_context_free(context);
    if (f.mla_kv_lora > 0)
        return ex_fail(fault, "%s has latent attention (mla_kv_lora %d); the executor trains Llama's shape",
                       name, (int)f.mla_kv_lora);
    if (f.experts > 0)
        return ex_fail(fault, "%s has %d experts; the executor trains dense models", name, (int)f.experts);
    if (f.mlp != HBP_MLP_GATED)
        return ex_fail(fault, "%s has a plain MLP; the executor trains gated ones (SwiGLU)", name);
    if (f.learned_positions)
        return ex_fail(fault, "%s learns its positions; the executor has rotary ones", name);
    if (f.head_dim % 2)
        return ex_fail(fault, "%s has heads of dimension %d, an odd number; rotary positions turn pairs",
                       name, (int)f.head_dim);
    *shape = (ex_shape){.layers = f.layers,
                        .hidden = f.hidden,
                        .ffn = f.ffn,
                        .heads = f.heads,
                        .kv_heads = f.kv_heads,
                        .head_dim = f.head_dim,
                        .vocab = f.vocab,
                        .tied_embeddings = f.tied_embeddings != 0,
                        .qkv_bias = f.qkv_bias != 0,
                        .theta = THETA,
                        .epsilon = EPSILON};
    return 0;
}

int64_t ex_shape_parameters(const ex_shape *shape)
{
    int64_t h = shape->hidden;
    int64_t queries = (int64_t)shape->heads * shape->head_dim;
    int64_t qkv = queries + 2 * (int64_t)shape->kv_heads * shape->head_dim;
    int64_t layer = 2 * h + qkv * h + (shape->qkv_bias ? qkv : 0) + queries * h + 3 * h * shape->ffn;
    int64_t tables = shape->tied_embeddings ? 1 : 2;
    return shape->layers * layer + h + tables * shape->vocab * h;
}
