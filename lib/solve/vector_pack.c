/* Input: items of two sizes, capacities. Output: which pack holds which item, few packs, all alike.
 *
 * Ways to pack, of which the one with the fewest packs stays:
 *   1. patterns: where a size takes few values, the packs of that size alone are found as patterns
 *      (tight_pack), which are then mixed (vector_mix), and items are drawn for them;
 *   2. best fit decreasing over both sizes (vector_grid);
 *   3. even: the number of packs is given, items are spread in descending order over all of them.
 * Packs past a capacity are mended by exchanges (vector_even); what they cannot mend is taken out and put
 * where there is room. The exchanges also make the packs alike in the end.
 *
 * Complexity: O(n log n). Lower bound: vector_bound. Oracle: brute force (tests/solve/test_vector_pack.c). */
#include "solve/vector_pack.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"
#include "solve/tight_pack.h"
#include "solve/vector_bound.h"
#include "solve/vector_even.h"
#include "solve/vector_grid.h"
#include "solve/vector_mix.h"

#define NONE UINT32_MAX
/* Comparisons of patterns at effort 1. */
#define MIX_WORK (INT64_C(1) << 24)
/* Rounds of exchanges: for packs that are past a capacity, and in the end. */
#define MEND_ROUNDS 12
#define LAST_ROUNDS 8

typedef struct packing_run {
    hbp_context *context;
    const hbp__vectors *vectors;
    hbp__vector_scale scale;
    hbp__rng *rng;
    int32_t effort;
    int64_t bound;
    uint32_t *order;        /* [count] drawn */
    uint32_t *down;         /* [count] by size, largest first; equal ones as drawn */
    uint32_t *list;         /* [count] scratch */
    hbp__vector_load *load; /* [2 count] of packs; scratch */
    hbp__vector_packing best, trial;
} packing_run;

static hbp_status no_memory(const packing_run *r)
{
    return hbp__fail_memory(r->context, "vector packing");
}

static int64_t size_of(const packing_run *r, uint32_t item)
{
    return hbp__max_i64(r->vectors->a[item] * r->scale.a, r->vectors->b[item] * r->scale.b) >> r->scale.shift;
}

/* Orders `items` by size, largest first; stable. */
static hbp_status sort_down(const packing_run *r, uint32_t *items, int64_t count)
{
    const hbp__memory *memory = &r->context->memory;
    uint64_t *keys = hbp__new(memory, (uint64_t)count, sizeof *keys);
    uint32_t *by = hbp__new(memory, (uint64_t)count, 2 * sizeof *by);
    int done = keys && by;
    for (int64_t i = 0; i < count && done; i++) {
        keys[i] = (uint64_t)(HBP__VECTOR_FULL + 1 - hbp__min_i64(size_of(r, items[i]), HBP__VECTOR_FULL));
        by[i] = (uint32_t)i;
        by[count + i] = items[i];
    }
    done = done && hbp__sort_by_u64(memory, keys, by, count);
    for (int64_t i = 0; i < count && done; i++)
        items[i] = by[count + by[i]];
    hbp__delete(memory, keys);
    hbp__delete(memory, by);
    return done ? HBP_OK : no_memory(r);
}

static void measure(packing_run *r)
{
    const hbp__vectors *v = r->vectors;
    memset(r->load, 0, (size_t)r->trial.packs * sizeof *r->load);
    for (int64_t i = 0; i < v->count; i++) {
        hbp__vector_load *load = &r->load[r->trial.pack_of[i]];
        load->a += v->a[i];
        load->b += v->b[i];
        load->weight += hbp__vector_weight(v, i);
    }
}

static int is_over(const packing_run *r, const hbp__vector_load *load)
{
    return load->a > r->vectors->capacity_a || load->b > r->vectors->capacity_b ||
           load->weight > r->vectors->max_weight;
}

/* Takes items[0..count) of one pack out of it, the smallest that suffices or the largest, until it is within
 * its capacities; returns how many, which are then the first. */
static int64_t take_out(const packing_run *r, hbp__vector_load *load, uint32_t *items, int64_t count)
{
    int64_t out = 0;
    while (is_over(r, load)) {
        int64_t best = -1, best_size = 0;
        int best_mends = 0;
        for (int64_t k = out; k < count; k++) {
            uint32_t i = items[k];
            hbp__vector_load without = {load->a - r->vectors->a[i], load->b - r->vectors->b[i],
                                        load->weight - hbp__vector_weight(r->vectors, i)};
            int mends = !is_over(r, &without);
            int64_t size = size_of(r, i);
            if (best < 0 || mends > best_mends ||
                (mends == best_mends && (mends ? size < best_size : size > best_size))) {
                best = k;
                best_size = size;
                best_mends = mends;
            }
        }
        uint32_t i = items[best];
        items[best] = items[out];
        items[out++] = i;
        load->a -= r->vectors->a[i];
        load->b -= r->vectors->b[i];
        load->weight -= hbp__vector_weight(r->vectors, i);
    }
    return out;
}

