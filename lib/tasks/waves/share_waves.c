/* Waves of a level with the resources allocated anew for each (Theorem 1 of Spindle on what is left), which
 * end where wave and rest come to least. A wave is O(ends tried x MetaOps). */
#include "tasks/waves/level_waves.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "tasks/tuning.h"

#define EXACT 1e-9 /* shares nearer than this to a size are that size */

typedef struct sharing {
    hbp_context *context;
    const hbp__wave_rule *rule;
    hbp__level_waves *waves;
    int32_t active;             /* MetaOps with operators left */
    hbp__wave_item *item;       /* [active] what is left of each; gpus 0: not in this wave */
    const hbp__curve **curves;  /* [active] */
    int32_t *left;              /* [active] */
    const hbp__curve **curves2; /* [active] of what a wave leaves */
    int32_t *left2;
    double *share;      /* [active] */
    int32_t *ending;    /* [active] items whose ends are tried */
    int32_t unfinished; /* waves in which no MetaOp ended: as many as there are MetaOps, and no more */
} sharing;

/* The item on its size, or a smaller one that fits; on none. */
static void seat_item(const sharing *s, int32_t i, int32_t size, int32_t *free)
{
    const hbp__curve *c = s->curves[i];
    while (size >= 0 && c->size[size] > *free)
        size--;
    s->item[i].gpus = 0;
    s->item[i].size = -1;
    if (size >= 0) {
        hbp__wave_item_resize(s->waves->problem, &s->item[i], size);
        *free -= s->item[i].gpus;
    }
}

/* Longest first; what is on no GPU before all others. */
static int needs_more(const sharing *s, int32_t i, int32_t than)
{
    const hbp__wave_item *a = &s->item[i], *b = &s->item[than];
    if ((a->size < 0) != (b->size < 0))
        return a->size < 0;
    int64_t a_ns = s->left[i] * (a->size < 0 ? s->curves[i]->time_ns[0] : a->each_ns);
    int64_t b_ns = s->left[than] * (b->size < 0 ? s->curves[than]->time_ns[0] : b->each_ns);
    return a_ns > b_ns;
}

static void choose_sizes(sharing *s)
{
    int32_t free = s->waves->problem->gpus;
    for (int32_t i = 0; i < s->active; i++) {
        const hbp__curve *c = s->curves[i];
        double share = s->share[i] * (1 + EXACT);
        int32_t size = share >= c->size[c->sizes - 1] ? c->sizes - 1 : hbp__curve_floor(c, (int32_t)share);
        if (s->rule->nearest && size >= 0 && size + 1 < c->sizes &&
            2 * share > (double)c->size[size] + c->size[size + 1])
            size++;
        seat_item(s, i, size, &free);
    }
    for (;;) {
        int32_t most = -1;
        for (int32_t i = 0; i < s->active; i++) {
            int32_t next = s->item[i].size + 1;
            if (next < s->curves[i]->sizes && s->curves[i]->size[next] - s->item[i].gpus <= free &&
                (most < 0 || needs_more(s, i, most)))
                most = i;
        }
        if (most < 0)
            return;
        free += s->item[most].gpus;
        seat_item(s, most, s->item[most].size + 1, &free);
    }
}

/* What the wave and the rest come to when the wave ends at `end_ns`. */
static int64_t price_end(sharing *s, int64_t end_ns, double now)
{
    int64_t longest = 0;
    int32_t rest = 0;
    for (int32_t i = 0; i < s->active; i++) {
        int64_t count = 0;
        if (s->item[i].gpus) {
            count = hbp__min_i64(end_ns / s->item[i].each_ns, s->left[i]);
            longest = hbp__max_i64(longest, count * s->item[i].each_ns);
        }
        if (count < s->left[i]) {
            s->curves2[rest] = s->curves[i];
            s->left2[rest++] = s->left[i] - (int32_t)count;
        }
    }
    if (!rest)
        return longest;
    double after = hbp__relax_near(s->curves2, s->left2, rest, s->waves->problem->gpus, now - (double)longest,
                                   HBP__WAVE_END_TOLERANCE);
    return hbp__add_saturating(longest, hbp__round_i64(after * s->rule->rest));
}

/* Lists items of the wave, of those that end wherever another does the first alone; returns how many. */
static int32_t list_ending(sharing *s)
{
    int32_t count = 0;
    for (int32_t i = 0; i < s->active; i++) {
        int32_t j = s->item[i].gpus ? 0 : count + 1;
        while (j < count &&
               (s->item[s->ending[j]].each_ns != s->item[i].each_ns || s->left[s->ending[j]] != s->left[i]))
            j++;
        if (j == count)
            s->ending[count++] = i;
    }
    return count;
}

/* Keeps of the list what there is time for: the slowest, at whose ends all others have run an operator, and
 * every k-th of the rest. */
