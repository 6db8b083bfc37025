/* The shape of the transformer that is trained: Llama's (RMSNorm, rotary positions, grouped queries, SwiGLU).
 */
#ifndef EX_MODEL_SHAPE_H
#define EX_MODEL_SHAPE_H

#include <hbp/hbp.h>
#include <stdint.h>

#include "base/fault.h"

typedef struct ex_shape {
    int32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
    int32_t tied_embeddings; /* the output projection is the embedding's table */
    int32_t qkv_bias;
    float theta;   /* of rotary positions */
    float epsilon; /* of RMSNorm */
} ex_shape;

/* Makes the model that a text names: "config.json", Hugging Face's, also with fields replaced behind it,
 * "config.json,layers=4"; else what hbp_model_create_preset reads. NULL with a message on failure. */
hbp_model *ex_model_read(hbp_context *context, const char *text, ex_fault *fault);

/* Takes the shape of `model`; -1 with a message that names what is not Llama's about it (experts, latent
 * attention, plain MLP, learned positions, an odd head dimension). */
int ex_shape_from_model(const hbp_model *model, ex_shape *shape, ex_fault *fault);

/* Number of parameters. */
int64_t ex_shape_parameters(const ex_shape *shape);

#endif
