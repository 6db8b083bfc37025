/* Methods of others to plan an epoch, so that everything that reads plans can compare them. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/quantity.h"
#include "epoch/batches.h"
#include "epoch/units.h"
#include "hbp/pack.h"
#include "pack/groups/hierarchy.h"
#include "schedule/balance.h"

/* What the samples of a step come to on average, for methods that know tokens of a step alone. */
static void read_contract(hbp__epoch *epoch)
{
    hbp_epoch_options *o = &epoch->options;
    const hbp_lengths *lengths = epoch->lengths;
    if (o->samples_per_step)
        o->tokens_per_step = hbp__round_i64((double)lengths->tokens / (double)lengths->count *
                                            (double)hbp__min_i64(o->samples_per_step, lengths->count));
    o->samples_per_step = 0;
}

static int is_one_sample(int32_t method)
{
    return method == HBP__EPOCH_NO_PACKING || method == HBP__EPOCH_SORTED;
}

/* One group with steps of so many tokens, or of one micro-batch where that has more. */
static hbp_status make_group(const hbp__epoch *epoch, int64_t pack_length, int32_t sp, int32_t recompute,
                             int64_t tokens_per_step, hbp_groups **out)
{
    int64_t one = hbp__mul_saturating(epoch->cost->terms.ranks / sp, pack_length);
    return hbp__groups_create(epoch->context, epoch->cost, 1, &pack_length, &sp, &recompute,
                              hbp__max_i64(one, tokens_per_step), out);
}

/* The group with packs of one sample counted as if they were full: as many as have `tokens` on average. */
static hbp_status count_samples(const hbp__epoch *epoch, int64_t tokens, hbp_groups **group)
{
    const hbp_lengths *lengths = epoch->lengths;
    int64_t length = (*group)->pack_length[0];
    int32_t sp = (*group)->sp[0], recompute = (*group)->recompute[0];
    int64_t samples = hbp__round_i64((double)tokens * (double)lengths->count / (double)lengths->tokens);
    samples = hbp__min_i64(samples, lengths->count);
    hbp_groups_free(*group);
    *group = NULL;
    return make_group(epoch, length, sp, recompute, hbp__mul_saturating(samples, length), group);
}

/* Packs of HBP's longest group: of max_length, or of the power of two that holds the longest sample, on the
 * degree that serves them best. Tokens that samples have on average are no limit to a micro-batch. */
static hbp_status choose_group(const hbp__epoch *epoch, int32_t method, int is_average, hbp_groups **out)
{
    hbp_groups_options options;
    const hbp_epoch_options *o = &epoch->options;
    if (o->sequence_multiple_per_sp || o->pack_multiple_per_sp)
        hbp__epoch_widest_options(epoch, &options);
    else
        hbp__epoch_groups_options(o, &options);
    if (is_one_sample(method))
        options.tokens_per_step = 0; /* packs are no longer than their sample */
    options.method = hbp__groups_name(HBP__GROUPS_HBP);
    hbp_groups *paper = NULL;
    hbp_status status = hbp__plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, 0, &paper);
    if (status == HBP_E_INFEASIBLE && is_average && options.tokens_per_step) {
        options.tokens_per_step = 0;
        hbp__forgive(epoch->context);
        status = hbp__plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, 0, &paper);
    }
    HBP__TRY(status);
    int64_t last = paper->count - 1,
            tokens = options.tokens_per_step || !is_average ? paper->tokens_per_step : o->tokens_per_step;
    status =
        make_group(epoch, paper->pack_length[last], paper->sp[last], paper->recompute[last], tokens, out);
    hbp_groups_free(paper);
    return status;
}

/* The group that the caller gives, or a chosen one. Its steps have the tokens of the contract, where there is
 * one, which a micro-batch has to keep to unless they are those of samples on average. */
