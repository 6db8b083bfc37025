/* What the ways of filling share: what packs of a group may hold, and what filled packs come to. */
#include "pack/fill/fill.h"

#include "base/checked.h"

void hbp__fill_limits(const hbp_groups *groups, const hbp_fill_options *options, int64_t *capacity,
                      int64_t *largest)
{
    for (int64_t g = 0; g < groups->count; g++) {
        capacity[g] = groups->pack_length[g] / options->pack_multiple * options->pack_multiple;
        largest[g] =
            hbp__min_i64(capacity[g], hbp__round_up(groups->threshold[g], options->sequence_multiple));
        if (g && largest[g] < largest[g - 1])
            largest[g] = largest[g - 1];
    }
    int64_t last = groups->count - 1;
    largest[last] = capacity[last];
}

hbp_status hbp__packs_finish(hbp_context *context, const hbp_groups *groups, const hbp_fill_options *options,
                             hbp_packs *packs)
{
    packs->sequence_multiple = options->sequence_multiple;
    packs->pack_multiple = 1; /* first without the packs' own padding, which another packing may not need */
    HBP__TRY(hbp__packs_measure_rest(context, packs));
    hbp__packs_bound(groups, options, packs);
    return HBP_OK;
}

void hbp__packs_bound(const hbp_groups *groups, const hbp_fill_options *options, hbp_packs *packs)
{
    int64_t capacity[HBP_MAX_GROUPS], largest[HBP_MAX_GROUPS];
    int64_t tokens[HBP_MAX_GROUPS] = {0}, samples[HBP_MAX_GROUPS] = {0};
    hbp__fill_limits(groups, options, capacity, largest);
    packs->pack_multiple = options->pack_multiple;
    for (int64_t p = 0; p < packs->count; p++) {
        tokens[packs->group[p]] += packs->padded[p];
        samples[packs->group[p]] += packs->offsets[p + 1] - packs->offsets[p];
        packs->padded[p] = hbp__round_up(packs->padded[p], packs->pack_multiple);
    }
    packs->groups = groups->count;
    for (int64_t g = 0; g < groups->count; g++) {
        packs->bound[g] = hbp__max_i64(packs->bound[g], hbp__ceil_div(tokens[g], capacity[g]));
        if (options->max_samples)
            packs->bound[g] = hbp__max_i64(packs->bound[g], hbp__ceil_div(samples[g], options->max_samples));
    }
}
