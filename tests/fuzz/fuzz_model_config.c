/* Reads any bytes as config.json; what comes out is a model whose counts hold together. */
#include "data/model/model.h"
#include "fuzz.h"
#include "hbp/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp_model *model;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp_status status =
        hbp_model_create_config(context, data ? (const char *)data : "", (int64_t)size, &model);
    CHECK((status == HBP_OK) == (model != NULL));
    if (model) {
        const hbp_model_summary *s = &model->summary;
        CHECK(s->parameters >= s->active_parameters && s->matmul_parameters > 0);
        CHECK(s->activation_bytes > 0 && s->max_sp >= 1 && hbp_model_is_sp_legal(model, s->max_sp));
        /* What was read can be made again from its fields. */
        hbp_model *again;
        CHECK(hbp_model_create(context, &model->fields, &again) == HBP_OK);
        CHECK(again->summary.parameters == s->parameters);
        hbp_model_free(again);
    } else {
        CHECK(status == HBP_E_FORMAT || status == HBP_E_NO_MEMORY);
        CHECK(hbp_context_message(context)[0]);
    }
    hbp_model_free(model);
    hbp_context_free(context);
    return 0;
}
