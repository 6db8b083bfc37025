/* Batches and windows in packs of the groups of the epoch, planned one after the other and joined. */
#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/join.h"
#include "epoch/mend.h"
#include "epoch/tuning.h"
#include "epoch/weigh.h"
#include "schedule/balance.h"
#include "schedule/modalities.h"

typedef struct planning {
    const hbp__epoch *epoch;
    const hbp__batches *batches;
    int one_step;
    int64_t planned; /* steps so far */
    int64_t room;    /* samples that may yet be mended */
    hbp_plan **part; /* [batches->steps], and the left-overs */
} planning;

/* A batch or window of `lengths` in packs of the groups; `seed` is its own. */
static hbp_status plan_group_window(planning *p, const hbp_lengths *lengths, uint64_t seed, hbp_plan **out)
{
    hbp__epoch window = *p->epoch;
    hbp_context *context = window.context;
    int is_mixed = hbp__epoch_mixes(&window) && !p->one_step;
    hbp_packs *packs = NULL;
    hbp_fill_options fill;
    hbp_balance_options balance;
    window.lengths = lengths;
    hbp__epoch_fill_options(&window.options, &fill);
    hbp__epoch_balance_options(&window, &balance);
    fill.seed = balance.seed = seed;
    balance.curriculum_steps = hbp__max_i64(0, balance.curriculum_steps - p->planned);
    hbp_status status = hbp__epoch_fill(&window, lengths, window.groups, &fill, &packs);
    if (status >= 0 && balance.modality_order)
        status = hbp__packs_even_modalities(context, window.groups, balance.seed, balance.epoch, packs);
    if (status >= 0 && is_mixed)
        status = hbp__epoch_mix(p->epoch, lengths, window.groups, packs, &fill, &balance, &p->room, out);
    else if (status >= 0)
        status = hbp__balance(context, packs, window.groups, window.cost, &balance, p->one_step, out);
    if (status >= 0 && !is_mixed && hbp__epoch_method(window.options.method) == HBP__EPOCH_SEARCH)
        status = hbp__epoch_mend(&window, &p->room, out);
    hbp_packs_free(packs);
    return status;
}

static hbp_status plan_part(planning *p, int64_t step)
{
    const hbp__epoch *epoch = p->epoch;
    /* Each draws for itself. */
    uint64_t seed = epoch->options.seed + (uint64_t)step * UINT64_C(0x9e3779b97f4a7c15);
    hbp_lengths *subset = NULL;
    hbp_status status = hbp__batches_subset(epoch, epoch->context, p->batches, step, &subset);
    if (status >= 0)
        status = plan_group_window(p, subset, seed, &p->part[step]);
    if (status >= 0)
        p->planned += p->part[step]->steps;
    hbp_lengths_free(subset);
    return status;
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

static hbp_status plan_parts(planning *p, hbp_plan **out)
{
    const hbp__epoch *epoch = p->epoch;
    int64_t parts = p->batches->steps;
    for (int64_t i = 0; i < parts; i++) {
        HBP__TRY(hbp__tick(epoch->context, "windows", i, parts));
        HBP__TRY(plan_part(p, i));
    }
    HBP__TRY(hbp__batches_join(epoch, p->batches, p->part, out));
    if (!p->one_step)
        (*out)->composition = composition_of(p);
    return hbp__epoch_seal(epoch, out);
}

hbp_status hbp__batches_plan_by_groups(const hbp__epoch *epoch, const hbp__batches *b, int one_step,
                                       hbp_plan **out)
{
    hbp_context *context = epoch->context;
    int64_t mark = hbp__scratch_mark(context);
    planning p = {epoch, b, one_step, 0, HBP__MEND_SAMPLES, NULL};
    p.part = hbp__take_zero(context, (uint64_t)b->steps + 1, sizeof *p.part);
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    hbp_status status = plan_parts(&p, out);
    for (int64_t i = 0; i <= b->steps; i++)
        hbp_plan_free(p.part[i]);
    return hbp__leave(context, mark, status);
}
