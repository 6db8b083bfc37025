/* The layers of a model in the order in which a micro-batch meets them, with what each costs: the input of
 * the planners of pipeline stages and of recomputation. Immutable once made; shareable. */
#ifndef HBP_LAYERS_H
#define HBP_LAYERS_H

#include <stdint.h>

#include "hbp/context.h"

/* What a layer's time, activations and output grow with, from micro-batch to micro-batch. */
enum {
    HBP_LAYER_LANGUAGE = 0, /* tokens */
    HBP_LAYER_VISION = 1,   /* vision units */
    HBP_LAYER_FIXED = 2,    /* nothing: the same for every micro-batch */
    HBP_LAYER_KINDS = 3
};

/* What of a layer is computed again in the backward pass instead of kept. */
enum {
    HBP_RECOMPUTE_NONE = 0,
    HBP_RECOMPUTE_ATTENTION = 1, /* the attention part alone */
    HBP_RECOMPUTE_MLP = 2,       /* the feed-forward part alone */
    HBP_RECOMPUTE_LAYER = 3,     /* all of it; its input is kept */
    HBP_RECOMPUTE_CHOICES = 4
};

HBP_BEGIN_DECLS

typedef struct hbp_layers hbp_layers;

/* Columns [count] of one GPU's share (tensor parallelism divides before), for the reference micro-batch,
 * whose scale is 1. NULL columns are zeros but where said. All values >= 0, times in ns, sizes in bytes. */
typedef struct hbp_layer_columns {
    uint32_t struct_size;
    int32_t count;
    const int64_t *forward_ns;       /* needed */
    const int64_t *backward_ns;      /* without recomputation; NULL: twice forward_ns */
    const int32_t *kind;             /* HBP_LAYER_*; NULL: all HBP_LAYER_LANGUAGE */
    const int64_t *parameters;       /* a plain count */
    const int64_t *state_bytes;      /* weights, gradients, optimiser states */
    const int64_t *activation_bytes; /* kept from forward to backward with nothing recomputed */
    const int64_t *recomputed_bytes; /* kept with the whole layer recomputed */
    const int64_t
        *working_bytes; /* more while the layer is recomputed; NULL: activation - recomputed bytes */
    const int64_t *attention_bytes; /* freed by recomputing attention alone; 0: that cannot be chosen */
    const int64_t *attention_ns;    /* what that costs in time */
    const int64_t *mlp_bytes;       /* the same for the feed-forward part */
    const int64_t *mlp_ns;
    const int64_t *recompute_ns; /* time of recomputing the whole layer; NULL: forward_ns */
    const int64_t *cut_bytes;    /* sent on when a stage ends behind this layer; the last is not used */
    const int32_t *cut_kind;     /* HBP_LAYER_*: what cut_bytes grows with; NULL: `kind` */
    const char *const *names;    /* NULL: "layer 0", ... Copied */
} hbp_layer_columns;

HBP_API void hbp_layer_columns_init(hbp_layer_columns *columns, uint32_t struct_size);

/* Makes layers from measured (or made up) columns; copies. HBP_E_INVALID names the column, the layer and the
 * value: count < 1, a negative number, an unknown kind, recomputed above activation bytes, parts that free
 * more than the layer keeps; HBP_E_OVERFLOW when a column's sum passes 2^62. Thread: one per context. */
HBP_API hbp_status hbp_layers_create(hbp_context *context, const hbp_layer_columns *columns,
                                     hbp_layers **out);

/* Reads layers from CSV or JSON lines with columns named as in hbp_layer_columns (`forward_us`, `forward_ms`
 * and the like are converted; `kind` is a number or language, vision, fixed); others are passed over, unless
 * they end in a unit and so look misspelt. HBP_E_FORMAT with the line. Thread: one per context. */
HBP_API hbp_status hbp_layers_read(hbp_context *context, const char *path, hbp_layers **out);

HBP_API void hbp_layers_free(hbp_layers *layers);

/* The columns of layers (docs: views), each [layers] and as hbp_layer_columns has it; never NULL: defaults
 * are filled in. */
typedef struct hbp_layers_view {
    uint32_t struct_size;
    int64_t layers;
    const int32_t *kind;     /* HBP_LAYER_* */
    const int32_t *cut_kind; /* HBP_LAYER_* */
    const char *const *names;
    const int64_t *forward_ns;
    const int64_t *backward_ns;
    const int64_t *parameters;
    const int64_t *state_bytes;
    const int64_t *activation_bytes;
    const int64_t *recomputed_bytes;
    const int64_t *working_bytes;
    const int64_t *attention_bytes;
    const int64_t *attention_ns;
    const int64_t *mlp_bytes;
    const int64_t *mlp_ns;
    const int64_t *recompute_ns;
    const int64_t *cut_bytes;
} hbp_layers_view;

HBP_API hbp_status hbp_layers_get_view(const hbp_layers *layers, hbp_layers_view *view);

HBP_END_DECLS

#endif
