/* Strips of packs alike in one size, cut into parts alike in another, sorted by the third. */
#include "schedule/vision.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/tuning.h"

int64_t hbp__vision_waste(const hbp__sized *packs, int64_t count, int64_t width)
{
    int64_t waste = 0;
    for (int64_t first = 0; first < count; first += width) {
        int64_t most[HBP__SIZES] = {0}, sum[HBP__SIZES] = {0}, end = hbp__min_i64(first + width, count);
        for (int64_t i = first; i < end; i++)
            for (int d = 0; d < HBP__SIZES; d++) {
                most[d] = hbp__max_i64(most[d], packs[i].size[d]);
                sum[d] += packs[i].size[d];
            }
        for (int d = 0; d < HBP__SIZES; d++)
            waste += hbp__waste(most[d], sum[d], width);
    }
    return waste;
}

/* A way to lay packs out: cut in the order of size `outer` into `strips` strips of whole micro-batches, each
 * in the order of `inner` into `parts`, each of those in the order of time. With as many parts as a strip has
 * micro-batches it is sorted by `inner` alone. */
typedef struct way {
    int outer, inner;
    int64_t strips, parts;
} way;

typedef struct strips {
    hbp_context *context;
    const hbp__sized *packs;
    int64_t count;
    int64_t width;
    int64_t batches;
    uint32_t *by[HBP__SIZES]; /* [count] packs in descending order of a size, ties by the others */
    int64_t *place;           /* [count] micro-batch that a pack has in the order of the outer size */
    int64_t *next;            /* [batches] */
    int64_t *part;            /* [count] first micro-batch of the part that a pack is in */
    hbp__sized *laid, *best;
    int64_t best_waste;
    way best_way;
} strips;

/* First micro-batch of stretch k of n over so many micro-batches; micro-batch m is in stretch m n / batches.
 */
static int64_t first_of(int64_t k, int64_t batches, int64_t n)
{
    return hbp__ceil_div(k * batches, n);
}

/* Lays the packs out and keeps that if it is the best so far. O(count). */
static hbp_status try_way(strips *s, way w)
{
    const uint32_t *inner = s->by[w.inner];
    for (int64_t k = 0; k < w.strips; k++)
        s->next[k] = first_of(k, s->batches, w.strips) * s->width;
    if (w.parts >= s->batches) {
        for (int64_t i = 0; i < s->count; i++) {
            HBP__TRY(hbp__tick_row(s->context, "balance", i, s->count));
            int64_t strip = s->place[inner[i]] * w.strips / s->batches;
            s->laid[s->next[strip]++] = s->packs[inner[i]];
        }
    } else {
        for (int64_t i = 0; i < s->count; i++) {
            HBP__TRY(hbp__tick_row(s->context, "balance", i, s->count));
            int64_t strip = s->place[inner[i]] * w.strips / s->batches, at = s->next[strip]++ / s->width;
            int64_t first = first_of(strip, s->batches, w.strips);
            int64_t rows = first_of(strip + 1, s->batches, w.strips) - first;
            int64_t parts = hbp__min_i64(w.parts, rows);
            s->part[inner[i]] = first + first_of((at - first) * parts / rows, rows, parts);
        }
        for (int64_t m = 0; m < s->batches; m++)
            s->next[m] = m * s->width;
        for (int64_t i = 0; i < s->count; i++) {
            HBP__TRY(hbp__tick_row(s->context, "balance", i, s->count));
            uint32_t p = s->by[HBP__TIME][i];
            s->laid[s->next[s->part[p]]++] = s->packs[p];
        }
    }
    int64_t waste = hbp__vision_waste(s->laid, s->count, s->width);
    if (waste >= s->best_waste)
        return HBP_OK;
    hbp__sized *worse = s->best;
    s->best = s->laid;
    s->laid = worse;
    s->best_waste = waste;
    s->best_way = w;
    return HBP_OK;
}

static hbp_status set_outer(strips *s, int outer)
{
    for (int64_t i = 0; i < s->count; i++) {
        HBP__TRY(hbp__tick_row(s->context, "balance", i, s->count));
        s->place[s->by[outer][i]] = i / s->width;
    }
    return HBP_OK;
}

/* Numbers of strips, or of parts: between the best power of two and its neighbours. */
static hbp_status try_near(strips *s, int by_parts)
{
    static const int64_t eighths[] = {5, 6, 7, 10, 12, 14};
    way w = s->best_way;
    int64_t around = by_parts ? w.parts : w.strips;
    for (size_t i = 0; i < sizeof eighths / sizeof *eighths; i++) {
        int64_t number = around * eighths[i] / 8;
        if (by_parts)
            w.parts = number;
        else
            w.strips = number;
        if (number >= 1 && number < s->batches)
            HBP__TRY(try_way(s, w));
    }
    return HBP_OK;
}