static hbp_status take_group(const hbp__epoch *epoch, int32_t method, int is_average, hbp_groups **out)
{
    const hbp_epoch_options *o = &epoch->options;
    const hbp_groups *given = o->groups;
    if (!given)
        return choose_group(epoch, method, is_average, out);
    if (given->count != 1)
        return hbp__fail(epoch->context, HBP_E_INVALID, "groups has %lld groups; method %s has packs of one",
                         (long long)given->count, o->method);
    int64_t length = given->pack_length[0],
            one = hbp__mul_saturating(epoch->cost->terms.ranks / given->sp[0], length);
    if (o->tokens_per_step && one > o->tokens_per_step && !is_average && !is_one_sample(method))
        return hbp__fail(epoch->context, HBP_E_INFEASIBLE,
                         "packs of %lld tokens on every SP group of %d rank%s hold %lld; tokens_per_step is "
                         "%lld",
                         (long long)length, (int)given->sp[0], hbp__ending(given->sp[0]), (long long)one,
                         (long long)o->tokens_per_step);
    return make_group(epoch, length, given->sp[0], given->recompute[0],
                      o->tokens_per_step ? o->tokens_per_step : given->tokens_per_step, out);
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

static hbp_status fill_group(const hbp__epoch *epoch, int32_t method, const hbp_groups *group,
                             hbp_packs **out)
{
    hbp_fill_options fill;
    if (method != HBP__EPOCH_HOMOGENEOUS_SP)
        return hbp__epoch_fill_classic(epoch, group, method, out);
    hbp__epoch_fill_options(&epoch->options, &fill);
    return hbp__epoch_fill(epoch, epoch->lengths, group, &fill, out);
}

/* The most that a step holds, with balance's micro_batch_multiple. */
static int64_t most_tokens(const hbp_groups *group, const hbp_balance_options *balance)
{
    int64_t multiple = hbp__max_i64(1, balance->micro_batch_multiple),
            least = hbp__round_up(group->micro_batches[0], multiple) * group->packs[0];
    return balance->tokens_per_step
               ? group->tokens_per_step
               : hbp__max_i64(group->tokens_per_step, hbp__mul_saturating(least, group->pack_length[0]));
}

static hbp_status plan_single(const hbp__epoch *epoch, int32_t method, int is_average, hbp_plan **out)
{
    int64_t asked = epoch->options.tokens_per_step;
    hbp_balance_options balance;
    hbp__epoch_balance_options(epoch, &balance);
    balance.method = hbp__balance_name(balance_method(method));
    hbp_groups *group = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = take_group(epoch, method, is_average, &group);
    if (status >= 0 && is_one_sample(method))
        status = count_samples(epoch, asked ? asked : group->tokens_per_step, &group);
    if (status >= 0) /* what is chosen gives way to a multiple, what is asked for does not */
        balance.tokens_per_step = asked && !is_one_sample(method) ? group->tokens_per_step : 0;
    if (status >= 0)
        status = fill_group(epoch, method, group, &packs);
    if (status >= 0)
        status = hbp__balance(epoch->context, packs, group, epoch->cost, &balance, 0, out);
    if (status >= 0 && !is_one_sample(method)) /* a sample's tokens are not counted one by one */
        (*out)->tokens_per_step = most_tokens(group, &balance);
    hbp_packs_free(packs);
    hbp_groups_free(group);
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

hbp_status hbp__epoch_plan_baseline(hbp__epoch *epoch, hbp_plan **out)
{
    int32_t method = hbp__epoch_method(epoch->options.method), steps = step_method(method);
    HBP__TRY(hbp__units_check_tokens(epoch));
    int is_average = epoch->options.samples_per_step > 0;
    if (steps < 0) {
        read_contract(epoch);
        return plan_single(epoch, method, is_average, out);
    }
    epoch->step_method = steps;
    epoch->options.method = hbp__epoch_name(HBP__EPOCH_SEARCH);
    return hbp__epoch_plan_batches(epoch, out);
}
