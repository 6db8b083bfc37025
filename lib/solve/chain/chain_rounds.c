/* The best partitions when workers take parts in turns: a bound by relaxation, a local search, then a search
 * of everything under the bound, depth first, which ends early with the work. docs/explanation/pipeline.md
 * has it. */
#include <string.h>

#include "base/scratch.h"
#include "solve/chain/rounds_search.h"

#define TICK_NODES 16384
#define SHORT_WALK 64 /* passes of so many moves of every cut, about: enough for small chains; chosen */
#define LAY_WORK   8  /* what a node of the tree takes, in parts looked at; chosen */

/* A state of the search of everything: parts laid so far, with what they come to. */
typedef struct tree {
    hbp__rounds_search *search;
    hbp__cut_list *best; /* room for one */
    int64_t *load;       /* [workers] of the parts laid */
    int64_t *sum;        /* [parts + 1] costs and tolls of the parts below p */
    int64_t end;         /* of the work */
    int64_t nodes;
    int done; /* 0: it ran out of work */
} tree;

/* A lower bound on every partition that begins with the first `parts` parts. */
static int64_t tree_bound(const tree *t, int32_t parts)
{
    const hbp__rounds_search *s = t->search;
    const hbp__chain *chain = s->rounds->chain;
    int64_t at = parts * (int64_t)(chain->items + 1) + s->cuts[parts], most = 0, mean = 0;
    if (s->plain[at] == INT64_MAX)
        return INT64_MAX;
    for (int32_t w = 0; w < s->rounds->workers; w++) {
        most = hbp__max_i64(most, t->load[w]);
        mean += s->share[w] * t->load[w];
    }
    int64_t plain = chain->weight * most + t->sum[parts] + s->plain[at];
    return hbp__max_i64(plain, hbp__ceil_div(mean + s->scale * t->sum[parts] + s->mean[at], s->scale));
}

/* Whether what begins with cuts[0 .. parts] can still replace the best: those that are as good only when they
 * are cut earlier. */
static int may_win(const tree *t, int32_t parts, int64_t bound)
{
    if (!t->best->count)
        return bound < INT64_MAX;
    if (bound != t->best->value[0])
        return bound < t->best->value[0];
    for (int32_t p = 1; p <= parts; p++)
        if (t->search->cuts[p] != t->best->cuts[p])
            return t->search->cuts[p] < t->best->cuts[p];
    return 1;
}

/* Lays part p of cuts[p] .. cuts[p + 1] and says whether to go on from there. */
static int lay_part(tree *t, int32_t p)
{
    hbp__rounds_search *s = t->search;
    const hbp__rounds *rounds = s->rounds;
    const hbp__chain *chain = rounds->chain;
    int32_t worker = p % rounds->workers, begin = s->cuts[p], end = s->cuts[p + 1];
    int64_t cost = hbp__chain_cost(chain, p, begin, end);
    t->sum[p + 1] = t->sum[p] + cost + chain->toll[end];
    t->load[worker] += cost + chain->side[begin] + chain->side[end];
    *s->work -= LAY_WORK;
    if (rounds->over && rounds->over(rounds->user, s->cuts, p + 1, worker) > 0)
        return 0;
    return may_win(t, p + 1, tree_bound(t, p + 1));
}

static void take_back(tree *t, int32_t p)
{
    const hbp__rounds_search *s = t->search;
    const hbp__chain *chain = s->rounds->chain;
    int32_t begin = s->cuts[p], end = s->cuts[p + 1];
    t->load[p % s->rounds->workers] -=
        t->sum[p + 1] - t->sum[p] - chain->toll[end] + chain->side[begin] + chain->side[end];
}

/* Tries every end of part p, in ascending order and, for as long as it goes on, of all later parts: depth
 * first, without recursion. */
static hbp_status grow_tree(tree *t)
{
    hbp__rounds_search *s = t->search;
    const hbp__chain *chain = s->rounds->chain;
    int32_t p = 0, parts = chain->parts, *cuts = s->cuts;
    cuts[0] = 0;
    cuts[1] = 0;
    t->sum[0] = 0;
    while (p >= 0) {
        /* cuts[p + 1] was the last end tried of part p; nothing of part p is laid. */
        int32_t last = hbp__chain_reach(chain, p, cuts[p]), most = chain->items - (parts - 1 - p);
        cuts[p + 1] = p == parts - 1 && cuts[p + 1] < chain->items ? chain->items : cuts[p + 1] + 1;
        if (cuts[p + 1] > (last < most ? last : most)) {
            if (--p >= 0)
                take_back(t, p);
            continue;
        }
        if (*s->work <= t->end)
            return HBP_OK;
        if (++t->nodes % TICK_NODES == 0)
            HBP__TRY(hbp__tick(s->context, "partition", t->nodes, 0));
        if (!lay_part(t, p)) {
            take_back(t, p);
            continue;
        }
        if (p < parts - 1) {
            p++;
            cuts[p + 1] = cuts[p];
            continue;
        }
        hbp__cut_list_add(t->best, cuts, hbp__rounds_offer(s, cuts));
        take_back(t, p);
    }
    t->done = 1;
    return HBP_OK;
}

