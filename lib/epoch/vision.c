/* An epoch under two budgets, vision units and tokens (OmniBal, section 3.2): one group, packs of
 * hbp_iterative_fill, micro-batches of packs alike in both sizes. */
#include "base/checked.h"
#include "cost/cost.h"
#include "epoch/batches.h"
#include "epoch/bound.h"
#include "epoch/choose.h"
#include "epoch/stratify.h"
#include "epoch/weigh.h"
#include "pack/groups/hierarchy.h"
#include "pack/vision/vector_fill.h"
#include "parallel/choose_sp.h"
#include "schedule/balance.h"
#include "schedule/kinds.h"

/* Whether the packs and steps of groups are asked for. */
static const char *name_groups(const hbp_epoch_options *o)
{
    return o->modality_order                             ? "modality_order"
           : o->groups                                   ? "given groups"
           : o->composition == HBP_COMPOSITION_HIERARCHY ? "composition hierarchy"
                                                         : NULL;
}

/* Whether steps must be planned one by one: one group of packs has none of these. */
static const char *name_steps(const hbp_epoch_options *o)
{
    return o->samples_per_step                                      ? "samples_per_step"
           : o->batches                                             ? "batches"
           : o->composition == HBP_COMPOSITION_RANDOM               ? "composition random"
           : o->curriculum_steps                                    ? "curriculum_steps"
           : o->micro_batches_per_step                              ? "micro_batches_per_step"
           : o->equal_samples                                       ? "equal_samples"
           : o->sequence_multiple_per_sp || o->pack_multiple_per_sp ? "padding by a pack's degree"
           : !o->max_vision                                         ? "max_vision 0"
                                                                    : NULL;
}

hbp_status hbp__epoch_check_vision_options(const hbp__epoch *epoch)
{
    hbp_context *context = epoch->context;
    const hbp_epoch_options *o = &epoch->options;
    if (!epoch->lengths->vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: max_vision is %lld, but the lengths have no vision units",
                         (long long)o->max_vision);
    if (o->mode != HBP_EPOCH_DEFAULT && o->max_vision)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch: max_vision %lld is for the default mode; mode %s has a hierarchy of groups",
                         (long long)o->max_vision, "paper");
    if (o->mode != HBP_EPOCH_DEFAULT)
        return hbp__epoch_check_vision(epoch, "epoch: mode paper");
    if (o->max_groups > 1 || (o->groups && o->groups->count > 1))
        return hbp__fail(context, HBP_E_INVALID, "epoch: %lld groups; with max_vision %lld an epoch has one",
                         (long long)(o->max_groups > 1 ? o->max_groups : o->groups->count),
                         (long long)o->max_vision);
    const char *groups = name_groups(o), *steps = name_steps(o);
    if (groups && steps)
        return hbp__fail(
            context, HBP_E_INVALID,
            "epoch: vision units count (max_vision is %lld), and %s asks for steps planned one by "
            "one; %s has packs of a group",
            (long long)o->max_vision, steps, groups);
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
    hbp_sp_choice choice;
    int fits;
    HBP__TRY(hbp__find_sp(context, &full, length, &options, &choice, &fits));
    if (!fits)
        return hbp__fail(context, HBP_E_INFEASIBLE,
                         "epoch: no SP degree holds a pack of %lld tokens and %lld vision units on %d "
                         "rank(s), even with every layer recomputed",
                         (long long)length, (long long)o->max_vision, (int)full.terms.ranks);
    return hbp__groups_create(context, &full, 1, &length, &choice.sp, &choice.recompute, o->tokens_per_step,
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

static hbp_status fill_group(const hbp__epoch *epoch, const hbp_groups *groups, hbp_packs **out)
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
    return hbp__iterative_fill(epoch->context, epoch->lengths, &options, out);
}

/* One group of packs filled under both budgets, and micro-batches of packs alike. */
static hbp_status plan_group(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp_groups *chosen = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = epoch->groups ? HBP_OK : choose_group(epoch, &chosen);
    const hbp_groups *groups = epoch->groups ? epoch->groups : chosen;
    if (status >= 0)
        status = fill_group(epoch, groups, &packs);
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

/* The most tokens of a step of the plan. */
static int64_t most_tokens(const hbp_plan *plan)
{
    int64_t most = 0;
    for (int64_t i = 0; i < plan->steps; i++)
        most = hbp__max_i64(most, plan->step_tokens[i]);
    return most;
}

/* Steps planned one by one, of at most `tokens` tokens, that take less than *plan, which may be NULL. Looked
 * for where they can save more of the run than planning them takes. */
static hbp_status try_steps(const hbp__epoch *epoch, int64_t tokens, int64_t bound_ns, hbp_plan **plan)
{
    hbp__stratify s = {.epoch = epoch, .tokens_per_step = tokens, .most_ns = INT64_MAX};
    hbp_plan *better = NULL;
    if (*plan) {
        int64_t ns = hbp__plan_ns(*plan), won = bound_ns ? ns - bound_ns : INT64_MAX;
        if (won <= hbp__epoch_planning_ns(epoch, tokens))
            return HBP_OK;
        s.micro_batches = (*plan)->micro_batches;
        s.most_ns = ns - 1;
        s.saves_from_ns = ns;
    }
    HBP__TRY(hbp__epoch_stratify(&s, &better));
    if (!better)
        return HBP_OK;
    hbp_plan_free(*plan);
    *plan = better;
    return HBP_OK;
}

/* Where one group cannot do what is asked for. */
static hbp_status plan_steps(const hbp__epoch *epoch, int64_t *tokens, hbp_plan **out)
{
    int64_t bound_ns = 0;
    const hbp_epoch_options *o = &epoch->options;
    if (!*tokens)
        HBP__TRY(hbp__epoch_choose_tokens(epoch, tokens));
    HBP__TRY(hbp__epoch_check_caps(epoch));
    if (!o->drop_last)
        return try_steps(epoch, *tokens, bound_ns, out);
    if (o->composition == HBP_COMPOSITION_STRATIFIED)
        return hbp__fail(
            epoch->context, HBP_E_INVALID,
            "epoch: composition stratified, drop_last and vision units with %s: steps of that kind "
            "are dealt, and leave nothing over; give composition random",
            name_steps(o));
    return hbp__epoch_plan_drawn(epoch, *tokens, out);
}

hbp_status hbp__epoch_vision(const hbp__epoch *epoch, hbp_plan **out)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t tokens = o->tokens_per_step, bound_ns = 0;
    hbp_status status = name_steps(o) ? HBP_E_INFEASIBLE : plan_group(epoch, out);
    if (status == HBP_E_INFEASIBLE && !name_groups(o)) {
        if (!name_steps(o) && hbp__epoch_may_plan_steps(epoch))
            hbp__forgive(epoch->context);
        else if (!name_steps(o))
            return status;
        status = plan_steps(epoch, &tokens, out);
    }
    HBP__TRY(status);
    tokens = tokens ? tokens : most_tokens(*out);
    HBP__TRY(hbp__epoch_bound(epoch, tokens, 1, &bound_ns));
    if (!name_steps(o) && !name_groups(o) && hbp__epoch_may_plan_steps(epoch) &&
        (*out)->composition == HBP_COMPOSITION_STRATIFIED)
        HBP__TRY(try_steps(epoch, tokens, bound_ns, out));
    (*out)->tokens_per_step = tokens;
    return hbp__epoch_set_bound(epoch, tokens, bound_ns, *out);
}
