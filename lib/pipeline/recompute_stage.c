/* A stage's layers by groups of one chunk and type, and what they need and take under choices. O(layers of
 * the stage). */
#include <math.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "pipeline/recompute.h"

/* Lists the layers of one chunk and type; what measured types keep besides is added to the base. */
static void take_group(hbp__recompute_stage *s, int32_t begin, int32_t end, int32_t type, double weight)
{
    int32_t before = s->count;
    int64_t recomputed = 0;
    for (int32_t i = begin; i < end; i++)
        if (s->layers->type[i] == type) {
            s->layer[s->count] = i;
            s->group[s->count++] = s->groups;
            recomputed += s->layers->recomputed_bytes[i];
        }
    if (s->count == before)
        return;
    s->weight[s->groups++] = s->measured[type] ? 1 : weight;
    if (s->measured[type])
        s->base = hbp__add_saturating(s->base, hbp__round_i64((double)recomputed * weight));
}

hbp_status hbp__recompute_open(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                               const hbp_pipeline_options *pipeline, const hbp_recompute_options *options,
                               const hbp__live *live, int32_t stage, hbp__recompute_stage *out)
{
    int32_t chunks = pipeline->stages * hbp__pipeline_virtual(pipeline);
    uint64_t count = 0;
    for (int32_t chunk = stage; chunk < chunks; chunk += pipeline->stages)
        count += (uint64_t)(cuts[chunk + 1] - cuts[chunk]);
    hbp__recompute_stage s = {.layers = layers, .stage = stage};
    s.layer = hbp__take(context, count, sizeof *s.layer);
    s.group = hbp__take(context, count, sizeof *s.group);
    s.weight = hbp__take(context, count, sizeof *s.weight);
    HBP__TRY(hbp__scratch_check(context, "a stage's layers"));
    s.measured[HBP_LAYER_VISION] = options->measured_vision_bytes;
    s.measured[HBP_LAYER_LANGUAGE] = options->measured_language_bytes;
    for (int32_t type = 0; type < HBP_LAYER_TYPES; type++) {
        s.live[type] = live->sum[type][1];
        s.time[type] = hbp__mean_time_scale(pipeline, type);
    }
    for (int32_t chunk = stage; chunk < chunks; chunk += pipeline->stages) {
        int32_t in_flight = hbp__pipeline_in_flight(pipeline, chunk);
        for (int32_t i = cuts[chunk]; i < cuts[chunk + 1]; i++)
            s.base = hbp__add_saturating(s.base, layers->state_bytes[i]);
        for (int32_t type = 0; type < HBP_LAYER_TYPES; type++)
            take_group(&s, cuts[chunk], cuts[chunk + 1], type, live->sum[type][in_flight]);
    }
    s.limit = pipeline->limit_bytes ? pipeline->limit_bytes[stage] : INT64_MAX;
    *out = s;
    return HBP_OK;
}

int64_t hbp__recompute_size(const hbp__recompute_stage *s, int32_t i, int32_t choice)
{
    int32_t layer = s->layer[i];
    int64_t kept = hbp__layer_kept_bytes(s->layers, layer, choice);
    int64_t measured = s->measured[s->layers->type[layer]];
    if (!measured)
        return kept;
    /* The columns say in what proportion parts of a layer free what the whole was measured to. */
    int64_t least = s->layers->recomputed_bytes[layer], most = s->layers->activation_bytes[layer];
    if (kept <= least)
        return 0;
    return hbp__round_i64(ceil((double)measured * (double)(kept - least) / (double)(most - least)));
}

int64_t hbp__recompute_working(const hbp__recompute_stage *s, int32_t i, int32_t choice)
{
    int32_t layer = s->layer[i];
    return hbp__round_i64((double)hbp__layer_working_bytes(s->layers, layer, choice) *
                          s->live[s->layers->type[layer]]);
}

int64_t hbp__recompute_ns(const hbp__recompute_stage *s, int32_t i, int32_t choice)
{
    int32_t layer = s->layer[i];
    return hbp__round_i64((double)hbp__layer_extra_ns(s->layers, layer, choice) *
                          s->time[s->layers->type[layer]]);
}

int64_t hbp__recompute_need(const hbp__recompute_stage *s, const int32_t *choices)
{
    int64_t need = s->base, working = 0;
    int32_t i = 0;
    for (int32_t g = 0; g < s->groups; g++) {
        int64_t size = 0;
        for (; i < s->count && s->group[i] == g; i++) {
            int32_t choice = choices[s->layer[i]];
            size = hbp__add_saturating(size, hbp__recompute_size(s, i, choice));
            working = hbp__max_i64(working, hbp__recompute_working(s, i, choice));
        }
        need = hbp__add_saturating(need, hbp__round_i64((double)size * s->weight[g]));
    }
    return hbp__add_saturating(need, working);
}

int64_t hbp__recompute_added_ns(const hbp__recompute_stage *s, const int32_t *choices)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < s->count; i++)
        ns = hbp__add_saturating(ns, hbp__recompute_ns(s, i, choices[s->layer[i]]));
    return ns;
}

void hbp__recompute_all(const hbp__recompute_stage *s, int32_t *choices)
{
    for (int32_t i = 0; i < s->count; i++)
        choices[s->layer[i]] =
            hbp__recompute_frees(s->layers, s->layer[i]) ? HBP_RECOMPUTE_LAYER : HBP_RECOMPUTE_NONE;
}

hbp_status hbp__recompute_short(const hbp__recompute_stage *s, int64_t need, const char *how)
{
    *s->shortage = (hbp__shortage){.how = how,
                                   .stage = s->stage,
                                   .first_layer = -1,
                                   .last_layer = -1,
                                   .need_bytes = need,
                                   .limit_bytes = s->limit};
    return HBP_E_INFEASIBLE;
}
