/* Vision units in the groups of an epoch (docs: vision, an epoch): how many a pack of each holds, and packs
 * filled under both budgets. */
#include "epoch/vision.h"

#include "base/checked.h"
#include "base/methods.h"
#include "cost/point.h"
#include "pack/groups/hierarchy.h"
#include "pack/tuning.h"
#include "pack/vision/vector_fill.h"

hbp_status hbp__epoch_check_vision_options(const hbp__epoch *epoch)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    if (!epoch->lengths->vision)
        return hbp__fail(context, HBP_E_INVALID, "`max_vision` is %lld, but the lengths have no vision units",
                         (long long)o->max_vision);
    if (hbp__epoch_method(o->method) == HBP__EPOCH_SEARCH)
        return HBP_OK;
    return hbp__epoch_check_vision(epoch);
}

/* The most vision units of a sample that is of each group by its length; with linked samples 0. O(samples).
 */
static hbp_status most_of_each(const hbp__epoch *epoch, const hbp_groups *groups, int64_t *most)
{
    const hbp_lengths *lengths = epoch->lengths;
    for (int64_t g = 0; g < groups->count; g++)
        most[g] = 0;
    for (int64_t i = 0; i < lengths->count && !lengths->link; i++) {
        int64_t g = 0, tokens = hbp__lengths_get(lengths, i);
        HBP__TRY(hbp__tick_row(epoch->context, "groups", i, lengths->count));
        while (g + 1 < groups->count && tokens > groups->threshold[g])
            g++;
        most[g] = hbp__max_i64(most[g], hbp__lengths_vision(lengths, i));
    }
    return HBP_OK;
}

/* Vision units of a pack of each group: in the last as many as are allowed, or as the item with most of them
 * asks for; in the others in proportion to their tokens, but no fewer than any sample has that is of the
 * group by its length; in all what memory holds. */
static hbp_status list_budgets(const hbp__epoch *epoch, const hbp_groups *groups, int64_t *budget)
{
    const hbp_cost *cost = epoch->cost;
    int64_t max_vision = epoch->options.max_vision, limit = max_vision ? max_vision : INT32_MAX;
    int64_t longest, most, own[HBP_MAX_GROUPS];
    double density = hbp__lengths_density(epoch->lengths);
    HBP__TRY(hbp__groups_largest(epoch->context, epoch->lengths, 1, &longest, &most));
    HBP__TRY(most_of_each(epoch, groups, own));
    for (int64_t g = 0; g < groups->count; g++) {
        double usual = HBP__VISION_ROOM * density * (double)groups->pack_length[g];
        int64_t units = usual < (double)INT32_MAX ? (int64_t)usual + 1 : INT32_MAX;
        units = hbp__max_i64(units, own[g]);
        if (g == groups->count - 1)
            units = max_vision ? limit : hbp__max_i64(units, most);
        budget[g] = hbp__cost_units(cost, hbp__cost_row(cost, groups->sp[g]), groups->recompute[g],
                                    groups->pack_length[g], hbp__min_i64(units, limit));
    }
    return HBP_OK;
}

hbp_status hbp__epoch_fill_vision(const hbp__epoch *epoch, const hbp_lengths *lengths,
                                  const hbp_groups *groups, const hbp_fill_options *options, hbp_packs **out)
{
    int64_t budget[HBP_MAX_GROUPS];
    HBP__TRY(list_budgets(epoch, groups, budget));
    return hbp__vector_fill_groups(epoch->context, lengths, groups, budget, options, out);
}

void hbp__epoch_vision_ns(const hbp__epoch *epoch, const hbp_groups *groups, double *vision_ns)
{
    for (int64_t g = 0; g < groups->count; g++)
        vision_ns[g] =
            hbp__point_make(epoch->cost, hbp__cost_row(epoch->cost, groups->sp[g]), groups->recompute[g])
                .vision;
}
