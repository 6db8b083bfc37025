/* Random layers and pipelines, and the formula from its definition. */
#ifndef HBP_TESTS_INSTANCES_H
#define HBP_TESTS_INSTANCES_H

#include "base/rng.h"
#include "data/pipeline/layers.h"
#include "failing.h"
#include "hbp/pipeline.h"
#include "simulate/pipeline/stage_times.h"

#define INSTANCE_LAYERS  128
#define INSTANCE_STAGES  8
#define INSTANCE_BATCHES 24

typedef struct instance {
    int64_t forward[INSTANCE_LAYERS], backward[INSTANCE_LAYERS], parameters[INSTANCE_LAYERS];
    int64_t state[INSTANCE_LAYERS], activation[INSTANCE_LAYERS], recomputed[INSTANCE_LAYERS];
    int64_t working[INSTANCE_LAYERS], cut[INSTANCE_LAYERS], again[INSTANCE_LAYERS];
    int32_t type[INSTANCE_LAYERS], recompute[INSTANCE_LAYERS];
    double vision[INSTANCE_BATCHES], tokens[INSTANCE_BATCHES], squares[INSTANCE_BATCHES];
    double speed[INSTANCE_STAGES];
    int64_t limit[INSTANCE_STAGES];
    hbp_layers *layers;
    hbp_pipeline_options pipeline;
} instance;

static inline int64_t instance_draw(hbp__rng *rng, int64_t low, int64_t high)
{
    return low + hbp__rng_below(rng, (uint64_t)(high - low + 1));
}

/* Layers of all kinds, vision first. */
static inline void instance_layers(hbp_context *context, hbp__rng *rng, int32_t count, instance *d)
{
    int32_t vision = (int32_t)instance_draw(rng, 0, count / 2), alike = (int32_t)instance_draw(rng, 0, 1);
    int64_t size = instance_draw(rng, 0, 1) ? 4 : 1000000, bytes = instance_draw(rng, 1, 1000);
    for (int32_t i = 0; i < count; i++) {
        d->type[i] = i < vision ? HBP_LAYER_VISION : HBP_LAYER_LANGUAGE;
        d->type[i] = instance_draw(rng, 0, 9) ? d->type[i] : HBP_LAYER_FIXED;
        d->forward[i] = alike ? size * (1 + d->type[i]) : instance_draw(rng, 0, size);
        d->backward[i] = 2 * d->forward[i];
        d->again[i] = d->forward[i];
        d->parameters[i] = instance_draw(rng, 0, 1000);
        d->state[i] = instance_draw(rng, 0, bytes);
        d->activation[i] = instance_draw(rng, 0, 2 * bytes);
        d->recomputed[i] = instance_draw(rng, 0, d->activation[i]);
        d->working[i] = instance_draw(rng, 0, bytes);
        d->cut[i] = instance_draw(rng, 0, 3) * bytes;
        d->recompute[i] = instance_draw(rng, 0, 2) ? HBP_RECOMPUTE_NONE : HBP_RECOMPUTE_LAYER;
    }
    hbp_layer_columns columns = {.struct_size = sizeof columns,
                                 .count = count,
                                 .forward_ns = d->forward,
                                 .backward_ns = d->backward,
                                 .type = d->type,
                                 .parameters = d->parameters,
                                 .state_bytes = d->state,
                                 .activation_bytes = d->activation,
                                 .recomputed_bytes = d->recomputed,
                                 .working_bytes = d->working,
                                 .recompute_ns = d->again,
                                 .cut_bytes = d->cut};
    OK(context, hbp_layers_create(context, &columns, &d->layers));
}

