/* A plan for every batch, and all of them joined. */
#include "base/checked.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "cost/plan_writer.h"
#include "data/lengths/lengths_subset.h"
#include "epoch/batches.h"
#include "schedule/balance.h"
#include "schedule/kinds.h"
#include "step/step.h"

typedef struct planning {
    const hbp__epoch *epoch;
    const hbp__batches *batches;
    int one_step;
    int64_t planned; /* steps so far, by groups */
    int64_t room;    /* samples that may yet be mended */
    hbp_plan **part; /* [batches->steps], and the left-overs */
} planning;

static hbp_status make_subset(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *b,
                              int64_t step, hbp_lengths **out)
{
    return hbp__lengths_subset(context, epoch->lengths, b->sample + b->first[step],
                               b->first[step + 1] - b->first[step], out);
}

hbp_status hbp__batches_plan_step(const hbp__epoch *epoch, hbp_context *context, const hbp__batches *b,
                                  int64_t step, hbp_plan **out)
{
    hbp_lengths *subset = NULL;
    hbp_step_options options;
    hbp__epoch_step_options(&epoch->options, &options);
    options.mode = epoch->step_mode;
    if (options.mode == HBP_STEP_HYBRID_CP || options.mode == HBP_STEP_DYNAMIC_CP)
        options.min_sp = epoch->options.min_sp;
    HBP__TRY(hbp__tick(context, "steps", step, b->steps));
    hbp_status status = make_subset(epoch, context, b, step, &subset);
    if (status >= 0)
        status =
            hbp__step_plan(context, subset, epoch->cost, &options, options.mode == HBP_STEP_DEFAULT, out);
    hbp_lengths_free(subset);
    return status;
}

static hbp_status plan_step(hbp_context *context, void *user, int64_t step)
{
    const planning *p = user;
    return hbp__batches_plan_step(p->epoch, context, p->batches, step, &p->part[step]);
}

/* A window where vision units count. */
static hbp_status plan_vision_window(planning *p, const hbp_lengths *lengths, uint64_t seed, hbp_plan **out)
{
    hbp__epoch window = *p->epoch;
    window.lengths = lengths;
    window.options.seed = seed;
    window.options.window_samples = 0;
    window.options.curriculum_steps = hbp__max_i64(0, window.options.curriculum_steps - p->planned);
    HBP__TRY(hbp__epoch_vision(&window, out));
    p->planned += (*out)->steps;
    return HBP_OK;
}

/* One batch by the groups of the epoch. */
static hbp_status plan_by_groups(planning *p, int64_t step)
{
    const hbp__epoch *epoch = p->epoch;
    hbp_context *context = epoch->context;
    hbp_fill_options fill;
    hbp_balance_options balance;
    hbp__epoch_fill_options(&epoch->options, &fill);
    hbp__epoch_balance_options(&epoch->options, &balance);
    /* Each draws for itself. */
    fill.seed = balance.seed = epoch->options.seed + (uint64_t)step * UINT64_C(0x9e3779b97f4a7c15);
    balance.curriculum_steps = hbp__max_i64(0, balance.curriculum_steps - p->planned);
    hbp_lengths *subset = NULL;
    hbp_packs *packs = NULL;
    hbp_status status = make_subset(epoch, context, p->batches, step, &subset);
    if (status >= 0 && hbp__epoch_counts_vision(epoch)) {
        status = plan_vision_window(p, subset, fill.seed, &p->part[step]);
        hbp_lengths_free(subset);
        return status;
    }
    if (status >= 0)
        status = hbp__epoch_fill(epoch, subset, epoch->groups, &fill, &packs);
    if (status >= 0 && balance.modality_order)
        status = hbp__packs_even_kinds(context, epoch->groups, balance.seed, balance.epoch, packs);
    if (status >= 0 && hbp__epoch_mixes(epoch) && !p->one_step)
        status =
            hbp__epoch_mix(epoch, subset, epoch->groups, packs, &fill, &balance, &p->room, &p->part[step]);
    else if (status >= 0)
        status =
            hbp__balance(context, packs, epoch->groups, epoch->cost, &balance, p->one_step, &p->part[step]);
    if (status >= 0 && epoch->options.mode == HBP_EPOCH_DEFAULT &&
        (p->one_step || !hbp__epoch_mixes(epoch))) {
        hbp__epoch window = *epoch;
        window.lengths = subset;
        status = hbp__epoch_mend(&window, &p->room, &p->part[step]);
    }
    if (status >= 0)
        p->planned += p->part[step]->steps;
    hbp_packs_free(packs);
    hbp_lengths_free(subset);
    return status;
}

