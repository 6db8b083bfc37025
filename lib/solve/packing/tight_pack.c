/* The search for few packs: fit decreasing; then a relaxation over rows, rounded down, and exact filling of
 * the rest, over all packs and again over those with most room, as far as the work goes. Under a cap on
 * weight that binds, the same over composites (tight_parts.h). */
#include "solve/packing/tight_pack.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/packing/packer.h"
#include "solve/packing/tight_parts.h"
#include "solve/packing/tight_tuning.h"

typedef struct search {
    hbp_context *context;
    const hbp__classes *classes;
    hbp__room room;
    int64_t bound;
    int64_t work;    /* operations left for the search */
    int64_t idle;    /* operations since a pack was won */
    int64_t worth;   /* a try that wins less than one pack in so many ends the search; 0: none does */
    int64_t *number; /* [classes] items not packed yet */
    hbp__patterns best, trial;
} search;

/* The trial becomes the best when it has at least `fewer` packs fewer. */
static void keep_better(search *s, int64_t fewer)
{
    if (s->best.count && s->trial.packs > s->best.packs - fewer)
        return;
    if (s->trial.packs < s->best.packs)
        s->idle = 0;
    hbp__patterns swap = s->best;
    s->best = s->trial;
    s->trial = swap;
}

static hbp_status try_rule(search *s, hbp__pack_rule rule)
{
    hbp__patterns_clear(&s->trial);
    HBP__TRY(hbp__histogram_pack(s->context, s->classes, s->room, rule, &s->trial));
    keep_better(s, 1);
    return HBP_OK;
}

static void all_items(search *s)
{
    memcpy(s->number, s->classes->number, (size_t)s->classes->count * sizeof *s->number);
}

/* Uses the patterns of a relaxation as often as is whole; fractions are left for exact filling. */
static hbp_status use_basis(search *s, hbp__coarse *coarse, const hbp__relaxation *relaxation)
{
    int64_t used;
    for (int64_t i = 0; i < relaxation->rows; i++) {
        int64_t column = relaxation->column[i];
        if (column < 0)
            continue;
        int64_t at = relaxation->patterns.offsets[column];
        int64_t times = (int64_t)(relaxation->uses[i] + 1e-6);
        HBP__TRY(hbp__coarse_use(s->context, coarse, times, relaxation->patterns.run + at,
                                 relaxation->patterns.offsets[column + 1] - at, s->number, &s->trial, &used));
    }
    return HBP_OK;
}

/* Packs what is in s->number onto the trial: a relaxation over `rows` rows, rounded down, and what it leaves
 * by exact filling, with so much work at most. */
static hbp_status pack_left(search *s, int64_t rows, int64_t most_work)
{
    int64_t work = most_work;
    hbp__coarse coarse;
    hbp__relaxation relaxation;
    int64_t mark = hbp__scratch_mark(s->context);
    HBP__TRY(hbp__coarse_open(s->context, s->classes, s->number, rows, &coarse));
    hbp_status status =
        hbp__relaxation_open(s->context, &coarse.rows, s->room.capacity, 0.5, &work, &relaxation);
    if (status == HBP_OK)
        status = use_basis(s, &coarse, &relaxation);
    hbp__relaxation_close(&relaxation);
    HBP__TRY(status);
    hbp__scratch_release(s->context, mark);
    status = hbp__subset_fill(s->context, s->classes, s->room.capacity, s->number, &work, &s->trial);
    s->work -= most_work - work;
    s->idle += most_work - work;
    return status;
}

static hbp_status try_all(search *s, int64_t rows)
{
    hbp__patterns_clear(&s->trial);
    all_items(s);
    HBP__TRY(pack_left(s, rows, HBP__TIGHT_TRY_WORK));
    keep_better(s, 1);
    return HBP_OK;
}

/* Room that pattern p of the best packing leaves. */
static int64_t pattern_slack(const search *s, int64_t p)
{
    int64_t left = s->room.capacity;
    for (int64_t k = s->best.offsets[p]; k < s->best.offsets[p + 1]; k++)
        left -= s->best.run[k].number * s->classes->size[s->best.run[k].class_index];
    return left;
}

/* Moves the `packs` packs with the most room from the best packing into s->number, the others into the trial.
 * `order` names the patterns, most room first. */
