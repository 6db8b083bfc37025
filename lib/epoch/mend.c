/* Steps in which a rank is idle, planned anew: groups fill their last micro-batches with dummies, and the
 * step planner spreads samples instead. The samples of a step stay. */
#include "base/checked.h"
#include "data/lengths_subset.h"
#include "data/plan.h"
#include "epoch/batches.h"
#include "step/respread.h"

/* At most so many samples are planned anew: larger plans have few such steps for their size. */
#define MOST_SAMPLES (INT64_C(1) << 18)

/* A step may take one part in so many longer for the sake of fewer idle ranks. */
#define DEAR 100

typedef struct mending {
    const hbp__epoch *epoch;
    const hbp_plan *plan;
    int64_t count;   /* steps to be planned anew */
    int64_t *step;   /* [count] ascending */
    int64_t *first;  /* [count + 1] into piece */
    uint32_t *piece; /* their samples */
    hbp_plan **anew; /* [count] NULL where the old one stays */
    hbp_plan **part; /* [2 count + 1] the plan in pieces */
    int64_t parts;
} mending;

static int64_t dummies_of(const hbp_plan *plan, int64_t step)
{
    int64_t dummies = 0, end = plan->micro_batch_offsets[plan->step_offsets[step + 1]];
    for (int64_t p = plan->micro_batch_offsets[plan->step_offsets[step]]; p < end; p++)
        dummies += plan->pack_offsets[p] == plan->pack_offsets[p + 1];
    return dummies;
}

static int64_t first_sample(const hbp_plan *plan, int64_t step)
{
    return plan->pack_offsets[plan->micro_batch_offsets[plan->step_offsets[step]]];
}

/* The piece of each original sample; where a limit dropped some, pieces have other numbers. */
static hbp_status number_pieces(const hbp__epoch *epoch, uint32_t **piece_of)
{
    const hbp_lengths *lengths = epoch->lengths;
    int64_t samples = 0;
    *piece_of = NULL;
    if (!lengths->origin)
        return HBP_OK;
    for (int64_t i = 0; i < lengths->count; i++)
        samples = hbp__max_i64(samples, (int64_t)lengths->origin[i] + 1);
    *piece_of = hbp__new(&epoch->context->memory, (uint64_t)samples, sizeof **piece_of);
    if (!*piece_of)
        return hbp__fail_memory(epoch->context, "the steps to be mended");
    for (int64_t i = 0; i < lengths->count; i++)
        (*piece_of)[lengths->origin[i]] = (uint32_t)i;
    return HBP_OK;
}

static hbp_status open(mending *m)
{
    const hbp_plan *plan = m->plan;
    const hbp__memory *memory = &m->epoch->context->memory;
    int64_t samples = 0;
    uint32_t *piece_of;
    m->step = hbp__new(memory, (uint64_t)plan->steps, sizeof *m->step);
    if (!m->step)
        return hbp__fail_memory(m->epoch->context, "the steps to be mended");
    for (int64_t s = 0; s < plan->steps; s++)
        if (dummies_of(plan, s) && samples + plan->step_samples[s] <= MOST_SAMPLES) {
            m->step[m->count++] = s;
            samples += plan->step_samples[s];
        }
    uint64_t rows = (uint64_t)m->count;
    m->first = hbp__new_zero(memory, rows + 1, sizeof *m->first);
    m->piece = hbp__new(memory, (uint64_t)samples, sizeof *m->piece);
    m->anew = hbp__new_zero(memory, rows, sizeof *m->anew);
    m->part = hbp__new_zero(memory, 2 * rows + 1, sizeof *m->part);
    if (!m->first || !m->piece || !m->anew || !m->part)
        return hbp__fail_memory(m->epoch->context, "the steps to be mended");
    if (!m->count)
        return HBP_OK;
    HBP__TRY(number_pieces(m->epoch, &piece_of));
    for (int64_t k = 0, at = 0; k < m->count; k++) {
        int64_t end = first_sample(plan, m->step[k]) + plan->step_samples[m->step[k]];
        for (int64_t i = first_sample(plan, m->step[k]); i < end; i++)
            m->piece[at++] = piece_of ? piece_of[plan->sample_ids[i]] : (uint32_t)plan->sample_ids[i];
        m->first[k + 1] = at;
    }
    hbp__delete(memory, piece_of);
    return HBP_OK;
}

static void close(mending *m)
{
    const hbp__memory *memory = &m->epoch->context->memory;
    for (int64_t k = 0; m->anew && k < m->count; k++)
        hbp_plan_free(m->anew[k]);
    for (int64_t i = 0; m->part && i < 2 * m->count + 1; i++)
        hbp_plan_free(m->part[i]);
    hbp__delete(memory, m->part);
    hbp__delete(memory, m->anew);
    hbp__delete(memory, m->piece);
    hbp__delete(memory, m->first);
    hbp__delete(memory, m->step);
}

/* Keeps the better of the plans so far and *other, which is consumed: fewer dummies, then shorter; but none
 * that takes more than a hundredth longer than the step did. */
static void keep_better(const mending *m, int64_t k, hbp_plan **other)
{
    const hbp_plan *plan = m->plan, *known = m->anew[k];
    int64_t s = m->step[k], ns = known ? known->step_ns[0] : plan->step_ns[s];
    int64_t dummies = known ? dummies_of(known, 0) : dummies_of(plan, s),
            own = *other ? dummies_of(*other, 0) : 0;
    int is_better = *other && (*other)->step_ns[0] <= plan->step_ns[s] + plan->step_ns[s] / DEAR &&
                    (own < dummies || (own == dummies && (*other)->step_ns[0] < ns));
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
    status = hbp__batches_plan_step(epoch, epoch->context, batches, k, &other);
    if (status == HBP_E_INFEASIBLE) /* the step as it is stays */
        return hbp__enter(epoch->context);
    HBP__TRY(status);
    keep_better(m, k, &other);
    return HBP_OK;
}

static hbp_status plan_anew(mending *m, int *any)
{
    hbp__batches batches = {.steps = m->count, .first = m->first, .sample = m->piece};
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

static hbp_status join(mending *m, hbp_plan **out)
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
    HBP__TRY(hbp__plan_join(m->epoch->context, m->part, m->parts, m->epoch->lengths, out));
    hbp__epoch_seal(m->epoch, *out);
    return HBP_OK;
}

hbp_status hbp__epoch_mend(const hbp__epoch *epoch, hbp_plan **plan)
{
    mending m = {.epoch = epoch, .plan = *plan};
    hbp_plan *mended = NULL;
    int any = 0;
    if (!hbp__epoch_may_plan_steps(epoch) || epoch->lengths->first ||
        (*plan)->dropped > epoch->lengths->dropped)
        return HBP_OK;
    hbp_status status = open(&m);
    if (status >= 0)
        status = plan_anew(&m, &any);
    if (status >= 0 && any)
        status = join(&m, &mended);
    close(&m);
    if (status < 0 || !mended)
        return status < 0 ? status : HBP_OK;
    mended->bound_ns = (*plan)->bound_ns;
    mended->composition = (*plan)->composition;
    mended->tokens_per_step = (*plan)->tokens_per_step;
    mended->hierarchy_ns = (*plan)->hierarchy_ns;
    mended->mixture_ns = (*plan)->mixture_ns;
    hbp_plan_free(*plan);
    *plan = mended;
    return HBP_OK;
}
