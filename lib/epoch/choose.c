#include "epoch/choose.h"

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "cost/cost.h"
#include "epoch/tuning.h"
#include "epoch/vision.h"
#include "pack/fill/fill.h"
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

/* A hierarchy that is filled but, where filling.saving is above 0, for the search for fewer packs. */
typedef struct contender {
    hbp_groups *groups;
    hbp__filling filling;
    int64_t ns;
    int64_t least_ns; /* what it may come to once searched; an estimate */
} contender;

/* Those that are compared: of the table, and the published one. */
enum { MOST_CONTENDERS = HBP__TRY_HIERARCHIES + 1 };

static void contender_close(contender *c)
{
    hbp_groups_free(c->groups);
    hbp_packs_free(c->filling.packs);
}

static hbp_status contender_score(const hbp__epoch *epoch, contender *c)
{
    double vision_ns[HBP_MAX_GROUPS];
    hbp__epoch_vision_ns(epoch, c->groups, vision_ns);
    return hbp__packs_score(epoch->context, c->filling.packs, c->groups, vision_ns,
                            epoch->cost->terms.step_ns, &c->ns, &c->least_ns);
}

/* Takes groups and fills them, to be better than a rival where there is one. */
static hbp_status contender_open(const hbp__epoch *epoch, hbp_groups *groups, const hbp__rival *rival,
                                 contender *c)
{
    hbp_fill_options fill;
    hbp__epoch_fill_options(&epoch->options, &fill);
    *c = (contender){.groups = groups};
    hbp_status status = hbp__epoch_fill_begin(epoch, epoch->lengths, groups, &fill, rival, &c->filling);
    if (status >= 0)
        status = contender_score(epoch, c);
    if (status < 0)
        contender_close(c);
    return status;
}

static hbp_status contender_search(const hbp__epoch *epoch, contender *c)
{
    HBP__TRY(hbp__fill_search(epoch->context, epoch->lengths, c->groups, &c->filling));
    return contender_score(epoch, c);
}

/* The contender that takes least as it is, the first of those that take as long. */
static int64_t find_best(const contender *all, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (all[i].ns < all[best].ns)
            best = i;
    return best;
}

/* One more hierarchy, whose groups it takes; one that cannot be filled is no failure, and one that can no
 * longer be the best is not kept. */
static hbp_status add_contender(const hbp__epoch *epoch, hbp_groups *groups, contender *all, int64_t *count)
{
    contender *c = &all[*count];
    const hbp__rival rival = {all[find_best(all, *count)].ns, epoch->cost->terms.step_ns};
    const hbp_status status = contender_open(epoch, groups, &rival, c);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    if (c->filling.saving <= 0 && rival.ns <= c->ns)
        contender_close(c);
    else
        ++*count;
    return HBP_OK;
}

/* Fills the first hierarchies of the table, which stays with `table`, and the published one. */
static hbp_status add_other_groups(const hbp__epoch *epoch, hbp_groups_options *options,
                                   const hbp_groups *table, contender *all, int64_t *count)
{
    int64_t tries = hbp__min_i64(table->candidates, HBP__TRY_FILLED / epoch->lengths->count);
    tries = hbp__min_i64(tries, HBP__TRY_HIERARCHIES);
    hbp_groups *groups = NULL;
    for (int64_t i = 1; i < tries; i++) {
        HBP__TRY(hbp__groups_candidate(epoch->context, epoch->cost, table, i, &groups));
        HBP__TRY(add_contender(epoch, groups, all, count));
    }
    options->method = hbp__groups_name(HBP__GROUPS_HBP);
    options->tokens_per_step = table->tokens_per_step;
    hbp_status status = hbp__epoch_plan_groups(epoch, options, &groups);
    if (status == HBP_E_INFEASIBLE)
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    return add_contender(epoch, groups, all, count);
}

/* The one that a search may bring lowest, -1 when all are searched. */
static int64_t find_promising(const contender *all, int64_t count)
{
    int64_t promising = -1;
    for (int64_t i = 0; i < count; i++)
        if (all[i].filling.saving > 0 && (promising < 0 || all[i].least_ns < all[promising].least_ns))
            promising = i;
    return promising;
}

/* Searches the most promising contender, as long as it may come out enough below the best. */
static hbp_status settle_contenders(const hbp__epoch *epoch, contender *all, int64_t count, int64_t *best)
{
    for (;;) {
        const int64_t next = find_promising(all, count);
        *best = find_best(all, count);
        const int64_t best_ns = all[*best].ns;
        if (next < 0 || all[next].least_ns >= best_ns - best_ns / HBP__TRY_WORTH)
            return HBP_OK;
        HBP__TRY(contender_search(epoch, &all[next]));
    }
}

/* The groups of these options with the least time; *is_planned whether there are groups, filled or not. */
static hbp_status choose_trial(const hbp__epoch *epoch, hbp_groups_options *options, hbp__trial *best,
                               int *is_planned)
{
    hbp_groups *table = NULL, *first = NULL;
    contender all[MOST_CONTENDERS];
    int64_t count = 0, winner = 0;
    HBP__TRY(hbp__epoch_plan_groups(epoch, options, &table));
    *is_planned = 1;
    hbp_status status = hbp__groups_candidate(epoch->context, epoch->cost, table, 0, &first);
    if (status >= 0) {
        status = contender_open(epoch, first, NULL, &all[0]);
        count = status >= 0;
    }
    if (status >= 0 && hbp__epoch_method(epoch->options.method) != HBP__EPOCH_HBP &&
        epoch->lengths->count <= HBP__TRY_SAMPLES)
        status = add_other_groups(epoch, options, table, all, &count);
    if (status >= 0)
        status = settle_contenders(epoch, all, count, &winner);
    if (status >= 0) {
        *best = (hbp__trial){all[winner].groups, all[winner].filling.packs, all[winner].ns};
        all[winner] = (contender){.groups = NULL};
    }
    for (int64_t i = 0; i < count; i++)
        contender_close(&all[i]);
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
