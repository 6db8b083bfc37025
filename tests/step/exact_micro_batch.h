/* The exact makespan of one micro-batch of up to 24 different sequences, by bin completion (Korf, 2002).
 *
 * Can x run on r ranks within C? The longest sequence i of x is in some group; take a solution, and let w be
 * that group's content. Time and memory of a group rise with its tokens and squares, so (1) w may move to the
 * least degree that runs it within C; (2) a sequence of x that still fits beside w may join it, its old group
 * only shrinks; (3) a sequence of w may change places with one no smaller of another group when w can bear
 * it. (2) and (3) enlarge w and so keep (1), and none can be repeated for ever: there is a solution, if any,
 * in which none applies, and only such w are tried. Sets that failed are remembered. Two bounds cut: the
 * tokens that r ranks hold, and the least rank-time of every sequence against r C. */
#ifndef HBP_TESTS_EXACT_MICRO_BATCH_H
#define HBP_TESTS_EXACT_MICRO_BATCH_H

#include "exact_step.h"

#define EXACT_FAILED (1 << 20) /* slots of a table that forgets */

typedef struct exact_bins {
    const exact_step *step;
    int64_t limit_ns;
    double density;                 /* most tokens on a rank within any group */
    double work[EXACT_SEQUENCES];   /* least rank-time of a sequence */
    int32_t least[EXACT_SEQUENCES]; /* index of the least degree that runs it */
    double linear[EXACT_DEGREES];   /* least ns of a rank a token, and */
    double square;                  /* a token squared */
    uint64_t *failed;               /* [EXACT_FAILED] */
} exact_bins;

/* A set w about to become a group of degree j, out of `from`. */
typedef struct exact_fill {
    exact_bins *bins;
    uint32_t from;
    uint32_t set;
    int32_t ranks;
    int32_t j;
} exact_fill;

static inline int exact_walk(exact_bins *b, uint32_t from, int32_t ranks);

static inline int exact_runs(const exact_bins *b, int32_t j, int64_t tokens, double squares)
{
    return exact_group_ns(b->step, j, tokens, squares) <= b->limit_ns;
}

/* Whether the rules above leave w as it is. */
static inline int exact_is_final(const exact_fill *f, int64_t tokens, double squares)
{
    const exact_bins *b = f->bins;
    const exact_step *e = b->step;
    for (int32_t j = 0; j < f->j; j++)
        if (exact_runs(b, j, tokens, squares))
            return 0;
    for (int32_t i = 0; i < e->count; i++) {
        if (!(f->from >> i & 1) || f->set >> i & 1)
            continue;
        if (exact_runs(b, f->j, tokens + e->tokens[i], squares + e->squares[i]))
            return 0;
        for (int32_t k = i + 1; k < e->count; k++)
            if (f->set >> k & 1 && e->squares[i] >= e->squares[k] &&
                (e->tokens[i] > e->tokens[k] || e->squares[i] > e->squares[k]) &&
                exact_runs(b, f->j, tokens - e->tokens[k] + e->tokens[i],
                           squares - e->squares[k] + e->squares[i]))
                return 0;
    }
    return 1;
}

/* Decides on sequence i and those after it. Of equal ones the first are taken. */
static inline int exact_extend(exact_fill *f, int32_t i, int64_t tokens, double squares)
{
    const exact_step *e = f->bins->step;
    while (i < e->count && !(f->from >> i & 1))
        i++;
    if (i == e->count)
        return exact_is_final(f, tokens, squares) &&
               exact_walk(f->bins, f->from & ~f->set, f->ranks - e->degree[f->j]);
    if (exact_runs(f->bins, f->j, tokens + e->tokens[i], squares + e->squares[i])) {
        f->set |= UINT32_C(1) << i;
        int found = exact_extend(f, i + 1, tokens + e->tokens[i], squares + e->squares[i]);
        f->set &= ~(UINT32_C(1) << i);
        if (found)
            return 1;
    }
    int32_t next = i + 1;
    while (next < e->count && e->tokens[next] == e->tokens[i] && e->squares[next] == e->squares[i])
        next++;
    return exact_extend(f, next, tokens, squares);
}

