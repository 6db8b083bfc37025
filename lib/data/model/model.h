/* The inside of a model. */
#ifndef HBP_DATA_MODEL_H
#define HBP_DATA_MODEL_H

#include "base/context.h"
#include "hbp/cost.h"

#define HBP__NAME_BYTES 64

/* Kept of logits per token and entry of the vocabulary: bf16, and fp32 with its gradient. */
#define HBP__LOGITS_BYTES (2 + 4 + 4)

struct hbp_model {
    hbp__memory memory;
    char name[HBP__NAME_BYTES];
    char text[HBP__NAME_BYTES]; /* what it was made from, for messages; "": its name says it */
    hbp_model_fields fields;    /* defaults filled in */
    hbp_model_summary summary;
};

/* Makes a model named `name` from fields, checked and completed. */
hbp_status hbp__model_make(hbp_context *context, const char *name, const hbp_model_fields *fields,
                           hbp_model **out);

/* What messages call a model: a "custom" one by the text that it was made from, where there is one. */
const char *hbp__model_said(const hbp_model *model);

/* The preset of that name, as it stands in the table. */
hbp_status hbp__model_make_preset(hbp_context *context, const char *name, hbp_model **out);

/* The presets' names, NULL past the end. */
const char *hbp__model_preset_name(int64_t index);

/* hbp_model_create_preset and hbp_model_create_variant, within a call. *out is set on success alone. */
hbp_status hbp__model_create_preset(hbp_context *context, const char *text, hbp_model **out);
hbp_status hbp__model_create_variant(hbp_context *context, const hbp_model *base, const char *text,
                                     hbp_model **out);

/* Whether attention heads and key-value heads can be dealt to `sp` ranks (Ulysses). */
static inline int hbp__heads_allow(int32_t heads, int32_t kv_heads, int32_t sp)
{
    return heads % sp == 0 && (kv_heads % sp == 0 || sp % kv_heads == 0);
}

/* One layer in its two parts. The few parameters of both norms count with attention. */
typedef struct hbp__layer_shape {
    int64_t attention_parameters;
    int64_t mlp_parameters;        /* all experts and the router included */
    int64_t mlp_active_parameters; /* that one token meets */
    int64_t attention_bytes;       /* kept per token with nothing recomputed, the part's input included */
    int64_t mlp_bytes;             /* an input has 2 hidden */
    double attention_flops;        /* forward, causal, per squared token of a document: 2 a d_h */
} hbp__layer_shape;

/* The shape of a layer of a model with these fields, defaults filled in; `sparse`: its MLP is a mixture of
 * experts. Returns 0 when a number passes 64 bits. */
int hbp__model_layer(const hbp_model_fields *fields, int sparse, hbp__layer_shape *shape);

/* The sum over all matrices that one token meets, the output projection included, of K + N for one of K x N.
 */
double hbp__model_product_sides(const hbp_model_fields *fields);

#endif
