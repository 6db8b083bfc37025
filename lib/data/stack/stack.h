/* The software stack: what a trainer's kernels and traffic reach on a GPU. A text, read for one model and one
 * machine. */
#ifndef HBP_DATA_STACK_H
#define HBP_DATA_STACK_H

#include <stdint.h>

#include "base/context.h"
#include "data/machine/machine.h"
#include "data/model/model.h"

/* The fields behind struct_size, in their order. */
enum {
    HBP__STACK_fused_cross_entropy,
    HBP__STACK_gemm_efficiency,
    HBP__STACK_gemm_tokens,
    HBP__STACK_attention_efficiency,
    HBP__STACK_attention_tokens,
    HBP__STACK_forward_attention_efficiency,
    HBP__STACK_forward_attention_tokens,
    HBP__STACK_elementwise_bytes,
    HBP__STACK_logits_traffic_bytes,
    HBP__STACK_exchange_passes,
    HBP__STACK_recompute_products,
    HBP__STACK_recompute_attention,
    HBP__STACK_activations,
    HBP__STACK_logits_kept_bytes,
    HBP__STACK_dp_overlap,
    HBP__STACK_sp_overlap,
    HBP__STACK_compute_overlap,
    HBP__STACK_layer_ns,
    HBP__STACK_FIELD_COUNT
};

/* What a preset knows of a GPU; rates are of the GPU whose peak is nearest. */
typedef struct hbp__stack_products {
    double peak; /* flop/s of the GPU that it was measured on */
    double efficiency;
} hbp__stack_products;

/* An attention kernel on one GPU with one head dimension: of a causal document of s tokens it does
 * peak x efficiency / (1 + tokens / s) flop/s, in both passes together and in the forward pass. */
typedef struct hbp__stack_attention {
    const char *kernel;
    double peak;
    int32_t head_dim;
    double efficiency, tokens;
    double forward_efficiency, forward_tokens;
} hbp__stack_attention;

typedef struct hbp__stack_preset {
    const char *name;
    const char *kernel; /* of attention */
    const hbp__stack_products *products;
    int32_t product_rows;
    hbp_stack_fields fields; /* all but the efficiencies and tokens, which the GPU says */
} hbp__stack_preset;

/* The presets' names and their kernels' names, NULL past the end; the preset of a name, NULL for none. */
const char *hbp__stack_preset_name(int64_t index);
const char *hbp__stack_kernel_name(int64_t index);
const hbp__stack_preset *hbp__stack_find(const char *name);

/* The row of a kernel whose head dimension and whose GPU's peak are nearest, in this order of weight: the
 * GPU, then the head dimension. NULL for no such kernel. */
const hbp__stack_attention *hbp__stack_find_attention(const char *kernel, double peak, int32_t head_dim);

/* hbp_stack_read, within a call; `text` NULL: the machine's own efficiencies and nothing else. */
hbp_status hbp__stack_read(hbp_context *context, const char *text, const hbp_model *model,
                           const hbp_machine *machine, hbp_stack_fields *out);

#endif