/* A random instance: with and without scales, speeds, limits, links and recomputation. */
static inline void instance_make(hbp_context *context, hbp__rng *rng, int32_t count, int32_t stages,
                                 int32_t virtual_stages, instance *d)
{
    instance_layers(context, rng, count, d);
    hbp_pipeline_options *p = &d->pipeline;
    *p = (hbp_pipeline_options){.struct_size = sizeof *p};
    p->stages = stages;
    p->virtual_stages = virtual_stages;
    p->micro_batches = (int32_t)instance_draw(rng, 1, 12);
    if (virtual_stages > 1)
        p->micro_batches = stages * (int32_t)instance_draw(rng, 1, 3);
    for (int32_t m = 0; m < INSTANCE_BATCHES; m++) {
        d->vision[m] = (double)instance_draw(rng, 0, 20) / 10;
        d->tokens[m] = (double)instance_draw(rng, 1, 20) / 10;
        d->squares[m] = d->tokens[m] * d->tokens[m];
    }
    if (instance_draw(rng, 0, 1)) {
        p->vision_scale = d->vision;
        p->token_scale = d->tokens;
        p->token_time_scale = instance_draw(rng, 0, 1) ? d->squares : NULL;
    }
    int64_t all = 0;
    for (int32_t i = 0; i < count; i++)
        all += d->state[i] + (d->activation[i] + d->working[i]) * 2;
    for (int32_t s = 0; s < stages; s++) {
        d->speed[s] = (double)instance_draw(rng, 5, 15) / 10;
        d->limit[s] = all * instance_draw(rng, 2, 14) / 5 / stages;
    }
    p->speed = instance_draw(rng, 0, 1) ? d->speed : NULL;
    p->limit_bytes = instance_draw(rng, 0, 1) ? d->limit : NULL;
    p->recompute = instance_draw(rng, 0, 1) ? d->recompute : NULL;
    p->link_bytes_per_s = instance_draw(rng, 0, 1) ? (double)instance_draw(rng, 1, 100) * 1e8 : 0;
    p->link_overlap = (double)instance_draw(rng, 0, 4) / 4;
    p->link_latency_ns = instance_draw(rng, 0, 50);
}

/* V x predicted time before it is rounded up, straight from the formula; W_s into load. */
static inline int64_t instance_weigh(const instance *d, const int32_t *cuts, int64_t *load)
{
    const hbp_pipeline_options *p = &d->pipeline;
    int32_t turns = p->virtual_stages > 1 ? p->virtual_stages : 1, chunks = p->stages * turns;
    int64_t sum = 0, most = 0;
    for (int32_t s = 0; s < p->stages; s++)
        load[s] = 0;
    for (int32_t c = 0; c < chunks; c++) {
        int64_t ns[HBP_LAYER_TYPES] = {0};
        for (int32_t i = cuts[c]; i < cuts[c + 1]; i++) {
            int32_t again = p->recompute && p->recompute[i] == HBP_RECOMPUTE_LAYER;
            ns[d->type[i]] += d->forward[i] + d->backward[i] + (again ? d->again[i] : 0);
        }
        double cost = 0;
        for (int32_t k = 0; k < HBP_LAYER_TYPES; k++)
            cost += (double)ns[k] * (hbp__mean_time_scale(p, k) / (p->speed ? p->speed[c % p->stages] : 1));
        int64_t rounded = (int64_t)(cost + 0.5);
        sum += rounded;
        load[c % p->stages] += rounded;
        if (c + 1 == chunks || p->stages == 1)
            continue;
        int32_t last = cuts[c + 1] - 1;
        double bytes = (double)d->cut[last] * hbp__mean_byte_scale(p, d->type[last]);
        int64_t transfer = hbp__transfer_ns(p, bytes);
        int64_t exposed = (int64_t)((1 - p->link_overlap) * (double)transfer + 0.5);
        sum += 2 * transfer;
        load[c % p->stages] += exposed;
        load[(c + 1) % p->stages] += exposed;
    }
    for (int32_t s = 0; s < p->stages; s++)
        most = load[s] > most ? load[s] : most;
    return ((int64_t)p->micro_batches * turns - 1) * most + sum;
}

static inline int instance_fits(const instance *d, const int32_t *cuts, const hbp__live *live)
{
    for (int32_t s = 0; s < d->pipeline.stages && d->pipeline.limit_bytes; s++)
        if (hbp__stage_peak_bytes(d->layers, cuts, &d->pipeline, live, d->pipeline.recompute, s) >
            d->limit[s])
            return 0;
    return 1;
}

/* Partitions one after another, earlier cuts first; begin with cuts 0, 1, 2, ... */
static inline void instance_first(int32_t count, int32_t chunks, int32_t *cuts)
{
    for (int32_t c = 0; c < chunks; c++)
        cuts[c] = c;
    cuts[chunks] = count;
}

static inline int instance_next(int32_t count, int32_t chunks, int32_t *cuts)
{
    int32_t c = chunks - 1;
    while (c > 0 && cuts[c] == count - (chunks - c))
        c--;
    if (c <= 0)
        return 0;
    cuts[c]++;
    for (int32_t q = c + 1; q < chunks; q++)
        cuts[q] = cuts[q - 1] + 1;
    return 1;
}

#endif
