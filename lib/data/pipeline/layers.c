#include "data/pipeline/layers.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"

#define MOST_SUM (INT64_C(1) << 62)

#define AT(name)     offsetof(hbp_layers, name)
#define COLUMN(name) {"layer_" #name, HBP__CELL_I64, 0, AT(name), AT(rows)},

static const hbp__member counts[] = {{"layers", HBP__CELL_COUNT, 0, AT(rows), 0}};
static const hbp__member names[] = {{"layer_names", HBP__CELL_NAME, 0, AT(name), AT(rows)}};
static const hbp__member columns_of_layers[] = {
    {"layer_type", HBP__CELL_I32, 0, AT(type), AT(rows)},
    {"layer_cut_type", HBP__CELL_I32, 0, AT(cut_type), AT(rows)},
    /* clang-format off */
    HBP__LAYER_COLUMNS(COLUMN)
    /* clang-format on */
};

const hbp__table hbp__layers_table = {
    .what = "the layers",
    .bytes = sizeof(hbp_layers),
    .numbers = counts,
    .columns = columns_of_layers,
    .names = names,
    .number_count = 1,
    .column_count = sizeof columns_of_layers / sizeof *columns_of_layers,
    .name_count = 1,
};

/* A layer's name as messages give it. */
static const char *layer_name(const hbp_layer_columns *given, int32_t i, char *text, size_t room)
{
    if (given->names && given->names[i])
        return given->names[i];
    snprintf(text, room, "layer %d", (int)i);
    return text;
}

static hbp_status copy_name(hbp_context *context, hbp_layers *layers, int32_t i,
                            const hbp_layer_columns *given)
{
    char text[32];
    const char *name = layer_name(given, i, text, sizeof text);
    layers->name[i] = hbp__new_text(&context->memory, name, strlen(name));
    return layers->name[i] ? HBP_OK : hbp__fail_memory(context, "the names of layers");
}

/* Copies one column, or fills in its default: `times` x `otherwise`, another column of these layers; zeros
 * without one. */
static hbp_status copy_column(hbp_context *context, const hbp_layers *layers, const char *name,
                              const int64_t *from, const int64_t *otherwise, int64_t times, int64_t *to)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < layers->count; i++) {
        int64_t value = from ? from[i] : otherwise ? hbp__mul_saturating(otherwise[i], times) : 0;
        if (value < 0)
            return hbp__fail(context, HBP_E_INVALID, "%s of layer %d is %lld; it must not be negative", name,
                             (int)i, (long long)value);
        sum = hbp__add_saturating(sum, value);
        if (sum > MOST_SUM)
            return hbp__fail(context, HBP_E_OVERFLOW, "%s of layers 0..%d sum to more than 2^62", name,
                             (int)i);
        to[i] = value;
    }
    return HBP_OK;
}

static hbp_status copy_types(hbp_context *context, const hbp_layers *layers, const char *name,
                             const int32_t *from, const int32_t *otherwise, int32_t *to)
{
    for (int32_t i = 0; i < layers->count; i++) {
        to[i] = from ? from[i] : otherwise ? otherwise[i] : HBP_LAYER_LANGUAGE;
        if (to[i] < 0 || to[i] >= HBP_LAYER_TYPES)
            return hbp__fail(context, HBP_E_INVALID, "%s of layer %d is %d; it must be in 0..%d", name,
                             (int)i, (int)to[i], HBP_LAYER_TYPES - 1);
    }
    return HBP_OK;
}

/* What the layer keeps must hold what recomputation frees of it. */
static hbp_status check_bytes(hbp_context *context, const hbp_layers *layers)
{
    for (int32_t i = 0; i < layers->count; i++) {
        int64_t whole = layers->activation_bytes[i];
        if (layers->recomputed_bytes[i] > whole)
            return hbp__fail(context, HBP_E_INVALID,
                             "recomputed_bytes of layer %d is %lld; activation_bytes is %lld", (int)i,
                             (long long)layers->recomputed_bytes[i], (long long)whole);
        int64_t parts = hbp__add_saturating(layers->attention_bytes[i], layers->mlp_bytes[i]);
        if (parts > whole)
            return hbp__fail(context, HBP_E_INVALID,
                             "attention_bytes of layer %d is %lld and mlp_bytes %lld, more in all than "
                             "activation_bytes, %lld",
                             (int)i, (long long)layers->attention_bytes[i], (long long)layers->mlp_bytes[i],
                             (long long)whole);
    }
    return HBP_OK;
}

