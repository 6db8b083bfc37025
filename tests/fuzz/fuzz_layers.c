/* Reads any bytes as layers; what comes out must hold together. */
#include "data/pipeline/layers.h"
#include "fuzz.h"
#include "io/pipeline/read_layers.h"

static void check_whole(const hbp_layers *layers)
{
    CHECK(layers->count > 0);
    for (int32_t i = 0; i < layers->count; i++) {
#define NOT_NEGATIVE(column) CHECK(layers->column[i] >= 0);
        HBP__LAYER_COLUMNS(NOT_NEGATIVE)
#undef NOT_NEGATIVE
        CHECK(layers->type[i] >= 0 && layers->type[i] < HBP_LAYER_TYPES);
        CHECK(layers->cut_type[i] >= 0 && layers->cut_type[i] < HBP_LAYER_TYPES);
        CHECK(layers->recomputed_bytes[i] <= layers->activation_bytes[i]);
        CHECK(layers->attention_bytes[i] + layers->mlp_bytes[i] <= layers->activation_bytes[i]);
        CHECK(layers->name[i] != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp__stream *in;
    hbp_layers *layers = NULL;
    if (hbp__stream_open_memory(context, "fuzz", data, (int64_t)size, &in) >= 0) {
        hbp_status status = hbp__layers_read_stream(context, in, &layers);
        hbp__stream_close(in);
        CHECK((status >= 0) == (layers != NULL));
        CHECK(status != HBP_E_INTERNAL && (status >= 0 || hbp_context_message(context)[0]));
        if (layers)
            check_whole(layers);
    }
    hbp_layers_free(layers);
    hbp_context_free(context);
    return 0;
}
