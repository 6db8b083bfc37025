/* Steps in which a rank is idle, planned anew: groups fill their last micro-batches with padding packs, and
 * the step planner spreads samples instead. The samples of a step stay. */
#include "epoch/mend.h"
#include "base/checked.h"
#include "base/scratch.h"
#include "data/lengths/lengths_subset.h"
#include "data/plan/plan.h"
#include "epoch/batches.h"
#include "epoch/join.h"
#include "epoch/price.h"
#include "epoch/tuning.h"
#include "step/respread.h"

typedef struct mending {
    const hbp__epoch *epoch;
    hbp__epoch planned; /* the same with the effort at which steps are planned anew */
    const hbp_plan *plan;
    int64_t count;   /* steps to be planned anew */
    int64_t *step;   /* [count] ascending */
    int64_t *first;  /* [count + 1] into piece */
    uint32_t *piece; /* their samples */
    hbp_plan **anew; /* [count] NULL where the old one stays */
    hbp_plan **part; /* [2 count + 2] the plan in pieces, and what it left over */
    int64_t parts;
} mending;

static int64_t padding_packs_of(const hbp_plan *plan, int64_t step)
{
    int64_t padding_packs = 0, end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    for (int64_t p = plan->micro_batch_offsets[plan->step_offsets[step]]; p < end; p++)
        padding_packs += plan->pack_offsets[p] == plan->pack_offsets[p + 1];
    return padding_packs;
}

static int64_t first_sample(const hbp_plan *plan, int64_t step)
{
    return plan->pack_offsets[plan->micro_batch_offsets[plan->step_offsets[step]]];
}