/* Takes out what stands past a capacity; r->list gets it. Returns how many items. */
static hbp_status take_out_all(packing_run *r, int64_t *count)
{
    const hbp__memory *memory = &r->context->memory;
    int64_t held = 0;
    measure(r);
    for (int64_t i = 0; i < r->vectors->count; i++)
        if (is_over(r, &r->load[r->trial.pack_of[i]]))
            r->list[held++] = (uint32_t)i;
    uint64_t *keys = hbp__new(memory, (uint64_t)held, sizeof *keys);
    uint32_t *by = hbp__new(memory, (uint64_t)held, 2 * sizeof *by);
    int done = keys && by;
    for (int64_t k = 0; k < held && done; k++) {
        keys[k] = r->trial.pack_of[r->list[k]];
        by[k] = (uint32_t)k;
    }
    done = done && hbp__sort_by_u64(memory, keys, by, held);
    *count = 0;
    for (int64_t k = 0; k < held && done; k++)
        by[held + k] = r->list[by[k]];
    for (int64_t k = 0, end; k < held && done; k = end) {
        uint32_t pack = r->trial.pack_of[by[held + k]];
        for (end = k; end < held && r->trial.pack_of[by[held + end]] == pack; end++)
            ;
        int64_t out = take_out(r, &r->load[pack], by + held + k, end - k);
        memcpy(r->list + *count, by + held + k, (size_t)out * sizeof *r->list);
        *count += out;
    }
    hbp__delete(memory, keys);
    hbp__delete(memory, by);
    return done ? HBP_OK : no_memory(r);
}

/* Places r->list[0..count) where there is room beside the other items, in new packs where there is none. */
static hbp_status place_rest(packing_run *r, int64_t count)
{
    HBP__TRY(sort_down(r, r->list, count));
    hbp__vector_grid grid;
    hbp_status status = hbp__vector_grid_open(r->context, r->vectors, &grid);
    for (int64_t p = 0; p < r->trial.packs && status == HBP_OK; p++)
        status = hbp__vector_grid_add(&grid, r->load[p]);
    int64_t left = 0;
    if (status == HBP_OK)
        status = hbp__vector_place(&grid, HBP__PLACE_TIGHT, r->list, count, r->trial.pack_of, &left);
    r->trial.packs = grid.packs;
    hbp__vector_grid_close(&grid);
    return status;
}

/* Numbers the packs of the trial that hold something; keeps it if it is better than the best. */
static void keep_better(packing_run *r)
{
    int64_t packs = 0;
    measure(r);
    for (int64_t p = 0; p < r->trial.packs; p++)
        r->load[p].weight = r->load[p].weight ? packs++ : -1;
    for (int64_t i = 0; i < r->vectors->count; i++)
        r->trial.pack_of[i] = (uint32_t)r->load[r->trial.pack_of[i]].weight;
    r->trial.packs = packs;
    if (r->best.packs && r->best.packs <= packs)
        return;
    hbp__vector_packing swap = r->best;
    r->best = r->trial;
    r->trial = swap;
}

/* Brings the trial within the capacities. */
static hbp_status mend(packing_run *r, int64_t rounds)
{
    int64_t over = 0, out = 0;
    HBP__TRY(hbp__vector_even(r->context, r->vectors, &r->trial, rounds, &over));
    if (over) {
        HBP__TRY(take_out_all(r, &out));
        HBP__TRY(place_rest(r, out));
    }
    keep_better(r);
    return HBP_OK;
}

static hbp_status pack_tight(packing_run *r)
{
    hbp__vector_grid grid;
    int64_t left;
    memcpy(r->list, r->down, (size_t)r->vectors->count * sizeof *r->list);
    hbp_status status = hbp__vector_grid_open(r->context, r->vectors, &grid);
    if (status == HBP_OK)
        status =
            hbp__vector_place(&grid, HBP__PLACE_TIGHT, r->list, r->vectors->count, r->trial.pack_of, &left);
    r->trial.packs = grid.packs;
    hbp__vector_grid_close(&grid);
    if (status == HBP_OK)
        keep_better(r);
    return status;
}

/* Spreads r->list[0..count), largest first, over the packs of the trial with loads r->load; what finds no
 * room goes past the capacities of those that hold least. */
