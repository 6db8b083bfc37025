/* Vision units in the groups of an epoch (docs: vision, an epoch): the cost that groups are chosen by, how
 * many units a pack of each holds, and packs filled under both budgets. */
#include "epoch/vision.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "cost/point.h"
#include "epoch/tuning.h"
#include "pack/groups/hierarchy.h"
#include "pack/vision/vector_fill.h"

hbp_status hbp__epoch_check_vision_options(const hbp__epoch *epoch)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    if (!epoch->lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: max_vision is %lld, but the lengths have no vision units",
                         (long long)o->max_vision);
    if (o->mode == HBP_EPOCH_DEFAULT)
        return HBP_OK;
    if (o->max_vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: max_vision %lld is for the default mode; mode %s fills by tokens alone",
                         (long long)o->max_vision, "paper");
    return hbp__epoch_check_vision(epoch, "epoch: mode paper");
}

/* The most vision units of an item: a sample, or samples that are tied. O(samples) with ties, else O(1). */
static hbp_status most_units(const hbp__epoch *epoch, int64_t *most)
{
    hbp_context *context = epoch->context;
    const hbp_lengths *lengths = epoch->lengths;
    *most = lengths->max_vision;
    if (!lengths->tie)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(context);
    int64_t *total = hbp__take_zero(context, (uint64_t)lengths->ties, sizeof *total);
    HBP__TRY(hbp__scratch_check(context, "the vision units of tied samples"));
    for (int64_t i = 0; i < lengths->count; i++) {
        HBP__TRY(hbp__tick_row(context, "groups", i, lengths->count));
        if (lengths->tie[i] == HBP__FREE)
            continue;
        total[lengths->tie[i]] += hbp__lengths_vision(lengths, i);
        *most = hbp__max_i64(*most, total[lengths->tie[i]]);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Vision units a token, of all the data. */
static double mean_density(const hbp__epoch *epoch)
{
    return (double)epoch->lengths->vision_sum / (double)epoch->lengths->tokens;
}

/* Units a token that packs are to have room for: so many times the data's, or the item with most of them in
 * the longest packs. */
static double full_density(const hbp__epoch *epoch, int64_t most, double room)
{
    const hbp_lengths *lengths = epoch->lengths;
    double longest = (double)lengths->bin_length[lengths->bins - 1];
    double density = room * mean_density(epoch), one = (double)most / longest;
    return one > density ? one : density;
}

/* The cost of tokens alone that is the true one for a pack with as many vision units as the data have for its
 * tokens in time, and as many as it is to have room for in memory: what units cost is spread over the tokens.
 * Borrows the tables of the epoch's. */
static hbp_cost full_pack_cost(const hbp__epoch *epoch, double density)
{
    hbp_cost full = *epoch->cost;
    hbp_cost_terms *t = &full.terms;
    double mean = mean_density(epoch);
    double vision_ns = t->ns_per_vision * (mean < density ? mean : density);
    if (t->vision_bytes > 0) {
        t->logits_bytes += t->vision_bytes * density;
        t->limit_bytes--; /* what rounding may add */
    }
    if (vision_ns > 0) {
        double tokens_ns = t->ns_per_token;
        t->ns_per_token += vision_ns;
        t->recompute_linear =
            (tokens_ns * t->recompute_linear + vision_ns * t->recompute_vision) / t->ns_per_token;
    }
    return full;
}

/* Packs with more tokens than max_vision units go with on average would never be full. */
static void cap_packs(const hbp__epoch *epoch, hbp_groups_options *options)
{
    const hbp_epoch_options *o = &epoch->options;
    double tokens = o->max_vision ? (double)o->max_vision / mean_density(epoch) : (double)HBP_MAX_LENGTH;
    int64_t longest = epoch->lengths->bin_length[epoch->lengths->bins - 1];
    if (options->max_pack_length || epoch->lengths->tie || !(tokens < (double)HBP_MAX_LENGTH))
        return;
    longest = hbp__round_up(longest, hbp__max_i64(1, options->sequence_multiple));
    longest = hbp__round_up(longest, hbp__max_i64(1, options->pack_multiple));
    options->max_pack_length = hbp__max_i64(hbp__max_i64(longest, options->max_length), (int64_t)tokens);
}

/* Groups whose packs have room for so many units a token. */
static hbp_status plan_for_density(const hbp__epoch *epoch, const hbp_cost *cost, double density,
                                   const hbp_groups_options *options, hbp_groups **out)
{
    hbp__epoch own = *epoch;
    own.cost = cost;
    const hbp_cost full = full_pack_cost(&own, density);
    HBP__TRY(hbp__plan_groups(epoch->context, epoch->lengths, &full, options, out));
    hbp__groups_price(cost, *out);
    return HBP_OK;
}

/* Says that vision units leave no memory for groups that there are without them; without any, why not. */
static hbp_status refuse_units(const hbp__epoch *epoch, const hbp_cost *cost, int64_t most,
                               const hbp_groups_options *options)
{
    hbp_groups *groups = NULL;
    const hbp_lengths *lengths = epoch->lengths;
    hbp__forgive(epoch->context);
    HBP__TRY(hbp__plan_groups(epoch->context, lengths, cost, options, &groups));
    hbp_groups_free(groups);
    return hbp__fail(
        epoch->context, HBP_E_INFEASIBLE,
        "epoch: no SP degree holds a pack of %lld tokens and %lld vision units on %d rank(s), even "
        "with every layer recomputed",
        (long long)lengths->bin_length[lengths->bins - 1], (long long)most, (int)cost->terms.ranks);
}

hbp_status hbp__epoch_plan_groups(const hbp__epoch *epoch, const hbp_cost *cost,
                                  const hbp_groups_options *options, hbp_groups **out)
{
    int64_t most;
    if (!hbp__epoch_counts_vision(epoch) || !epoch->lengths->vision_sum)
        return hbp__plan_groups(epoch->context, epoch->lengths, cost, options, out);
    HBP__TRY(most_units(epoch, &most));
    hbp_groups_options all = *options;
    cap_packs(epoch, &all);
    double density = full_density(epoch, most, HBP__VISION_ROOM), least = full_density(epoch, most, 0);
    hbp_status status = plan_for_density(epoch, cost, density, &all, out);
    if (status == HBP_E_INFEASIBLE && least < density) {
        hbp__forgive(epoch->context);
        status = plan_for_density(epoch, cost, least, &all, out);
    }
    return status == HBP_E_INFEASIBLE ? refuse_units(epoch, cost, most, &all) : status;
}

/* The most vision units, up to `most`, that a pack of group g has memory for beside its tokens. */
static int64_t units_held(const hbp__epoch *epoch, const hbp_groups *groups, int64_t g, int64_t most)
{
    int64_t low = 0, high = most; /* low is held, more than high is not asked for */
    int32_t row = hbp__cost_row(epoch->cost, groups->sp[g]);
    while (low < high) {
        int64_t middle = high - (high - low) / 2;
        hbp__load load = {.tokens = groups->pack_length[g], .vision = middle};
        if (hbp__cost_pack_bytes(epoch->cost, row, groups->recompute[g], load) <=
            epoch->cost->terms.limit_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Vision units of a pack of each group: in the last as many as are allowed, or as the item with most of them
 * asks for; in the others in proportion to their tokens; in all what memory holds. */
static hbp_status list_budgets(const hbp__epoch *epoch, const hbp_groups *groups, int64_t *budget)
{
    int64_t most, limit = epoch->options.max_vision ? epoch->options.max_vision : INT32_MAX;
    HBP__TRY(most_units(epoch, &most));
    for (int64_t g = 0; g < groups->count; g++) {
        double usual = HBP__VISION_ROOM * mean_density(epoch) * (double)groups->pack_length[g];
        int64_t units = usual < (double)INT32_MAX ? (int64_t)usual + 1 : INT32_MAX;
        if (g == groups->count - 1)
            units = epoch->options.max_vision ? limit : hbp__max_i64(units, most);
        budget[g] = units_held(epoch, groups, g, hbp__min_i64(units, limit));
    }
    return HBP_OK;
}

hbp_status hbp__epoch_fill_vision(const hbp__epoch *epoch, const hbp_lengths *lengths,
                                  const hbp_groups *groups, const hbp_fill_options *options, hbp_packs **out)
{
    int64_t budget[HBP__MAX_GROUPS];
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
