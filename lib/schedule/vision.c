/* Cutting packs into strips by one size and sorting each by the other. */
#include "schedule/vision.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"

/* Up to so many micro-batches, so many random orders are tried as well. */
enum { FEW_BATCHES = 4, FEW_ORDERS = 12 };

int64_t hbp__vision_waste(const hbp__sized *packs, int64_t count, int64_t width)
{
    int64_t waste = 0;
    for (int64_t first = 0; first < count; first += width) {
        int64_t most[2] = {0, 0}, sum[2] = {0, 0}, end = hbp__min_i64(first + width, count);
        for (int64_t i = first; i < end; i++)
            for (int d = 0; d < 2; d++) {
                most[d] = hbp__max_i64(most[d], packs[i].size[d]);
                sum[d] += packs[i].size[d];
            }
        waste += hbp__waste(most[0], sum[0], width) + hbp__waste(most[1], sum[1], width);
    }
    return waste;
}

/* Packs in descending order of each size, ties by the other one. */
typedef struct strips {
    const hbp__memory *memory;
    const hbp__sized *packs;
    int64_t count;
    int64_t width;
    int64_t batches;
    uint32_t *by[2]; /* [count] packs in the order of a size */
    int64_t *place;  /* [count] micro-batch that a pack has in the order of the size that cuts strips */
    int64_t *next;   /* [batches] */
    hbp__sized *laid, *best;
    int64_t best_waste;
} strips;

/* Cuts the order by the size `outer` into `number` strips of whole micro-batches, sorts each by the other
 * size, and keeps what comes out if it is the best so far. O(count). */
static void try_strips(strips *s, int outer, int64_t number)
{
    const uint32_t *inner = s->by[!outer];
    for (int64_t k = 0; k < number; k++)
        s->next[k] = hbp__ceil_div(k * s->batches, number) * s->width;
    for (int64_t i = 0; i < s->count; i++) {
        int64_t strip = s->place[inner[i]] * number / s->batches;
        s->laid[s->next[strip]++] = s->packs[inner[i]];
    }
    int64_t waste = hbp__vision_waste(s->laid, s->count, s->width);
    if (waste >= s->best_waste)
        return;
    hbp__sized *worse = s->best;
    s->best = s->laid;
    s->laid = worse;
    s->best_waste = waste;
}

/* One strip, two, four, ... and as many as there are micro-batches; then numbers between the best power of
 * two and its neighbours. */
static hbp_status try_sizes(hbp_context *context, strips *s, int outer)
{
    int64_t most = s->batches, before = s->best_waste, best = 1;
    for (int64_t i = 0; i < s->count; i++)
        s->place[s->by[outer][i]] = i / s->width;
    for (int64_t number = 1;; number = hbp__min_i64(2 * number, most)) {
        try_strips(s, outer, number);
        if (s->best_waste < before)
            best = number;
        before = s->best_waste;
        HBP__TRY(hbp__tick(context, "balance", number, most));
        if (number == most)
            break;
    }
    static const int64_t eighths[] = {5, 6, 7, 10, 12, 14};
    for (size_t i = 0; i < sizeof eighths / sizeof *eighths; i++) {
        int64_t number = best * eighths[i] / 8;
        if (number >= 1 && number < most)
            try_strips(s, outer, number);
    }
    return HBP_OK;
}

static int sort_packs(strips *s, int64_t *key)
{
    for (int d = 0; d < 2; d++) {
        for (int64_t i = 0; i < s->count; i++)
            s->by[d][i] = (uint32_t)i;
        for (int pass = 0; pass < 2; pass++) {
            int size = pass ? d : !d;
            for (int64_t i = 0; i < s->count; i++)
                key[i] = -s->packs[i].size[size];
            if (!hbp__sort_by_i64(s->memory, key, s->by[d], s->count))
                return 0;
        }
    }
    return 1;
}

hbp_status hbp__vision_strips(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width)
{
    const hbp__memory *memory = &context->memory;
    uint64_t rows = (uint64_t)count;
    strips s = {.memory = memory, .packs = packs, .count = count, .width = width, .best_waste = INT64_MAX};
    s.batches = hbp__ceil_div(count, width);
    s.by[0] = hbp__new(memory, rows, sizeof *s.by[0]);
    s.by[1] = hbp__new(memory, rows, sizeof *s.by[1]);
    s.place = hbp__new(memory, rows, sizeof *s.place);
    s.next = hbp__new(memory, (uint64_t)s.batches, sizeof *s.next);
    s.laid = hbp__new(memory, rows, sizeof *s.laid);
    s.best = hbp__new(memory, rows, sizeof *s.best);
    hbp_status status = HBP_OK;
    if (!s.by[0] || !s.by[1] || !s.place || !s.next || !s.laid || !s.best || !sort_packs(&s, s.place))
        status = hbp__fail_memory(context, "the order of packs");
    for (int outer = 0; outer < 2 && status >= 0 && count; outer++)
        status = try_sizes(context, &s, outer);
    if (status >= 0 && count)
        memcpy(packs, s.best, (size_t)count * sizeof *packs);
    hbp__delete(memory, s.best);
    hbp__delete(memory, s.laid);
    hbp__delete(memory, s.next);
    hbp__delete(memory, s.place);
    hbp__delete(memory, s.by[1]);
    hbp__delete(memory, s.by[0]);
    return status;
}

static void shuffle(hbp__sized *packs, int64_t count, hbp__rng *rng)
{
    for (int64_t i = count; i > 1; i--) {
        uint32_t j = hbp__rng_below(rng, (uint64_t)i);
        hbp__sized moving = packs[i - 1];
        packs[i - 1] = packs[j];
        packs[j] = moving;
    }
}

/* Exchanges from random orders, which may end better than those from strips where there is little to choose
 * from. */
static hbp_status try_orders(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width,
                             hbp__rng *rng)
{
    uint64_t bytes = (uint64_t)count * sizeof *packs;
    hbp__sized *other = hbp__new(&context->memory, (uint64_t)count, sizeof *other);
    if (!other)
        return hbp__fail_memory(context, "the order of packs");
    memcpy(other, packs, bytes);
    int64_t best = hbp__vision_waste(packs, count, width);
    hbp_status status = HBP_OK;
    for (int i = 0; i < FEW_ORDERS && status >= 0 && best; i++) {
        shuffle(other, count, rng);
        status = hbp__vision_exchange(context, other, count, width);
        int64_t waste = hbp__vision_waste(other, count, width);
        if (status >= 0 && waste < best) {
            best = waste;
            memcpy(packs, other, bytes);
        }
    }
    hbp__delete(&context->memory, other);
    return status;
}

hbp_status hbp__vision_order(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width,
                             hbp__rng *rng)
{
    shuffle(packs, count, rng);
    if (width == 1)
        return HBP_OK; /* nobody waits */
    HBP__TRY(hbp__vision_strips(context, packs, count, width));
    HBP__TRY(hbp__vision_exchange(context, packs, count, width));
    return count <= FEW_BATCHES * width ? try_orders(context, packs, count, width, rng) : HBP_OK;
}
