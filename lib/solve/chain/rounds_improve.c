/* The local search of hbp__cut_rounds: single cuts and neighbouring ones are moved while that helps, then a
 * few at random (iterated local search). A look at a partition is O(parts). */
#include "solve/chain/rounds_search.h"

#include <string.h>

#include "base/scratch.h"

#define FARTHEST 16 /* moves of one cut go by 1, 2, 4, ... up to that; chosen */

/* How good a partition is: what it lacks, its value, and the squares of its loads, so that a search goes on
 * where the largest load does not change. */
typedef struct score {
    int64_t over;
    int64_t value;
    double squares;
} score;

typedef struct walk {
    hbp__rounds_search *search;
    int64_t *load; /* [workers] scratch */
    int32_t *cuts;
    score score;
} walk;

static int is_better(const score *a, const score *b)
{
    if (a->over != b->over)
        return a->over < b->over;
    if (a->value != b->value)
        return a->value < b->value;
    return a->squares < b->squares;
}

static score judge_cuts(const walk *w)
{
    const hbp__rounds *rounds = w->search->rounds;
    score s = {.over = hbp__rounds_over(rounds, w->cuts)};
    s.value = hbp__rounds_value(rounds, w->cuts, w->load);
    for (int32_t i = 0; i < rounds->workers; i++)
        s.squares += (double)w->load[i] * (double)w->load[i];
    *w->search->work -= rounds->chain->parts;
    return s;
}

/* Shifts cuts first .. last by `by` and keeps that when it is better. */
static int try_shift(walk *w, int32_t first, int32_t last, int32_t by)
{
    int32_t *cuts = w->cuts;
    if (cuts[first] + by <= cuts[first - 1] || cuts[last] + by >= cuts[last + 1])
        return 0;
    for (int32_t p = first; p <= last; p++)
        cuts[p] += by;
    score s = judge_cuts(w);
    if (is_better(&s, &w->score)) {
        w->score = s;
        hbp__rounds_offer(w->search, cuts);
        return 1;
    }
    for (int32_t p = first; p <= last; p++)
        cuts[p] -= by;
    return 0;
}

/* Moves single cuts and neighbouring ones together while that helps. */
static hbp_status descend_cuts(walk *w, int64_t end)
{
    int32_t parts = w->search->rounds->chain->parts, workers = w->search->rounds->workers;
    for (int better = 1; better && *w->search->work > end;) {
        better = 0;
        HBP__TRY(hbp__tick(w->search->context, "partition", 0, 0));
        for (int32_t p = 1; p < parts; p++)
            for (int32_t by = 1; by <= FARTHEST; by *= 2)
                better |= try_shift(w, p, p, by) | try_shift(w, p, p, -by);
        for (int32_t p = 1; p < parts; p++)
            for (int32_t q = p + 1; q < parts && q <= p + 2 * workers; q++)
                better |= try_shift(w, p, q, 1) | try_shift(w, p, q, -1);
    }
    return HBP_OK;
}

/* Moves a few cuts at random. */
static void perturb_cuts(walk *w, hbp__rng *rng)
{
    int32_t parts = w->search->rounds->chain->parts;
    for (uint32_t i = 0, moves = 1 + hbp__rng_below(rng, 4); i < moves; i++) {
        int32_t p = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)parts - 1);
        int32_t at = w->cuts[p] + (int32_t)hbp__rng_below(rng, 7) - 3;
        if (at > w->cuts[p - 1] && at < w->cuts[p + 1])
            w->cuts[p] = at;
    }
    w->score = judge_cuts(w);
}

static hbp_status search_near(walk *w, int64_t end, int32_t *best)
{
    size_t bytes = ((size_t)w->search->rounds->chain->parts + 1) * sizeof *best;
    hbp__rng rng = hbp__rng_make(0, 0, 0);
    w->score = judge_cuts(w);
    hbp__rounds_offer(w->search, w->cuts);
    HBP__TRY(descend_cuts(w, end));
    while (*w->search->work > end && w->search->rounds->chain->parts > 1) {
        score before = w->score;
        memcpy(best, w->cuts, bytes);
        perturb_cuts(w, &rng);
        HBP__TRY(descend_cuts(w, end));
        if (is_better(&before, &w->score)) {
            memcpy(w->cuts, best, bytes);
            w->score = before;
        }
        if (w->score.over == 0 && w->score.value <= w->search->bound)
            break;
    }
    return HBP_OK;
}

hbp_status hbp__rounds_improve(hbp__rounds_search *search, int64_t work, int32_t *cuts)
{
    int64_t mark = hbp__scratch_mark(search->context);
    walk w = {.search = search, .cuts = cuts};
    w.load = hbp__take(search->context, (uint64_t)search->rounds->workers, sizeof *w.load);
    int32_t *best = hbp__take(search->context, (uint64_t)search->rounds->chain->parts + 1, sizeof *best);
    HBP__TRY(hbp__scratch_check(search->context, "the search for cuts"));
    HBP__TRY(search_near(&w, *search->work - work, best));
    hbp__scratch_release(search->context, mark);
    return HBP_OK;
}
