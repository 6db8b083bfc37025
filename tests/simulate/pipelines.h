/* Pipelines made up for tests: layers, cuts and options of a shape, drawn at random. */
#ifndef HBP_TESTS_PIPELINES_H
#define HBP_TESTS_PIPELINES_H

#include "base/checked.h"
#include "base/rng.h"
#include "simulate/pipeline/pipeline.h"

#include "test.h"

#define MOST_LAYERS 64
#define MOST_STAGES 16
#define MOST_M      256

/* Layers, cuts and options that point into it. */
typedef struct piped {
    hbp_layers *layers;
    int32_t cuts[MOST_LAYERS + 1];
    hbp_pipeline_options options;
    double vision[MOST_M], token[MOST_M], token_time[MOST_M], vision_time[MOST_M], speed[MOST_STAGES];
    int64_t limit[MOST_STAGES];
    int32_t recompute[MOST_LAYERS];
} piped;

static inline void piped_options(piped *p, int32_t stages, int32_t virtual_stages, int32_t micro_batches)
{
    p->options = (hbp_pipeline_options){.struct_size = sizeof p->options};
    p->options.stages = stages;
    p->options.virtual_stages = virtual_stages;
    p->options.micro_batches = micro_batches;
}

/* A layer per chunk with these times; nothing else. */
static inline void piped_plain(hbp_context *context, piped *p, int32_t stages, int32_t virtual_stages,
                               int32_t micro_batches, const int64_t *forward, const int64_t *backward)
{
    int32_t chunks = stages * (virtual_stages > 1 ? virtual_stages : 1);
    *p = (piped){.layers = NULL};
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = chunks;
    columns.forward_ns = forward;
    columns.backward_ns = backward;
    OK(context, hbp_layers_create(context, &columns, &p->layers));
    for (int32_t k = 0; k <= chunks; k++)
        p->cuts[k] = k;
    piped_options(p, stages, virtual_stages, micro_batches);
}

static inline double draw_real(hbp__rng *rng, double low, double high)
{
    return low + (high - low) * (double)hbp__rng_below(rng, 1 << 20) / (1 << 20);
}

/* What a random pipeline has; all of it, or as little as the bits say. */
enum { PIPED_SCALES = 1, PIPED_LINK = 2, PIPED_SPEED = 4, PIPED_RECOMPUTE = 8, PIPED_ALL = 15 };

static inline void piped_random(hbp_context *context, hbp__rng *rng, piped *p, int32_t stages,
                                int32_t virtual_stages, int32_t micro_batches, int has)
{
    int32_t chunks = stages * (virtual_stages > 1 ? virtual_stages : 1);
    int32_t count = chunks + (int32_t)hbp__rng_below(rng, (uint64_t)(MOST_LAYERS - chunks + 1));
    int64_t forward[MOST_LAYERS], backward[MOST_LAYERS], state[MOST_LAYERS], activation[MOST_LAYERS];
    int64_t recomputed[MOST_LAYERS], attention[MOST_LAYERS], mlp[MOST_LAYERS], part[MOST_LAYERS];
    int64_t cut[MOST_LAYERS];
    int32_t type[MOST_LAYERS];
    *p = (piped){.layers = NULL};
    for (int32_t i = 0; i < count; i++) {
        type[i] = (int32_t)hbp__rng_below(rng, HBP_LAYER_TYPES);
        forward[i] = hbp__rng_below(rng, 100);
        backward[i] = hbp__rng_below(rng, 200);
        state[i] = hbp__rng_below(rng, 1000);
        activation[i] = hbp__rng_below(rng, 1000);
        recomputed[i] = activation[i] / 5;
        attention[i] = activation[i] / 3;
        mlp[i] = activation[i] / 4;
        part[i] = forward[i] / 3;
        cut[i] = hbp__rng_below(rng, 50);
        p->recompute[i] =
            activation[i] < 10 ? HBP_RECOMPUTE_NONE : (int32_t)hbp__rng_below(rng, HBP_RECOMPUTE_CHOICES);
    }
    hbp_layer_columns columns = {.struct_size = sizeof columns};
    columns.count = count;
    columns.forward_ns = forward;
    columns.backward_ns = backward;
    columns.type = type;
    columns.state_bytes = state;
    columns.activation_bytes = activation;
    columns.recomputed_bytes = recomputed;
    columns.attention_bytes = attention;
    columns.attention_ns = part;
    columns.mlp_bytes = mlp;
    columns.mlp_ns = part;
    columns.cut_bytes = cut;
    OK(context, hbp_layers_create(context, &columns, &p->layers));

    int taken[MOST_LAYERS + 1] = {0};
    for (int32_t k = 1; k < chunks;) {
        uint32_t at = 1 + hbp__rng_below(rng, (uint64_t)count - 1);
        k += !taken[at];
        taken[at] = 1;
    }
    int32_t k = 1;
    for (int32_t i = 1; i < count; i++)
        if (taken[i])
            p->cuts[k++] = i;
    p->cuts[chunks] = count;

    piped_options(p, stages, virtual_stages, micro_batches);
    for (int32_t m = 0; m < micro_batches; m++) {
        p->vision[m] = hbp__rng_below(rng, 4) ? draw_real(rng, 0, 3) : 0;
        p->token[m] = draw_real(rng, 0.1, 2);
        p->token_time[m] = draw_real(rng, 0.1, 4);
        p->vision_time[m] = draw_real(rng, 0, 4);
    }
    if (has & PIPED_SCALES) {
        p->options.vision_scale = hbp__rng_below(rng, 4) ? p->vision : NULL;
        p->options.token_scale = hbp__rng_below(rng, 4) ? p->token : NULL;
        p->options.token_time_scale = hbp__rng_below(rng, 2) ? p->token_time : NULL;
        p->options.vision_time_scale = hbp__rng_below(rng, 2) ? p->vision_time : NULL;
    }
    for (int32_t s = 0; s < stages; s++)
        p->speed[s] = draw_real(rng, 0.5, 2);
    if (has & PIPED_SPEED)
        p->options.speed = p->speed;
    if (has & PIPED_LINK) {
        p->options.link_bytes_per_s = draw_real(rng, 2e8, 2e10);
        p->options.link_latency_ns = hbp__rng_below(rng, 30);
        p->options.link_overlap = hbp__rng_below(rng, 3) ? draw_real(rng, 0, 1) : hbp__rng_below(rng, 2);
    }
    if (has & PIPED_RECOMPUTE)
        p->options.recompute = p->recompute;
}

static inline void piped_free(piped *p)
{
    hbp_layers_free(p->layers);
    p->layers = NULL;
}

static inline void draw_order(hbp__rng *rng, int32_t count, int32_t *order)
{
    uint32_t drawn[MOST_M];
    for (int32_t i = 0; i < count; i++)
        drawn[i] = (uint32_t)i;
    hbp__rng_shuffle_u32(rng, drawn, (uint64_t)count);
    for (int32_t i = 0; i < count; i++)
        order[i] = (int32_t)drawn[i];
}

/* A random shape: S, V, M with S V <= MOST_LAYERS. */
static inline void draw_shape(hbp__rng *rng, int32_t most_stages, int32_t most_virtual, int32_t most_rounds,
                              int32_t *stages, int32_t *virtual_stages, int32_t *micro_batches)
{
    *stages = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)most_stages);
    *virtual_stages = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)most_virtual);
    *micro_batches = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)(most_rounds * *stages));
    if (*virtual_stages > 1)
        *micro_batches = *stages * (1 + (int32_t)hbp__rng_below(rng, (uint64_t)most_rounds));
}

#endif
