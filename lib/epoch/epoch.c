#include "epoch/epoch.h"

#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "cost/straight.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/bound.h"
#include "epoch/choose.h"
#include "epoch/hierarchy.h"
#include "epoch/mend.h"
#include "epoch/patterns.h"
#include "epoch/tuning.h"
#include "epoch/units.h"
#include "epoch/vision.h"
#include "epoch/weigh.h"

static hbp_status set_bound(const hbp__epoch *epoch, hbp_plan *plan)
{
    int64_t bound_ns;
    HBP__TRY(hbp__epoch_bound(epoch, plan->tokens_per_step, 1, &bound_ns));
    return hbp__epoch_set_bound(epoch, plan->tokens_per_step, bound_ns, plan);
}

/* The batches in packs of groups that are given or chosen. */
static hbp_status plan_batches_in_groups(const hbp__epoch *epoch, const hbp__batches *batches, hbp_plan **out)
{
    hbp__epoch own = *epoch;
    hbp_groups *chosen = NULL;
    HBP__TRY(hbp__epoch_choose_groups(&own, &chosen));
    hbp_status status = hbp__batches_plan_by_groups(&own, batches, 1, out);
    hbp_groups_free(chosen);
    return status;
}

/* The same in packs of one group, if that is faster: each set of modalities has micro-batches of its own in
 * every group, which a batch may be too small for. */
static hbp_status try_one_group(const hbp__epoch *epoch, const hbp__batches *batches, hbp_plan **plan)
{
    hbp__epoch one = *epoch;
    hbp_plan *other = NULL;
    one.options.max_groups = 1;
    hbp_status status = plan_batches_in_groups(&one, batches, &other);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    hbp__plan_keep_faster(plan, &other);
    return HBP_OK;
}

/* The batches of the contract, each a step with packs of the groups. */
static hbp_status plan_batches_by_groups(hbp__epoch *epoch, hbp_plan **out)
{
    int32_t composition;
    hbp__batches batches;
    const hbp_epoch_options *o = &epoch->options;
    hbp_status status = hbp__batches_of_contract(epoch, &composition, &batches);
    if (status >= 0)
        status = plan_batches_in_groups(epoch, &batches, out);
    if (status >= 0 && o->modality_order && hbp__epoch_method(o->method) == HBP__EPOCH_SEARCH && !o->groups &&
        o->max_groups != 1)
        status = try_one_group(epoch, &batches, out);
    if (status >= 0 && hbp__epoch_method(epoch->options.method) != HBP__EPOCH_HBP)
        status = hbp__epoch_raise_bound_of_steps(epoch, 0, *out);
    if (status >= 0)
        hbp__batches_record(epoch, composition, *out);
    hbp__batches_close(&batches);
    return status;
}

/* Samples move only inside their window of the input. */
static hbp_status plan_windows(hbp__epoch *epoch, hbp_plan **out)
{
    hbp__batches batches = {.steps = 0};
    hbp_groups *chosen = NULL;
    hbp_status status = hbp__epoch_choose_groups(epoch, &chosen);
    if (status >= 0)
        status = hbp__batches_cut(epoch, &batches);
    if (status >= 0)
        status = hbp__batches_plan_by_groups(epoch, &batches, 0, out);
    if (status >= 0)
        status = hbp__epoch_record_tokens(epoch, epoch->groups, *out);
    if (status >= 0)
        status = set_bound(epoch, *out);
    hbp__batches_close(&batches);
    hbp_groups_free(chosen);
    return status;
}

/* The published way and an order of modalities have packs of groups in every step. */
static hbp_status plan_batches(hbp__epoch *epoch, hbp_plan **out)
{
    const hbp_epoch_options *o = &epoch->options;
    int by_groups = hbp__epoch_method(o->method) == HBP__EPOCH_HBP || o->modality_order || o->groups;
    return by_groups ? plan_batches_by_groups(epoch, out) : hbp__epoch_plan_batches(epoch, out);
}

static hbp_status plan_contract(hbp__epoch *epoch, hbp_plan **out)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t room = HBP__MEND_SAMPLES;
    HBP__TRY(hbp__units_check_tokens(epoch));
    if (hbp__epoch_counts_vision(epoch))
        HBP__TRY(hbp__epoch_check_vision_options(epoch));
    if (o->samples_per_step || o->batches || o->composition == HBP_COMPOSITION_RANDOM)
        return plan_batches(epoch, out);
    /* What is chosen is kept like what is asked for: a step must have room for a multiple. */
    if (o->micro_batch_multiple > 1 && hbp__epoch_method(o->method) == HBP__EPOCH_SEARCH)
        HBP__TRY(hbp__epoch_choose_tokens(epoch, &epoch->options.tokens_per_step));
    if (o->window_samples)
        return plan_windows(epoch, out);
    if (hbp__epoch_mixes(epoch))
        return hbp__epoch_weigh(epoch, out);
    const int is_search = hbp__epoch_method(o->method) == HBP__EPOCH_SEARCH;
    hbp_status status = hbp__epoch_plan_hierarchy(epoch, out);
    if (status == HBP_E_INFEASIBLE && is_search && o->tokens_per_step && hbp__epoch_may_plan_steps(epoch)) {
        /* Where steps of like samples keep to the tokens neither, the groups say why. */
        hbp__forgive(epoch->context);
        status = hbp__epoch_weigh(epoch, out);
        return status == HBP_E_INFEASIBLE ? hbp__epoch_plan_hierarchy(epoch, out) : status;
    }
    HBP__TRY(status);
    HBP__TRY(set_bound(epoch, *out));
    return is_search ? hbp__epoch_mend(epoch, &room, out) : HBP_OK;
}

