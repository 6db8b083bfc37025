/* Partitions near another one (OmniBal, section 3.3): all of them where they are few, else the k best of each
 * ranking as k-best shortest paths, O(chunks radius^2 k). */
#include "pipeline/candidates.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"

#define TICK_TRIED 16384

typedef struct near {
    hbp_context *context;
    const hbp__stages *stages;
    const int32_t *anchor;
    int32_t radius;
    int32_t *cuts; /* [chunks + 1] scratch */
    int64_t *load; /* [stages] scratch */
    double aim;    /* load of a chunk to come near to */
    hbp__cut_list *by_variance;
    hbp__cut_list *by_communication;
} near;

/* Where cut p may lie, the cut before it aside. */
static int32_t least_place(const near *n, int32_t p)
{
    int32_t place = n->anchor[p] - n->radius;
    return place > p ? place : p;
}

static int32_t last_place(const near *n, int32_t p)
{
    int32_t place = n->anchor[p] + n->radius, most = n->stages->layers->count - (n->stages->chunks - p);
    return place < most ? place : most;
}

static void offer_cuts(near *n)
{
    const hbp__stages *s = n->stages;
    if (s->chunks > s->stages && !hbp__stages_fit(s, n->cuts))
        return;
    hbp__stages_weigh(s, n->cuts, n->load);
    double variance = hbp__stages_variance(s, n->load);
    int64_t bits;
    memcpy(&bits, &variance, sizeof bits);
    hbp__cut_list_add(n->by_variance, n->cuts, bits);
    hbp__cut_list_add(n->by_communication, n->cuts, hbp__stages_cut_bytes(s, n->cuts));
}

/* Every cut in turn, the last fastest. */
static hbp_status try_all(near *n)
{
    int32_t p = 1, chunks = n->stages->chunks, *cuts = n->cuts;
    int64_t tried = 0;
    const hbp__chain *chain = &n->stages->chain;
    cuts[0] = 0;
    cuts[chunks] = n->stages->layers->count;
    if (chunks == 1) {
        if (hbp__chain_reach(chain, 0, 0) == cuts[1])
            offer_cuts(n);
        return HBP_OK;
    }
    for (cuts[1] = least_place(n, 1) - 1; p > 0;) {
        int32_t last = last_place(n, p), reach = hbp__chain_reach(chain, p - 1, cuts[p - 1]);
        if (++cuts[p] > (reach < last ? reach : last)) {
            p--;
            continue;
        }
        if (++tried % TICK_TRIED == 0)
            HBP__TRY(hbp__tick(n->context, "candidates", tried, 0));
        if (p + 1 < chunks) {
            int32_t least = least_place(n, p + 1);
            p++;
            cuts[p] = (least > cuts[p - 1] ? least : cuts[p - 1] + 1) - 1;
        } else if (hbp__chain_reach(chain, p, cuts[p]) == cuts[chunks]) {
            offer_cuts(n);
        }
    }
    return HBP_OK;
}

/* The paths on from a place of a cut, as in a k-best shortest path. */
typedef struct paths {
    int32_t best;
    int32_t width;   /* places of a cut */
    int32_t *number; /* [cells] */
    double *sum;     /* [cells * best] */
    int32_t *next;   /* [cells * best] */
    int32_t *rank;   /* [cells * best] */
} paths;

static hbp_status take_paths(hbp_context *context, int64_t cells, int32_t best, paths *w)
{
    *w = (paths){.best = best};
    uint64_t all = (uint64_t)cells * (uint64_t)best;
    w->number = hbp__take_zero(context, (uint64_t)cells, sizeof *w->number);
    w->sum = hbp__take(context, all, sizeof *w->sum);
    w->next = hbp__take(context, all, sizeof *w->next);
    w->rank = hbp__take(context, all, sizeof *w->rank);
    return hbp__scratch_check(context, "candidates");
}

static int64_t cell_of(const near *n, const paths *w, int32_t p, int32_t place)
{
    return p * (int64_t)w->width + place - (n->anchor[p] - n->radius);
}

