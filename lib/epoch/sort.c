/* The hierarchy where no groups keep to the tokens of a step: a micro-batch of the longest samples, one on
 * every SP group, would hold more.
 *
 * A step lasts at least as long as its longest sample alone. Samples too long for groups are put into as few
 * steps as hold them, sorted by length: the sum of what steps wait for is then near the least that there is
 * (docs: bound, steps of at most T tokens). Each of these steps is planned by itself, with shorter samples in
 * what room it has. The rest has groups, or is sorted as well where they do not keep to other options. Where
 * that is soon done all are sorted, too, and the faster of both plans is kept. Complexity: that of planning
 * the steps. Oracle: every spread of few samples over steps (tests/epoch/test_sort.c). */
#include "base/checked.h"
#include "cost/point.h"
#include "data/lengths/lengths_subset.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/choose.h"
#include "epoch/hierarchy.h"
#include "epoch/price.h"
#include "epoch/stratify.h"
#include "epoch/tuning.h"
#include "epoch/weigh.h"

/* Plans batches, whose steps take about `ns`. */
static hbp_status plan_batches(const hbp__epoch *epoch, hbp__batches *b, int64_t ns, hbp_plan **out)
{
    hbp__epoch own = *epoch;
    b->how = hbp__price_choose(&own, b->steps, b->first[b->steps], ns);
    return hbp__batches_plan(&own, b, out);
}

/* All samples sorted. */
static hbp_status sort_all(const hbp__epoch *epoch, int64_t ns, hbp_plan **out)
{
    hbp__batches b = {.steps = 0};
    int64_t shortest = INT64_MAX;
    if (epoch->options.curriculum_steps)
        HBP__TRY(hbp__epoch_shortest(epoch, &shortest));
    hbp_status status = hbp__batches_sort(epoch, shortest, 0, &b);
    if (status >= 0)
        status = plan_batches(epoch, &b, ns, out);
    hbp__batches_close(&b);
    return status;
}

/* The longest sample of which a micro-batch, or as many as are asked for, is no more than a step holds. */
static int64_t longest_in_groups(const hbp__epoch *epoch)
{
    const hbp_epoch_options *o = &epoch->options;
    const hbp_cost *cost = epoch->cost;
    const int64_t batches = hbp__max_i64(1, o->micro_batch_multiple);
    int64_t longest = 0;
    for (int32_t row = 0; row < cost->terms.degrees; row++) {
        const int64_t most = hbp__max_i64(hbp__cost_capacity(cost, row, 0, 0),
                                          hbp__cost_capacity(cost, row, cost->terms.layers, 0));
        const int64_t share = o->tokens_per_step / batches / (cost->terms.ranks / cost->degree[row]);
        longest = hbp__max_i64(longest, hbp__min_i64(most, share));
    }
    const int64_t multiple = hbp__max_i64(1, hbp__max_i64(o->pack_multiple, o->sequence_multiple));
    return longest - longest % multiple;
}

/* Steps of the samples longer than `longest`, and what they leave: both empty where either has no sample. */
static hbp_status part_longs(const hbp__epoch *epoch, int64_t longest, int64_t ns, hbp__parted *parted)
{
    const int64_t count = epoch->lengths->count;
    hbp__epoch own = *epoch;
    hbp__batches b = {.steps = 0};
    hbp_lengths *longs = NULL;
    hbp_status status = hbp__batches_sort(epoch, INT64_MAX, longest, &b);
    const int64_t taken = status >= 0 ? b.first[b.steps] : 0;
    if (taken && taken < count) {
        status = hbp__lengths_subset(epoch->context, epoch->lengths, b.sample, taken, &longs);
        if (status >= 0)
            status = hbp__lengths_subset(epoch->context, epoch->lengths, b.sample + taken, count - taken,
                                         &parted->rest);
        for (int64_t i = 0; i < taken; i++)
            b.sample[i] = (uint32_t)i; /* as the subset has them */
        own.lengths = longs;
        if (status >= 0)
            status = plan_batches(&own, &b, ns, &parted->longs);
    }
    hbp_lengths_free(longs);
    hbp__batches_close(&b);
    return status;
}

/* The samples too long for groups sorted, the others in packs of groups. */
static hbp_status sort_longs(const hbp__epoch *epoch, int64_t ns, hbp_plan **out)
{
    hbp__parted parted = {NULL, NULL};
    hbp__epoch own = *epoch;
    hbp_plan *rest = NULL;
    const int64_t longest = longest_in_groups(epoch);
    hbp_status status = part_longs(epoch, longest, ns, &parted);
    if (status >= 0 && parted.rest) {
        own.lengths = parted.rest;
        status = hbp__epoch_plan_hierarchy(&own, &rest);
        if (status == HBP_E_INFEASIBLE) {
            hbp__forgive(epoch->context);
            status = sort_all(&own, ns, &rest);
        }
    }
    if (rest)
        status = hbp__parted_join(epoch, &parted, rest, out);
    hbp_plan_free(rest);
    hbp__parted_close(&parted);
    return status;
}

static int is_refusal(hbp_status status)
{
    return status == HBP_E_INFEASIBLE || status == HBP_E_INVALID;
}

hbp_status hbp__epoch_sort(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t bound_ns, hbp_plan **out)
{
    hbp__epoch own = *epoch;
    hbp_plan *all = NULL;
    own.options.tokens_per_step = tokens_per_step;
    hbp_status status = own.options.curriculum_steps ? HBP_OK : sort_longs(&own, bound_ns, out);
    if (is_refusal(status))
        status = hbp__forgive(epoch->context);
    if (status >= 0 && (!*out || hbp__price_of_search(&own, tokens_per_step) <= HBP__STEPS_FREE_NS))
        status = sort_all(&own, bound_ns, &all);
    if (is_refusal(status))
        status = hbp__forgive(epoch->context);
    hbp__plan_keep_faster(out, &all);
    return status;
}
