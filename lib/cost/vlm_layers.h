/* hbp_vlm_create_layers for callers inside the library. */
#ifndef HBP_COST_VLM_LAYERS_H
#define HBP_COST_VLM_LAYERS_H

#include "base/context.h"
#include "hbp/vlm.h"

/* hbp_vlm_create_layers, within a call. *out is set on success alone. */
hbp_status hbp__vlm_create_layers(hbp_context *context, const hbp_vlm *vlm, const hbp_machine *machine,
                                  const hbp_vlm_layers_options *options, hbp_layers **out);

#endif
