#include "flexsp.h"

#include <stdio.h>
#include <string.h>

#include "common.h"

#define MIB 1048576.0

static const struct {
    const char *name;
    double mib_per_token;
    double a1, a2, b1; /* ms per squared token, per token, per micro-batch */
    int32_t hidden, layers;
    double parameters[2]; /* in 2^30, at 192K and at 384K: positions are embedded */
} models[FLEXSP_MODELS] = {
    {"7b", 4.480441895, 5.128e-6, .1839576, 629.3563, 4096, 32, {7.11744690, 7.84986877}},
    {"13b", 4.220439453, 9.2852e-6, .3060189, 1132.5632, 5120, 40, {13.11605453, 14.03158188}},
    {"30b", 3.417381836, 15.4262e-6, .8035742, 2789.3644, 6656, 60, {31.52513885, 32.71532441}},
};

const char *flexsp_model_name(int index)
{
    return index >= 0 && index < FLEXSP_MODELS ? models[index].name : NULL;
}

hbp_cost *flexsp_cost(hbp_context *context, const char *model, int limit_k, int32_t ranks)
{
    enum { DEGREES = 7 };
    static const int32_t degree[DEGREES] = {1, 2, 4, 8, 16, 32, 64};
    static const double gb_per_s[DEGREES] = {0, 119.54, 104.07, 96.5, 10.33, 5.94, 4.87};
    static const double latency[DEGREES] = {0};
    double per_token[DEGREES] = {0};
    int m = 0;
    while (m < FLEXSP_MODELS && strcmp(models[m].name, model) != 0)
        m++;
    if (m == FLEXSP_MODELS)
        bench_need(NULL, HBP_E_INVALID, model);
    hbp_cost_terms terms;
    hbp_cost_terms_init(&terms, sizeof terms);
    terms.ranks = ranks;
    terms.domain_ranks = ranks < 8 ? ranks : 8;
    terms.layers = models[m].layers;
    terms.ns_per_token = models[m].a2 * 1e6;
    terms.ns_per_token_squared = models[m].a1 * 1e6;
    terms.pack_ns = models[m].b1 * 1e6;
    terms.static_bytes = models[m].parameters[limit_k > 192] * 16 * 1024 / ranks * MIB;
    terms.activation_bytes = terms.recomputed_bytes = models[m].mib_per_token / models[m].layers * MIB;
    terms.limit_bytes = INT64_C(28) << 30;
    while (terms.degrees < DEGREES && degree[terms.degrees] <= ranks) {
        int32_t j = terms.degrees++, d = degree[j];
        /* MiB over GB/s, taken for ms. */
        if (d > 1)
            per_token[j] = 16.0 * models[m].layers * models[m].hidden / MIB / d / gb_per_s[j] * 1e6;
    }
    terms.degree = degree;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    bench_need(context, hbp_cost_create_terms(context, &terms, &cost), "the cost");
    return cost;
}
