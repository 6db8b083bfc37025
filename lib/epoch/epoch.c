#include "epoch/epoch.h"

#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/units.h"
#include "pack/fill/score.h"
#include "pack/groups/hierarchy.h"
#include "schedule/balance.h"
#include "schedule/kinds.h"

/* Other hierarchies are filled while their number times the samples stays below this, but no more of them. */
#define SAMPLES_TO_FILL (INT64_C(1) << 20)
#define MOST_TRIES      12

void hbp__trial_close(hbp__trial *t)
{
    hbp_groups_free(t->groups);
    hbp_packs_free(t->packs);
    *t = (hbp__trial){NULL, NULL, 0};
}

/* Fills the trial's groups. */
static hbp_status run_trial(const hbp__epoch *epoch, hbp__trial *out)
{
    hbp_fill_options fill;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp_status status = hbp__epoch_fill(epoch, epoch->lengths, out->groups, &fill, &out->packs);
    if (status >= 0)
        status =
            hbp__packs_score(epoch->context, out->packs, out->groups, epoch->cost->terms.step_ns, &out->ns);
    if (status < 0)
        hbp__trial_close(out);
    return status;
}

/* Runs one more hierarchy, takes its groups and keeps the better of the two; one that cannot be filled is no
 * failure. */
static hbp_status challenge(const hbp__epoch *epoch, hbp_groups *groups, hbp__trial *best)
{
    hbp__trial other = {groups, NULL, 0};
    hbp_status status = run_trial(epoch, &other);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    if (other.ns < best->ns) {
        hbp__trial worse = *best;
        *best = other;
        other = worse;
    }
    hbp__trial_close(&other);
    return HBP_OK;
}

/* Tries the first hierarchies of the table, which stays with `table`, and the published one. */
static hbp_status try_others(const hbp__epoch *epoch, hbp_groups_options *options, const hbp_groups *table,
                             hbp__trial *best)
{
    int64_t tries = hbp__min_i64(table->candidates, SAMPLES_TO_FILL / epoch->lengths->count);
    tries = hbp__min_i64(tries, MOST_TRIES);
    hbp_groups *groups = NULL;
    for (int64_t i = 1; i < tries; i++) {
        HBP__TRY(hbp__groups_candidate(epoch->context, epoch->cost, table, i, &groups));
        HBP__TRY(challenge(epoch, groups, best));
    }
    options->mode = HBP_GROUPS_PAPER;
    options->tokens_per_step = table->tokens_per_step;
    hbp_status status = hbp_plan_groups(epoch->context, epoch->lengths, epoch->cost, options, &groups);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    return challenge(epoch, groups, best);
}

hbp_status hbp__epoch_choose(const hbp__epoch *epoch, hbp__trial *best)
{
    if (epoch->groups) {
        hbp_fill_options fill;
        hbp__epoch_fill_options(&epoch->options, &fill);
        return hbp__epoch_fill(epoch, epoch->lengths, epoch->groups, &fill, &best->packs);
    }
    hbp_groups_options options;
    hbp_groups *table = NULL;
    hbp__epoch_groups_options(&epoch->options, &options);
    HBP__TRY(hbp_plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, &table));
    hbp_status status = hbp__groups_candidate(epoch->context, epoch->cost, table, 0, &best->groups);
    if (status >= 0)
        status = run_trial(epoch, best);
    if (status >= 0 && epoch->options.mode != HBP_EPOCH_PAPER && epoch->lengths->count <= HBP__TRY_SAMPLES) {
        status = try_others(epoch, &options, table, best);
        if (status < 0)
            hbp__trial_close(best);
    }
    hbp_groups_free(table);
    return status;
}

int hbp__epoch_mixes(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    return o->mode == HBP_EPOCH_DEFAULT && o->composition != HBP_COMPOSITION_HIERARCHY && !o->modality_order;
}

/* Records the tokens of a step: those asked for, which given groups may let pass, or the groups'. The
 * published way takes what is asked for as its authors do. */
static hbp_status record_tokens(const hbp__epoch *epoch, const hbp_groups *groups, hbp_plan *plan)
{
    int64_t asked = epoch->options.mode == HBP_EPOCH_DEFAULT ? epoch->options.tokens_per_step : 0, most = 0;
    for (int64_t i = 0; i < plan->steps; i++)
        most = hbp__max_i64(most, plan->step_tokens[i]);
    plan->tokens_per_step = asked ? asked : groups->tokens_per_step;
    return asked && most > asked ? hbp__epoch_refuse_tokens(epoch, asked, most) : HBP_OK;
}

/* What a plan of groups records besides its steps. */
static hbp_status describe(const hbp__epoch *epoch, const hbp_groups *groups, hbp_plan *plan)
{
    int64_t bound_ns;
    HBP__TRY(record_tokens(epoch, groups, plan));
    HBP__TRY(hbp__epoch_bound(epoch, plan->tokens_per_step, 1, &bound_ns));
    return hbp__epoch_set_bound(epoch, plan->tokens_per_step, bound_ns, plan);
}

