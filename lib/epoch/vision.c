/* An epoch under two budgets, vision units and tokens (OmniBal, section 3.2): one group, packs of
 * hbp_iterative_fill, micro-batches of packs alike in both sizes. */
#include "base/checked.h"
#include "cost/cost.h"
#include "epoch/epoch.h"
#include "hbp/iterative_fill.h"
#include "hbp/sp.h"
#include "pack/groups/hierarchy.h"
#include "schedule/balance.h"
#include "schedule/kinds.h"

/* Refuses options that ask for what an epoch under two budgets has not. */
static hbp_status check(const hbp__epoch *epoch)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    if (!epoch->lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: max_vision is %lld, but the lengths have no vision units",
                         (long long)o->max_vision);
    if (o->mode != HBP_EPOCH_DEFAULT)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: max_vision %lld is for the default mode; mode %s has a hierarchy of groups",
                         (long long)o->max_vision, "paper");
    if (o->max_groups > 1 || (o->groups && o->groups->count > 1))
        return hbp__fail(context, HBP_E_INVALID, "epoch: %lld groups; with max_vision %lld an epoch has one",
                         (long long)(o->max_groups > 1 ? o->max_groups : o->groups->count),
                         (long long)o->max_vision);
    if (o->curriculum_steps > 0)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: curriculum_steps is %lld; with max_vision %lld there is one group, none "
                         "shorter",
                         (long long)o->curriculum_steps, (long long)o->max_vision);
    if (o->composition == HBP_COMPOSITION_RANDOM)
        return hbp__fail(
            context, HBP_E_INVALID,
            "epoch: composition random and max_vision %lld exclude each other; stratified is what "
            "steps are then",
            (long long)o->max_vision);
    if (o->sequence_multiple_per_sp || o->pack_multiple_per_sp)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: padding by a pack's degree and max_vision %lld exclude each other",
                         (long long)o->max_vision);
    if (o->samples_per_step || o->window_samples || o->batches)
        return hbp__fail(context, HBP_E_INVALID, "epoch: %s and max_vision %lld exclude each other",
                         o->samples_per_step ? "samples_per_step"
                         : o->batches        ? "batches"
                                             : "window_samples",
                         (long long)o->max_vision);
    return HBP_OK;
}

/* The cost of tokens alone that is the true one for a full pack: of `length` tokens, with as many vision
 * units as the data have for them in time and as many as are allowed in memory. What units cost is spread
 * over the tokens. Borrows the tables of `cost`. */
static hbp_cost full_pack_cost(const hbp__epoch *epoch, int64_t length)
{
    const hbp_lengths *lengths = epoch->lengths;
    hbp_cost full = *epoch->cost;
    hbp_cost_terms *t = &full.terms;
    double per_token = (double)epoch->options.max_vision / (double)length;
    double mean = (double)lengths->vision_sum / (double)lengths->tokens;
    double vision_ns = t->ns_per_vision * (mean < per_token ? mean : per_token);
    if (t->vision_bytes > 0) {
        t->logits_bytes += t->vision_bytes * per_token;
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

/* One group of packs of `length` tokens, on the degree with the least time among those that hold such a pack
 * with max_vision units. */
static hbp_status create_group(const hbp__epoch *epoch, int64_t length, hbp_groups **out)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    hbp_cost full = full_pack_cost(epoch, length);
    hbp_sp_options options;
    hbp_sp_options_init(&options, sizeof options);
    options.tokens_per_step = o->tokens_per_step ? o->tokens_per_step : length * full.terms.ranks;
    double squares = epoch->lengths->sum_squares / (double)epoch->lengths->tokens;
    options.squares_per_token = squares < (double)length ? squares : (double)length;
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    hbp_status status = hbp_choose_sp(context, &full, length, &options, &choice);
    if (status == HBP_E_INFEASIBLE)
        return hbp__fail(context, status,
                         "epoch: no SP degree holds a pack of %lld tokens and %lld vision units on %d "
                         "rank(s), even with every layer recomputed",
                         (long long)length, (long long)o->max_vision, (int)full.terms.ranks);
    HBP__TRY(status);
    return hbp_groups_create(context, &full, 1, &length, &choice.sp, &choice.recompute, o->tokens_per_step,
                             out);
}

/* The group of packs of max_length; where none is given, of a power of two, or of the longest sample if that
 * is all that fits. */
static hbp_status choose_group(const hbp__epoch *epoch, hbp_groups **out)
{
    hbp_groups_options options;
    int64_t longest;
    hbp__epoch_groups_options(&epoch->options, &options);
    HBP__TRY(hbp__groups_lengths(epoch->context, epoch->lengths, &options, &longest));
    hbp_status status = create_group(epoch, options.max_length, out);
    longest = hbp__round_up(longest, options.pack_multiple);
    if (status != HBP_E_INFEASIBLE || epoch->options.max_length || longest >= options.max_length)
        return status;
    hbp__forgive(epoch->context);
    return create_group(epoch, longest, out);
}

static hbp_status fill(const hbp__epoch *epoch, const hbp_groups *groups, hbp_packs **out)
{
    const hbp_epoch_options *o = &epoch->options;
    hbp_iterative_fill_options options;
    hbp_iterative_fill_options_init(&options, sizeof options);
    options.effort = o->effort;
    options.max_samples = o->max_samples;
    /* Vision units are not cut: what is cut in tokens is refused here. */
    options.over_long = o->over_long == HBP_OVERLONG_DROP ? HBP_OVERLONG_DROP : HBP_OVERLONG_ERROR;
    options.max_tokens = groups->pack_length[0];
    options.max_vision = o->max_vision;
    options.sequence_multiple = o->sequence_multiple;
    options.pack_multiple = o->pack_multiple;
    options.seed = o->seed;
    options.epoch = o->epoch;
    return hbp_iterative_fill(epoch->context, epoch->lengths, &options, out);
}

hbp_status hbp__epoch_vision(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp_groups *chosen = NULL;
    hbp_packs *packs = NULL;
    HBP__TRY(check(epoch));
    hbp_status status = epoch->groups ? HBP_OK : choose_group(epoch, &chosen);
    const hbp_groups *groups = epoch->groups ? epoch->groups : chosen;
    if (status >= 0)
        status = fill(epoch, groups, &packs);
    hbp_balance_options balance;
    hbp__epoch_balance_options(&epoch->options, &balance);
    balance.mode = HBP_BALANCE_VISION;
    if (status >= 0 && balance.modality_order)
        status = hbp__packs_even_kinds(epoch->context, groups, balance.seed, balance.epoch, packs);
    if (status >= 0)
        status = hbp__balance(epoch->context, packs, groups, epoch->cost, &balance, 0, out);
    if (status >= 0) {
        const hbp_epoch_options *o = &epoch->options;
        int is_hierarchy = o->composition == HBP_COMPOSITION_HIERARCHY || o->modality_order;
        (*out)->composition = is_hierarchy ? HBP_COMPOSITION_HIERARCHY : HBP_COMPOSITION_STRATIFIED;
        (*out)->tokens_per_step = o->tokens_per_step;
    }
    hbp_packs_free(packs);
    hbp_groups_free(chosen);
    return status;
}
