/* hbp_packs_create: packs that were made elsewhere, checked and measured as the library's own are. */
#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "pack/fill/fill.h"

typedef struct given {
    const hbp_lengths *lengths;
    const hbp_groups *groups;
    const int64_t *offsets;
    const int64_t *samples;
    const int32_t *pack_groups;
    hbp_fill_options options; /* no zeros left in its multiples */
} given;

static hbp_status check_offsets(hbp_context *context, const given *g, int64_t count)
{
    if (count < 1)
        return hbp__fail(context, HBP_E_INVALID, "`packs` is %lld; there must be 1 or more",
                         (long long)count);
    if (g->offsets[0] != 0)
        return hbp__fail(context, HBP_E_INVALID, "pack_offsets[0] is %lld; it must be 0",
                         (long long)g->offsets[0]);
    for (int64_t p = 0; p < count; p++)
        if (g->offsets[p + 1] <= g->offsets[p] || g->offsets[p + 1] > g->lengths->count)
            return hbp__fail(
                context, HBP_E_INVALID,
                "pack_offsets[%lld] is %lld after %lld; a pack holds 1 sample or more, all packs "
                "together the %lld of the lengths",
                (long long)p + 1, (long long)g->offsets[p + 1], (long long)g->offsets[p],
                (long long)g->lengths->count);
    if (g->offsets[count] != g->lengths->count)
        return hbp__fail(context, HBP_E_INVALID,
                         "the packs hold %lld samples; the lengths have %lld, each of which is in one pack",
                         (long long)g->offsets[count], (long long)g->lengths->count);
    return HBP_OK;
}

/* Each sample in one pack, linked samples in the same. */
static hbp_status copy_samples(hbp_context *context, const given *g, hbp_packs *packs)
{
    const hbp_lengths *lengths = g->lengths;
    int64_t *pack_of = hbp__take(context, (uint64_t)lengths->count, sizeof *pack_of);
    int64_t *pack_of_link =
        hbp__take(context, (uint64_t)(lengths->links ? lengths->links : 1), sizeof *pack_of_link);
    HBP__TRY(hbp__scratch_check(context, "the packs of samples"));
    for (int64_t i = 0; i < lengths->count; i++)
        pack_of[i] = -1;
    for (int64_t t = 0; t < lengths->links; t++)
        pack_of_link[t] = -1;
    for (int64_t p = 0; p < packs->count; p++)
        for (int64_t i = g->offsets[p]; i < g->offsets[p + 1]; i++) {
            HBP__TRY(hbp__tick_row(context, "packs", i, lengths->count));
            int64_t sample = g->samples[i];
            if (sample < 0 || sample >= lengths->count)
                return hbp__fail(context, HBP_E_INVALID,
                                 "sample_indices[%lld] is %lld; it must be in 0..%lld", (long long)i,
                                 (long long)sample, (long long)lengths->count - 1);
            if (pack_of[sample] == p)
                return hbp__fail(context, HBP_E_INVALID, "sample %lld is in pack %lld twice",
                                 (long long)sample, (long long)p);
            if (pack_of[sample] >= 0)
                return hbp__fail(context, HBP_E_INVALID, "sample %lld is in pack %lld and in pack %lld",
                                 (long long)sample, (long long)pack_of[sample], (long long)p);
            pack_of[sample] = p;
            packs->sample[i] = (uint32_t)sample;
            if (!lengths->link || lengths->link[sample] == HBP__FREE)
                continue;
            int64_t link = lengths->link[sample];
            if (pack_of_link[link] >= 0 && pack_of_link[link] != p)
                return hbp__fail(context, HBP_E_INVALID,
                                 "sample %lld is in pack %lld, samples linked to it in pack %lld",
                                 (long long)sample, (long long)p, (long long)pack_of_link[link]);
            pack_of_link[link] = p;
        }
    return HBP_OK;
}

/* A pack's group: as given, or the first that holds it. */
static hbp_status place_packs(hbp_context *context, const given *g, hbp_packs *packs)
{
    int64_t last = g->groups->count - 1;
    packs->sequence_multiple = g->options.sequence_multiple;
    HBP__TRY(hbp__packs_measure(context, packs));
    for (int64_t p = 0; p < packs->count; p++) {
        int64_t group = g->pack_groups ? g->pack_groups[p] : 0;
        if (group < 0 || group > last)
            return hbp__fail(context, HBP_E_INVALID, "pack_groups[%lld] is %lld; it must be in 0..%lld",
                             (long long)p, (long long)group, (long long)last);
        int64_t padded = hbp__round_up(packs->padded[p], g->options.pack_multiple);
        while (!g->pack_groups && group < last && g->groups->pack_length[group] < padded)
            group++;
        if (g->groups->pack_length[group] < padded)
            return hbp__fail(context, HBP_E_INVALID,
                             "pack %lld has %lld tokens with its padding; packs of group %lld hold %lld",
                             (long long)p, (long long)padded, (long long)group,
                             (long long)g->groups->pack_length[group]);
        packs->group[p] = (int32_t)group;
    }
    hbp__packs_bound(g->groups, &g->options, packs);
    return HBP_OK;
}

static hbp_status create_packs(hbp_context *context, const given *g, int64_t count, hbp_packs **out)
{
    HBP__TRY(check_offsets(context, g, count));
    hbp_packs *packs = hbp__packs_new(context, g->lengths, count);
    if (!packs)
        return hbp__fail_memory(context, "the packs");
    for (int64_t p = 0; p <= count; p++)
        packs->offsets[p] = g->offsets[p];
    hbp_status status = copy_samples(context, g, packs);
    if (status >= 0)
        status = place_packs(context, g, packs);
    if (status < 0)
        hbp_packs_free(packs);
    else
        *out = packs;
    return status;
}

hbp_status hbp_packs_create(hbp_context *context, const hbp_lengths *lengths, const hbp_groups *groups,
                            int64_t packs, const int64_t *pack_offsets, const int64_t *sample_indices,
                            const int32_t *pack_groups, const hbp_fill_options *options, hbp_packs **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, groups, "groups"));
    HBP__TRY(hbp__require(context, pack_offsets, "pack_offsets"));
    HBP__TRY(hbp__require(context, sample_indices, "sample_indices"));
    given g = {lengths, groups, pack_offsets, sample_indices, pack_groups, {0}};
    HBP__TRY(hbp__options_read(context, &g.options, sizeof g.options, options, "hbp_fill_options"));
    g.options.sequence_multiple = hbp__max_i64(1, g.options.sequence_multiple);
    g.options.pack_multiple = hbp__max_i64(1, g.options.pack_multiple);
    g.options.max_samples = 0; /* packs made elsewhere may hold more */
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, create_packs(context, &g, packs, out));
}