static void merge_paths(paths *w, int64_t from, int64_t to, int32_t place, double extra)
{
    double *sum = w->sum + from * w->best;
    int32_t *next = w->next + from * w->best, *rank = w->rank + from * w->best;
    for (int32_t r = 0; r < w->number[to]; r++) {
        double value = extra + w->sum[to * w->best + r];
        int32_t held = w->number[from];
        if (held == w->best && !(value < sum[held - 1]))
            return;
        int32_t at = held < w->best ? w->number[from]++ : held - 1;
        for (; at > 0 && sum[at - 1] > value; at--) {
            sum[at] = sum[at - 1];
            next[at] = next[at - 1];
            rank[at] = rank[at - 1];
        }
        sum[at] = value;
        next[at] = place;
        rank[at] = r;
    }
}

static double price_part(const near *n, int communication, int32_t p, int32_t begin, int32_t end)
{
    const hbp__stages *s = n->stages;
    if (communication)
        return p + 1 < s->chunks ? (double)s->layers->cut_bytes[end - 1] : 0;
    double apart = (double)hbp__chain_load(&s->chain, p, begin, end) - n->aim;
    return apart * apart;
}

static hbp_status fill_paths(near *n, int communication, paths *w)
{
    const hbp__stages *s = n->stages;
    int32_t chunks = s->chunks;
    int64_t end = cell_of(n, w, chunks, s->layers->count);
    w->number[end] = 1;
    w->sum[end * w->best] = 0;
    for (int32_t p = chunks - 1; p >= 0; p--) {
        int32_t first = p ? least_place(n, p) : 0, last = p ? last_place(n, p) : 0;
        HBP__TRY(hbp__tick(n->context, "candidates", chunks - p, chunks));
        for (int32_t begin = first; begin <= last; begin++) {
            int32_t to = p + 1 < chunks ? least_place(n, p + 1) : s->layers->count;
            int32_t most = p + 1 < chunks ? last_place(n, p + 1) : s->layers->count;
            int32_t reach = hbp__chain_reach(&s->chain, p, begin);
            for (to = to > begin ? to : begin + 1; to <= most && to <= reach; to++)
                merge_paths(w, cell_of(n, w, p, begin), cell_of(n, w, p + 1, to), to,
                            price_part(n, communication, p, begin, to));
        }
    }
    return HBP_OK;
}

static hbp_status run_paths(near *n, int communication)
{
    const hbp__stages *s = n->stages;
    int32_t width = 2 * n->radius + 1, best = n->by_variance->room;
    int64_t mark = hbp__scratch_mark(n->context);
    paths w;
    HBP__TRY(take_paths(n->context, (s->chunks + 1) * (int64_t)width, best, &w));
    w.width = width;
    HBP__TRY(fill_paths(n, communication, &w));
    int64_t start = cell_of(n, &w, 0, 0);
    for (int32_t i = 0; i < w.number[start]; i++) {
        int32_t rank = i;
        n->cuts[0] = 0;
        for (int32_t p = 0; p < s->chunks; p++) {
            int64_t path = cell_of(n, &w, p, n->cuts[p]) * best + rank;
            n->cuts[p + 1] = w.next[path];
            rank = w.rank[path];
        }
        offer_cuts(n);
    }
    hbp__scratch_release(n->context, mark);
    return HBP_OK;
}

static hbp_status rank_near(near *n)
{
    const hbp__stages *s = n->stages;
    int64_t all = 1;
    for (int32_t p = 1; p < s->chunks && all <= HBP__NEAR_TRIED; p++)
        all *= 2 * n->radius + 1;
    if (all <= HBP__NEAR_TRIED)
        return try_all(n);
    hbp__stages_weigh(s, n->anchor, n->load);
    for (int32_t stage = 0; stage < s->stages; stage++)
        n->aim += (double)n->load[stage];
    n->aim /= s->chunks;
    HBP__TRY(run_paths(n, 0));
    return run_paths(n, 1);
}

hbp_status hbp__rank_near(hbp_context *context, const hbp__stages *stages, const int32_t *anchor,
                          int32_t radius, hbp__cut_list *by_variance, hbp__cut_list *by_communication)
{
    near n = {.context = context, .stages = stages, .anchor = anchor, .radius = radius};
    n.by_variance = by_variance;
    n.by_communication = by_communication;
    int64_t mark = hbp__scratch_mark(context);
    n.cuts = hbp__take(context, (uint64_t)stages->chunks + 1, sizeof *n.cuts);
    n.load = hbp__take(context, (uint64_t)stages->stages, sizeof *n.load);
    HBP__TRY(hbp__scratch_check(context, "candidates"));
    HBP__TRY(rank_near(&n));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