/* Every step of one group. */
static hbp_status plan_hierarchy(const hbp__epoch *epoch, hbp_plan **out)
{
    hbp__trial best = {NULL, NULL, 0};
    hbp_status status = hbp__epoch_choose(epoch, &best);
    hbp_balance_options balance;
    hbp__epoch_balance_options(&epoch->options, &balance);
    const hbp_groups *groups = epoch->groups ? epoch->groups : best.groups;
    if (status >= 0 && balance.modality_order)
        status = hbp__packs_even_kinds(epoch->context, groups, balance.seed, balance.epoch, best.packs);
    if (status >= 0)
        status = hbp__balance(epoch->context, best.packs, groups, epoch->cost, &balance, 0, out);
    if (status >= 0) {
        (*out)->composition = HBP_COMPOSITION_HIERARCHY;
        status = describe(epoch, groups, *out);
    }
    hbp__trial_close(&best);
    return status;
}

/* Groups for a threshold or a number of tokens alone. Steps planned one by one may keep to tokens, caps and
 * padding by degree that no groups keep to: those that memory alone allows do then. */
static hbp_status plan_guiding_groups(const hbp__epoch *epoch, hbp_groups **groups)
{
    hbp_groups_options options;
    hbp__epoch_groups_options(&epoch->options, &options);
    hbp_status status = hbp_plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, groups);
    if (status != HBP_E_INFEASIBLE && status != HBP_E_INVALID)
        return status;
    hbp_cost cost = *epoch->cost;
    cost.tokens_per_rank = options.tokens_per_rank = 0;
    options.tokens_per_step = options.max_pack_length = 0;
    options.sequence_multiple = epoch->options.sequence_multiple;
    options.pack_multiple = epoch->options.pack_multiple;
    return hbp_plan_groups(epoch->context, epoch->lengths, &cost, &options, groups);
}

hbp_status hbp__epoch_shortest(const hbp__epoch *epoch, int64_t *tokens)
{
    hbp_groups *groups = NULL;
    if (epoch->groups) {
        *tokens = epoch->groups->threshold[0];
        return HBP_OK;
    }
    HBP__TRY(plan_guiding_groups(epoch, &groups));
    *tokens = groups->threshold[0];
    hbp_groups_free(groups);
    return HBP_OK;
}

/* How many times the tokens of a step of `groups` hold the micro-batches that are asked for. */
static int64_t count_times(const hbp_epoch_options *o, const hbp_groups *groups)
{
    int64_t least = groups->micro_batches[0];
    for (int64_t g = 1; g < groups->count; g++)
        least = hbp__min_i64(least, groups->micro_batches[g]);
    if (o->micro_batches_per_step)
        return o->micro_batches_per_step;
    return hbp__ceil_div(hbp__max_i64(1, o->micro_batch_multiple), hbp__max_i64(1, least));
}

hbp_status hbp__epoch_choose_tokens(const hbp__epoch *epoch, int64_t *tokens)
{
    const hbp_groups *groups = epoch->groups;
    hbp_groups *chosen = NULL;
    *tokens = epoch->options.tokens_per_step;
    if (*tokens)
        return HBP_OK;
    if (!groups)
        HBP__TRY(plan_guiding_groups(epoch, &chosen));
    groups = groups ? groups : chosen;
    *tokens = hbp__mul_saturating(groups->tokens_per_step, count_times(&epoch->options, groups));
    hbp_groups_free(chosen);
    return HBP_OK;
}

/* Which batches the contract asks for, where it does not leave them to the planner. */
static hbp_status open_batches(const hbp__epoch *epoch, int32_t *composition, hbp__batches *batches)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t shortest = INT64_MAX;
    *batches = (hbp__batches){.steps = 0};
    *composition = o->batches                                     ? HBP_COMPOSITION_GIVEN
                   : o->composition == HBP_COMPOSITION_STRATIFIED ? HBP_COMPOSITION_STRATIFIED
                                                                  : HBP_COMPOSITION_RANDOM;
    if (o->batches)
        return hbp__batches_give(epoch, batches);
    if (o->curriculum_steps)
        HBP__TRY(hbp__epoch_shortest(epoch, &shortest));
    return *composition == HBP_COMPOSITION_RANDOM ? hbp__batches_draw(epoch, shortest, batches)
                                                  : hbp__batches_deal(epoch, 0, shortest, batches);
}

/* Groups for an epoch that is planned in parts, unless they are given. */
static hbp_status choose_groups(hbp__epoch *epoch, hbp_groups **chosen)
{
    hbp_groups_options options;
    if (epoch->groups)
        return HBP_OK;
    hbp__epoch_groups_options(&epoch->options, &options);
    HBP__TRY(hbp_plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, chosen));
    epoch->groups = *chosen;
    return HBP_OK;
}