static hbp_status take_apart(search *s, const uint32_t *order, int64_t packs)
{
    const hbp__patterns *best = &s->best;
    hbp__patterns_clear(&s->trial);
    memset(s->number, 0, (size_t)s->classes->count * sizeof *s->number);
    for (int64_t i = 0; i < best->count; i++) {
        int64_t p = order[i], at = best->offsets[p], end = best->offsets[p + 1];
        int64_t take = hbp__min_i64(packs, best->times[p]);
        for (int64_t k = at; k < end && take; k++)
            s->number[best->run[k].class_index] += take * best->run[k].number;
        packs -= take;
        if (take < best->times[p])
            HBP__TRY(
                hbp__patterns_add(s->context, &s->trial, best->times[p] - take, best->run + at, end - at));
    }
    return HBP_OK;
}

/* Packs the `packs` packs with the most room anew. No more packs than before are as good as fewer: the room
 * then gathers in other packs, which gives the next repair a chance. */
static hbp_status repair_packing(search *s, int64_t packs, int64_t rows)
{
    uint64_t count = (uint64_t)s->best.count;
    int64_t mark = hbp__scratch_mark(s->context);
    uint64_t *keys = hbp__take(s->context, count, sizeof *keys);
    uint32_t *order = hbp__take(s->context, count, sizeof *order);
    HBP__TRY(hbp__scratch_check(s->context, "the order of packs"));
    for (int64_t p = 0; p < s->best.count; p++) {
        keys[p] = (uint64_t)(s->room.capacity - pattern_slack(s, p));
        order[p] = (uint32_t)p;
    }
    if (!hbp__sort_by_u64(&s->context->memory, keys, order, s->best.count))
        return hbp__fail_memory(s->context, "the order of packs");
    HBP__TRY(take_apart(s, order, packs));
    hbp__scratch_release(s->context, mark);
    HBP__TRY(pack_left(s, rows, HBP__TIGHT_REPAIR_WORK));
    keep_better(s, 0);
    return HBP_OK;
}

/* Whether there is something to win, and work for it. */
static int goes_on(const search *s)
{
    return s->best.packs > s->bound && s->work > 0 && s->idle < HBP__TIGHT_IDLE_WORK;
}

/* Whether the last try, before which there were `had` packs, won too little for another. */
static int is_spent(const search *s, int64_t had)
{
    return s->worth && had - s->best.packs < had / s->worth + 1;
}

/* The search: all packs by a coarse relaxation, then the half of the packs with the most room again, the
 * quarter, ... The fewer items, the less a row loses. When a pass wins nothing, rows become finer; a few such
 * passes with the finest rows end the search. */
static hbp_status improve_packing(search *s)
{
    int64_t rows = HBP__TIGHT_FIRST_ROWS, largest = s->best.packs / 2;
    int32_t patience = HBP__TIGHT_PATIENCE;
    int64_t most = s->best.packs;
    HBP__TRY(try_all(s, rows));
    int spent = is_spent(s, most);
    while (goes_on(s) && !spent && patience > 0 && s->best.packs / 2 >= HBP__TIGHT_FEW_PACKS) {
        int64_t before = s->best.packs, useless = 1;
        for (int64_t packs = largest; packs >= HBP__TIGHT_FEW_PACKS && goes_on(s) && !spent; packs /= 2) {
            int64_t had = s->best.packs;
            HBP__TRY(repair_packing(s, packs, rows));
            /* Sizes that win nothing at the start of a pass are left out of the next one. */
            useless = useless && s->best.packs == had;
            spent = is_spent(s, had);
            if (useless)
                largest = packs / 2;
        }
        if (s->best.packs == before) {
            patience -= rows >= hbp__min_i64(s->classes->count, HBP__TIGHT_MOST_ROWS);
            rows = hbp__min_i64(rows + rows / 2, HBP__TIGHT_MOST_ROWS);
            largest = s->best.packs / 2;
        }
    }
    return HBP_OK;
}

/* --- a cap on weight -------------------------------------------------------------------------------------
 */

/* The light classes best fit into what the packer holds; all packs to `packs`, and as what they are made of
 * to the trial. */
