#include "epoch/epoch.h"

#include "base/checked.h"
#include "base/options.h"
#include "cost/cost.h"
#include "pack/hierarchy.h"
#include "pack/score.h"
#include "schedule/balance.h"
#include "schedule/even_kinds.h"

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
    hbp_status status = hbp_greedy_fill(epoch->context, epoch->lengths, out->groups, &fill, &out->packs);
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
        return hbp__enter(epoch->context); /* clears its message */
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
        return hbp__enter(epoch->context); /* clears its message */
    HBP__TRY(status);
    return challenge(epoch, groups, best);
}

hbp_status hbp__epoch_choose(const hbp__epoch *epoch, hbp__trial *best)
{
    if (epoch->groups) {
        hbp_fill_options fill;
        hbp__epoch_fill_options(&epoch->options, &fill);
        return hbp_greedy_fill(epoch->context, epoch->lengths, epoch->groups, &fill, &best->packs);
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

static hbp_status plan_whole(const hbp__epoch *epoch, hbp_plan **out)
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
    hbp__trial_close(&best);
    return status;
}

static hbp_status plan_windows(hbp__epoch *epoch, hbp_plan **out)
{
    hbp_groups *chosen = NULL;
    if (!epoch->groups) {
        hbp_groups_options options;
        hbp__epoch_groups_options(&epoch->options, &options);
        HBP__TRY(hbp_plan_groups(epoch->context, epoch->lengths, epoch->cost, &options, &chosen));
        epoch->groups = chosen;
    }
    hbp_status status = hbp__epoch_windows(epoch, out);
    hbp_groups_free(chosen);
    return status;
}

hbp_status hbp_plan_epoch(hbp_context *context, const hbp_lengths *lengths, const hbp_cost *cost,
                          const hbp_epoch_options *options, hbp_plan **out)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, out, "out"));
    *out = NULL;
    HBP__TRY(hbp__require(context, lengths, "lengths"));
    HBP__TRY(hbp__require(context, cost, "cost"));
    hbp__epoch epoch = {context, lengths, cost, NULL, {0}};
    HBP__TRY(hbp__options_read(context, &epoch.options, sizeof epoch.options, options, "hbp_epoch_options"));
    HBP__TRY(hbp__epoch_check(context, &epoch.options));
    if (!epoch.options.max_vision)
        HBP__TRY(hbp__epoch_check_vision(&epoch, "epoch"));
    epoch.groups = epoch.options.groups;
    hbp_lengths *limited = NULL;
    HBP__TRY(hbp__epoch_limit(context, lengths, &epoch.options, &limited));
    if (limited)
        epoch.lengths = limited;
    hbp_status status = epoch.options.max_vision ? hbp__epoch_vision(&epoch, out)
                        : epoch.options.samples_per_step || epoch.options.window_samples
                            ? plan_windows(&epoch, out)
                        : epoch.options.mode == HBP_EPOCH_MIXED ? hbp__epoch_mixed(&epoch, out)
                                                                : plan_whole(&epoch, out);
    hbp_lengths_free(limited);
    return status;
}
