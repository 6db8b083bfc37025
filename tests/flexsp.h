/* The cost that FlexSP's released code fits to GPT models on A100-40GB nodes of 8 (arXiv 2412.01523): times
 * in ms, memory in MiB, parameters in 2^30. For tests and benchmarks; needs the public API alone. */
#ifndef HBP_TESTS_FLEXSP_H
#define HBP_TESTS_FLEXSP_H

#include <string.h>

#include "hbp/hbp.h"

#define FLEXSP_MODELS  3
#define FLEXSP_DEGREES 16

static const struct {
    const char *name;
    double mib_per_token;
    double square_ms; /* a1 of the paper */
    double token_ms;  /* a2 */
    double pack_ms;   /* b1 */
    int32_t hidden;
    int32_t layers;
    double parameters_192k; /* positions included */
    double parameters_384k;
} flexsp_model[FLEXSP_MODELS] = {
    {"7B", 4.480441895, 5.128e-6, .1839576, 629.3563, 4096, 32, 7.11744690, 7.84986877},
    {"13B", 4.220439453, 9.2852e-6, .3060189, 1132.5632, 5120, 40, 13.11605453, 14.03158188},
    {"30B", 3.417381836, 15.4262e-6, .8035742, 2789.3644, 6656, 60, 31.52513885, 32.71532441},
};

/* GB/s of an all-to-all among d GPUs as measured up to 64: `four_k` chooses the figures taken with sequences
 * of 4K. Each doubling past 64 halves the last one, so that a token's all-to-all takes as long as on 64. */
static inline double flexsp_bandwidth(int32_t degree, int four_k)
{
    switch (degree) {
    case 2:
        return 119.54;
    case 4:
        return 104.07;
    case 8:
        return 96.5;
    case 16:
        return four_k ? 20.01 : 10.33;
    case 32:
        return four_k ? 10.53 : 5.94;
    default:
        return (four_k ? 7.77 : 4.87) * 64 / degree;
    }
}

/* The cost of `model` ("7B", "13B", "30B") trained at `limit_k` (192, 384) on `ranks` GPUs, a power of two. A
 * GPU holds 28 GiB; nothing is recomputed. NULL for an unknown model, another number of ranks, or with the
 * context's message. */
static inline hbp_cost *flexsp_cost(hbp_context *context, const char *model, int limit_k, int four_k,
                                    int32_t ranks)
{
    int m = 0;
    while (m < FLEXSP_MODELS && strcmp(flexsp_model[m].name, model))
        m++;
    if (m == FLEXSP_MODELS || ranks < 1 || ranks > 1 << (FLEXSP_DEGREES - 1) || (ranks & (ranks - 1)))
        return NULL;
    int32_t degree[FLEXSP_DEGREES], degrees = 0;
    double latency[FLEXSP_DEGREES], slope[FLEXSP_DEGREES];
    for (int32_t d = 1; d <= ranks; d *= 2, degrees++) {
        double mib = 16.0 * flexsp_model[m].layers * flexsp_model[m].hidden / 1048576 / d;
        degree[degrees] = d;
        latency[degrees] = 0;
        slope[degrees] = d == 1 ? 0 : mib / flexsp_bandwidth(d, four_k) * 1e6;
    }
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = ranks;
    t.domain_ranks = ranks < 8 ? ranks : 8;
    t.layers = flexsp_model[m].layers;
    t.ns_per_token = flexsp_model[m].token_ms * 1e6;
    t.ns_per_token_squared = flexsp_model[m].square_ms * 1e6;
    t.pack_ns = flexsp_model[m].pack_ms * 1e6;
    double parameters = limit_k > 192 ? flexsp_model[m].parameters_384k : flexsp_model[m].parameters_192k;
    t.static_bytes = parameters * 16 * 1024 / ranks * 1048576;
    t.activation_bytes = flexsp_model[m].mib_per_token * 1048576 / t.layers;
    t.recomputed_bytes = t.activation_bytes;
    t.limit_bytes = INT64_C(28) << 30;
    t.degrees = degrees;
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = slope;
    hbp_cost *cost = NULL;
    return hbp_cost_create_terms(context, &t, &cost) < 0 ? NULL : cost;
}

#endif
