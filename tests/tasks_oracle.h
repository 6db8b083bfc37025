/* The shortest schedule of a few operators, by trying every number of GPUs for each and every order: serial
 * schedule generation, each operator in turn as early as precedence and GPUs allow, reaches every active
 * schedule, and one of them is optimal. */
#ifndef HBP_TESTS_TASKS_ORACLE_H
#define HBP_TESTS_TASKS_ORACLE_H

#include "base/checked.h"
#include "cost/scaling.h"
#include "test.h"

enum { ORACLE_OPERATORS = 8 };

typedef struct oracle {
    int32_t count;
    int32_t gpus;
    const hbp__curve *curve[ORACLE_OPERATORS];
    uint32_t needs[ORACLE_OPERATORS]; /* bit o: operator o must have ended */
    int64_t tail[ORACLE_OPERATORS];   /* ns from its start to the end at best: the longest path behind it */
    int32_t used[ORACLE_OPERATORS];   /* GPUs; those done only */
    int64_t start[ORACLE_OPERATORS];
    int64_t end[ORACLE_OPERATORS];
    int64_t best;
    int32_t best_gpus[ORACLE_OPERATORS];
    int64_t best_start[ORACLE_OPERATORS];
} oracle;

/* Whether n GPUs are free in [start, end). GPUs in use rise only where some operator starts. */
static inline int oracle_fits(const oracle *o, uint32_t done, int32_t n, int64_t start, int64_t end)
{
    for (int32_t at = -1; at < o->count; at++) {
        if (at >= 0 && (!(done >> at & 1) || o->start[at] <= start || o->start[at] >= end))
            continue;
        int64_t time = at < 0 ? start : o->start[at];
        int32_t used = n;
        for (int32_t i = 0; i < o->count; i++)
            used += (done >> i & 1) && o->start[i] <= time && time < o->end[i] ? o->used[i] : 0;
        if (used > o->gpus)
            return 0;
    }
    return 1;
}

/* Earliest start of `ns` on n GPUs, no earlier than `ready`: there or where some operator ends. */
static inline int64_t oracle_start(const oracle *o, uint32_t done, int32_t n, int64_t ready, int64_t ns)
{
    int64_t start = INT64_MAX;
    for (int32_t at = -1; at < o->count; at++) {
        if (at >= 0 && !(done >> at & 1))
            continue;
        int64_t time = at < 0 || o->end[at] < ready ? ready : o->end[at];
        if (time < start && oracle_fits(o, done, n, time, time + ns))
            start = time;
    }
    return start;
}

static inline void oracle_try(oracle *o, uint32_t done)
{
    int64_t end = 0;
    for (int32_t i = 0; i < o->count; i++)
        end = done >> i & 1 ? hbp__max_i64(end, o->end[i]) : end;
    if (done == (UINT32_C(1) << o->count) - 1) {
        if (end < o->best) {
            o->best = end;
            memcpy(o->best_gpus, o->used, sizeof o->used);
            memcpy(o->best_start, o->start, sizeof o->start);
        }
        return;
    }
    for (int32_t i = 0; i < o->count; i++) {
        if ((done >> i & 1) || (o->needs[i] & ~done))
            continue;
        int64_t ready = 0, behind = o->tail[i] - o->curve[i]->time_ns[o->curve[i]->sizes - 1];
        for (int32_t p = 0; p < o->count; p++)
            ready = o->needs[i] >> p & 1 ? hbp__max_i64(ready, o->end[p]) : ready;
        for (int32_t k = 0; k < o->curve[i]->sizes; k++) {
            int64_t ns = o->curve[i]->time_ns[k];
            o->used[i] = o->curve[i]->size[k];
            o->start[i] = oracle_start(o, done, o->used[i], ready, ns);
            o->end[i] = o->start[i] + ns;
            if (hbp__max_i64(end, o->end[i] + behind) < o->best)
                oracle_try(o, done | UINT32_C(1) << i);
        }
    }
}

/* The least makespan, without transfers; the sizes and starts that take it stay in *o, operators as in
 * meta->operators. */
static inline int64_t oracle_makespan(const hbp__meta_graph *meta, const hbp__scaling *scaling, oracle *o)
{
    ck_assert_int_le(meta->operator_count, ORACLE_OPERATORS);
    memset(o, 0, sizeof *o);
    o->count = meta->operator_count;
    o->gpus = scaling->gpus;
    o->best = INT64_MAX;
    for (int32_t m = 0; m < meta->count; m++) {
        const hbp__meta_op *op = &meta->meta_op[m];
        for (int32_t k = 0; k < op->count; k++) {
            o->curve[op->first + k] = hbp__meta_curve(scaling, m);
            if (k)
                o->needs[op->first + k] |= UINT32_C(1) << (op->first + k - 1);
        }
    }
    for (int64_t e = 0; e < meta->edge_count; e++) {
        const hbp__meta_op *from = &meta->meta_op[meta->edges[e].from];
        o->needs[meta->meta_op[meta->edges[e].to].first] |= UINT32_C(1) << (from->first + from->count - 1);
    }
    for (int32_t i = o->count - 1; i >= 0; i--) { /* needs are lower numbers */
        o->tail[i] += o->curve[i]->time_ns[o->curve[i]->sizes - 1];
        for (int32_t p = 0; p < i; p++)
            if (o->needs[i] >> p & 1)
                o->tail[p] = hbp__max_i64(o->tail[p], o->tail[i]);
    }
    oracle_try(o, 0);
    return o->best;
}

#endif
