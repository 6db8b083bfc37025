#include "epoch/choose.h"

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "epoch/tuning.h"
#include "epoch/vision.h"
#include "pack/fill/score.h"
#include "pack/groups/hierarchy.h"

void hbp__trial_close(hbp__trial *t)
{
    hbp_groups_free(t->groups);
    hbp_packs_free(t->packs);
    *t = (hbp__trial){NULL, NULL, 0};
}

hbp_status hbp__epoch_plan_groups(const hbp__epoch *epoch, const hbp_groups_options *options,
                                  hbp_groups **out)
{
    return hbp__plan_groups(epoch->context, epoch->lengths, epoch->cost, options, epoch->options.max_vision,
                            out);
}

/* Fills the trial's groups. */
static hbp_status run_trial(const hbp__epoch *epoch, hbp__trial *out)
{
    hbp_fill_options fill;
    hbp__epoch_fill_options(&epoch->options, &fill);
    double vision_ns[HBP_MAX_GROUPS];
    hbp__epoch_vision_ns(epoch, out->groups, vision_ns);
    hbp_status status = hbp__epoch_fill(epoch, epoch->lengths, out->groups, &fill, &out->packs);
    if (status >= 0)
        status = hbp__packs_score(epoch->context, out->packs, out->groups, vision_ns,
                                  epoch->cost->terms.step_ns, &out->ns);
    if (status < 0)
        hbp__trial_close(out);
    return status;
}

/* Runs one more hierarchy, takes its groups and keeps the better of the two; one that cannot be filled is no
 * failure. */
static hbp_status challenge_trial(const hbp__epoch *epoch, hbp_groups *groups, hbp__trial *best)
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
static hbp_status try_other_groups(const hbp__epoch *epoch, hbp_groups_options *options,
                                   const hbp_groups *table, hbp__trial *best)
{
    int64_t tries = hbp__min_i64(table->candidates, HBP__TRY_FILLED / epoch->lengths->count);
    tries = hbp__min_i64(tries, HBP__TRY_HIERARCHIES);
    hbp_groups *groups = NULL;
    for (int64_t i = 1; i < tries; i++) {
        HBP__TRY(hbp__groups_candidate(epoch->context, epoch->cost, table, i, &groups));
        HBP__TRY(challenge_trial(epoch, groups, best));
    }
    options->method = hbp__groups_name(HBP__GROUPS_HBP);
    options->tokens_per_step = table->tokens_per_step;
    hbp_status status = hbp__epoch_plan_groups(epoch, options, &groups);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    return challenge_trial(epoch, groups, best);
}

/* The groups of these options with the least time; *is_planned whether there are groups, filled or not. */
static hbp_status choose_trial(const hbp__epoch *epoch, hbp_groups_options *options, hbp__trial *best,
                               int *is_planned)
{
    hbp_groups *table = NULL;
    HBP__TRY(hbp__epoch_plan_groups(epoch, options, &table));
    *is_planned = 1;
    hbp_status status = hbp__groups_candidate(epoch->context, epoch->cost, table, 0, &best->groups);
    if (status >= 0)
        status = run_trial(epoch, best);
    if (status >= 0 && hbp__epoch_method(epoch->options.method) != HBP__EPOCH_HBP &&
        epoch->lengths->count <= HBP__TRY_SAMPLES) {
        status = try_other_groups(epoch, options, table, best);
        if (status < 0)
            hbp__trial_close(best);
    }
    hbp_groups_free(table);
    return status;
}

hbp_status hbp__epoch_choose(const hbp__epoch *epoch, hbp__trial *best)
{
    const hbp_epoch_options *o = &epoch->options;
    if (epoch->groups) {
        hbp_fill_options fill;
        hbp__epoch_fill_options(o, &fill);
        return hbp__epoch_fill(epoch, epoch->lengths, epoch->groups, &fill, &best->packs);
    }
    hbp_groups_options options;
    hbp__epoch_groups_options(o, &options);
    int is_planned = 0;
    hbp_status status = choose_trial(epoch, &options, best, &is_planned);
    if (status != HBP_E_INFEASIBLE || !is_planned ||
        !(o->sequence_multiple_per_sp || o->pack_multiple_per_sp))
        return status;
    /* A fill pads by the widest degree, which is not known before: lengths that hold it whichever that is. */
    hbp__forgive(epoch->context);
    hbp__epoch_widest_options(epoch, &options);
    return choose_trial(epoch, &options, best, &is_planned);
}

hbp_status hbp__epoch_choose_groups(hbp__epoch *epoch, hbp_groups **chosen)
{
    hbp_groups_options options;
    if (epoch->groups)
        return HBP_OK;
    hbp__epoch_groups_options(&epoch->options, &options);
    HBP__TRY(hbp__epoch_plan_groups(epoch, &options, chosen));
    epoch->groups = *chosen;
    return HBP_OK;
}

/* Groups for a threshold or a number of tokens alone. Steps planned one by one may keep to tokens, caps,
 * vision units and padding by degree that no groups keep to: those that memory alone allows do then. */
static hbp_status plan_guiding_groups(const hbp__epoch *epoch, hbp_groups **groups)
{
    hbp_groups_options options;
    hbp__epoch_groups_options(&epoch->options, &options);
    hbp_status status = hbp__epoch_plan_groups(epoch, &options, groups);
    if (status != HBP_E_INFEASIBLE && status != HBP_E_INVALID)
        return status;
    hbp__forgive(epoch->context);
    hbp_cost cost = *epoch->cost;
    cost.tokens_per_rank = options.tokens_per_rank = 0;
    options.tokens_per_step = options.max_pack_length = 0;
    options.sequence_multiple = epoch->options.sequence_multiple;
    options.pack_multiple = epoch->options.pack_multiple;
    return hbp__groups_choose(epoch->context, epoch->lengths, &cost, &options, groups);
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
