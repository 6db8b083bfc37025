/* Small random steps of many kinds, each hard in its own way, for tests against the exact optimum. */
#ifndef HBP_TESTS_SMALL_STEPS_H
#define HBP_TESTS_SMALL_STEPS_H

#include "base/rng.h"
#include "exact_step.h"

enum {
    SMALL_MEMORY,    /* memory binds, nothing is recomputed: several micro-batches */
    SMALL_TIME,      /* memory is ample: one micro-batch or a few */
    SMALL_RECOMPUTE, /* recomputing all layers holds four times as much */
    SMALL_LATENCY,   /* wide groups pay a high constant */
    SMALL_SLOPE,     /* v_d rises and falls with d */
    SMALL_FREE,      /* micro-batches cost nothing: pack_ns = 0 */
    SMALL_LONG,      /* a few that need most of the machine, and crumbs */
    SMALL_EQUAL,     /* up to 24 of a few lengths */
    SMALL_TIED,      /* linked samples, multiples of sequences and packs */
    SMALL_KINDS
};

typedef struct small_step {
    hbp_context *context;
    hbp_cost *cost;
    hbp_lengths *lengths;
    hbp_step_options options;
    int64_t count;
    uint32_t length[EXACT_SEQUENCES];
    uint32_t vision[EXACT_SEQUENCES]; /* all 0 but after small_vision */
    int64_t link[EXACT_SEQUENCES];
} small_step;

static inline double small_between(hbp__rng *rng, double low, double high)
{
    return low + (high - low) * hbp__rng_below(rng, 1000001) / 1e6;
}

/* Tokens that a GPU holds: `plain` without recomputation, `all` with every layer recomputed. */
static inline hbp_cost *small_cost(hbp_context *context, hbp__rng *rng, int kind, int32_t ranks)
{
    static const int32_t degree[] = {1, 2, 4, 8, 16};
    double latency[5] = {0}, per_token[5] = {0};
    hbp_cost_terms t = {.struct_size = sizeof t};
    t.ranks = ranks;
    t.domain_ranks = ranks >> hbp__rng_below(rng, 3);
    t.domain_ranks += !t.domain_ranks;
    t.layers = 1 + (int32_t)hbp__rng_below(rng, 8);
    t.ns_per_token = small_between(rng, 15000, 40000);
    t.ns_per_token_squared = small_between(rng, .1, 2);
    t.recompute_linear = .31;
    t.recompute_attention = .28;
    t.recompute_communication = .5;
    t.pack_ns = small_between(rng, 5e6, 2e8);
    t.step_ns = 3e6;
    t.static_bytes = 1e9;
    t.limit_bytes = INT64_C(21000000000);
    double plain = small_between(rng, 6000, 12000);
    if (kind == SMALL_TIME || kind == SMALL_LATENCY)
        plain *= 8;
    t.activation_bytes = 2e10 / plain / t.layers * .9;
    t.logits_bytes = 2e10 / plain * .1;
    t.recomputed_bytes = t.activation_bytes;
    t.sp_buffer_bytes = hbp__rng_below(rng, 2) ? t.logits_bytes / 4 : 0;
    if (kind == SMALL_RECOMPUTE || kind == SMALL_TIED) {
        t.recomputed_bytes = t.activation_bytes / 16;
        t.working_bytes = t.activation_bytes / 2;
    }
    if (kind == SMALL_FREE)
        t.pack_ns = 0;
    for (t.degrees = 0; t.degrees < 5 && degree[t.degrees] <= ranks; t.degrees++) {
        int32_t j = t.degrees;
        if (!j)
            continue;
        latency[j] = small_between(rng, 1e5, 3e6) * (kind == SMALL_LATENCY ? 60 : 1);
        per_token[j] = (degree[j] <= t.domain_ranks ? 400 : 1800) * (1 + .5 * (degree[j] - 1.0) / degree[j]);
        if (kind == SMALL_SLOPE)
            per_token[j] = small_between(rng, 0, 4000);
    }
    t.degree = degree;
    t.sp_latency_ns = latency;
    t.sp_ns_per_token = per_token;
    hbp_cost *cost = NULL;
    OK(context, hbp_cost_create_terms(context, &t, &cost));
    return cost;
}

/* Tokens of the longest sequence that some group holds. */
static inline int64_t small_longest(const small_step *s, int32_t ranks)
{
    hbp_cost_terms t = {.struct_size = sizeof t};
    OK(s->context, hbp_cost_get_terms(s->context, s->cost, &t));
    int64_t holds = 0;
    for (int32_t d = 1; d <= ranks; d *= 2) {
        holds = exact_max(holds, hbp_cost_predict_capacity(s->cost, d, 0));
        holds = exact_max(holds, hbp_cost_predict_capacity(s->cost, d, t.layers));
    }
    return holds;
}

/* Lengths from a pool of `pooled` with a long tail, up to `longest`. */
static inline void small_draw(small_step *s, hbp__rng rng, int kind, double longest, int64_t pooled)
{
    uint32_t pool[EXACT_SEQUENCES];
    for (int64_t i = 0; i < EXACT_SEQUENCES; i++) {
        double length = longest * small_between(&rng, .3, 1);
        for (int halve = 0; halve < 5 && hbp__rng_below(&rng, 3); halve++)
            length /= 2;
        if (kind == SMALL_LONG)
            length = longest * (i < 5 ? small_between(&rng, .4, 1) : small_between(&rng, .002, .05));
        pool[i] = length < 1 ? 1 : (uint32_t)length;
    }
    for (int64_t i = 0; i < EXACT_SEQUENCES; i++) {
        s->length[i] = pool[i < pooled ? i : hbp__rng_below(&rng, (uint64_t)pooled)];
        s->link[i] = kind == SMALL_TIED && hbp__rng_below(&rng, 2) ? i / 3 : -1;
    }
}