static hbp_status pack_light(search *s, const hbp__glued *glued, const hbp__patterns *heavy,
                             hbp__packer *packer, hbp__patterns *packs)
{
    HBP__TRY(hbp__packer_take_all(packer, &glued->classes, heavy));
    for (int64_t c = glued->classes.count - 1; c >= 0; c--)
        if (hbp__glue_is_light(glued, s->room, c))
            HBP__TRY(hbp__packer_place(packer, &glued->classes, c, glued->number[c], NULL));
    HBP__TRY(hbp__packer_write(packer, packs));
    hbp__patterns_clear(&s->trial);
    HBP__TRY(hbp__glue_write(glued, packs, &s->trial));
    keep_better(s, 1);
    return HBP_OK;
}

/* The trial becomes `heavy`, packs of what is not light, with the light classes placed best fit. */
static hbp_status place_light(search *s, const hbp__glued *glued, const hbp__patterns *heavy)
{
    hbp__patterns packs;
    hbp__packer packer;
    hbp__patterns_open(s->context, &packs);
    hbp__packer_open(s->context, HBP__BEST_FIT, s->room, &packer);
    hbp_status status = pack_light(s, glued, heavy, &packer, &packs);
    hbp__packer_close(&packer);
    hbp__patterns_close(&packs);
    return status;
}

/* The search, by size alone, over what is not light. */
static hbp_status search_heavy(search *s, const hbp__glued *glued, search *inner, int64_t items)
{
    if (items) {
        inner->bound = hbp__pack_bound(inner->classes, inner->room);
        HBP__TRY(try_rule(inner, HBP__BEST_FIT));
        if (inner->best.packs > inner->bound)
            HBP__TRY(improve_packing(inner));
    }
    return place_light(s, glued, &inner->best);
}

static hbp_status search_glued(search *s, const hbp__glued *glued)
{
    int64_t mark = hbp__scratch_mark(s->context);
    int64_t *number = hbp__take_zero(s->context, (uint64_t)glued->classes.count, 2 * sizeof *number);
    HBP__TRY(hbp__scratch_check(s->context, "items to pack"));
    hbp__classes heavy = {glued->classes.count, glued->size, number, NULL};
    search inner = {.context = s->context,
                    .classes = &heavy,
                    .room = {s->room.capacity, INT64_MAX},
                    .work = s->work,
                    .worth = s->worth,
                    .number = number + glued->classes.count};
    hbp__patterns_open(s->context, &inner.best);
    hbp__patterns_open(s->context, &inner.trial);
    int64_t items = 0;
    for (int64_t c = 0; c < glued->classes.count; c++) {
        number[c] = hbp__glue_is_light(glued, s->room, c) ? 0 : glued->number[c];
        items += number[c];
    }
    hbp_status status = search_heavy(s, glued, &inner, items);
    hbp__patterns_close(&inner.best);
    hbp__patterns_close(&inner.trial);
    return hbp__leave(s->context, mark, status);
}

/* Best fit decreasing of composites and single items. */
static hbp_status pack_glued(search *s, const hbp__glued *glued)
{
    hbp__patterns packs;
    hbp__patterns_open(s->context, &packs);
    hbp__patterns_clear(&s->trial);
    hbp_status status = hbp__histogram_pack(s->context, &glued->classes, s->room, HBP__BEST_FIT, &packs);
    if (status == HBP_OK)
        status = hbp__glue_write(glued, &packs, &s->trial);
    hbp__patterns_close(&packs);
    HBP__TRY(status);
    keep_better(s, 1);
    return HBP_OK;
}

/* Best fit decreasing with a share of the light items glued, or with `work` the search with all of them. */
static hbp_status try_glue(search *s, int64_t loose)
{
    hbp__glued glued;
    int64_t mark = hbp__scratch_mark(s->context);
    hbp_status status = hbp__glue_open(s->context, s->classes, s->room, loose, &glued);
    if (status == HBP_OK)
        status = s->work ? search_glued(s, &glued) : pack_glued(s, &glued);
    hbp__glue_close(&glued);
    return hbp__leave(s->context, mark, status);
}

