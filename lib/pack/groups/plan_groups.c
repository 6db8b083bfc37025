/* hbp_plan_groups: groups chosen by the cost of tokens, with what vision units cost spread over them where
 * they count (docs: vision, an epoch). */
#include "base/checked.h"
#include "base/options.h"
#include "base/quantity.h"
#include "base/scratch.h"
#include "pack/groups/hierarchy.h"
#include "pack/tuning.h"

/* The longest sample in a pack of its own. */
static int64_t longest_pack(const hbp_lengths *lengths, const hbp_groups_options *options)
{
    int64_t longest = lengths->bin_length[lengths->bins - 1];
    longest = hbp__round_up(longest, hbp__max_i64(1, options->sequence_multiple));
    return hbp__round_up(longest, hbp__max_i64(1, options->pack_multiple));
}

/* Units a token that packs are to have room for: so many times the data's, or the item with most of them in
 * the longest packs. */
static double full_density(const hbp_lengths *lengths, const hbp_groups_options *options, int64_t most,
                           double room)
{
    double density = room * hbp__lengths_density(lengths),
           one = (double)most / (double)longest_pack(lengths, options);
    return one > density ? one : density;
}

/* The cost of tokens alone that is the true one for a pack with as many vision units as the data have for its
 * tokens in time, and as many as it is to have room for in memory: what units cost is spread over the tokens.
 * Borrows the tables of `cost`. */
static hbp_cost full_pack_cost(const hbp_lengths *lengths, const hbp_cost *cost, double density)
{
    hbp_cost full = *cost;
    hbp_cost_terms *t = &full.terms;
    double mean = hbp__lengths_density(lengths);
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
static void cap_packs(const hbp_lengths *lengths, int64_t max_vision, hbp_groups_options *options)
{
    double tokens = max_vision ? (double)max_vision / hbp__lengths_density(lengths) : (double)HBP_MAX_LENGTH;
    if (options->max_pack_length || lengths->link || !(tokens < (double)HBP_MAX_LENGTH))
        return;
    options->max_pack_length =
        hbp__max_i64(hbp__max_i64(longest_pack(lengths, options), options->max_length), (int64_t)tokens);
}

/* Groups whose packs have room for so many units a token. */
static hbp_status plan_for_density(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                   double density, const hbp_groups_options *options, hbp_groups **out)
{
    const hbp_cost full = full_pack_cost(lengths, cost, density);
    HBP__TRY(hbp__groups_choose(context, lengths, &full, options, out));
    hbp__groups_price(cost, *out);
    return HBP_OK;
}

/* Says that vision units leave no memory for groups that there are without them; without any, why not. */
static hbp_status refuse_units(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               int64_t most, const hbp_groups_options *options)
{
    hbp_groups *groups = NULL;
    hbp__forgive(context);
    HBP__TRY(hbp__groups_choose(context, lengths, cost, options, &groups));
    hbp_groups_free(groups);
    return hbp__fail(context, HBP_E_INFEASIBLE,
                     "no SP degree holds a pack of %lld tokens and %lld vision units on %d rank%s, even "
                     "with every layer recomputed",
                     (long long)longest_pack(lengths, options), (long long)most, (int)cost->terms.ranks,
                     hbp__ending(cost->terms.ranks));
}

static hbp_status plan_with_units(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                  const hbp_groups_options *options, int64_t max_vision, hbp_groups **out)
{
    int64_t longest, most;
    hbp_groups_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_groups_options"));
    HBP__TRY(hbp__groups_largest(context, lengths, 1, &longest, &most));
    cap_packs(lengths, max_vision, &all);
    /* For so many times the units that the data have, as far as memory goes. */
    static const double room[] = {HBP__VISION_ROOM, 1, 0};
    hbp_status status = HBP_E_INFEASIBLE;
    double before = (double)INFINITY;
    for (int i = 0; i < 3 && status == HBP_E_INFEASIBLE; i++) {
        const double density = full_density(lengths, &all, most, room[i]);
        hbp__forgive(context);
        if (density < before)
            status = plan_for_density(context, lengths, cost, density, &all, out);
        before = density;
    }
    return status == HBP_E_INFEASIBLE ? refuse_units(context, lengths, cost, most, &all) : status;
}

hbp_status hbp__plan_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                            const hbp_groups_options *options, int64_t max_vision, hbp_groups **out)
{
    int counts = lengths->vision_sum > 0 && (max_vision || hbp__cost_charges_vision(cost));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark,
                      counts ? plan_with_units(context, lengths, cost, options, max_vision, out)
                             : hbp__groups_choose(context, lengths, cost, options, out));
}

hbp_status hbp_plan_groups(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_groups_options *options, hbp_groups **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    return hbp__plan_groups(context, lengths, cost, options, 0, out);
}