static int32_t thin_ending(sharing *s, int32_t count)
{
    int64_t most = hbp__max_i64(HBP__WAVE_ENDING_WORK / s->active, HBP__WAVE_ENDING_LEAST),
            k = hbp__ceil_div(count, most);
    int32_t slowest = 0;
    if (k < 2)
        return count;
    for (int32_t e = 1; e < count; e++)
        if (s->item[s->ending[e]].each_ns > s->item[s->ending[slowest]].each_ns)
            slowest = e;
    int32_t first = s->ending[0];
    s->ending[0] = s->ending[slowest];
    s->ending[slowest] = first;
    for (int64_t e = 0; e < count; e += k)
        s->ending[e / k] = s->ending[e];
    return (int32_t)hbp__ceil_div(count, k);
}

/* The end of an operator that is best to stop at. Every item runs at least once, and a MetaOp ends where
 * `unfinished` is used up. */
static int64_t choose_end(sharing *s, double now)
{
    int64_t least = 0, ends = 0, best = 0, best_price = INT64_MAX;
    int64_t most = hbp__max_i64(HBP__WAVE_END_WORK / ((int64_t)s->active * s->active), HBP__WAVE_END_LEAST);
    int partly = s->unfinished < s->waves->end - s->waves->base;
    int32_t count = thin_ending(s, list_ending(s));
    for (int32_t e = 0; e < count; e++) {
        least = hbp__max_i64(least, s->item[s->ending[e]].each_ns);
        ends += s->left[s->ending[e]];
    }
    int64_t step = hbp__ceil_div(ends, most);
    for (int32_t e = 0; e < count; e++) {
        int32_t i = s->ending[e];
        for (int64_t left = s->left[i]; left > 0; left = partly ? left - step : 0) {
            int64_t end = left * s->item[i].each_ns;
            if (end < least)
                break;
            int64_t its = price_end(s, end, now);
            if (its < best_price) {
                best_price = its;
                best = end;
            }
        }
    }
    return best;
}

static void sort_wave(hbp__wave_item *wave, int32_t number)
{
    for (int32_t i = 1; i < number; i++) {
        hbp__wave_item moved = wave[i];
        int32_t at = i;
        for (; at > 0 && hbp__wave_item_before(&moved, &wave[at - 1]); at--)
            wave[at] = wave[at - 1];
        wave[at] = moved;
    }
}

static hbp_status run_wave(sharing *s)
{
    hbp__wave_item *wave;
    int32_t number = 0, kept = 0;
    HBP__TRY(hbp__level_waves_reserve(s->context, s->waves, s->active, &wave));
    double now = hbp__relax(s->curves, s->left, s->active, s->waves->problem->gpus, s->share);
    choose_sizes(s);
    int64_t end = choose_end(s, now);
    for (int32_t i = 0; i < s->active; i++) {
        if (s->item[i].gpus) {
            wave[number] = s->item[i];
            wave[number].count = (int32_t)hbp__min_i64(end / s->item[i].each_ns, s->left[i]);
            s->left[i] -= wave[number++].count;
        }
        if (!s->left[i])
            continue;
        s->item[kept] = s->item[i];
        s->curves[kept] = s->curves[i];
        s->left[kept++] = s->left[i];
    }
    s->unfinished += kept == s->active;
    s->active = kept;
    sort_wave(wave, number);
    hbp__level_waves_push(s->waves, number);
    return HBP_OK;
}

static hbp_status share_level(sharing *s)
{
    const hbp__level_waves *w = s->waves;
    s->active = w->end - w->base;
    for (int32_t i = 0; i < s->active; i++) {
        s->item[i] = (hbp__wave_item){.meta_op = w->base + i};
        s->curves[i] = hbp__meta_curve(w->problem->scaling, w->base + i);
        s->left[i] = w->problem->meta->meta_op[w->base + i].count;
    }
    while (s->active) {
        HBP__TRY(hbp__tick(s->context, "waves", w->base, w->problem->meta->count));
        HBP__TRY(run_wave(s));
    }
    return HBP_OK;
}

hbp_status hbp__share_waves(hbp_context *context, const hbp__wave_rule *rule, hbp__level_waves *waves)
{
    int64_t mark = hbp__scratch_mark(context);
    uint64_t own = (uint64_t)(waves->end - waves->base);
    sharing s = {.context = context, .rule = rule, .waves = waves};
    s.item = hbp__take(context, own, sizeof *s.item);
    s.curves = hbp__take(context, own, sizeof *s.curves);
    s.left = hbp__take(context, own, sizeof *s.left);
    s.curves2 = hbp__take(context, own, sizeof *s.curves2);
    s.left2 = hbp__take(context, own, sizeof *s.left2);
    s.share = hbp__take(context, own, sizeof *s.share);
    s.ending = hbp__take(context, own, sizeof *s.ending);
    HBP__TRY(hbp__scratch_check(context, "waves"));
    hbp__level_waves_clear(waves);
    HBP__TRY(share_level(&s));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