static hbp_status fill_working(hbp_context *context, hbp_layers *layers, const int64_t *from)
{
    HBP__TRY(copy_column(context, layers, "working_bytes", from, layers->activation_bytes, 1,
                         layers->working_bytes));
    for (int32_t i = 0; i < layers->count && !from; i++)
        layers->working_bytes[i] -= layers->recomputed_bytes[i];
    return HBP_OK;
}

static hbp_status fill_layers(hbp_context *context, const hbp_layer_columns *given, hbp_layers *layers)
{
    HBP__TRY(copy_types(context, layers, "type", given->type, NULL, layers->type));
    HBP__TRY(copy_types(context, layers, "cut_type", given->cut_type, layers->type, layers->cut_type));
#define COPY(name, otherwise, times)                                                                         \
    HBP__TRY(copy_column(context, layers, #name, given->name, otherwise, times, layers->name))
    COPY(forward_ns, NULL, 0);
    COPY(backward_ns, layers->forward_ns, 2);
    COPY(parameters, NULL, 0);
    COPY(state_bytes, NULL, 0);
    COPY(activation_bytes, NULL, 0);
    COPY(recomputed_bytes, NULL, 0);
    COPY(attention_bytes, NULL, 0);
    COPY(attention_ns, NULL, 0);
    COPY(mlp_bytes, NULL, 0);
    COPY(mlp_ns, NULL, 0);
    COPY(recompute_ns, layers->forward_ns, 1);
    COPY(cut_bytes, NULL, 0);
#undef COPY
    HBP__TRY(check_bytes(context, layers));
    HBP__TRY(fill_working(context, layers, given->working_bytes));
    for (int32_t i = 0; i < layers->count; i++)
        HBP__TRY(copy_name(context, layers, i, given));
    return HBP_OK;
}

hbp_status hbp__layers_create(hbp_context *context, const hbp_layer_columns *columns, hbp_layers **out)
{
    hbp_layer_columns given;
    HBP__TRY(hbp__options_read(context, &given, sizeof given, columns, "hbp_layer_columns"));
    if (given.count < 1)
        return hbp__fail(context, HBP_E_INVALID, "count is %d; there must be at least 1 layer",
                         (int)given.count);
    HBP__TRY(hbp__require(context, given.forward_ns, "forward_ns"));
    hbp_layers shape = {.memory = context->memory, .count = given.count, .rows = given.count};
    hbp_layers *layers = hbp__table_new(&context->memory, &hbp__layers_table, &shape);
    if (!layers)
        return hbp__fail_memory(context, hbp__layers_table.what);
    atomic_init(&layers->references, 1);
    hbp_status status = fill_layers(context, &given, layers);
    if (status < 0) {
        hbp_layers_free(layers);
        return status;
    }
    *out = layers;
    return HBP_OK;
}

hbp_status hbp_layers_create(hbp_context *context, const hbp_layer_columns *columns, hbp_layers **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, columns, "columns"));
    return hbp__layers_create(context, columns, out);
}

hbp_layers *hbp__layers_retain(const hbp_layers *layers)
{
    hbp_layers *shared = (hbp_layers *)(uintptr_t)layers; /* only the count of owners changes */
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

void hbp_layers_free(hbp_layers *layers)
{
    if (!layers || atomic_fetch_sub_explicit(&layers->references, 1, memory_order_acq_rel) > 1)
        return;
    hbp__memory memory = layers->memory;
    hbp__table_free(&memory, &hbp__layers_table, layers);
}

hbp_status hbp_layers_get_view(const hbp_layers *layers, hbp_layers_view *view)
{
    hbp_layers_view all = {0};
    if (layers) {
        all.layers = layers->count;
        all.type = layers->type;
        all.cut_type = layers->cut_type;
        all.names = (const char *const *)layers->name;
#define GIVE(name) all.name = layers->name;
        HBP__LAYER_COLUMNS(GIVE)
#undef GIVE
    }
    return hbp__view_write(view, layers, &all, sizeof all);
}