/* One strip, two, four, ... and as many as there are micro-batches; then the best number's parts likewise. */
static hbp_status try_ways(strips *s)
{
    int64_t most = s->batches;
    for (int outer = HBP__VISION; outer <= HBP__TOKENS; outer++) {
        int64_t before = s->best_waste;
        HBP__TRY(set_outer(s, outer));
        for (int64_t number = 1;; number = hbp__min_i64(2 * number, most)) {
            HBP__TRY(try_way(s, (way){outer, HBP__VISION + HBP__TOKENS - outer, number, most}));
            HBP__TRY(hbp__tick(s->context, "balance", number, most));
            if (number == most)
                break;
        }
        if (s->best_waste < before)
            HBP__TRY(try_near(s, 0));
    }
    HBP__TRY(set_outer(s, s->best_way.outer));
    way w = s->best_way;
    for (w.parts = 1; w.parts < hbp__ceil_div(most, w.strips); w.parts *= 2) {
        HBP__TRY(try_way(s, w));
        HBP__TRY(hbp__tick(s->context, "balance", w.parts, most));
    }
    if (s->best_way.parts < most) {
        HBP__TRY(try_near(s, 1));
        HBP__TRY(try_near(s, 0));
        w = s->best_way;
        for (int64_t half = 0; half < 2; half++) {
            w.strips = half ? s->best_way.strips / 2 : s->best_way.strips * 2;
            if (w.strips >= 1 && w.strips <= most)
                HBP__TRY(try_way(s, w));
        }
    }
    return HBP_OK;
}

static hbp_status sort_packs(strips *s, int64_t *key)
{
    /* What each order is sorted by, the least first. */
    static const int passes[HBP__SIZES][HBP__SIZES] = {{HBP__TIME, HBP__TOKENS, HBP__VISION},
                                                       {HBP__VISION, HBP__TIME, HBP__TOKENS},
                                                       {HBP__VISION, HBP__TOKENS, HBP__TIME}};
    for (int d = 0; d < HBP__SIZES; d++) {
        for (int64_t i = 0; i < s->count; i++) {
            HBP__TRY(hbp__tick_row(s->context, "order", i, s->count));
            s->by[d][i] = (uint32_t)i;
        }
        for (int pass = 0; pass < HBP__SIZES; pass++) {
            for (int64_t i = 0; i < s->count; i++) {
                HBP__TRY(hbp__tick_row(s->context, "order", i, s->count));
                key[i] = -s->packs[i].size[passes[d][pass]];
            }
            HBP__TRY(hbp__order_by_i64(s->context, key, s->by[d], s->count, "the order of packs"));
        }
    }
    return HBP_OK;
}

hbp_status hbp__vision_strips(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width)
{
    uint64_t rows = (uint64_t)count;
    strips s = {.context = context, .packs = packs, .count = count, .width = width, .best_waste = INT64_MAX};
    int64_t mark = hbp__scratch_mark(context);
    s.batches = hbp__ceil_div(count, width);
    for (int d = 0; d < HBP__SIZES; d++)
        s.by[d] = hbp__take(context, rows, sizeof *s.by[d]);
    s.place = hbp__take(context, rows, sizeof *s.place);
    s.part = hbp__take(context, rows, sizeof *s.part);
    s.next = hbp__take(context, (uint64_t)s.batches, sizeof *s.next);
    s.laid = hbp__take(context, rows, sizeof *s.laid);
    s.best = hbp__take(context, rows, sizeof *s.best);
    HBP__TRY(hbp__scratch_check(context, "the order of packs"));
    HBP__TRY(sort_packs(&s, s.place));
    if (count) {
        HBP__TRY(try_ways(&s));
        memcpy(packs, s.best, (size_t)count * sizeof *packs);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status shuffle(hbp_context *context, hbp__sized *packs, int64_t count, hbp__rng *rng)
{
    for (int64_t i = count; i > 1; i--) {
        HBP__TRY(hbp__tick_row(context, "shuffle", count - i, count));
        uint32_t j = hbp__rng_below(rng, (uint64_t)i);
        hbp__sized moving = packs[i - 1];
        packs[i - 1] = packs[j];
        packs[j] = moving;
    }
    return HBP_OK;
}

/* Exchanges from random orders, which may end better than those from strips where there is little to choose
 * from. */
static hbp_status try_orders(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width,
                             hbp__rng *rng)
{
    uint64_t bytes = (uint64_t)count * sizeof *packs;
    int64_t mark = hbp__scratch_mark(context);
    hbp__sized *other = hbp__take(context, (uint64_t)count, sizeof *other);
    HBP__TRY(hbp__scratch_check(context, "the order of packs"));
    memcpy(other, packs, bytes);
    int64_t best = hbp__vision_waste(packs, count, width);
    for (int i = 0; i < HBP__VISION_ORDERS && best; i++) {
        HBP__TRY(shuffle(context, other, count, rng));
        HBP__TRY(hbp__vision_exchange(context, other, count, width));
        int64_t waste = hbp__vision_waste(other, count, width);
        if (waste < best) {
            best = waste;
            memcpy(packs, other, bytes);
        }
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__vision_order(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width,
                             hbp__rng *rng)
{
    HBP__TRY(shuffle(context, packs, count, rng));
    if (width == 1)
        return HBP_OK; /* nobody waits */
    HBP__TRY(hbp__vision_strips(context, packs, count, width));
    HBP__TRY(hbp__vision_exchange(context, packs, count, width));
    return count <= HBP__VISION_FEW_BATCHES * width ? try_orders(context, packs, count, width, rng) : HBP_OK;
}
