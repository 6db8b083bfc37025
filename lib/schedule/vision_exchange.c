/* Exchanges between micro-batches. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "schedule/tuning.h"
#include "schedule/vision.h"

typedef struct batch {
    hbp__sized *packs;
    int64_t count;
    int64_t sum[HBP__SIZES];
    int64_t most[HBP__SIZES];
    int64_t second[HBP__SIZES]; /* largest but for the one at `at` */
    int64_t at[HBP__SIZES];     /* of the largest */
    int64_t waste;              /* of all sizes */
    int32_t changed_in;         /* round of the last exchange */
} batch;

static void measure_batch(batch *b, int64_t width)
{
    b->waste = 0;
    for (int d = 0; d < HBP__SIZES; d++) {
        b->sum[d] = b->most[d] = b->second[d] = b->at[d] = 0;
        for (int64_t i = 0; i < b->count; i++) {
            int64_t size = b->packs[i].size[d];
            b->sum[d] += size;
            if (size > b->most[d] || i == 0) {
                b->second[d] = b->most[d];
                b->most[d] = size;
                b->at[d] = i;
            } else {
                b->second[d] = hbp__max_i64(b->second[d], size);
            }
        }
        b->waste += hbp__waste(b->most[d], b->sum[d], width);
    }
}

/* Waste of a micro-batch once `in` has come for the pack at `out`. */
static int64_t waste_with(const batch *b, int64_t out, const hbp__sized *in, int64_t width)
{
    int64_t waste = 0;
    for (int d = 0; d < HBP__SIZES; d++) {
        int64_t most = hbp__max_i64(b->at[d] == out ? b->second[d] : b->most[d], in->size[d]);
        waste += hbp__waste(most, b->sum[d] - b->packs[out].size[d] + in->size[d], width);
    }
    return waste;
}

/* The best exchange so far of two micro-batches. */
typedef struct swap {
    int64_t waste;
    int64_t i, j;
} swap;

static void consider(const batch *a, const batch *b, int64_t i, int64_t j, int64_t width, swap *best)
{
    int64_t waste = waste_with(a, i, &b->packs[j], width);
    if (waste >= best->waste)
        return;
    waste += waste_with(b, j, &a->packs[i], width);
    if (waste < best->waste)
        *best = (swap){waste, i, j};
}

/* Makes the best exchange that moves a largest pack of either, as the others lower no maximum; 0 when none
 * lowers the waste. O(packs of both). */
static int exchange(batch *a, batch *b, int64_t width)
{
    swap best = {a->waste + b->waste, -1, -1};
    for (int d = 0; d < HBP__SIZES; d++) {
        int is_new = 1, is_new_to_b = 1;
        for (int before = 0; before < d; before++) {
            is_new &= a->at[before] != a->at[d];
            is_new_to_b &= b->at[before] != b->at[d];
        }
        for (int64_t j = 0; is_new && j < b->count; j++)
            consider(a, b, a->at[d], j, width, &best);
        for (int64_t i = 0; is_new_to_b && i < a->count; i++)
            consider(a, b, i, b->at[d], width, &best);
    }
    if (best.i < 0)
        return 0;
    hbp__sized moving = a->packs[best.i];
    a->packs[best.i] = b->packs[best.j];
    b->packs[best.j] = moving;
    measure_batch(a, width);
    measure_batch(b, width);
    return 1;
}

typedef struct exchanges {
    batch *batch;
    uint32_t *order; /* [count] micro-batches */
    int64_t *key;    /* [count] */
    int64_t count;
    int64_t width;
    int64_t neighbours;
    int64_t meetings; /* left */
    int32_t round;
} exchanges;

static void meet(exchanges *e, batch *a, batch *b)
{
    if (a->waste + b->waste == 0 || (a->changed_in < e->round - 1 && b->changed_in < e->round - 1))
        return;
    int64_t swaps = 0;
    e->meetings--;
    while (swaps < HBP__VISION_MAX_SWAPS && exchange(a, b, e->width))
        swaps++;
    if (swaps)
        a->changed_in = b->changed_in = e->round;
}

#define TICK_BATCHES 512

/* Every micro-batch meets its neighbours in the order of the sums of size `d`. */
static hbp_status pass(hbp_context *context, exchanges *e, int d)
{
    for (int64_t m = 0; m < e->count; m++) {
        e->order[m] = (uint32_t)m;
        e->key[m] = e->batch[m].sum[d];
    }
    HBP__TRY(hbp__order_by_i64(context, e->key, e->order, e->count, "the order of micro-batches"));
    for (int64_t i = 0; i < e->count; i++) {
        int64_t end = hbp__min_i64(i + 1 + e->neighbours, e->count);
        for (int64_t j = i + 1; j < end && e->meetings > 0; j++)
            meet(e, &e->batch[e->order[i]], &e->batch[e->order[j]]);
        if (i % TICK_BATCHES == 0)
            HBP__TRY(hbp__tick(context, "balance", i, e->count));
    }
    return HBP_OK;
}

static int64_t total(const exchanges *e)
{
    int64_t waste = 0;
    for (int64_t m = 0; m < e->count; m++)
        waste += e->batch[m].waste;
    return waste;
}

static hbp_status exchange_all(hbp_context *context, exchanges *e)
{
    int64_t before = total(e);
    for (e->round = 1; e->round <= HBP__VISION_ROUNDS && before && e->meetings > 0; e->round++) {
        for (int d = 0; d < HBP__SIZES; d++)
            HBP__TRY(pass(context, e, d));
        int64_t after = total(e);
        if (before - after <= before / HBP__VISION_WORTH_IT)
            break;
        before = after;
    }
    return HBP_OK;
}

hbp_status hbp__vision_exchange(hbp_context *context, hbp__sized *packs, int64_t count, int64_t width)
{
    exchanges e = {.count = hbp__ceil_div(count, width), .width = width};
    uint64_t rows = (uint64_t)e.count;
    int64_t mark = hbp__scratch_mark(context);
    e.neighbours = hbp__max_i64(1, hbp__min_i64(HBP__VISION_NEIGHBOURS, HBP__VISION_MEETINGS_A_ROUND / width /
                                                                            HBP__SIZES / (e.count + 1)));
    e.meetings = hbp__max_i64(HBP__VISION_MEETINGS / width, HBP__SIZES * e.count);
    e.batch = hbp__take(context, rows, sizeof *e.batch);
    e.order = hbp__take(context, rows, sizeof *e.order);
    e.key = hbp__take(context, rows, sizeof *e.key);
    HBP__TRY(hbp__scratch_check(context, "the order of packs"));
    for (int64_t m = 0; m < e.count; m++) {
        e.batch[m].packs = packs + m * width;
        e.batch[m].count = hbp__min_i64(width, count - m * width);
        e.batch[m].changed_in = 0;
        measure_batch(&e.batch[m], width);
    }
    HBP__TRY(exchange_all(context, &e));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}