/* *done: the tree was searched to its end, so that the bound is the best value. */
static hbp_status search_tree(hbp__rounds_search *s, int64_t work, int *done)
{
    const hbp__chain *chain = s->rounds->chain;
    int64_t mark = hbp__scratch_mark(s->context);
    tree t = {.search = s, .end = *s->work - work};
    t.load = hbp__take_zero(s->context, (uint64_t)s->rounds->workers, sizeof *t.load);
    t.sum = hbp__take(s->context, (uint64_t)chain->parts + 1, sizeof *t.sum);
    HBP__TRY(hbp__scratch_check(s->context, "the search for cuts"));
    hbp__cut_list best;
    HBP__TRY(hbp__cut_list_open(s->context, chain->parts, 1, &best));
    t.best = &best;
    if (s->list->count)
        hbp__cut_list_add(&best, hbp__cut_list_get(s->list, 0), s->list->value[0]);
    hbp_status status = grow_tree(&t);
    *done = t.done;
    if (status >= 0 && t.done)
        s->bound = best.count ? best.value[0] : INT64_MAX;
    hbp__cut_list_close(&best);
    return hbp__leave(s->context, mark, status);
}

/* Where the local search begins when nothing is known: as many items for every part. */
static void even_cuts(const hbp__chain *chain, int32_t *cuts)
{
    for (int64_t p = 0; p <= chain->parts; p++)
        cuts[p] = (int32_t)(p * chain->items / chain->parts);
}

/* The local search goes on from the best that is known. */
static hbp_status improve_best(hbp__rounds_search *s, int64_t work, int32_t *start)
{
    size_t bytes = ((size_t)s->rounds->chain->parts + 1) * sizeof *start;
    if (s->list->count && s->list->value[0] <= s->bound)
        return HBP_OK;
    memcpy(start, s->list->count ? s->list->cuts : s->nearest, bytes);
    return hbp__rounds_improve(s, work, start);
}

/* Lists what moving one cut of the best leads to. */
static void offer_neighbours(hbp__rounds_search *s, int32_t *cuts)
{
    int32_t parts = s->rounds->chain->parts;
    memcpy(cuts, s->list->cuts, ((size_t)parts + 1) * sizeof *cuts);
    for (int32_t p = 1; p < parts; p++) {
        int32_t at = cuts[p];
        for (int32_t step = -2; step <= 2; step++) {
            cuts[p] = at + step;
            if (step && cuts[p] > cuts[p - 1] && cuts[p] < cuts[p + 1])
                hbp__rounds_offer(s, cuts);
        }
        cuts[p] = at;
    }
}

/* A short local search and a short tree, which are enough for small ones; then long ones. */
static hbp_status search_all(hbp__rounds_search *s, int32_t *start)
{
    const hbp__chain *chain = s->rounds->chain;
    int64_t work = *s->work, few = SHORT_WALK * (int64_t)chain->parts * chain->parts;
    int done = 0;
    even_cuts(chain, start);
    hbp__rounds_offer(s, start);
    HBP__TRY(hbp__rounds_relax(s, work / 4));
    if (s->bound == INT64_MAX)
        return HBP_OK;
    HBP__TRY(improve_best(s, hbp__min_i64(few, work / 16), start));
    HBP__TRY(search_tree(s, work / 16, &done));
    if (done)
        return HBP_OK;
    HBP__TRY(improve_best(s, work / 4, start));
    return search_tree(s, *s->work, &done);
}

hbp_status hbp__cut_rounds(hbp_context *context, const hbp__rounds *rounds, int64_t *work,
                           hbp__cut_list *list, int32_t *nearest, int64_t *bound)
{
    const hbp__chain *chain = rounds->chain;
    int64_t mark = hbp__scratch_mark(context);
    uint64_t cuts = (uint64_t)chain->parts + 1, cells = cuts * ((uint64_t)chain->items + 1);
    hbp__rounds_search s = {.context = context, .rounds = rounds, .list = list, .work = work};
    s.nearest = nearest;
    s.nearest_over = INT64_MAX;
    s.share = hbp__take(context, (uint64_t)rounds->workers, sizeof *s.share);
    s.load = hbp__take(context, (uint64_t)rounds->workers, sizeof *s.load);
    s.plain = hbp__take(context, cells, sizeof *s.plain);
    s.mean = hbp__take(context, cells, sizeof *s.mean);
    s.next = hbp__take(context, cells, sizeof *s.next);
    s.cuts = hbp__take(context, 2 * cuts, sizeof *s.cuts);
    HBP__TRY(hbp__scratch_check(context, "the search for cuts"));
    HBP__TRY(search_all(&s, s.cuts + cuts));
    *bound = s.bound;
    if (list->count)
        offer_neighbours(&s, s.cuts);
    return hbp__leave(context, mark, list->count ? HBP_OK : HBP_E_INFEASIBLE);
}
