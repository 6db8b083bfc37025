/* The inside of layers. */
#ifndef HBP_DATA_LAYERS_H
#define HBP_DATA_LAYERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/context.h"
#include "data/table/table.h"
#include "hbp/pipeline.h"

/* Every int64 column of hbp_layer_columns. */
#define HBP__LAYER_COLUMNS(X)                                                                                \
    X(forward_ns)                                                                                            \
    X(backward_ns)                                                                                           \
    X(parameters)                                                                                            \
    X(state_bytes)                                                                                           \
    X(activation_bytes)                                                                                      \
    X(recomputed_bytes)                                                                                      \
    X(working_bytes)                                                                                         \
    X(attention_bytes)                                                                                       \
    X(attention_ns)                                                                                          \
    X(mlp_bytes)                                                                                             \
    X(mlp_ns)                                                                                                \
    X(recompute_ns)                                                                                          \
    X(cut_bytes)

struct hbp_layers {
    hbp__memory memory;
    atomic_int references;
    int32_t count;
    int64_t rows;                             /* the same, as tables have it */
    int32_t *type;                            /* [count] HBP_LAYER_* */
    int32_t *cut_type;                        /* [count] */
    char **name;                              /* [count] */
#define HBP__LAYER_FIELD(name) int64_t *name; /* [count], never NULL: defaults are filled in */
    HBP__LAYER_COLUMNS(HBP__LAYER_FIELD)
#undef HBP__LAYER_FIELD
};

/* Columns and names as an object of others holds them, under "layer_..." */
extern const hbp__table hbp__layers_table;

/* hbp_layers_create inside of another call. */
hbp_status hbp__layers_create(hbp_context *context, const hbp_layer_columns *columns, hbp_layers **out);

/* One more owner; hbp_layers_free drops one. */
hbp_layers *hbp__layers_retain(const hbp_layers *layers);

/* Bytes that layer `i` keeps from forward to backward under a choice (HBP_RECOMPUTE_*), the time the choice
 * adds, and what it needs more while the layer is computed again; of the reference micro-batch. */
static inline int64_t hbp__layer_kept_bytes(const hbp_layers *layers, int32_t i, int32_t choice)
{
    switch (choice) {
    case HBP_RECOMPUTE_ATTENTION:
        return layers->activation_bytes[i] - layers->attention_bytes[i];
    case HBP_RECOMPUTE_MLP:
        return layers->activation_bytes[i] - layers->mlp_bytes[i];
    case HBP_RECOMPUTE_LAYER:
        return layers->recomputed_bytes[i];
    default:
        return layers->activation_bytes[i];
    }
}

static inline int64_t hbp__layer_extra_ns(const hbp_layers *layers, int32_t i, int32_t choice)
{
    switch (choice) {
    case HBP_RECOMPUTE_ATTENTION:
        return layers->attention_ns[i];
    case HBP_RECOMPUTE_MLP:
        return layers->mlp_ns[i];
    case HBP_RECOMPUTE_LAYER:
        return layers->recompute_ns[i];
    default:
        return 0;
    }
}

static inline int64_t hbp__layer_working_bytes(const hbp_layers *layers, int32_t i, int32_t choice)
{
    switch (choice) {
    case HBP_RECOMPUTE_ATTENTION:
        return layers->attention_bytes[i];
    case HBP_RECOMPUTE_MLP:
        return layers->mlp_bytes[i];
    case HBP_RECOMPUTE_LAYER:
        return layers->working_bytes[i];
    default:
        return 0;
    }
}

#endif
