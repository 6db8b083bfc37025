/* Slices of a schedule of tasks: what runs, where, when. */
#include "base/checked.h"
#include "base/scratch.h"
#include "data/graph/graph_check.h"
#include "simulate/tasks/task_check.h"

#define TICK_RANKS (1 << 18)

#define NONE (-1)

/* How far the schedule has come, wave after wave. */
typedef struct progress {
    int32_t *done;       /* [MetaOps] operators that have run */
    int32_t *slice;      /* [MetaOps] the last slice of it; NONE */
    int32_t *rank_slice; /* [ranks] the last slice there; NONE */
    int64_t *busy_ns;    /* [ranks] */
    int64_t visited;     /* ranks of slices since the last tick */
} progress;

static hbp_status take_progress(const hbp__task_checking *c, progress *p)
{
    uint64_t meta_ops = (uint64_t)c->meta.count, ranks = (uint64_t)c->gpus;
    p->done = hbp__take_zero(c->context, meta_ops, sizeof *p->done);
    p->slice = hbp__take(c->context, meta_ops, sizeof *p->slice);
    p->rank_slice = hbp__take(c->context, ranks, sizeof *p->rank_slice);
    p->busy_ns = hbp__take_zero(c->context, ranks, sizeof *p->busy_ns);
    HBP__TRY(hbp__scratch_check(c->context, "the check of slices"));
    for (uint64_t m = 0; m < meta_ops; m++)
        p->slice[m] = NONE;
    for (uint64_t r = 0; r < ranks; r++)
        p->rank_slice[r] = NONE;
    return HBP_OK;
}

/* The slice by itself: its MetaOp, GPUs and time. */
static hbp_status check_slice(const hbp__task_checking *c, int64_t i)
{
    const hbp_task_schedule *s = c->schedule;
    int32_t m = s->slice_meta_ops[i], gpus = s->slice_gpus[i];
    int64_t count = s->slice_operators[i], right;
    const hbp__operator *o = hbp__meta_operator(c->graph, &c->meta, m);
    const hbp__profile profile = hbp__graph_profile(c->graph, o->profile);
    if (!hbp__operator_suits(o, &profile, gpus))
        return hbp__fail(c->context, HBP_E_INVALID,
                         "slice %lld: MetaOp %d ('%.100s') may not run on %d of %d GPUs", (long long)i,
                         (int)m, o->name, (int)gpus, (int)c->gpus);
    /* A size no faster than a smaller one takes that one's time. */
    const hbp__curve *curve = hbp__meta_curve(&c->scaling, m);
    int32_t size = hbp__curve_floor(curve, gpus);
    if (size < 0 || !hbp__mul_i64(count, curve->time_ns[size], &right) ||
        !hbp__add_i64(s->slice_starts[i], right, &right) || s->slice_ends[i] != right)
        return hbp__fail(
            c->context, HBP_E_INVALID,
            "slice %lld: %lld ns to %lld ns for %lld operators of MetaOp %d; one takes %lld ns on "
            "%d GPUs",
            (long long)i, (long long)s->slice_starts[i], (long long)s->slice_ends[i], (long long)count,
            (int)m, (long long)(size < 0 ? 0 : curve->time_ns[size]), (int)gpus);
    return HBP_OK;
}

/* What the slice continues: its MetaOp, in order and one slice a wave. */
static hbp_status check_turn(const hbp__task_checking *c, const progress *p, int64_t i, int64_t wave)
{
    const hbp_task_schedule *s = c->schedule;
    int32_t m = s->slice_meta_ops[i], before = p->slice[m];
    if (before >= s->wave_offsets[wave])
        return hbp__fail(c->context, HBP_E_INVALID, "wave %lld runs MetaOp %d twice, in slices %d and %lld",
                         (long long)wave, (int)m, (int)before, (long long)i);
    if (s->slice_firsts[i] < p->done[m])
        return hbp__fail(c->context, HBP_E_INVALID,
                         "slice %lld: operator %d of MetaOp %d ran before, in slice %d", (long long)i,
                         (int)s->slice_firsts[i], (int)m, (int)before);
    if (s->slice_firsts[i] > p->done[m])
        return hbp__fail(c->context, HBP_E_INVALID,
                         "slice %lld starts with operator %d of MetaOp %d; operator %d has not run",
                         (long long)i, (int)s->slice_firsts[i], (int)m, (int)p->done[m]);
    if (before != NONE && s->slice_starts[i] < s->slice_ends[before])
        return hbp__fail(c->context, HBP_E_INVALID,
                         "slice %lld of MetaOp %d starts at %lld ns; slice %d before it ends at %lld ns",
                         (long long)i, (int)m, (long long)s->slice_starts[i], (int)before,
                         (long long)s->slice_ends[before]);
    return HBP_OK;
}