static hbp_status spread(packing_run *r, int64_t count)
{
    hbp__vector_grid grid;
    int64_t left = 0;
    hbp_status status = hbp__vector_grid_open(r->context, r->vectors, &grid);
    for (int64_t p = 0; p < r->trial.packs && status == HBP_OK; p++)
        status = hbp__vector_grid_add(&grid, r->load[p]);
    if (status == HBP_OK)
        status = hbp__vector_place(&grid, HBP__PLACE_EVEN, r->list, count, r->trial.pack_of, &left);
    if (status == HBP_OK)
        memcpy(r->load, grid.load, (size_t)r->trial.packs * sizeof *r->load);
    hbp__vector_grid_close(&grid);
    HBP__TRY(status);
    if (!left)
        return HBP_OK;
    const hbp__memory *memory = &r->context->memory;
    uint64_t packs = (uint64_t)r->trial.packs;
    uint64_t *keys = hbp__new(memory, packs, sizeof *keys);
    uint32_t *by = hbp__new(memory, packs, sizeof *by);
    int done = keys && by;
    for (int64_t p = 0; p < r->trial.packs && done; p++) {
        keys[p] = (uint64_t)((r->load[p].a * r->scale.a + r->load[p].b * r->scale.b) >> r->scale.shift);
        by[p] = (uint32_t)p;
    }
    done = done && hbp__sort_by_u64(memory, keys, by, r->trial.packs);
    for (int64_t k = 0; k < left && done; k++)
        r->trial.pack_of[r->list[k]] = by[k % r->trial.packs];
    hbp__delete(memory, keys);
    hbp__delete(memory, by);
    return done ? HBP_OK : no_memory(r);
}

static hbp_status pack_even(packing_run *r, int64_t packs)
{
    memcpy(r->list, r->down, (size_t)r->vectors->count * sizeof *r->list);
    memset(r->load, 0, (size_t)packs * sizeof *r->load);
    r->trial.packs = packs;
    HBP__TRY(spread(r, r->vectors->count));
    return mend(r, MEND_ROUNDS * r->effort);
}

/* The classes of one size, where it takes few values. */
typedef struct few {
    const uint32_t *own, *other;
    int64_t capacity, other_capacity;
    int64_t count;
    int64_t size[HBP__MIX_CLASSES], number[HBP__MIX_CLASSES], sum[HBP__MIX_CLASSES];
    int64_t start[HBP__MIX_CLASSES + 1]; /* into a list of the items by class */
} few;

