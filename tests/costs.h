/* A small machine for the tests: 16 ranks in domains of 8, degrees 1 to 8, 8 layers, times and bytes of the
 * size that a real model has, so that recomputation and degrees matter. */
#ifndef HBP_TESTS_COSTS_H
#define HBP_TESTS_COSTS_H

#include "base/rng.h"
#include "test.h"

#define TEST_DEGREES 4

static inline hbp_cost *test_cost_ranks(hbp_context *context, int32_t ranks)
{
    static const int32_t degree[TEST_DEGREES] = {1, 2, 4, 8};
    static const double latency[TEST_DEGREES] = {0, 2e6, 2e6, 2e6};
    static const double per_token[TEST_DEGREES] = {0, 900, 700, 400};
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    terms.ranks = ranks;
    terms.domain_ranks = ranks < 8 ? ranks : 8;
    terms.layers = 8;
    terms.ns_per_token = 25000;
    terms.ns_per_token_squared = 0.6;
    terms.recompute_linear = 0.31;
    terms.recompute_attention = 2.0 / 7;
    terms.recompute_communication = 0.5;
    terms.pack_ns = 4e7;
    terms.step_ns = 1e7;
    terms.static_bytes = 5e9;
    terms.activation_bytes = 140000;
    terms.recomputed_bytes = 8192;
    terms.working_bytes = 140000;
    terms.logits_bytes = 1280000;
    terms.sp_buffer_bytes = 40000;
    terms.limit_bytes = INT64_C(40000000000);
    terms.degrees = 0;
    while (terms.degrees < TEST_DEGREES && degree[terms.degrees] <= ranks)
        terms.degrees++;
    terms.degree = degree;
    terms.sp_latency_ns = latency;
    terms.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    return cost;
}

/* The same with vision units that take so many ns and bytes. */
static inline hbp_cost *test_cost_vision(hbp_context *context, int32_t ranks, double ns, double bytes)
{
    hbp_cost *plain = test_cost_ranks(context, ranks), *cost = NULL;
    hbp_cost_terms terms = {.struct_size = sizeof terms};
    OK(context, hbp_cost_get_terms(context, plain, &terms));
    terms.ns_per_vision = ns;
    terms.recompute_vision = 0.25;
    terms.vision_bytes = bytes;
    OK(context, hbp_cost_create_terms(context, &terms, &cost));
    hbp_cost_free(plain);
    return cost;
}

static inline hbp_cost *test_cost(hbp_context *context)
{
    return test_cost_ranks(context, 16);
}

/* What an analysis says of two presets; the caller frees it. */
static inline hbp_cost *test_cost_presets(hbp_context *context, const char *model, const char *machine)
{
    hbp_model *of = NULL;
    hbp_machine *on = NULL;
    hbp_cost *cost = NULL;
    OK(context, hbp_model_create_preset(context, model, &of));
    OK(context, hbp_machine_create_preset(context, machine, &on));
    OK(context, hbp_cost_create(context, of, on, NULL, &cost));
    hbp_model_free(of);
    hbp_machine_free(on);
    return cost;
}

/* `count` lengths with a long tail, the longest `longest`: each is uniform below `longest` over
 * 2^k, with k up to 9 and large k likely. */
static inline hbp_lengths *test_long_tail(hbp_context *context, uint64_t seed, int64_t count, int64_t longest)
{
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    uint32_t *length = malloc((size_t)count * sizeof *length);
    for (int64_t i = 0; i < count; i++) {
        uint32_t scale = 1;
        for (int bits = 0; bits < 9 && hbp__rng_below(&rng, 5) != 0; bits++)
            scale *= 2;
        int64_t most = longest / scale;
        length[i] = 1 + hbp__rng_below(&rng, (uint64_t)(most < 1 ? 1 : most));
    }
    hbp_lengths *lengths = NULL;
    OK(context, hbp_lengths_create_u32(context, length, count, NULL, &lengths));
    free(length);
    return lengths;
}

#endif
