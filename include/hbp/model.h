/* The transformer: a preset, a set of fields, or a Hugging Face config.json. Immutable once made; shareable.
 */
#ifndef HBP_MODEL_H
#define HBP_MODEL_H

#include <stdint.h>

#include "hbp/context.h"

/* Kinds of feed-forward network. */
enum { HBP_MLP_GATED = 0, HBP_MLP_PLAIN = 1 };

HBP_BEGIN_DECLS

typedef struct hbp_model hbp_model;

/* A decoder-only transformer. Counts are plain counts, sizes are elements (not bytes). Zero means absent or,
 * where named, the default. */
typedef struct hbp_model_fields {
    uint32_t struct_size;
    int32_t mlp;               /* HBP_MLP_* */
    int32_t tied_embeddings;   /* nonzero: the output projection shares the embedding's parameters */
    int32_t learned_positions; /* positions with a learned embedding; 0: rotary */
    int32_t layers;
    int32_t dense_layers; /* with experts: leading layers whose MLP is dense */
    int32_t hidden;
    int32_t ffn; /* width of a dense MLP */
    int32_t heads;
    int32_t kv_heads; /* 0: = heads */
    int32_t head_dim; /* 0: = hidden / heads */
    int32_t vocab;
    int32_t experts;        /* routed experts a layer; 0: a dense model */
    int32_t experts_active; /* routed experts a token takes (top-k) */
    int32_t experts_shared; /* experts every token takes */
    int32_t moe_ffn;        /* width of one expert */
    int32_t mla_q_lora;     /* multi-head latent attention (DeepSeek-V2); mla_kv_lora > 0 switches it on */
    int32_t mla_kv_lora;
    int32_t mla_nope_dim;
    int32_t mla_rope_dim;
    int32_t mla_v_dim;
    int32_t qkv_bias; /* nonzero: q, k and v projections have a bias (Qwen2.5) */
} hbp_model_fields;

HBP_API void hbp_model_fields_init(hbp_model_fields *fields, uint32_t struct_size);

/* Makes a model from fields. Returns HBP_E_INVALID naming the field and its value, HBP_E_NO_MEMORY.
 * Thread: one per context. */
HBP_API hbp_status hbp_model_create(hbp_context *context, const hbp_model_fields *fields, hbp_model **out);

/* Makes what a text describes: a preset, "llama-3.1-8b"; one with fields replaced,
 * "llama-3.1-8b,layers=4,vocab=1024"; or fields alone, "layers=4,hidden=512,...". A model with fields is
 * named "custom"; a preset's head_dim and kv_heads stay where hidden or heads are replaced. HBP_E_INVALID
 * names the text and what is wrong with it, and offers the nearest name of a preset or field. */
HBP_API hbp_status hbp_model_create_preset(hbp_context *context, const char *text, hbp_model **out);

/* Makes a model with the fields of `base` but for those that a text replaces, "layers=4,vocab=1024". */
HBP_API hbp_status hbp_model_create_variant(hbp_context *context, const hbp_model *base, const char *text,
                                            hbp_model **out);

/* The presets' names, 0 <= index < count; NULL past the end. Static text. Thread: any. */
HBP_API int64_t hbp_model_count_presets(void);
HBP_API const char *hbp_model_get_preset_name(int64_t index);

/* Reads a Hugging Face config.json: `json` [bytes] of text, or a file. Knows llama, mistral, mixtral, qwen2,
 * qwen3, qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3, gpt2, gpt_neox, gemma, gemma2, gemma3_text and
 * cohere by `model_type`; another type is read as llama when it has llama's keys. HBP_E_FORMAT names the
 * missing or wrong key, or the key by which the model is no decoder of alike layers that attend to all
 * before: sliding windows, state-space, recurrent or linear layers, encoders. */
HBP_API hbp_status hbp_model_create_config(hbp_context *context, const char *json, int64_t bytes,
                                           hbp_model **out);
HBP_API hbp_status hbp_model_load_config(hbp_context *context, const char *path, hbp_model **out);

HBP_API void hbp_model_free(hbp_model *model);

/* What follows from the fields. */
typedef struct hbp_model_summary {
    uint32_t struct_size;
    int32_t max_sp;                         /* the largest legal Ulysses degree */
    int64_t parameters;                     /* all of them, embeddings included */
    int64_t active_parameters;              /* that one token meets */
    int64_t matmul_parameters;              /* active, without embeddings, with the output projection: N_mm */
    int64_t activation_bytes;               /* per layer and token, nothing recomputed (mean over layers) */
    int64_t recomputed_bytes;               /* per layer and token, layer recomputed */
    int64_t logits_bytes;                   /* per token, cross-entropy not fused */
    double forward_flops_per_token;         /* 2 N_mm */
    double forward_flops_per_token_squared; /* causal attention, per document: 2 L a d_h */
} hbp_model_summary;

/* The model's name: the preset's, config.json's model_type, or "custom". Owned by the model. Thread:
 * shareable. */
HBP_API const char *hbp_model_get_name(const hbp_model *model);

/* Copies the fields, defaults filled in; then what follows from them. Thread: shareable. */
HBP_API hbp_status hbp_model_get_fields(hbp_context *context, const hbp_model *model,
                                        hbp_model_fields *fields);
HBP_API hbp_status hbp_model_get_summary(hbp_context *context, const hbp_model *model,
                                         hbp_model_summary *summary);

/* 1 when Ulysses sequence parallelism of degree `sp` is legal: heads % sp == 0 and (kv % sp == 0 or sp % kv
 * == 0), else 0 (DeepSpeed-Ulysses; MLA counts as kv = heads). Thread: shareable. */
HBP_API int32_t hbp_model_is_sp_legal(const hbp_model *model, int32_t sp);

HBP_END_DECLS

#endif