static int64_t class_at(const few *f, int64_t size)
{
    int64_t low = 0, high = f->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (f->size[middle] < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the classes of the positive sizes; 0 when there are too many. */
static int find_classes(const hbp__vectors *v, few *f)
{
    f->count = 0;
    for (int64_t i = 0; i < v->count; i++) {
        if (!f->own[i])
            continue;
        int64_t c = class_at(f, f->own[i]);
        if (c == f->count || f->size[c] != f->own[i]) {
            if (f->count == HBP__MIX_CLASSES)
                return 0;
            for (int64_t k = f->count++; k > c; k--) {
                f->size[k] = f->size[k - 1];
                f->number[k] = f->number[k - 1];
                f->sum[k] = f->sum[k - 1];
            }
            f->size[c] = f->own[i];
            f->number[c] = f->sum[c] = 0;
        }
        f->number[c]++;
        f->sum[c] += f->other[i];
    }
    return f->count > 0;
}

/* Draws items for the patterns into the first packs of the trial; r->list gets the items of size 0. */
static int64_t draw(packing_run *r, few *f, const hbp__patterns *patterns, uint32_t *by_class)
{
    int64_t rest = 0, pack = 0;
    f->start[0] = 0;
    for (int64_t c = 0; c < f->count; c++)
        f->start[c + 1] = f->start[c] + f->number[c];
    for (int64_t k = 0; k < r->vectors->count; k++) {
        uint32_t i = r->order[k];
        if (f->own[i])
            by_class[f->start[class_at(f, f->own[i])]++] = i;
        else
            r->list[rest++] = i;
    }
    for (int64_t c = f->count; c > 0; c--)
        f->start[c] = f->start[c - 1];
    f->start[0] = 0;
    for (int64_t p = 0; p < patterns->count; p++)
        for (int64_t k = 0; k < patterns->times[p]; k++, pack++)
            for (int64_t at = patterns->offsets[p]; at < patterns->offsets[p + 1]; at++)
                for (int32_t n = 0; n < patterns->run[at].number; n++)
                    r->trial.pack_of[by_class[f->start[patterns->run[at].class_index]++]] = (uint32_t)pack;
    return rest;
}

static hbp_status use_patterns(packing_run *r, few *f, hbp__patterns *patterns)
{
    hbp__mix_class classes[HBP__MIX_CLASSES];
    for (int64_t c = 0; c < f->count; c++)
        classes[c] = (hbp__mix_class){f->size[c], f->sum[c] / f->number[c]};
    int64_t work = MIX_WORK << (r->effort - 1);
    HBP__TRY(hbp__mix_even(r->context, classes, f->count, (hbp__mix_room){f->capacity, f->other_capacity},
                           &work, patterns));
    uint32_t *by_class = hbp__new(&r->context->memory, (uint64_t)r->vectors->count, sizeof *by_class);
    if (!by_class)
        return no_memory(r);
    int64_t rest = draw(r, f, patterns, by_class);
    hbp__delete(&r->context->memory, by_class);
    r->trial.packs = hbp__max_i64(patterns->packs, r->bound);
    if (rest) {
        hbp_status status = sort_down(r, r->list, rest);
        memset(r->load, 0, (size_t)r->trial.packs * sizeof *r->load);
        for (int64_t i = 0; i < r->vectors->count; i++) {
            if (!f->own[i])
                continue;
            hbp__vector_load *load = &r->load[r->trial.pack_of[i]];
            load->a += r->vectors->a[i];
            load->b += r->vectors->b[i];
            load->weight += hbp__vector_weight(r->vectors, i);
        }
        if (status == HBP_OK)
            status = spread(r, rest);
        HBP__TRY(status);
    }
    return mend(r, MEND_ROUNDS * r->effort);
}

/* Packs by the patterns of one size, if it takes few values. */
static hbp_status pack_patterns(packing_run *r, int second)
{
    const hbp__vectors *v = r->vectors;
    few f = {.own = second ? v->b : v->a,
             .other = second ? v->a : v->b,
             .capacity = second ? v->capacity_b : v->capacity_a,
             .other_capacity = second ? v->capacity_a : v->capacity_b};
    if (v->weight || !find_classes(v, &f))
        return HBP_OK;
    hbp__classes classes = {f.count, f.size, f.number, NULL};
    hbp__patterns patterns;
    int64_t bound;
    hbp__patterns_open(r->context, &patterns);
    hbp_status status = hbp__tight_pack(r->context, &classes, (hbp__room){f.capacity, v->max_weight},
                                        r->effort, &patterns, &bound);
    if (status == HBP_OK)
        status = use_patterns(r, &f, &patterns);
    hbp__patterns_close(&patterns);
    return status;
}

static hbp_status pack_all(packing_run *r)
{
    const hbp__vectors *v = r->vectors;
    HBP__TRY(hbp__vector_bound(r->context, v, &r->bound));
    for (int64_t i = 0; i < v->count; i++)
        r->order[i] = (uint32_t)i;
    hbp__rng_shuffle_u32(r->rng, r->order, (uint64_t)v->count);
    memcpy(r->down, r->order, (size_t)v->count * sizeof *r->down);
    HBP__TRY(sort_down(r, r->down, v->count));
    HBP__TRY(pack_patterns(r, 0));
    if (!r->best.packs || r->best.packs > r->bound)
        HBP__TRY(pack_patterns(r, 1));
    if (!r->best.packs || r->best.packs > r->bound)
        HBP__TRY(pack_even(r, r->bound));
    if (r->best.packs > r->bound)
        HBP__TRY(pack_tight(r));
    int64_t over;
    return hbp__vector_even(r->context, v, &r->best, LAST_ROUNDS * r->effort, &over);
}

hbp_status hbp__vector_pack(hbp_context *context, const hbp__vectors *vectors, int32_t effort, hbp__rng *rng,
                            hbp__vector_packing *packing, int64_t *bound)
{
    const hbp__memory *memory = &context->memory;
    uint64_t rows = (uint64_t)vectors->count;
    packing_run r = {.context = context, .vectors = vectors, .rng = rng, .effort = effort};
    r.scale = hbp__vector_scale_of(vectors);
    r.order = hbp__new(memory, rows, sizeof *r.order);
    r.down = hbp__new(memory, rows, sizeof *r.down);
    r.list = hbp__new(memory, rows, sizeof *r.list);
    r.load = hbp__new(memory, rows, 2 * sizeof *r.load);
    r.best.pack_of = hbp__new(memory, rows, sizeof *r.best.pack_of);
    r.trial.pack_of = hbp__new(memory, rows, sizeof *r.trial.pack_of);
    hbp_status status = no_memory(&r);
    if (r.order && r.down && r.list && r.load && r.best.pack_of && r.trial.pack_of)
        status = pack_all(&r);
    if (status == HBP_OK) {
        memcpy(packing->pack_of, r.best.pack_of, rows * sizeof *packing->pack_of);
        packing->packs = r.best.packs;
        *bound = r.bound;
    }
    void *blocks[] = {r.order, r.down, r.list, r.load, r.best.pack_of, r.trial.pack_of};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hbp__delete(memory, blocks[i]);
    return status;
}