/* What drop_last left over, as a plan of no steps that lists it. */
static hbp_status list_left_over(planning *p, int64_t *parts)
{
    const hbp__batches *b = p->batches;
    const hbp_lengths *lengths = p->epoch->lengths;
    int64_t first = b->first[b->steps], left = lengths->count - first;
    if (!left)
        return HBP_OK;
    hbp_plan *rest =
        hbp__plan_new(&p->epoch->context->memory, 0, 0, 0, 0, left, lengths->first ? HBP__PLAN_PIECES : 0);
    if (!rest)
        return hbp__fail_memory(p->epoch->context, "the samples left over");
    for (int64_t i = 0; i < left; i++)
        hbp__plan_write_drop(rest, i, lengths, b->sample[first + i], HBP_DROPPED_LEFTOVER);
    p->part[(*parts)++] = rest;
    return HBP_OK;
}

/* The sum of the steps' bounds: no way to run these very steps is faster. 0 when one is not known. */
static int64_t sum_of_bounds(const planning *p)
{
    int64_t sum = 0;
    for (int64_t s = 0; s < p->batches->steps; s++) {
        if (!p->part[s]->bound_ns)
            return 0;
        sum = hbp__add_saturating(sum, p->part[s]->bound_ns);
    }
    return sum;
}

/* What most steps of the windows are: each window takes what suits it. */
static int32_t composition_of(const planning *p)
{
    int64_t even = 0, all = 0;
    for (int64_t i = 0; i < p->batches->steps; i++) {
        all += p->part[i]->steps;
        int32_t own = p->part[i]->composition;
        even += own == HBP_COMPOSITION_STRATIFIED || own == HBP_COMPOSITION_RANDOM ? p->part[i]->steps : 0;
    }
    return 2 * even > all ? HBP_COMPOSITION_STRATIFIED : HBP_COMPOSITION_HIERARCHY;
}

static hbp_status plan_all(planning *p, int by_groups, hbp_plan **out)
{
    const hbp__epoch *epoch = p->epoch;
    hbp_context *context = epoch->context;
    int64_t parts = p->batches->steps;
    if (!by_groups)
        HBP__TRY(hbp__parallel(context, epoch->options.threads, parts, plan_step, p));
    for (int64_t i = 0; by_groups && i < parts; i++) {
        HBP__TRY(hbp__tick(context, "windows", i, parts));
        HBP__TRY(plan_by_groups(p, i));
    }
    HBP__TRY(list_left_over(p, &parts));
    HBP__TRY(hbp__plan_join(context, p->part, parts, epoch->lengths, out));
    if (!by_groups)
        (*out)->bound_ns = sum_of_bounds(p);
    else if (!p->one_step)
        (*out)->composition = composition_of(p);
    return hbp__epoch_seal(epoch, out);
}

static hbp_status plan_batches(const hbp__epoch *epoch, const hbp__batches *b, int by_groups, int one_step,
                               hbp_plan **out)
{
    hbp_context *context = epoch->context;
    int64_t mark = hbp__scratch_mark(context);
    planning p = {epoch, b, one_step, 0, HBP__MEND_SAMPLES, NULL};
    p.part = hbp__take_zero(context, (uint64_t)b->steps + 1, sizeof *p.part);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    hbp_status status = plan_all(&p, by_groups, out);
    for (int64_t i = 0; i <= b->steps; i++)
        hbp_plan_free(p.part[i]);
    return hbp__leave(context, mark, status);
}

hbp_status hbp__batches_plan(const hbp__epoch *epoch, const hbp__batches *b, hbp_plan **out)
{
    return plan_batches(epoch, b, 0, 1, out);
}

hbp_status hbp__batches_plan_by_groups(const hbp__epoch *epoch, const hbp__batches *b, int one_step,
                                       hbp_plan **out)
{
    return plan_batches(epoch, b, 1, one_step, out);
}
