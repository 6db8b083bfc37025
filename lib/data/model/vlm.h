/* The inside of a vision-language model. */
#ifndef HBP_DATA_VLM_H
#define HBP_DATA_VLM_H

#include "base/context.h"
#include "data/model/model.h"
#include "hbp/vlm.h"

struct hbp_vlm {
    hbp__memory memory;
    char name[HBP__NAME_BYTES];
    hbp_vlm_fields fields; /* defaults filled in */
    hbp_vlm_summary summary;
    hbp_model language; /* a copy; a model points to nothing */
};

/* Rows of hbp_vlm_create_layers besides the transformers' layers: patch embedding, projector, token
 * embedding, final norm, output head. */
#define HBP__VLM_ROWS 5

/* Makes a model named `name` from fields, checked and completed. */
hbp_status hbp__vlm_make(hbp_context *context, const char *name, const hbp_vlm_fields *fields,
                         const hbp_model *language, hbp_vlm **out);

/* The presets' names, NULL past the end. */
const char *hbp__vlm_preset_name(int64_t index);

/* The encoder's layers as fields of a transformer whose heads are shared by `tensor_parallel` GPUs: heads are
 * padded to a multiple of that, as Megatron-LM pads InternViT's 25. */
hbp_model_fields hbp__vlm_encoder(const hbp_vlm_fields *fields, int32_t tensor_parallel);

/* Parameters of the patch embedding (matrix, bias, learned positions) and of the projector (norm, two
 * matrices, two biases). The checks of hbp__vlm_make keep them within 64 bits. */
int64_t hbp__vlm_patch_parameters(const hbp_vlm_fields *fields);
int64_t hbp__vlm_projector_parameters(const hbp_vlm_fields *fields, int32_t language_hidden);

#endif
