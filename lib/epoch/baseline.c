/* The classic ways of batching, as plans, so that everything that reads plans can compare them. */
#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "epoch/batches.h"
#include "epoch/units.h"
#include "hbp/pack.h"
#include "pack/fill/classic.h"
#include "pack/groups/hierarchy.h"
#include "schedule/balance.h"

#define LIST(X)                                                                                              \
    X(HBP_BASELINE_NO_PACKING, "no-packing")                                                                 \
    X(HBP_BASELINE_SORTED, "sorted")                                                                         \
    X(HBP_BASELINE_NEXT_FIT, "next-fit")                                                                     \
    X(HBP_BASELINE_FIRST_FIT_DECREASING, "first-fit-decreasing")                                             \
    X(HBP_BASELINE_BEST_FIT_DECREASING, "best-fit-decreasing")                                               \
    X(HBP_BASELINE_ISF, "isf")                                                                               \
    X(HBP_BASELINE_SPFHP, "spfhp")                                                                           \
    X(HBP_BASELINE_HOMOGENEOUS_SP, "homogeneous-sp")                                                         \
    X(HBP_BASELINE_PAPER, "hbp-paper")                                                                       \
    X(HBP_BASELINE_RANDOM, "random")                                                                         \
    X(HBP_BASELINE_FIRST_FIT_SHUFFLED, "first-fit-shuffled")                                                 \
    X(HBP_BASELINE_FLEXSP, "flexsp")                                                                         \
    X(HBP_BASELINE_HYBRID_CP, "hybrid-cp")                                                                   \
    X(HBP_BASELINE_DYNAMIC_CP, "dynamic-cp")

const char *hbp_baseline_name(int32_t baseline)
{
    switch (baseline) {
#define NAME(code, text)                                                                                     \
    case code:                                                                                               \
        return text;
        LIST(NAME)
#undef NAME
    default:
        return NULL;
    }
}

/* What batches of samples come to on average, for ways that know tokens of a step alone. */
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

static int is_one_sample(int32_t baseline)
{
    return baseline == HBP_BASELINE_NO_PACKING || baseline == HBP_BASELINE_SORTED;
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
static hbp_status choose_single_group(const hbp__epoch *epoch, int32_t baseline, hbp_groups **out)
{
    hbp_groups_options options;
    const hbp_groups *given = epoch->options.groups;
    if (given && given->count != 1)
        return hbp__fail(epoch->context, HBP_E_INVALID,
                         "epoch: groups has %lld groups; packs of a baseline are of one",
                         (long long)given->count);
    if (given)
        return HBP_OK;
    hbp__epoch_groups_options(&epoch->options, &options);
    if (is_one_sample(baseline))
        options.tokens_per_step = 0; /* count_samples heeds it: packs are no longer than their sample */
    options.mode = HBP_GROUPS_PAPER;
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
static int32_t balance_mode(int32_t baseline)
{
    if (baseline == HBP_BASELINE_SORTED)
        return HBP_BALANCE_SORTED;
    if (baseline == HBP_BASELINE_HOMOGENEOUS_SP)
        return HBP_BALANCE_TIME;
    return HBP_BALANCE_RANDOM;
}

static hbp_status plan_single(const hbp__epoch *epoch, int32_t baseline, hbp_plan **out)
{
    hbp_fill_options fill;
    hbp_balance_options balance;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp__epoch_balance_options(epoch, &balance);
    fill.mode = HBP_FILL_BALANCED;
    balance.mode = balance_mode(baseline);
    balance.curriculum_steps = balance.tokens_per_step = 0; /* the groups' */
    hbp_groups *chosen = NULL, *counted = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = choose_single_group(epoch, baseline, &chosen);
    const hbp_groups *groups = chosen ? chosen : epoch->options.groups;
    if (status >= 0 && is_one_sample(baseline)) {
        status = count_group_samples(epoch, groups, &counted);
        groups = counted;
    }
    if (status >= 0 && baseline == HBP_BASELINE_HOMOGENEOUS_SP)
        status = hbp__epoch_fill(epoch, epoch->lengths, groups, &fill, &packs);
    else if (status >= 0)
        status = hbp__fill_classic(epoch->context, epoch->lengths, groups, baseline, &fill, &packs);
    if (status >= 0)
        status = hbp__balance(epoch->context, packs, groups, epoch->cost, &balance, 0, out);
    hbp_packs_free(packs);
    hbp_groups_free(counted);
    hbp_groups_free(chosen);
    return status;
}

/* The mode of a way that plans step by step; -1: it does not. */
static int32_t step_mode(int32_t baseline)
{
    switch (baseline) {
    case HBP_BASELINE_FLEXSP:
        return HBP_STEP_PAPER;
    case HBP_BASELINE_HYBRID_CP:
        return HBP_STEP_HYBRID_CP;
    case HBP_BASELINE_DYNAMIC_CP:
        return HBP_STEP_DYNAMIC_CP;
    default:
        return -1;
    }
}

/* Steps drawn or given, each planned for itself. */
static hbp_status plan_steps(hbp__epoch *epoch, int32_t mode, hbp_plan **out)
{
    hbp_epoch_options *o = &epoch->options;
    epoch->step_mode = mode;
    o->mode = HBP_EPOCH_DEFAULT;
    o->groups = NULL;
    o->modality_order = o->equal_samples = 0;
    o->window_samples = 0;
    if (!o->batches && (o->composition != HBP_COMPOSITION_STRATIFIED || !o->samples_per_step))
        o->composition = HBP_COMPOSITION_RANDOM;
    HBP__TRY(hbp__units_check_tokens(epoch));
    return hbp__epoch_plan_batches(epoch, out);
}

static hbp_status plan_baseline(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                int32_t baseline, const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    if (!hbp_baseline_name(baseline))
        return hbp__fail(context, HBP_E_INVALID, "baseline %d is not one of HBP_BASELINE_*", (int)baseline);
    hbp__epoch epoch = {context, lengths, cost, NULL, {0}, HBP_STEP_DEFAULT};
    HBP__TRY(hbp__options_read(context, &epoch.options, sizeof epoch.options, options, "hbp_epoch_options"));
    HBP__TRY(hbp__epoch_check(context, &epoch.options));
    const hbp_cost capped = hbp__cost_capped(cost, epoch.options.tokens_per_rank);
    epoch.cost = &capped;
    HBP__TRY(hbp__epoch_check_vision(&epoch, hbp_baseline_name(baseline)));
    epoch.options.max_vision = 0;
    if (baseline == HBP_BASELINE_PAPER) {
        epoch.options.mode = HBP_EPOCH_PAPER;
        epoch.options.groups = NULL;
        return hbp__plan_epoch(context, lengths, cost, &epoch.options, out);
    }
    hbp_lengths *limited = NULL;
    HBP__TRY(hbp__epoch_limit(context, lengths, &epoch.options, &limited));
    if (limited)
        epoch.lengths = limited;
    int32_t mode = step_mode(baseline);
    if (mode < 0)
        read_contract(&epoch);
    hbp_status status = mode < 0 ? plan_single(&epoch, baseline, out) : plan_steps(&epoch, mode, out);
    hbp_lengths_free(limited);
    if (status < 0) {
        hbp_plan_free(*out);
        *out = NULL;
    }
    return status;
}

hbp_status hbp_plan_baseline(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             int32_t baseline, const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, plan_baseline(context, lengths, cost, baseline, options, out));
}
