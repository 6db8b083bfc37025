/* Adaptive re-computation, OmniBal's rule (section 3.4): whole layers, language layers first, one fewer than
 * would fit. */
#include <math.h>

#include "base/checked.h"
#include "pipeline/recompute.h"

/* What keeping one more layer of `type` takes at most on this stage, rounded up; 0: there is none to keep. */
static int64_t bytes_of_one(const hbp__recompute_stage *s, int32_t type)
{
    int64_t most = 0;
    for (int32_t i = 0; i < s->count; i++) {
        if (s->layers->type[s->layer[i]] != type || !hbp__recompute_frees(s->layers, s->layer[i]))
            continue;
        int64_t size =
            hbp__recompute_size(s, i, HBP_RECOMPUTE_NONE) - hbp__recompute_size(s, i, HBP_RECOMPUTE_LAYER);
        most = hbp__max_i64(most, hbp__round_i64(ceil((double)size * s->weight[s->group[i]])));
    }
    return most;
}

static int64_t count_of(const hbp__recompute_stage *s, int32_t type)
{
    int64_t count = 0;
    for (int32_t i = 0; i < s->count; i++)
        count += s->layers->type[s->layer[i]] == type && hbp__recompute_frees(s->layers, s->layer[i]);
    return count;
}

/* Keeps up to `count` recomputed layers of `type`, the last ones, so that the first stay recomputed. Groups
 * of one type lie in the order of their layers. */
static void keep_last(const hbp__recompute_stage *s, int32_t type, int64_t count, int32_t *choices)
{
    for (int32_t i = s->count - 1; i >= 0 && count > 0; i--) {
        int32_t layer = s->layer[i];
        if (s->layers->type[layer] != type || choices[layer] != HBP_RECOMPUTE_LAYER)
            continue;
        choices[layer] = HBP_RECOMPUTE_NONE;
        count--;
    }
}

/* floor(free / one) - 1, at least 0. */
static int64_t layers_within(int64_t free, int64_t one)
{
    return one ? hbp__max_i64(free / one - 1, 0) : INT64_MAX;
}

hbp_status hbp__recompute_paper(const hbp__recompute_stage *s, int32_t *choices)
{
    hbp__recompute_all(s, choices);
    int64_t need = hbp__recompute_need(s, choices), free = INT64_MAX;
    if (need > s->limit)
        return hbp__recompute_short(s, need, "every layer recomputed");
    int64_t language = bytes_of_one(s, HBP_LAYER_LANGUAGE), vision = bytes_of_one(s, HBP_LAYER_VISION);
    int64_t languages = count_of(s, HBP_LAYER_LANGUAGE);
    if (s->limit != INT64_MAX)
        free = s->limit - need;
    int64_t kept = free == INT64_MAX ? INT64_MAX : layers_within(free, language);
    keep_last(s, HBP_LAYER_LANGUAGE, kept, choices);
    if (kept < languages)
        return HBP_OK;
    if (free != INT64_MAX) /* language layers fit, each `language` bytes at most */
        kept = layers_within(free - languages * language, vision);
    keep_last(s, HBP_LAYER_VISION, kept, choices);
    return HBP_OK;
}