static inline int exact_is_cut(const exact_bins *b, uint32_t from, int32_t ranks)
{
    const exact_step *e = b->step;
    double tokens = 0, work = 0;
    for (int32_t i = 0; i < e->count; i++)
        if (from >> i & 1) {
            if (b->least[i] == e->degrees || e->degree[b->least[i]] > ranks)
                return 1;
            tokens += (double)e->tokens[i];
            work += b->work[i];
        }
    return tokens > b->density * ranks || work > ((double)b->limit_ns + 1) * ranks;
}

static inline int exact_walk(exact_bins *b, uint32_t from, int32_t ranks)
{
    const exact_step *e = b->step;
    if (!from)
        return 1;
    uint64_t key = (uint64_t)from << 8 | (uint64_t)ranks;
    uint64_t *slot = &b->failed[(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) % EXACT_FAILED];
    if (*slot == key || exact_is_cut(b, from, ranks))
        return 0;
    int32_t i = 0;
    while (!(from >> i & 1))
        i++;
    exact_fill f = {b, from, UINT32_C(1) << i, ranks, 0};
    for (f.j = b->least[i]; f.j < e->degrees && e->degree[f.j] <= ranks; f.j++)
        if (exact_runs(b, f.j, e->tokens[i], e->squares[i]) &&
            exact_extend(&f, i + 1, e->tokens[i], e->squares[i]))
            return 1;
    *slot = key;
    return 0;
}

/* Whether all sequences run within `limit_ns`. The work bound leaves room for the rounding of times. */
static inline int exact_fits(exact_bins *b, int64_t limit_ns)
{
    const exact_step *e = b->step;
    b->limit_ns = limit_ns;
    memset(b->failed, 0, EXACT_FAILED * sizeof *b->failed);
    for (int32_t i = 0; i < e->count; i++) {
        b->least[i] = e->degrees;
        b->work[i] = 0;
        for (int32_t j = e->degrees - 1; j >= 0; j--) {
            if (!exact_runs(b, j, e->tokens[i], e->squares[i]))
                continue;
            double work = b->linear[j] * (double)e->tokens[i] + b->square * e->squares[i];
            b->work[i] = b->least[i] == e->degrees || work < b->work[i] ? work : b->work[i];
            b->least[i] = j;
        }
        b->work[i] *= 1 - 1e-9;
    }
    return exact_walk(b, e->count == 32 ? UINT32_MAX : (UINT32_C(1) << e->count) - 1, e->ranks);
}

/* The least makespan of all sequences in one micro-batch; EXACT_NEVER when they do not fit. By bisection on
 * the limit: about 40 questions. */
static inline int64_t exact_micro_batch_ns(const exact_step *e)
{
    exact_bins b = {.step = e};
    hbp_cost_terms t = {.struct_size = sizeof t};
    hbp_context *context = test_context();
    OK(context, hbp_cost_get_terms(context, e->cost, &t));
    hbp_context_free(context);
    b.square = t.ns_per_token_squared;
    for (int32_t j = 0; j < e->degrees; j++) {
        int32_t row = 0;
        while (t.degree[row] != e->degree[j])
            row++;
        b.linear[j] = t.ns_per_token + t.sp_ns_per_token[row] * e->degree[j];
        int32_t recompute = e->options.recompute == HBP_STEP_RECOMPUTE_NONE ? 0 : e->layers;
        double most = (double)hbp_cost_predict_capacity(e->cost, e->degree[j], 0);
        if (e->options.recompute == HBP_STEP_RECOMPUTE_ALL)
            most = 0;
        for (; recompute > 0; recompute--) {
            double holds = (double)hbp_cost_predict_capacity(e->cost, e->degree[j], recompute);
            most = holds > most ? holds : most;
            if (e->options.recompute == HBP_STEP_RECOMPUTE_ALL)
                break;
        }
        b.density = most / e->degree[j] > b.density ? most / e->degree[j] : b.density;
    }
    b.density *= 1 + 1e-9;
    b.failed = malloc(EXACT_FAILED * sizeof *b.failed);
    ck_assert_ptr_nonnull(b.failed);
    int64_t low = e->dummy_ns, high = EXACT_NEVER - 1;
    int fits = exact_fits(&b, high);
    while (fits && low < high) {
        int64_t middle = low + (high - low) / 2;
        if (exact_fits(&b, middle))
            high = middle;
        else
            low = middle + 1;
    }
    free(b.failed);
    return fits ? exact_max(high, e->dummy_ns) : EXACT_NEVER;
}

#endif
