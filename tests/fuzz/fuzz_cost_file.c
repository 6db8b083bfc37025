/* Reads any bytes as a cost file; what comes out predicts and has terms that a cost may have. */
#include "cost/cost.h"
#include "fuzz.h"
#include "io/cost/cost_file.h"

static void check_whole(hbp_context *context, const hbp_cost *cost)
{
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    CHECK(hbp_cost_get_terms(context, cost, &terms) == HBP_OK);
    hbp_cost *again;
    CHECK(hbp_cost_create_terms(context, &terms, &again) == HBP_OK);
    hbp_cost_free(again);
    CHECK(cost->heads == 0 || (cost->kv_heads > 0 && cost->kv_heads <= cost->heads));
    for (int32_t i = 0; i < terms.degrees && i < 64; i++)
        for (int32_t recompute = 0; recompute <= terms.layers; recompute += terms.layers) {
            CHECK(hbp_cost_predict_pack_ns(cost, terms.degree[i], recompute, 4096, 1e7, 0) >= 0);
            CHECK(hbp_cost_predict_pack_bytes(cost, terms.degree[i], recompute, 4096, 0) >= 0);
            CHECK(hbp_cost_predict_capacity(cost, terms.degree[i], recompute) >= 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    hbp_cost *cost;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    hbp_status status = hbp__cost_read(context, "fuzz", (const char *)data, (int64_t)size, &cost);
    CHECK((status == HBP_OK) == (cost != NULL));
    CHECK(cost || (status != HBP_E_INTERNAL && hbp_context_message(context)[0]));
    if (cost)
        check_whole(context, cost);
    hbp_cost_free(cost);
    hbp_context_free(context);
    return 0;
}
