/* Waves numbered by what slices wait for, and slices started as early as that allows. O(slices log slices +
 * edges + ranks). */
#include "tasks/problem.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"

typedef struct numbering {
    uint32_t *order;        /* [slices] */
    int64_t *key;           /* [slices] */
    int64_t *first_rank;    /* [slices + 1] into ranks */
    int32_t *wave_of;       /* [MetaOps] of its latest slice; -1: none yet */
    int32_t *rank_wave;     /* [GPUs] of its latest slice */
    int64_t *meta_end;      /* [MetaOps] of its latest slice, ns */
    int64_t *rank_end;      /* [GPUs] the same */
    hbp__task_slice *slice; /* [slices] sorted */
    int32_t *rank;          /* [ranks] sorted */
} numbering;

static hbp_status take_numbering(hbp_context *context, const hbp__task_problem *problem,
                                 const hbp__task_slices *slices, int with_ranks, numbering *n)
{
    uint64_t count = (uint64_t)slices->count;
    n->first_rank = hbp__take(context, count + 1, sizeof *n->first_rank);
    HBP__TRY(hbp__scratch_check(context, "the waves of slices"));
    n->first_rank[0] = 0;
    for (int64_t s = 0; s < slices->count; s++)
        n->first_rank[s + 1] = n->first_rank[s] + slices->slice[s].gpus;
    uint64_t ranks = with_ranks ? (uint64_t)n->first_rank[count] : 0;
    n->order = hbp__take(context, count, sizeof *n->order);
    n->key = hbp__take(context, count, sizeof *n->key);
    n->wave_of = hbp__take(context, (uint64_t)problem->meta->count, sizeof *n->wave_of);
    n->rank_wave = hbp__take(context, (uint64_t)problem->gpus, sizeof *n->rank_wave);
    n->meta_end = hbp__take_zero(context, (uint64_t)problem->meta->count, sizeof *n->meta_end);
    n->rank_end = hbp__take_zero(context, (uint64_t)problem->gpus, sizeof *n->rank_end);
    n->slice = hbp__take(context, count, sizeof *n->slice);
    n->rank = hbp__take(context, ranks, sizeof *n->rank);
    return hbp__scratch_check(context, "the waves of slices");
}

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* One slice; all that start before it have their wave. */
static int32_t next_wave(const numbering *n, const hbp__meta_graph *meta, const hbp__task_slice *slice,
                         const int32_t *rank)
{
    int32_t m = slice->meta_op, wave = n->wave_of[m];
    if (slice->first == 0)
        for (int64_t e = meta->in_first[m]; e < meta->in_first[m + 1]; e++)
            wave = later(wave, n->wave_of[meta->edges[meta->in_edges[e]].from]);
    for (int32_t r = 0; rank && r < slice->gpus; r++)
        wave = later(wave, n->rank_wave[rank[r]]);
    return wave + 1;
}

static int sort_by(hbp_context *context, numbering *n, const hbp__task_slices *slices, char field)
{
    for (int64_t s = 0; s < slices->count; s++) {
        const hbp__task_slice *slice = &slices->slice[s];
        n->key[s] = field == 'w' ? slice->wave : field == 's' ? slice->start_ns : slice->meta_op;
    }
    return hbp__sort_by_i64(&context->memory, n->key, n->order, slices->count);
}

