/* hbp_vlm_create_layers for callers inside the library. */
#ifndef HBP_COST_VLM_LAYERS_H
#define HBP_COST_VLM_LAYERS_H

#include "base/context.h"
#include "hbp/vlm.h"

/* hbp_vlm_create_layers, within a call. *out is set on success alone. */
hbp_status hbp__vlm_create_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                  const hbp_vlm_layers_options *options, hbp_layers **out);

/* Whether the model's heads can be shared out to `degree` tensor-parallel GPUs of the machine. HBP_E_INVALID,
 * with the degrees that would do. */
hbp_status hbp__vlm_check_degree(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                 int32_t degree);

/* "1, 2, 4 or 8": tensor-parallel degrees by which replicas of `stages` stages share out all of `gpus` GPUs
 * and that the model's heads allow (NULL: any); "" for none. */
typedef struct hbp__degrees_text {
    char text[80];
} hbp__degrees_text;
hbp__degrees_text hbp__vlm_say_degrees(const hbp_vlm *vlm, int64_t gpus, int64_t stages);

#endif