static inline exact_step small_exact(const small_step *s)
{
    return exact_step_make_vision(s->context, s->cost, s->length, s->vision, s->link, s->count, &s->options);
}

/* Step `seed` of a kind: at most `most` sequences and `work` for the exact optimum (see exact_step_work). */
static inline small_step small_open(uint64_t seed, int kind, int32_t ranks, int64_t most, double work)
{
    hbp__rng rng = hbp__rng_make(seed, (uint64_t)kind, (uint64_t)ranks);
    small_step s = {.context = test_context(), .options = {.struct_size = sizeof s.options}};
    s.cost = small_cost(s.context, &rng, kind, ranks);
    s.count = 1 + hbp__rng_below(&rng, (uint64_t)most);
    double longest = (double)small_longest(&s, ranks);
    if (kind == SMALL_TIME || kind == SMALL_LATENCY)
        longest /= 8;
    if (kind == SMALL_TIED) {
        s.options.sequence_multiple = 1 + hbp__rng_below(&rng, 64);
        s.options.pack_multiple = 1 + hbp__rng_below(&rng, 512);
        longest = (longest - 1024) / 3;
    }
    for (int64_t pooled = kind == SMALL_EQUAL ? 4 : EXACT_SEQUENCES;; pooled--) {
        small_draw(&s, rng, kind, longest, pooled < 4 ? 4 : pooled);
        exact_step e = small_exact(&s);
        if (exact_step_work(&e) <= work)
            break;
        s.count -= pooled < 6;
    }
    hbp_lengths_options options = {.struct_size = sizeof options,
                                   .links = kind == SMALL_TIED ? s.link : NULL};
    OK(s.context, hbp_lengths_create_u32(s.context, s.length, s.count, &options, &s.lengths));
    return s;
}

/* Draws caps and padding by degree, `draw` telling which: about what half of these steps feel. */
static inline void small_limit(small_step *s, uint64_t draw)
{
    hbp__rng rng = hbp__rng_make(draw, 1, 0);
    hbp_step_options *o = &s->options;
    int64_t longest = 0, tokens = 0;
    for (int64_t i = 0; i < s->count; i++) {
        longest = exact_max(longest, s->length[i]);
        tokens += s->length[i];
    }
    if (draw & 1)
        o->tokens_per_rank = longest / 2 + 1 + hbp__rng_below(&rng, (uint64_t)longest + 1);
    if (draw & 2)
        o->max_pack_length = longest + hbp__rng_below(&rng, (uint64_t)tokens);
    if (draw & 4)
        o->max_samples = 1 + (int32_t)hbp__rng_below(&rng, 4);
    if (draw & 8)
        o->sequence_multiple_per_sp = 1 + hbp__rng_below(&rng, 48);
    if (draw & 16)
        o->pack_multiple_per_sp = 1 + hbp__rng_below(&rng, 200);
}

/* Gives the samples of an opened step vision units, and the cost a charge for them, `draw` telling which:
 * time, memory, a cap, or all of it. */
static inline void small_vision(small_step *s, uint64_t draw)
{
    hbp__rng rng = hbp__rng_make(draw, 2, 0);
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_cost *cost = NULL;
    OK(s->context, hbp_cost_get_terms(s->context, s->cost, &t));
    int64_t most = 1, longest = 1, values = 1 + (int64_t)hbp__rng_below(&rng, 6);
    for (int64_t i = 0; i < s->count; i++) {
        s->vision[i] = (uint32_t)hbp__rng_below(&rng, (uint64_t)values);
        most = exact_max(most, s->vision[i] * (s->link[i] >= 0 ? 3 : 1));
        longest = exact_max(longest, s->length[i]);
    }
    if (draw % 4 != 1)
        t.ns_per_vision = t.ns_per_token * (double)longest * small_between(&rng, .05, 1);
    t.recompute_vision = draw % 3 ? .4 : 0;
    if (draw % 4)
        t.vision_bytes =
            (t.activation_bytes * t.layers + t.logits_bytes) * (double)longest * small_between(&rng, .05, .5);
    if (draw % 5 == 2)
        s->options.max_vision = most + (int64_t)hbp__rng_below(&rng, (uint64_t)values);
    OK(s->context, hbp_cost_create_terms(s->context, &t, &cost));
    hbp_cost_free(s->cost);
    s->cost = cost;
    int is_linked = 0;
    for (int64_t i = 0; i < s->count; i++)
        is_linked |= s->link[i] >= 0;
    hbp_lengths_options options = {
        .struct_size = sizeof options, .links = is_linked ? s->link : NULL, .vision = s->vision};
    hbp_lengths_free(s->lengths);
    s->lengths = NULL;
    OK(s->context, hbp_lengths_create_u32(s->context, s->length, s->count, &options, &s->lengths));
}

static inline void small_close(small_step *s)
{
    hbp_lengths_free(s->lengths);
    hbp_cost_free(s->cost);
    hbp_context_free(s->context);
}

#endif
