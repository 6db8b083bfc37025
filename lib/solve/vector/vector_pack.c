/* Input: items of two sizes, capacities. Output: which pack holds which item, few packs, all balanced.
 *
 * Ways to pack, of which the one with the fewest packs stays:
 *   1. patterns: where a size takes few values, the packs of that size alone are found as patterns
 *      (tight_pack), which are then mixed (vector_mix), and items are drawn for them; from effort 2 on also
 *      where it takes few thousand;
 *   2. balanced: the number of packs is given, items are spread in descending order over all of them;
 *   3. best fit decreasing over both sizes (vector_grid);
 *   4. next fit and, of few items, first fit decreasing, so that no packing has more packs than those.
 * Packs past a capacity are mended by exchanges (vector_balance); what they cannot mend is taken out and put
 * where there is room. The exchanges also balance the packs in the end.
 *
 * Complexity: O(n log n). Lower bound: vector_bound. Oracle: brute force (tests/solve/test_vector_pack.c). */
#include "solve/vector/vectors.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/vector/vector_run.h"
#include "solve/vector/vector_tuning.h"

static int is_done(const hbp__vector_run *r)
{
    return r->best.packs && r->best.packs <= r->bound;
}

/* Balanced packings between the bound and the best: with a little room to spare, which makes it easy; then,
 * as far as `tries` allow, halfway between what failed and what was found. */
static hbp_status search_balanced(hbp__vector_run *r, int64_t tries)
{
    int64_t low = r->bound - 1;
    int64_t packs = r->bound + r->bound / HBP__VECTOR_EASE * r->bound / r->vectors->count;
    for (; tries > 0 && !is_done(r); tries--) {
        HBP__TRY(hbp__vector_run_balanced(r, packs));
        if (r->best.packs > packs)
            low = packs;
        if (r->best.packs <= low + 1)
            break;
        packs = low + (r->best.packs - low) / 2;
    }
    return HBP_OK;
}

/* The size that needs more packs, by its total: 0 or 1. */
static int larger_size(const hbp__vector_run *r)
{
    const hbp__vectors *v = r->vectors;
    int64_t a = 0, b = 0;
    for (int64_t i = 0; i < v->count; i++) {
        a += v->a[i];
        b += v->b[i];
    }
    return hbp__ceil_div(a, v->capacity_a) < hbp__ceil_div(b, v->capacity_b);
}

/* Whether the best has no more than a share of 1/share more packs than the bound. */
static int is_near(const hbp__vector_run *r, int64_t share)
{
    return r->best.packs && r->best.packs - r->bound <= r->bound / share;
}

/* Packs few items in every way. */
static hbp_status try_all(hbp__vector_run *r)
{
    HBP__TRY(hbp__vector_run_tight(r));
    if (!is_done(r))
        HBP__TRY(search_balanced(r, HBP__VECTOR_FEW_TRIES));
    if (is_done(r))
        return HBP_OK;
    for (int64_t i = 0; i < r->vectors->count; i++) /* first fit decreasing, equal ones as numbered */
        r->list[i] = (uint32_t)i;
    HBP__TRY(hbp__vector_run_sort_down(r, r->list, r->vectors->count));
    return hbp__vector_run_plain(r, r->list, 0);
}

/* Packs many items in the way that suits them, and if that is not near the bound in the others. Packs of
 * fewer than HBP__VECTOR_MANY_A_PACK items are best filled tightly: a balanced spread has too few items to
 * choose from. */
static hbp_status try_some(hbp__vector_run *r)
{
    int is_large = r->bound > r->vectors->count / HBP__VECTOR_MANY_A_PACK;
    if (r->effort == 1 && is_near(r, HBP__VECTOR_CLOSE))
        return HBP_OK;
    if (!is_large || r->effort > 1)
        HBP__TRY(search_balanced(r, 2 * r->effort - 1));
    if (!is_done(r) && r->effort > 1)
        HBP__TRY(hbp__vector_run_patterns(r, larger_size(r), 1));
    if (!is_done(r) && (r->effort > 1 || !is_near(r, HBP__VECTOR_NEAR)))
        HBP__TRY(hbp__vector_run_tight(r));
    return HBP_OK;
}

static hbp_status pack_all(hbp__vector_run *r)
{
    const hbp__vectors *v = r->vectors;
    HBP__TRY(hbp__vector_bound(r->context, v, &r->bound));
    for (int64_t i = 0; i < v->count; i++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", i, v->count));
        r->order[i] = (uint32_t)i;
    }
    HBP__TRY(hbp__shuffle(r->context, r->rng, r->order, v->count));
    HBP__TRY(hbp__copy(r->context, r->down, r->order, (uint64_t)v->count * sizeof *r->down));
    HBP__TRY(hbp__vector_run_sort_down(r, r->down, v->count));
    HBP__TRY(hbp__vector_run_patterns(r, 0, 0));
    if (!is_done(r))
        HBP__TRY(hbp__vector_run_patterns(r, 1, 0));
    if (!is_done(r))
        HBP__TRY(v->count <= HBP__VECTOR_FEW_ITEMS ? try_all(r) : try_some(r));
    if (!is_done(r))
        HBP__TRY(hbp__vector_run_plain(r, NULL, 1));
    int64_t over;
    return r->best_is_balanced
               ? HBP_OK
               : hbp__vector_balance(r->context, v, &r->best, HBP__VECTOR_LAST_ROUNDS * r->effort, &over);
}

hbp_status hbp__vector_pack(hbp_context *context, const hbp__vectors *vectors, int32_t effort, hbp__rng *rng,
                            hbp__vector_packing *packing, int64_t *bound)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t rows = (uint64_t)vectors->count;
    hbp__vector_run r = {.context = context, .vectors = vectors, .rng = rng, .effort = effort};
    r.scale = hbp__vector_scale_of(vectors);
    r.order = hbp__take(context, rows, sizeof *r.order);
    r.down = hbp__take(context, rows, sizeof *r.down);
    r.list = hbp__take(context, rows, sizeof *r.list);
    r.best.pack_of = hbp__take(context, rows, sizeof *r.best.pack_of);
    r.trial.pack_of = hbp__take(context, rows, sizeof *r.trial.pack_of);
    HBP__TRY(hbp__scratch_check(context, "vector packing"));
    hbp_status status = pack_all(&r);
    if (status == HBP_OK)
        status = hbp__copy(context, packing->pack_of, r.best.pack_of, rows * sizeof *packing->pack_of);
    if (status == HBP_OK) {
        packing->packs = r.best.packs;
        *bound = r.bound;
    }
    hbp__delete(&context->memory, r.load);
    return hbp__leave(context, mark, status);
}