static hbp_status take_mending(mending *m, int64_t *room)
{
    const hbp_plan *plan = m->plan;
    hbp_context *context = m->epoch->context;
    int64_t samples = 0;
    uint32_t *piece;
    m->step = hbp__take(context, (uint64_t)plan->steps, sizeof *m->step);
    HBP__TRY(hbp__scratch_check(context, "the steps to be mended"));
    for (int64_t s = 0; s < plan->steps; s++)
        if (padding_packs_of(plan, s) && samples + plan->step_samples[s] <= *room) {
            m->step[m->count++] = s;
            samples += plan->step_samples[s];
        }
    uint64_t rows = (uint64_t)m->count;
    m->first = hbp__take_zero(context, rows + 1, sizeof *m->first);
    m->piece = hbp__take(context, (uint64_t)samples, sizeof *m->piece);
    m->anew = hbp__take_zero(context, rows, sizeof *m->anew);
    m->part = hbp__take_zero(context, 2 * rows + 2, sizeof *m->part);
    HBP__TRY(hbp__scratch_check(context, "the steps to be mended"));
    if (!m->count)
        return HBP_OK;
    *room -= samples;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(hbp__epoch_pieces(m->epoch, plan, &piece));
    for (int64_t k = 0, at = 0; k < m->count; k++) {
        int64_t end = first_sample(plan, m->step[k]) + plan->step_samples[m->step[k]];
        for (int64_t i = first_sample(plan, m->step[k]); i < end; i++)
            m->piece[at++] = piece[i];
        m->first[k + 1] = at;
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static void free_mending(mending *m)
{
    for (int64_t k = 0; k < m->count; k++)
        hbp_plan_free(m->anew[k]);
    for (int64_t i = 0; i < 2 * m->count + 2; i++)
        hbp_plan_free(m->part[i]);
}

/* Keeps the better of the plans so far and *other, which is consumed: fewer padding packs, then shorter; but
 * none that takes more than a hundredth longer than the step did. */
static void keep_better(const mending *m, int64_t k, hbp_plan **other)
{
    const hbp_plan *plan = m->plan, *known = m->anew[k];
    int64_t s = m->step[k], ns = known ? known->step_ns[0] : plan->step_ns[s];
    int64_t padding_packs = known ? padding_packs_of(known, 0) : padding_packs_of(plan, s),
            own = *other ? padding_packs_of(*other, 0) : 0;
    /* With drop_last, steps of a mixed layout hold as many micro-batches each. */
    int fits = *other && (!m->epoch->options.drop_last ||
                          (*other)->micro_batches == plan->step_offsets[s + 1] - plan->step_offsets[s]);
    int is_better = fits && (*other)->step_ns[0] <= plan->step_ns[s] + plan->step_ns[s] / HBP__MEND_PART &&
                    (own < padding_packs || (own == padding_packs && (*other)->step_ns[0] < ns));
    hbp_plan *worse = is_better ? m->anew[k] : *other;
    if (is_better)
        m->anew[k] = *other;
    hbp_plan_free(worse);
    *other = NULL;
}

/* Spreads the step's own packs, and plans it anew. */
static hbp_status mend_step(mending *m, const hbp__batches *batches, int64_t k)
{
    const hbp__epoch *epoch = m->epoch;
    hbp_lengths *lengths = NULL;
    hbp_plan *other = NULL;
    hbp_step_options options;
    hbp__epoch_step_options(&epoch->options, &options);
    HBP__TRY(hbp__lengths_subset(epoch->context, epoch->lengths, m->piece + m->first[k],
                                 m->first[k + 1] - m->first[k], &lengths));
    hbp_status status =
        hbp__step_respread(epoch->context, lengths, epoch->cost, &options, m->plan, m->step[k], &other);
    hbp_lengths_free(lengths);
    HBP__TRY(status);
    keep_better(m, k, &other);
    int64_t mark = hbp__scratch_mark(epoch->context);
    status = hbp__leave(epoch->context, mark,
                        hbp__batches_plan_step(&m->planned, epoch->context, batches, k, &other));
    if (status == HBP_E_INFEASIBLE) /* the step as it is stays */
        return hbp__forgive(epoch->context);
    HBP__TRY(status);
    keep_better(m, k, &other);
    return HBP_OK;
}

static hbp_status plan_steps_anew(mending *m, int *any)
{
    hbp__batches batches = {.steps = m->count, .first = m->first, .sample = m->piece};
    int64_t ns = 0;
    for (int64_t k = 0; k < m->count; k++)
        ns = hbp__add_saturating(ns, m->plan->step_ns[m->step[k]]);
    m->planned = *m->epoch;
    batches.how = hbp__price_choose(&m->planned, m->count, m->first[m->count], ns);
    *any = 0;
    for (int64_t k = 0; k < m->count; k++) {
        HBP__TRY(mend_step(m, &batches, k));
        *any |= m->anew[k] != NULL;
    }
    return HBP_OK;
}

static hbp_status add_slice(mending *m, int64_t first, int64_t end)
{
    if (first == end)
        return HBP_OK;
    hbp_plan **part = &m->part[m->parts];
    HBP__TRY(hbp__plan_slice(m->epoch->context, m->plan, first, end - first, part));
    m->parts++;
    return HBP_OK;
}

/* What drop_last left over: joined plans list what the lengths dropped by themselves. */
static hbp_status add_left_over(mending *m)
{
    const hbp_plan *plan = m->plan;
    int64_t first = m->epoch->lengths->dropped, left = plan->dropped - first;
    if (left <= 0)
        return HBP_OK;
    hbp_plan *rest = hbp__plan_new(&m->epoch->context->memory, 0, 0, 0, 0, left,
                                   plan->dropped_tokens ? HBP__PLAN_PIECES : 0);
    if (!rest)
        return hbp__fail_memory(m->epoch->context, "the samples left over");
    for (int64_t i = 0; i < left; i++) {
        rest->dropped_ids[i] = plan->dropped_ids[first + i];
        rest->dropped_reasons[i] = plan->dropped_reasons[first + i];
        if (!plan->dropped_tokens)
            continue;
        rest->dropped_first_tokens[i] = plan->dropped_first_tokens[first + i];
        rest->dropped_tokens[i] = plan->dropped_tokens[first + i];
    }
    m->part[m->parts++] = rest;
    return HBP_OK;
}

static hbp_status join_mended(mending *m, hbp_plan **out)
{
    int64_t at = 0;
    for (int64_t k = 0; k < m->count; k++) {
        if (!m->anew[k])
            continue;
        HBP__TRY(add_slice(m, at, m->step[k]));
        m->part[m->parts++] = m->anew[k];
        m->anew[k] = NULL;
        at = m->step[k] + 1;
    }
    HBP__TRY(add_slice(m, at, m->plan->steps));
    HBP__TRY(add_left_over(m));
    HBP__TRY(hbp__plan_join(m->epoch->context, m->part, m->parts, m->epoch->lengths, out));
    return hbp__epoch_seal(m->epoch, out);
}

hbp_status hbp__epoch_mend(const hbp__epoch *epoch, int64_t *room, hbp_plan **plan)
{
    mending m = {.epoch = epoch, .plan = *plan};
    hbp_plan *mended = NULL;
    int any = 0;
    if (epoch->options.groups || epoch->options.modality_order)
        return hbp__epoch_share(epoch, *plan);
    int64_t mark = hbp__scratch_mark(epoch->context);
    HBP__TRY(take_mending(&m, room));
    hbp_status status = plan_steps_anew(&m, &any);
    if (status >= 0 && any)
        status = join_mended(&m, &mended);
    free_mending(&m);
    hbp__scratch_release(epoch->context, mark);
    if (status < 0 || !mended)
        return status < 0 ? status : HBP_OK;
    mended->bound_ns = (*plan)->bound_ns;
    mended->free_bound_ns = (*plan)->free_bound_ns;
    mended->composition = (*plan)->composition;
    mended->tokens_per_step = (*plan)->tokens_per_step;
    mended->hierarchy_ns = (*plan)->hierarchy_ns;
    mended->mixture_ns = (*plan)->mixture_ns;
    hbp_plan_free(*plan);
    *plan = mended;
    return HBP_OK;
}