hbp_status hbp__epoch_open(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_cost *bending, const hbp_epoch_options *options, hbp__epoch_call *call)
{
    hbp__epoch *epoch = &call->epoch;
    *call =
        (hbp__epoch_call){.epoch = {.context = context, .lengths = lengths, .step_method = HBP__STEP_SEARCH}};
    HBP__TRY(
        hbp__options_read(context, &epoch->options, sizeof epoch->options, options, "hbp_epoch_options"));
    HBP__TRY(hbp__epoch_check(context, &epoch->options));
    call->cost = hbp__cost_capped(cost, epoch->options.tokens_per_rank);
    call->bending = hbp__cost_capped(bending, epoch->options.tokens_per_rank);
    epoch->cost = &call->cost;
    epoch->bending = &call->bending;
    epoch->groups = epoch->options.groups;
    int32_t method = hbp__epoch_method(epoch->options.method);
    if (method != HBP__EPOCH_SEARCH && method != HBP__EPOCH_HBP)
        HBP__TRY(hbp__epoch_check_vision(epoch));
    HBP__TRY(hbp__epoch_limit(context, lengths, &epoch->options, &call->limited));
    if (call->limited)
        epoch->lengths = call->limited;
    return HBP_OK;
}

void hbp__epoch_close(hbp__epoch_call *call)
{
    hbp_lengths_free(call->limited);
}

static hbp_status plan_all(hbp__epoch *epoch, hbp_plan **out)
{
    HBP__TRY(plan_contract(epoch, out));
    return hbp__epoch_set_free_bound(epoch, *out);
}

/* The search: of very many samples by patterns, with effort what is the faster. */
static hbp_status plan_searched(hbp__epoch *epoch, hbp_plan **out)
{
    hbp__epoch own = *epoch;
    hbp_plan *listed = NULL;
    hbp_status status = HBP_OK;
    int64_t most_ns = INT64_MAX;
    if (!hbp__epoch_suits_patterns(epoch))
        return plan_all(epoch, out);
    if (epoch->options.effort) {
        status = plan_all(epoch, out);
        if (status == HBP_E_INFEASIBLE)
            status = hbp__forgive(epoch->context);
        if (*out && hbp__cost_bends(&epoch->bending->terms)) /* as patterns are timed */
            HBP__TRY(hbp__cost_time_plan(epoch->context, epoch->bending, *out));
        HBP__TRY(status);
        most_ns = *out ? hbp__plan_ns(*out) - 1 : INT64_MAX;
    }
    status = hbp__epoch_list_patterns(&own, most_ns, &listed);
    if (status == HBP_E_INFEASIBLE || status == HBP_E_INVALID) {
        hbp__forgive(epoch->context);
        return *out ? HBP_OK : plan_all(epoch, out);
    }
    if (status < 0 || !listed)
        return status;
    hbp_plan_free(*out);
    *out = listed;
    return HBP_OK;
}

/* An epoch planned with a linear cost, for one whose times may bend. */
static hbp_status plan_straight(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                                const hbp_cost *bending, const hbp_epoch_options *options, hbp_plan **out)
{
    hbp__epoch_call call;
    hbp_status status = hbp__epoch_open(context, lengths, cost, bending, options, &call);
    const int32_t method = status >= 0 ? hbp__epoch_method(call.epoch.options.method) : HBP__EPOCH_SEARCH;
    if (status >= 0)
        status = method == HBP__EPOCH_SEARCH     ? plan_searched(&call.epoch, out)
                 : method == HBP__EPOCH_HBP      ? plan_all(&call.epoch, out)
                 : method == HBP__EPOCH_PATTERNS ? hbp__epoch_list_patterns(&call.epoch, INT64_MAX, out)
                                                 : hbp__epoch_plan_baseline(&call.epoch, out);
    hbp__epoch_close(&call);
    if (status < 0) {
        hbp_plan_free(*out);
        *out = NULL;
    }
    return status;
}

/* One of the linear costs tried; *best is the faster plan, timed by the cost itself. */
static hbp_status try_straight(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                               const hbp_epoch_options *options, int32_t index, hbp_plan **best)
{
    hbp_plan *plan = NULL;
    const hbp_cost tried = hbp__cost_tried(cost, index);
    HBP__TRY(plan_straight(context, lengths, &tried, cost, options, &plan));
    plan->hierarchy_ns = plan->mixture_ns = 0; /* under the linear cost */
    return hbp__cost_keep_faster(context, cost, plan, best);
}

/* Methods that plan step by step as published, which may take minutes, plan once. */
static int is_slow(int32_t method)
{
    return method == HBP__EPOCH_FLEXSP || method == HBP__EPOCH_HYBRID_CP || method == HBP__EPOCH_DYNAMIC_CP;
}

static hbp_status plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__TRY(hbp__require_samples(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    if (!hbp__cost_bends(&cost->terms))
        return plan_straight(context, lengths, cost, cost, options, out);
    hbp_epoch_options all;
    HBP__TRY(hbp__options_read(context, &all, sizeof all, options, "hbp_epoch_options"));
    const int32_t tries = is_slow(hbp__epoch_method(all.method)) ? 1 : hbp__cost_tries(cost);
    hbp_status status = HBP_OK;
    for (int32_t i = 0; status >= 0 && i < tries; i++)
        status = try_straight(context, lengths, cost, options, i, out);
    if (status < 0) {
        hbp_plan_free(*out);
        *out = NULL;
    }
    return status;
}

hbp_status hbp__plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                           const hbp_epoch_options *options, hbp_plan **out)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, plan_epoch(context, lengths, cost, options, out));
}

hbp_status hbp_plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    return hbp__plan_epoch(context, lengths, cost, options, out);
}
