/* Layers, cuts and limits for the tests of what recomputes: drawn at random, and a small one by hand. */
#ifndef HBP_TESTS_RECOMPUTED_H
#define HBP_TESTS_RECOMPUTED_H

#include "base/methods.h"
#include "failing.h"

#include "base/checked.h"
#include "base/rng.h"
#include "pipeline/recompute.h"
#include "simulate/pipeline/stage_times.h"

#define MOST_LAYERS 5000
#define MOST_MICRO  12

/* Layers, cuts and options drawn at random. */
typedef struct instance {
    hbp_layers *layers;
    hbp_pipeline_options pipeline;
    hbp_recompute_options options;
    int32_t cuts[64];
    double vision[MOST_MICRO], tokens[MOST_MICRO], times[MOST_MICRO];
    int64_t limit[8];
    int32_t choices[MOST_LAYERS];
    hbp_recompute_report report;
} instance;

static inline int64_t up_to(hbp__rng *rng, int64_t most)
{
    return hbp__rng_below(rng, (uint64_t)most + 1);
}

static inline hbp_layers *draw_layers(hbp_context *context, hbp__rng *rng, int32_t count, int32_t kinds,
                                      int64_t most)
{
    enum { COLUMNS = 9 };
    static int64_t column[COLUMNS][MOST_LAYERS];
    static int32_t type[MOST_LAYERS];
    uint64_t seed = hbp__rng_next(rng);
    for (int32_t i = 0; i < count; i++) {
        uint64_t which = kinds ? hbp__rng_below(rng, (uint64_t)kinds) : (uint64_t)i;
        hbp__rng own = hbp__rng_make(seed, which, 0);
        int64_t whole = up_to(&own, most);
        type[i] = (int32_t)hbp__rng_below(&own, HBP_LAYER_TYPES);
        column[0][i] = up_to(&own, most);                               /* forward_ns */
        column[1][i] = up_to(&own, most);                               /* state_bytes */
        column[2][i] = whole;                                           /* activation_bytes */
        column[3][i] = up_to(&own, 2) ? up_to(&own, whole / 4) : whole; /* recomputed_bytes */
        column[4][i] = up_to(&own, most);                               /* working_bytes */
        column[5][i] = up_to(&own, 1) ? up_to(&own, whole / 2) : 0;     /* attention_bytes */
        column[6][i] = up_to(&own, most / 2);                           /* attention_ns */
        column[7][i] = up_to(&own, 1) ? up_to(&own, whole / 2) : 0;     /* mlp_bytes */
        column[8][i] = up_to(&own, most / 2);                           /* mlp_ns */
    }
    hbp_layer_columns c = {.struct_size = sizeof c};
    c.count = count;
    c.type = type;
    c.forward_ns = column[0];
    c.state_bytes = column[1];
    c.activation_bytes = column[2];
    c.recomputed_bytes = column[3];
    c.working_bytes = hbp__rng_below(rng, 2) ? column[4] : NULL;
    c.attention_bytes = column[5];
    c.attention_ns = column[6];
    c.mlp_bytes = column[7];
    c.mlp_ns = column[8];
    hbp_layers *layers = NULL;
    OK(context, hbp_layers_create(context, &c, &layers));
    return layers;
}

static inline void draw(hbp_context *context, instance *t, hbp__rng *rng, int32_t per_chunk, int32_t kinds,
                        int64_t most)
{
    memset(t, 0, sizeof *t);
    t->pipeline = (hbp_pipeline_options){.struct_size = sizeof t->pipeline};
    t->options = (hbp_recompute_options){.struct_size = sizeof t->options};
    t->report = (hbp_recompute_report){.struct_size = sizeof t->report};
    hbp_pipeline_options *p = &t->pipeline;
    p->stages = 1 + (int32_t)hbp__rng_below(rng, 3);
    p->virtual_stages = (int32_t)hbp__rng_below(rng, 3);
    int32_t chunks = p->stages * hbp__pipeline_virtual(p);
    p->micro_batches = p->stages * (1 + (int32_t)hbp__rng_below(rng, 4));
    for (int32_t k = 0; k < chunks; k++)
        t->cuts[k + 1] = t->cuts[k] + 1 + (int32_t)hbp__rng_below(rng, (uint64_t)per_chunk);
    t->layers = draw_layers(context, rng, t->cuts[chunks], kinds, most);
    for (int32_t m = 0; m < p->micro_batches; m++) {
        t->vision[m] = (double)up_to(rng, 2000) / 1000;
        t->tokens[m] = (double)up_to(rng, 2000) / 1000;
        t->times[m] = (double)up_to(rng, 2000) / 1000;
    }
    if (hbp__rng_below(rng, 2)) {
        p->vision_scale = t->vision;
        p->token_scale = t->tokens;
        p->token_time_scale = hbp__rng_below(rng, 2) ? t->times : NULL;
    }
    t->options.selective = (int32_t)hbp__rng_below(rng, 5) - 1;
    p->limit_bytes = t->limit;
}

/* A limit for every stage between what it needs with nothing recomputed and half of that. */
static inline void limit(hbp_context *context, instance *t, hbp__rng *rng)
{
    hbp__live live;
    OK(context, hbp__live_open(context, &t->pipeline, &live));
    for (int32_t s = 0; s < t->pipeline.stages; s++) {
        int64_t all = hbp__stage_peak_bytes(t->layers, t->cuts, &t->pipeline, &live, NULL, s);
        t->limit[s] = all / 2 + up_to(rng, all / 2 + 1);
    }
    hbp__live_close(&live);
}

static inline hbp_status choose(hbp_context *context, instance *t, int32_t mode)
{
    t->options.method = hbp__recompute_name(mode);
    return hbp_choose_recompute(context, t->layers, t->cuts, &t->pipeline, &t->options, t->choices,
                                &t->report);
}

