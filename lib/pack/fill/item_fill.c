/* Samples of items to packs, once each item has its pack; what linked samples forbid. */
#include "pack/fill/item_fill.h"

#include "base/scratch.h"

hbp_status hbp__items_weights(hbp_context *context, const hbp__items *items, uint32_t **out)
{
    *out = NULL;
    if (!items->next)
        return HBP_OK;
    uint32_t *weight = hbp__take(context, (uint64_t)items->count, sizeof *weight);
    HBP__TRY(hbp__scratch_check(context, "the samples of items"));
    for (int64_t i = 0; i < items->count; i++) {
        weight[i] = (uint32_t)hbp__items_members(items, i);
        HBP__TRY(hbp__tick_row(context, "fill", i, items->count));
    }
    *out = weight;
    return HBP_OK;
}

hbp_status hbp__items_refuse_linked(hbp_context *context, const hbp__items *items, int64_t i,
                                    int64_t max_samples)
{
    uint32_t sample = items->sample[i];
    return hbp__fail(context, HBP_E_INFEASIBLE,
                     "sample %lld is linked to %lld others; a pack holds at most %lld samples",
                     (long long)(items->lengths->origin ? items->lengths->origin[sample] : sample),
                     (long long)hbp__items_members(items, i) - 1, (long long)max_samples);
}

hbp_status hbp__items_check_weights(hbp_context *context, const hbp__items *items, const uint32_t *weight,
                                    int64_t max_samples)
{
    for (int64_t i = 0; i < items->count && weight; i++) {
        if (weight[i] > max_samples)
            return hbp__items_refuse_linked(context, items, i, max_samples);
    }
    return HBP_OK;
}

/* Counting sort: offsets[p + 1] is first the samples of pack p, then where its next sample goes. */
static hbp_status sort_by_pack(hbp_context *context, const hbp__items *items, const uint32_t *pack_of,
                               int64_t packs, hbp_packs *made)
{
    HBP__TRY(hbp__zero(context, made->offsets, (uint64_t)(packs + 1) * sizeof *made->offsets));
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, items->count));
        made->offsets[pack_of[i] + 1] += hbp__items_members(items, i);
    }
    int64_t start = 0;
    for (int64_t p = 0; p < packs; p++) {
        int64_t samples = made->offsets[p + 1];
        made->offsets[p + 1] = start;
        start += samples;
    }
    for (int64_t i = 0; i < items->count; i++) {
        HBP__TRY(hbp__tick_row(context, "fill", i, items->count));
        int64_t *next = &made->offsets[pack_of[i] + 1];
        *next += hbp__items_write(items, i, made->sample + *next);
    }
    return HBP_OK;
}

hbp_status hbp__item_fill_name(hbp_context *context, const hbp__items *items, const uint32_t *pack_of,
                               int64_t packs, const int32_t *group, hbp_packs **out)
{
    hbp_packs *made = hbp__packs_new(context, items->lengths, packs);
    if (!made)
        return hbp__fail_memory(context, "packs");
    hbp_status status = sort_by_pack(context, items, pack_of, packs, made);
    for (int64_t p = 0; p < packs && status >= 0; p++) {
        made->group[p] = group ? group[p] : 0;
        status = hbp__tick_row(context, "fill", p, packs);
    }
    if (status >= 0)
        *out = made;
    else
        hbp_packs_free(made);
    return status;
}