static hbp_status try_level(search *s, int64_t packs, int64_t last, int *fits)
{
    hbp__patterns_clear(&s->trial);
    HBP__TRY(hbp__level_pack(s->context, s->classes, s->room, packs, last, &s->trial));
    *fits = s->trial.packs <= packs;
    keep_better(s, 1);
    return HBP_OK;
}

/* Halves the range between the bound and the best for the fewest packs that items can be spread over. */
static hbp_status level_packing(search *s, int64_t last)
{
    int64_t failed = s->bound;
    int fits;
    HBP__TRY(try_level(s, s->bound, last, &fits));
    for (int i = 0; i < HBP__LEVEL_HALVINGS && s->best.packs - failed > 1 + s->bound / HBP__LEVEL_CLOSE;
         i++) {
        int64_t middle = failed + (s->best.packs - failed) / 2;
        HBP__TRY(try_level(s, middle, last, &fits));
        if (!fits)
            failed = middle;
    }
    return HBP_OK;
}

/* What the search of an effort that is not 0 may do. */
static void set_effort(search *s, int32_t effort)
{
    s->work = effort < 0 ? HBP__TIGHT_BRIEF_WORK : HBP__TIGHT_WORK << (effort - 1);
    s->worth = effort < 0 ? HBP__TIGHT_BRIEF_WORTH : 0;
}

/* Fit decreasing packs short items last, together, where the cap leaves their packs half empty. So short ones
 * are given to long ones first, by gluing or by spreading. */
static hbp_status search_capped(search *s, int32_t effort)
{
    static const int64_t loose[] = {HBP__GLUE_LOOSE};
    for (size_t i = 0; i < sizeof loose / sizeof *loose && s->best.packs > s->bound; i++)
        HBP__TRY(try_glue(s, loose[i]));
    for (int64_t last = 0; last <= HBP__LEVEL_LAST && s->best.packs > s->bound; last += HBP__LEVEL_LAST)
        HBP__TRY(level_packing(s, last));
    if (!effort || s->best.packs <= s->bound)
        return HBP_OK;
    set_effort(s, effort);
    return try_glue(s, 0);
}

/* Whether items that fit a pack by size may be too heavy for it. */
static int cap_binds(const search *s)
{
    for (int64_t c = 0; c < s->classes->count; c++)
        if (s->room.max_weight / hbp__class_weight(s->classes, c) < s->room.capacity / s->classes->size[c])
            return 1;
    return 0;
}

static hbp_status search_packs(search *s, int32_t effort)
{
    HBP__TRY(try_rule(s, HBP__BEST_FIT));
    if (s->best.packs > s->bound)
        HBP__TRY(try_rule(s, HBP__FIRST_FIT));
    if (s->best.packs <= s->bound)
        return HBP_OK;
    if (s->room.max_weight < INT32_MAX && (s->classes->weight || cap_binds(s)))
        return search_capped(s, effort);
    /* The search knows no weights. */
    if (!effort || s->classes->weight)
        return HBP_OK;
    set_effort(s, effort);
    return improve_packing(s);
}

static hbp_status search_and_write(search *s, int32_t effort, hbp__patterns *patterns)
{
    HBP__TRY(search_packs(s, effort));
    for (int64_t p = 0; p < s->best.count; p++)
        HBP__TRY(hbp__patterns_add(s->context, patterns, s->best.times[p], s->best.run + s->best.offsets[p],
                                   s->best.offsets[p + 1] - s->best.offsets[p]));
    return HBP_OK;
}

hbp_status hbp__tight_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int32_t effort,
                           hbp__patterns *patterns, int64_t *bound)
{
    HBP__TRY(hbp__classes_fit(context, classes, room));
    *bound = hbp__pack_bound(classes, room);
    if (!classes->count)
        return HBP_OK;
    search s = {.context = context, .classes = classes, .room = room, .bound = *bound};
    int64_t mark = hbp__scratch_mark(context);
    s.number = hbp__take(context, (uint64_t)classes->count, sizeof *s.number);
    HBP__TRY(hbp__scratch_check(context, "items to pack"));
    hbp__patterns_open(context, &s.best);
    hbp__patterns_open(context, &s.trial);
    hbp_status status = search_and_write(&s, effort, patterns);
    hbp__patterns_close(&s.best);
    hbp__patterns_close(&s.trial);
    return hbp__leave(context, mark, status);
}