hbp_status hbp__epoch_plan_batches(hbp__epoch *epoch, hbp_plan **out)
{
    int32_t composition;
    hbp__batches batches;
    hbp_groups *chosen = NULL;
    hbp_epoch_options *o = &epoch->options;
    /* The published way and an order of modalities have packs of groups in every step. */
    int by_groups = o->mode == HBP_EPOCH_PAPER || o->modality_order || o->groups;
    hbp_status status = HBP_OK;
    if (!by_groups)
        HBP__TRY(hbp__epoch_check_caps(epoch));
    if (!o->samples_per_step && !o->batches && !o->tokens_per_step)
        status = hbp__epoch_choose_tokens(epoch, &o->tokens_per_step);
    if (status >= 0)
        status = open_batches(epoch, &composition, &batches);
    else
        batches = (hbp__batches){.steps = 0};
    if (status >= 0 && by_groups)
        status = choose_groups(epoch, &chosen);
    if (status >= 0)
        status = by_groups ? hbp__batches_plan_by_groups(epoch, &batches, 1, out)
                           : hbp__batches_plan(epoch, &batches, out);
    if (status >= 0 && by_groups && o->mode != HBP_EPOCH_PAPER)
        status = hbp__epoch_set_bound_of_steps(epoch, *out);
    if (status >= 0) {
        (*out)->composition = composition;
        (*out)->samples_per_step = o->samples_per_step;
        (*out)->tokens_per_step = o->samples_per_step || o->batches ? 0 : o->tokens_per_step;
    }
    hbp_groups_free(chosen);
    hbp__batches_close(&batches);
    return status;
}

/* Samples move only inside their window of the input. */
static hbp_status plan_windows(hbp__epoch *epoch, hbp_plan **out)
{
    hbp__batches batches = {.steps = 0};
    hbp_groups *chosen = NULL;
    hbp_status status = choose_groups(epoch, &chosen);
    if (status >= 0)
        status = hbp__batches_cut(epoch, &batches);
    if (status >= 0)
        status = hbp__batches_plan_by_groups(epoch, &batches, 0, out);
    if (status >= 0)
        status = describe(epoch, epoch->groups, *out);
    hbp__batches_close(&batches);
    hbp_groups_free(chosen);
    return status;
}

/* The same where vision units count. */
static hbp_status plan_vision_windows(hbp__epoch *epoch, hbp_plan **out)
{
    hbp__batches batches = {.steps = 0};
    hbp_status status = hbp__batches_cut(epoch, &batches);
    if (status >= 0)
        status = hbp__batches_plan_by_groups(epoch, &batches, 0, out);
    hbp__batches_close(&batches);
    return status;
}

static hbp_status plan_contract(hbp__epoch *epoch, hbp_plan **out)
{
    const hbp_epoch_options *o = &epoch->options;
    int64_t room = HBP__MEND_SAMPLES;
    if (o->mode == HBP_EPOCH_DEFAULT)
        HBP__TRY(hbp__units_check_tokens(epoch));
    if (hbp__epoch_counts_vision(epoch)) {
        HBP__TRY(hbp__epoch_check_vision_options(epoch));
        if (!o->samples_per_step && !o->batches && o->composition != HBP_COMPOSITION_RANDOM)
            return o->window_samples ? plan_vision_windows(epoch, out) : hbp__epoch_vision(epoch, out);
    }
    if (o->samples_per_step || o->batches || o->composition == HBP_COMPOSITION_RANDOM)
        return hbp__epoch_plan_batches(epoch, out);
    /* What is chosen is kept like what is asked for: a step must have room for a multiple. */
    if (o->micro_batch_multiple > 1 && o->mode == HBP_EPOCH_DEFAULT)
        HBP__TRY(hbp__epoch_choose_tokens(epoch, &epoch->options.tokens_per_step));
    if (o->window_samples)
        return plan_windows(epoch, out);
    if (hbp__epoch_mixes(epoch))
        return hbp__epoch_weigh(epoch, out);
    HBP__TRY(plan_hierarchy(epoch, out));
    return o->mode == HBP_EPOCH_PAPER ? HBP_OK : hbp__epoch_mend(epoch, &room, out);
}

static hbp_status plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                             const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    hbp__epoch epoch = {context, lengths, cost, NULL, {0}, HBP_STEP_DEFAULT};
    HBP__TRY(hbp__options_read(context, &epoch.options, sizeof epoch.options, options, "hbp_epoch_options"));
    HBP__TRY(hbp__epoch_check(context, &epoch.options));
    const hbp_cost capped = hbp__cost_capped(cost, epoch.options.tokens_per_rank);
    epoch.cost = &capped;
    epoch.groups = epoch.options.groups;
    hbp_lengths *limited = NULL;
    HBP__TRY(hbp__epoch_limit(context, lengths, &epoch.options, &limited));
    if (limited)
        epoch.lengths = limited;
    hbp_status status = plan_contract(&epoch, out);
    if (status >= 0)
        status = hbp__epoch_set_free_bound(&epoch, *out);
    hbp_lengths_free(limited);
    if (status < 0) {
        hbp_plan_free(*out);
        *out = NULL;
    }
    return status;
}

hbp_status hbp_plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, plan_epoch(context, lengths, cost, options, out));
}