/* In order of start all that a slice waits for comes before it, for nothing takes no time. */
static hbp_status number_waves(hbp_context *context, const hbp__task_problem *problem,
                               hbp__task_slices *slices, int32_t *ranks, numbering *n)
{
    const hbp__meta_graph *meta = problem->meta;
    for (int64_t s = 0; s < slices->count; s++)
        n->order[s] = (uint32_t)s;
    if (!sort_by(context, n, slices, 'm') || !sort_by(context, n, slices, 's'))
        return hbp__fail_memory(context, "the waves of slices");
    for (int32_t m = 0; m < meta->count; m++)
        n->wave_of[m] = -1;
    for (int32_t r = 0; r < problem->gpus; r++)
        n->rank_wave[r] = -1;
    slices->waves = 0;
    slices->makespan_ns = 0;
    for (int64_t i = 0; i < slices->count; i++) {
        uint32_t s = n->order[i];
        hbp__task_slice *slice = &slices->slice[s];
        const int32_t *rank = ranks ? ranks + n->first_rank[s] : NULL;
        slice->wave = next_wave(n, meta, slice, rank);
        n->wave_of[slice->meta_op] = slice->wave;
        for (int32_t r = 0; rank && r < slice->gpus; r++)
            n->rank_wave[rank[r]] = slice->wave;
        slices->waves = later(slices->waves, slice->wave + 1);
        slices->makespan_ns = slice->end_ns > slices->makespan_ns ? slice->end_ns : slices->makespan_ns;
    }
    if (!sort_by(context, n, slices, 'w'))
        return hbp__fail_memory(context, "the waves of slices");
    return HBP_OK;
}

/* Puts slices, and ranks with them, in the order found. */
static void permute_slices(numbering *n, hbp__task_slices *slices, int32_t *ranks)
{
    int64_t to = 0;
    for (int64_t i = 0; i < slices->count; i++) {
        uint32_t s = n->order[i];
        n->slice[i] = slices->slice[s];
        if (ranks)
            memcpy(n->rank + to, ranks + n->first_rank[s], (size_t)slices->slice[s].gpus * sizeof *ranks);
        to += slices->slice[s].gpus;
    }
    memcpy(slices->slice, n->slice, (size_t)slices->count * sizeof *n->slice);
    if (ranks)
        memcpy(ranks, n->rank, (size_t)to * sizeof *ranks);
}

hbp_status hbp__task_waves(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices,
                           int32_t *ranks)
{
    numbering n;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(take_numbering(context, problem, slices, ranks != NULL, &n));
    HBP__TRY(number_waves(context, problem, slices, ranks, &n));
    if (slices->count > 0)
        permute_slices(&n, slices, ranks);
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* As early as its ranks are free and what it needs has ended; all that start before it are where they go. */
static int64_t earliest_start(const numbering *n, const hbp__meta_graph *meta, const hbp__task_slice *slice,
                              const int32_t *rank)
{
    int32_t m = slice->meta_op;
    int64_t start = n->meta_end[m];
    if (slice->first == 0)
        for (int64_t e = meta->in_first[m]; e < meta->in_first[m + 1]; e++)
            start = hbp__max_i64(start, n->meta_end[meta->edges[meta->in_edges[e]].from]);
    for (int32_t r = 0; r < slice->gpus; r++)
        start = hbp__max_i64(start, n->rank_end[rank[r]]);
    return start;
}

static hbp_status compact_slices(hbp_context *context, const hbp__task_problem *problem,
                                 hbp__task_slices *slices, const int32_t *ranks, numbering *n)
{
    for (int64_t s = 0; s < slices->count; s++)
        n->order[s] = (uint32_t)s;
    if (!sort_by(context, n, slices, 'm') || !sort_by(context, n, slices, 's'))
        return hbp__fail_memory(context, "the starts of slices");
    slices->makespan_ns = 0;
    for (int64_t i = 0; i < slices->count; i++) {
        hbp__task_slice *slice = &slices->slice[n->order[i]];
        const int32_t *rank = ranks + n->first_rank[n->order[i]];
        int64_t start = earliest_start(n, problem->meta, slice, rank);
        slice->end_ns += start - slice->start_ns;
        slice->start_ns = start;
        n->meta_end[slice->meta_op] = slice->end_ns;
        for (int32_t r = 0; r < slice->gpus; r++)
            n->rank_end[rank[r]] = slice->end_ns;
        slices->makespan_ns = hbp__max_i64(slices->makespan_ns, slice->end_ns);
    }
    return HBP_OK;
}

hbp_status hbp__task_compact(hbp_context *context, const hbp__task_problem *problem, hbp__task_slices *slices,
                             const int32_t *ranks)
{
    numbering n;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(take_numbering(context, problem, slices, 1, &n));
    HBP__TRY(compact_slices(context, problem, slices, ranks, &n));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
