/* The fill of an epoch's groups: its padding, and whether units count. */
#include "pack/fill/fill.h"
#include "base/checked.h"
#include "data/packs/padding.h"
#include "epoch/epoch.h"
#include "epoch/vision.h"
#include "pack/fill/classic.h"

hbp_status hbp__epoch_padding(const hbp__epoch *epoch, const hbp_groups *groups, hbp_fill_options *fill,
                              hbp__padding *padding)
{
    const hbp_epoch_options *o = &epoch->options;
    int32_t widest = 1;
    int64_t shortest = groups->pack_length[0];
    for (int64_t g = 0; g < groups->count; g++) {
        widest = groups->sp[g] > widest ? groups->sp[g] : widest;
        shortest = hbp__min_i64(shortest, groups->pack_length[g]);
    }
    *padding = (hbp__padding){hbp__max_i64(1, o->sequence_multiple), hbp__max_i64(1, o->pack_multiple),
                              o->sequence_multiple_per_sp, o->pack_multiple_per_sp};
    fill->sequence_multiple =
        hbp__padding_multiple(padding->sequence_multiple, padding->sequence_multiple_per_sp, widest);
    fill->pack_multiple =
        hbp__padding_multiple(padding->pack_multiple, padding->pack_multiple_per_sp, widest);
    /* Given groups that pack_multiple alone is too long for are the caller's mistake, which the fill names.
     */
    if ((o->pack_multiple_per_sp || !o->groups) && shortest < fill->pack_multiple)
        return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                         "packs of %lld tokens are shorter than what packs of degree %d are padded to, "
                         "%lld; pack_multiple is %lld, pack_multiple_per_sp %lld",
                         (long long)shortest, (int)widest, (long long)fill->pack_multiple,
                         (long long)padding->pack_multiple, (long long)padding->pack_multiple_per_sp);
    return HBP_OK;
}

hbp_status hbp__epoch_fill_begin(const hbp__epoch *epoch, const hbp_lengths *lengths,
                                 const hbp_groups *groups, const hbp_fill_options *options,
                                 const hbp__rival *rival, hbp__filling *filling)
{
    hbp_fill_options fill = *options;
    hbp__padding padding;
    *filling = (hbp__filling){.packs = NULL};
    HBP__TRY(hbp__epoch_padding(epoch, groups, &fill, &padding));
    if (hbp__epoch_counts_vision(epoch))
        HBP__TRY(hbp__epoch_fill_vision(epoch, lengths, groups, &fill, &filling->packs));
    else
        HBP__TRY(hbp__fill_begin(epoch->context, lengths, groups, &fill, rival, filling));
    filling->packs->padding = padding;
    return HBP_OK;
}

hbp_status hbp__epoch_fill(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                           const hbp_fill_options *options, hbp_packs **out)
{
    hbp__filling filling;
    HBP__TRY(hbp__epoch_fill_begin(epoch, lengths, groups, options, NULL, &filling));
    return hbp__fill_finish(epoch->context, lengths, groups, &filling, out);
}

hbp_status hbp__epoch_fill_classic(const hbp__epoch *epoch, const hbp_groups *groups, int32_t method,
                                   hbp_packs **out)
{
    hbp_fill_options fill;
    hbp__padding padding;
    hbp__epoch_fill_options(&epoch->options, &fill);
    HBP__TRY(hbp__epoch_padding(epoch, groups, &fill, &padding));
    HBP__TRY(hbp__fill_classic(epoch->context, epoch->lengths, groups, method, &fill, out));
    (*out)->padding = padding;
    return HBP_OK;
}