/* What the first slice of a MetaOp needs: all of those before, in earlier waves and ended. */
static hbp_status check_inputs(const hbp__task_checking *c, const progress *p, int64_t i, int64_t wave)
{
    const hbp_task_schedule *s = c->schedule;
    int32_t m = s->slice_meta_ops[i];
    for (int64_t e = c->meta.in_first[m]; e < c->meta.in_first[m + 1] && s->slice_firsts[i] == 0; e++) {
        int32_t from = c->meta.edges[c->meta.in_edges[e]].from, last = p->slice[from];
        if (p->done[from] < c->meta.meta_op[from].count || last >= s->wave_offsets[wave])
            return hbp__fail(c->context, HBP_E_INVALID,
                             "slice %lld of MetaOp %d needs MetaOp %d, which has not run in the waves before "
                             "wave %lld",
                             (long long)i, (int)m, (int)from, (long long)wave);
        if (s->slice_starts[i] < s->slice_ends[last])
            return hbp__fail(c->context, HBP_E_INVALID,
                             "slice %lld of MetaOp %d starts at %lld ns; MetaOp %d, which it needs, ends at "
                             "%lld ns",
                             (long long)i, (int)m, (long long)s->slice_starts[i], (int)from,
                             (long long)s->slice_ends[last]);
    }
    return HBP_OK;
}

static hbp_status check_ranks(const hbp__task_checking *c, progress *p, int64_t i, int64_t wave)
{
    const hbp_task_schedule *s = c->schedule;
    int32_t group = s->slice_groups[i];
    for (int64_t j = s->group_offsets[group]; j < s->group_offsets[group + 1]; j++) {
        int32_t rank = s->group_ranks[j], before = p->rank_slice[rank];
        if (before >= s->wave_offsets[wave])
            return hbp__fail(c->context, HBP_E_INVALID, "wave %lld runs slices %d and %lld on rank %d",
                             (long long)wave, (int)before, (long long)i, (int)rank);
        if (before != NONE && s->slice_starts[i] < s->slice_ends[before])
            return hbp__fail(
                c->context, HBP_E_INVALID,
                "rank %d: slice %lld starts at %lld ns; slice %d of an earlier wave ends at %lld "
                "ns",
                (int)rank, (long long)i, (long long)s->slice_starts[i], (int)before,
                (long long)s->slice_ends[before]);
        p->rank_slice[rank] = (int32_t)i;
        p->busy_ns[rank] = hbp__add_saturating(p->busy_ns[rank], s->slice_ends[i] - s->slice_starts[i]);
    }
    p->visited += s->slice_gpus[i];
    return HBP_OK;
}

static hbp_status check_wave(const hbp__task_checking *c, progress *p, int64_t wave)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t i = s->wave_offsets[wave]; i < s->wave_offsets[wave + 1]; i++) {
        int32_t m = s->slice_meta_ops[i];
        HBP__TRY(check_slice(c, i));
        HBP__TRY(check_turn(c, p, i, wave));
        HBP__TRY(check_inputs(c, p, i, wave));
        HBP__TRY(check_ranks(c, p, i, wave));
        p->done[m] += s->slice_operators[i];
        p->slice[m] = (int32_t)i;
    }
    if (p->visited >= TICK_RANKS) {
        p->visited = 0;
        HBP__TRY(hbp__tick(c->context, "validate", wave, s->waves));
    }
    return HBP_OK;
}

static hbp_status check_all(const hbp__task_checking *c, progress *p)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t w = 0; w < s->waves; w++)
        HBP__TRY(check_wave(c, p, w));
    for (int32_t m = 0; m < c->meta.count; m++)
        if (p->done[m] < c->meta.meta_op[m].count)
            return hbp__fail(c->context, HBP_E_INVALID, "operator %d of MetaOp %d is in no slice",
                             (int)p->done[m], (int)m);
    for (int32_t r = 0; r < c->gpus; r++)
        if (s->rank_busy_ns[r] != p->busy_ns[r])
            return hbp__fail(c->context, HBP_E_INVALID,
                             "rank %d is busy for %lld ns; its slices take %lld ns", (int)r,
                             (long long)s->rank_busy_ns[r], (long long)p->busy_ns[r]);
    return HBP_OK;
}

hbp_status hbp__task_check_slices(const hbp__task_checking *c)
{
    progress p = {0};
    int64_t mark = hbp__scratch_mark(c->context);
    HBP__TRY(take_progress(c, &p));
    HBP__TRY(check_all(c, &p));
    hbp__scratch_release(c->context, mark);
    return HBP_OK;
}