static inline int may_choose(const instance *t, int32_t layer, int32_t choice)
{
    int32_t selective = t->options.selective == 0 ? 3 : t->options.selective < 0 ? 0 : t->options.selective;
    switch (choice) {
    case HBP_RECOMPUTE_ATTENTION:
        return (selective & HBP_SELECT_ATTENTION) && t->layers->attention_bytes[layer];
    case HBP_RECOMPUTE_MLP:
        return (selective & HBP_SELECT_MLP) && t->layers->mlp_bytes[layer];
    default:
        return 1;
    }
}

static inline int64_t added_ns(const instance *t, const int32_t *layer, int32_t count, const int32_t *choices)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t l = layer ? layer[i] : i;
        ns += hbp__round_i64((double)hbp__layer_extra_ns(t->layers, l, choices[l]) *
                             hbp__mean_time_scale(&t->pipeline, t->layers->type[l]));
    }
    return ns;
}

/* The layers of a stage, in order. */
static inline int32_t layers_of(const instance *t, int32_t stage, int32_t *layer)
{
    int32_t count = 0;
    for (int32_t k = stage; k < t->pipeline.stages * hbp__pipeline_virtual(&t->pipeline);
         k += t->pipeline.stages)
        for (int32_t i = t->cuts[k]; i < t->cuts[k + 1]; i++)
            layer[count++] = i;
    return count;
}

/* The choice fits, is allowed, and the report tells it. */
static inline void check_choice(hbp_context *context, const instance *t)
{
    hbp__live live;
    OK(context, hbp__live_open(context, &t->pipeline, &live));
    int64_t slack = INT64_MAX, all = 0;
    int32_t layer[MOST_LAYERS], choices[MOST_LAYERS], whole = 0, part = 0;
    for (int32_t s = 0; s < t->pipeline.stages; s++) {
        int64_t bytes = hbp__stage_peak_bytes(t->layers, t->cuts, &t->pipeline, &live, t->choices, s);
        ck_assert_msg(bytes <= t->limit[s], "stage %d: %lld of %lld", (int)s, (long long)bytes,
                      (long long)t->limit[s]);
        slack = t->limit[s] - bytes < slack ? t->limit[s] - bytes : slack;
        int32_t count = layers_of(t, s, layer);
        for (int32_t i = 0; i < count; i++) {
            ck_assert(may_choose(t, layer[i], t->choices[layer[i]]));
            choices[layer[i]] =
                hbp__recompute_frees(t->layers, layer[i]) ? HBP_RECOMPUTE_LAYER : HBP_RECOMPUTE_NONE;
            whole += t->choices[layer[i]] == HBP_RECOMPUTE_LAYER;
            part +=
                t->choices[layer[i]] == HBP_RECOMPUTE_ATTENTION || t->choices[layer[i]] == HBP_RECOMPUTE_MLP;
        }
        all += added_ns(t, layer, count, choices);
    }
    int64_t ns = added_ns(t, NULL, t->layers->count, t->choices);
    ck_assert_int_eq(t->report.recompute_ns, ns);
    ck_assert_int_eq(t->report.saved_ns, all - ns);
    ck_assert_int_eq(t->report.slack_bytes, slack);
    ck_assert_int_eq(t->report.recomputed, whole);
    ck_assert_int_eq(t->report.selective, part);
    hbp__live_close(&live);
}

/* Two stages of vision, vision, language, language; with 4 micro-batches stage 0 keeps 2 of them, stage 1
 * one. Vision keeps 30 of which 10 are input, language 50 and 10; states are 5 a layer; 60 ns and 100 ns
 * forward. */
static inline void four(hbp_context *context, instance *t, int64_t first_limit, int64_t second_limit)
{
    static const int32_t type[] = {1, 1, 0, 0, 1, 1, 0, 0};
    static const int64_t forward[] = {60, 60, 100, 100, 60, 60, 100, 100};
    static const int64_t state[] = {5, 5, 5, 5, 5, 5, 5, 5};
    static const int64_t activation[] = {30, 30, 50, 50, 30, 30, 50, 50};
    static const int64_t recomputed[] = {10, 10, 10, 10, 10, 10, 10, 10};
    static const int64_t mlp[] = {12, 12, 0, 0, 12, 12, 0, 0}, mlp_ns[] = {20, 20, 0, 0, 20, 20, 0, 0};
    memset(t, 0, sizeof *t);
    hbp_layer_columns c = {.struct_size = sizeof c};
    c.count = 8;
    c.type = type;
    c.forward_ns = forward;
    c.state_bytes = state;
    c.activation_bytes = activation;
    c.recomputed_bytes = recomputed;
    c.mlp_bytes = mlp;
    c.mlp_ns = mlp_ns;
    OK(context, hbp_layers_create(context, &c, &t->layers));
    t->pipeline = (hbp_pipeline_options){.struct_size = sizeof t->pipeline};
    t->pipeline.stages = 2;
    t->pipeline.micro_batches = 4;
    t->pipeline.limit_bytes = t->limit;
    t->limit[0] = first_limit;
    t->limit[1] = second_limit;
    t->cuts[1] = 4;
    t->cuts[2] = 8;
    t->options = (hbp_recompute_options){.struct_size = sizeof t->options};
    t->report = (hbp_recompute_report){.struct_size = sizeof t->report};
}

static inline void expect(hbp_context *context, instance *t, int32_t mode, const char *choices)
{
    OK(context, choose(context, t, mode));
    char text[16] = "";
    for (int32_t i = 0; i < 8; i++)
        text[i] = "-amL"[t->choices[i]];
    ck_assert_msg(strcmp(text, choices) == 0, "mode %d: %s instead of %s", (int)mode, text, choices);
}

#endif
