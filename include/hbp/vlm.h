/* The vision-language model: an encoder, a projector and a language model, and the layers it consists of.
 * Immutable once made; shareable. */
#ifndef HBP_VLM_H
#define HBP_VLM_H

#include <stdint.h>

#include "hbp/context.h"
#include "hbp/layers.h"
#include "hbp/machine.h"
#include "hbp/model.h"

HBP_BEGIN_DECLS

typedef struct hbp_vlm hbp_vlm;

/* The encoder, a transformer over patches, and the projector. A vision unit is what samples count: a tile of
 * fixed size (InternVL), an image, or one token handed to the language model (Qwen2-VL). */
typedef struct hbp_vlm_fields {
    uint32_t struct_size;
    int32_t vision_mlp; /* HBP_MLP_* */
    int32_t vision_layers;
    int32_t vision_hidden;
    int32_t vision_ffn;
    int32_t vision_heads;
    int32_t vision_head_dim;    /* 0: hidden / heads */
    int32_t patch_values;       /* numbers in a patch: 3 * 14 * 14 */
    int32_t tokens_per_unit;    /* the encoder runs per unit: 1025 */
    int32_t attention_tokens;   /* that attend one another; 0: tokens_per_unit */
    int32_t projected_per_unit; /* language-model tokens that a unit becomes: 256 */
    int32_t projector_input;    /* width of a projected token before the projector (pixel shuffle) */
    int32_t projector_hidden;   /* width between its two matrices; 0: the language model's hidden */
} hbp_vlm_fields;

HBP_API void hbp_vlm_fields_init(hbp_vlm_fields *fields, uint32_t struct_size);

/* Makes a model of an encoder and a language model (copied). HBP_E_INVALID names the field, its value and the
 * limit. Thread: one per context. */
HBP_API hbp_status hbp_vlm_create(hbp_context *context, const hbp_vlm_fields *fields,
                                  const hbp_model *language, hbp_vlm **out);

/* internvl-1.5-26b (InternViT-6B + InternLM2-20B), internvl-1.2-plus-40b (+ Yi-34B), eva-clip-llama-3-8b
 * (EVA02-CLIP-E/14), qwen2-vl-7b; what their units are: docs, cost model. An unknown name is HBP_E_INVALID
 * and the message offers the nearest. */
HBP_API hbp_status hbp_vlm_create_preset(hbp_context *context, const char *name, hbp_vlm **out);
HBP_API int64_t hbp_vlm_count_presets(void);
HBP_API const char *hbp_vlm_get_preset_name(int64_t index);

HBP_API void hbp_vlm_free(hbp_vlm *vlm);

HBP_API const char *hbp_vlm_get_name(const hbp_vlm *vlm);
HBP_API hbp_status hbp_vlm_get_fields(hbp_context *context, const hbp_vlm *vlm, hbp_vlm_fields *fields);

/* The language model, owned by the VLM. Thread: shareable. */
HBP_API const hbp_model *hbp_vlm_get_language(const hbp_vlm *vlm);

/* What follows from the fields. */
typedef struct hbp_vlm_summary {
    uint32_t struct_size;
    int32_t layers; /* rows of hbp_vlm_create_layers */
    int64_t vision_parameters;
    int64_t projector_parameters;
    int64_t language_parameters;
    double vision_flops_per_unit;    /* forward: encoder and projector */
    double language_flops_per_token; /* forward, without attention's squares */
    double language_flops_per_token_squared;
} hbp_vlm_summary;

HBP_API hbp_status hbp_vlm_get_summary(hbp_context *context, const hbp_vlm *vlm, hbp_vlm_summary *summary);

typedef struct hbp_vlm_layers_options {
    uint32_t struct_size;
    int32_t tensor_parallel; /* GPUs that share a layer, with sequence parallelism; 0: 1 */
    int32_t data_parallel;   /* replicas that share optimiser states under ZeRO; 0: 1 */
    int32_t zero_stage;      /* HBP_ZERO_*; 0: HBP_ZERO_1 */
    int32_t fused_cross_entropy;
    double vision;  /* vision units of the reference micro-batch; needed, > 0 */
    double tokens;  /* tokens of the reference micro-batch; needed, > 0 */
    double squares; /* sum of squared lengths; 0: tokens^2 / 4 (four samples alike) */
} hbp_vlm_layers_options;

HBP_API void hbp_vlm_layers_options_init(hbp_vlm_layers_options *options, uint32_t struct_size);

/* Derives every layer's columns from the shapes and the machine (docs: cost model): "patch embedding", the
 * encoder's layers, "projector", "token embedding", the language model's layers, "final norm", "output head".
 * HBP_E_INVALID names a missing field or a tensor-parallel degree that no head count allows. Thread: one per
 * context. */
HBP_API hbp_status hbp_vlm_create_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                         const hbp_vlm_layers_options *options, hbp_layers **out);

HBP_END_DECLS

#endif
