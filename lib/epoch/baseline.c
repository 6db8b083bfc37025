/* Methods of others to plan an epoch, so that everything that reads plans can compare them. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "epoch/batches.h"
#include "epoch/units.h"
#include "hbp/pack.h"
#include "pack/fill/classic.h"
#include "pack/groups/hierarchy.h"
#include "schedule/balance.h"

/* What batches of samples come to on average, for methods that know tokens of a step alone. */
static void read_contract(hbp__epoch *epoch)
{
    hbp_epoch_options *o = &epoch->options;
    const hbp_lengths *lengths = epoch->lengths;
    if (o->batches)
        o->tokens_per_step = hbp__max_i64(1, lengths->tokens / o->batches);
    else if (o->samples_per_step)
        o->tokens_per_step = hbp__round_i64((double)lengths->tokens / (double)lengths->count *
                                            (double)hbp__min_i64(o->samples_per_step, lengths->count));
    o->samples_per_step = o->batches = 0;
}

static int is_one_sample(int32_t method)
{
    return method == HBP__EPOCH_NO_PACKING || method == HBP__EPOCH_SORTED;
}

/* Steps of as many samples, each a pack, as have the tokens of a step on average: those of the contract or,
 * without one, of `groups`. */
static hbp_status count_group_samples(const hbp__epoch *epoch, const hbp_groups *groups, hbp_groups **out)
{
    const hbp_lengths *lengths = epoch->lengths;
    int64_t asked = epoch->options.tokens_per_step, tokens = asked ? asked : groups->tokens_per_step;
    int64_t samples = hbp__round_i64((double)tokens * (double)lengths->count / (double)lengths->tokens);
    int64_t side_by_side = epoch->cost->terms.ranks / groups->sp[0];
    samples = hbp__max_i64(side_by_side, hbp__min_i64(samples, lengths->count));
    return hbp__groups_create(epoch->context, epoch->cost, 1, groups->pack_length, groups->sp,
                              groups->recompute, hbp__mul_saturating(samples, groups->pack_length[0]), out);
}

/* One group: packs of max_length on the degree that serves them best; the longest sample's length when no
 * maximum is given. *out stays NULL where the caller gives the group. */
static hbp_status choose_single_group(const hbp__epoch *epoch, int32_t method, hbp_groups **out)
{
    hbp_groups_options options;
    const hbp_groups *given = epoch->options.groups;
    if (given && given->count != 1)
        return hbp__fail(epoch->context, HBP_E_INVALID,
                         "epoch: groups has %lld groups; method %s has packs of one", (long long)given->count,
                         epoch->options.method);
    if (given)
        return HBP_OK;
    hbp__epoch_groups_options(&epoch->options, &options);
    if (is_one_sample(method))
        options.tokens_per_step = 0; /* count_samples heeds it: packs are no longer than their sample */
    options.method = hbp__groups_name(HBP__GROUPS_HBP);
    hbp_groups *paper = NULL;
    HBP__TRY(hbp__plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, 0, &paper));
    int64_t last = paper->count - 1, length = paper->pack_length[last],
            tokens_per_step = paper->tokens_per_step;
    int32_t sp = paper->sp[last], recompute = paper->recompute[last];
    hbp_groups_free(paper);
    return hbp__groups_create(epoch->context, epoch->cost, 1, &length, &sp, &recompute, tokens_per_step, out);
}

/* Packs in random order, as trainers shuffle them; sorted batches keep their order inside, so that the batch
 * is what is shuffled. */
static int32_t balance_method(int32_t method)
{
    if (method == HBP__EPOCH_SORTED)
        return HBP__BALANCE_SORTED;
    if (method == HBP__EPOCH_HOMOGENEOUS_SP)
        return HBP__BALANCE_TIME;
    return HBP__BALANCE_RANDOM;
}

static hbp_status plan_single(const hbp__epoch *epoch, int32_t method, hbp_plan **out)
{
    hbp_fill_options fill;
    hbp_balance_options balance;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp__epoch_balance_options(epoch, &balance);
    fill.method = hbp__fill_name(HBP__FILL_BALANCED);
    balance.method = hbp__balance_name(balance_method(method));
    balance.curriculum_steps = balance.tokens_per_step = 0; /* the groups' */
    hbp_groups *chosen = NULL, *counted = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = choose_single_group(epoch, method, &chosen);
    const hbp_groups *groups = chosen ? chosen : epoch->options.groups;
    if (status >= 0 && is_one_sample(method)) {
        status = count_group_samples(epoch, groups, &counted);
        groups = counted;
    }
    if (status >= 0 && method == HBP__EPOCH_HOMOGENEOUS_SP)
        status = hbp__epoch_fill(epoch, epoch->lengths, groups, &fill, &packs);
    else if (status >= 0)
        status = hbp__fill_classic(epoch->context, epoch->lengths, groups, method, &fill, &packs);
    if (status >= 0)
        status = hbp__balance(epoch->context, packs, groups, epoch->cost, &balance, 0, out);
    hbp_packs_free(packs);
    hbp_groups_free(counted);
    hbp_groups_free(chosen);
    return status;
}

/* The method of steps where each is planned for itself; -1: they are not. */
static int32_t step_method(int32_t method)
{
    switch (method) {
    case HBP__EPOCH_FLEXSP:
        return HBP__STEP_FLEXSP;
    case HBP__EPOCH_HYBRID_CP:
        return HBP__STEP_HYBRID_CP;
    case HBP__EPOCH_DYNAMIC_CP:
        return HBP__STEP_DYNAMIC_CP;
    default:
        return -1;
    }
}

/* Steps drawn or given, each planned for itself. */
static hbp_status plan_steps(hbp__epoch *epoch, int32_t steps, hbp_plan **out)
{
    hbp_epoch_options *o = &epoch->options;
    epoch->step_method = steps;
    o->method = hbp__epoch_name(HBP__EPOCH_SEARCH);
    o->groups = NULL;
    o->modality_order = o->equal_samples = 0;
    o->window_samples = 0;
    if (!o->batches && (o->composition != HBP_COMPOSITION_STRATIFIED || !o->samples_per_step))
        o->composition = HBP_COMPOSITION_RANDOM;
    HBP__TRY(hbp__units_check_tokens(epoch));
    return hbp__epoch_plan_batches(epoch, out);
}

hbp_status hbp__epoch_plan_baseline(hbp__epoch *epoch, hbp_plan **out)
{
    int32_t method = hbp__epoch_method(epoch->options.method), steps = step_method(method);
    if (steps >= 0)
        return plan_steps(epoch, steps, out);
    read_contract(epoch);
    return plan_single(epoch, method, out);
}
