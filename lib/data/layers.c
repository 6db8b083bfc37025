#include "data/layers.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"

#define MOST_SUM (INT64_C(1) << 62)

void hbp_layer_columns_init(hbp_layer_columns *columns, uint32_t struct_size)
{
    hbp__struct_init(columns, struct_size);
}

/* A layer's name as messages give it. */
static const char *called(const hbp_layer_columns *given, int32_t i, char *text, size_t room)
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
    const char *name = called(given, i, text, sizeof text);
    layers->name[i] = hbp__new_text(&context->memory, name, strlen(name));
    return layers->name[i] ? HBP_OK : hbp__fail_memory(context, "the names of layers");
}

/* Copies one column, or fills in its default: `times` x `otherwise`, another column of these layers; zeros
 * without one. */
static hbp_status copy_column(hbp_context *context, const hbp_layers *layers, const char *name,
                              const int64_t *from, const int64_t *otherwise, int64_t times, int64_t **out)
{
    uint64_t rows = (uint64_t)layers->count;
    int64_t sum = 0;
    int64_t *to = *out = hbp__new(&context->memory, rows, sizeof *to);
    if (!to)
        return hbp__fail_memory(context, "the columns of layers");
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

static hbp_status copy_kinds(hbp_context *context, const hbp_layers *layers, const char *name,
                             const int32_t *from, const int32_t *otherwise, int32_t **out)
{
    int32_t *to = *out = hbp__new(&context->memory, (uint64_t)layers->count, sizeof *to);
    if (!to)
        return hbp__fail_memory(context, "the kinds of layers");
    for (int32_t i = 0; i < layers->count; i++) {
        to[i] = from ? from[i] : otherwise ? otherwise[i] : HBP_LAYER_LANGUAGE;
        if (to[i] < 0 || to[i] >= HBP_LAYER_KINDS)
            return hbp__fail(context, HBP_E_INVALID, "%s of layer %d is %d; it must lie in 0..%d", name,
                             (int)i, (int)to[i], HBP_LAYER_KINDS - 1);
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
                         &layers->working_bytes));
    for (int32_t i = 0; i < layers->count && !from; i++)
        layers->working_bytes[i] -= layers->recomputed_bytes[i];
    return HBP_OK;
}

static hbp_status fill(hbp_context *context, const hbp_layer_columns *given, hbp_layers *layers)
{
    HBP__TRY(copy_kinds(context, layers, "kind", given->kind, NULL, &layers->kind));
    HBP__TRY(copy_kinds(context, layers, "cut_kind", given->cut_kind, layers->kind, &layers->cut_kind));
#define COPY(name, otherwise, times)                                                                         \
    HBP__TRY(copy_column(context, layers, #name, given->name, otherwise, times, &layers->name))
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
    layers->name = hbp__new_zero(&context->memory, (uint64_t)layers->count, sizeof *layers->name);
    if (!layers->name)
        return hbp__fail_memory(context, "the names of layers");
    for (int32_t i = 0; i < layers->count; i++)
        HBP__TRY(copy_name(context, layers, i, given));
    return HBP_OK;
}

hbp_status hbp_layers_create(hbp_context *context, const hbp_layer_columns *columns, hbp_layers **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, columns, "columns"));
    hbp_layer_columns given;
    HBP__TRY(hbp__options_read(context, &given, sizeof given, columns, "hbp_layer_columns"));
    if (given.count < 1)
        return hbp__fail(context, HBP_E_INVALID, "count is %d; there must be at least 1 layer",
                         (int)given.count);
    HBP__TRY(hbp__require(context, given.forward_ns, "forward_ns"));
    hbp_layers *layers = hbp__new_zero(&context->memory, 1, sizeof *layers);
    if (!layers)
        return hbp__fail_memory(context, "layers");
    layers->memory = context->memory;
    atomic_init(&layers->references, 1);
    layers->count = given.count;
    hbp_status status = fill(context, &given, layers);
    if (status < 0) {
        hbp_layers_free(layers);
        return status;
    }
    *out = layers;
    return HBP_OK;
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
    for (int32_t i = 0; i < layers->count && layers->name; i++)
        hbp__delete(&memory, layers->name[i]);
    hbp__delete(&memory, layers->name);
    hbp__delete(&memory, layers->kind);
    hbp__delete(&memory, layers->cut_kind);
#define RELEASE(name) hbp__delete(&memory, layers->name);
    HBP__LAYER_COLUMNS(RELEASE)
#undef RELEASE
    hbp__delete(&memory, layers);
}

int32_t hbp_layers_count(const hbp_layers *layers)
{
    return layers ? layers->count : 0;
}

const int64_t *hbp_layers_get_column(const hbp_layers *layers, const char *name, int64_t *count)
{
    const int64_t *column = NULL;
#define FIND(field)                                                                                          \
    if (layers && name && strcmp(name, #field) == 0)                                                         \
        column = layers->field;
    HBP__LAYER_COLUMNS(FIND)
#undef FIND
    if (count)
        *count = column ? layers->count : 0;
    return column;
}

const int32_t *hbp_layers_get_kinds(const hbp_layers *layers, int64_t *count)
{
    if (count)
        *count = layers ? layers->count : 0;
    return layers ? layers->kind : NULL;
}

const char *hbp_layers_get_name(const hbp_layers *layers, int64_t index)
{
    return layers && index >= 0 && index < layers->count ? layers->name[index] : NULL;
}
