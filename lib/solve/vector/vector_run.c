/* The trials of hbp__vector_pack: spread, best fit, first and next fit, and how a trial past a capacity is
 * repaired. O(count log count) each but first fit, O(count packs). */
#include "solve/vector/vector_run.h"

#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "solve/vector/vector_tuning.h"
#include "solve/vector/vectors.h"

#define WHAT "vector packing"

#define ITEMS_A_TICK 4096
/* Packs looked at between two looks at a request to cancel. */
#define PACKS_A_TICK (INT64_C(1) << 20)

static int64_t size_of(const hbp__vector_run *r, uint32_t item)
{
    return hbp__max_i64(r->vectors->a[item] * r->scale.a, r->vectors->b[item] * r->scale.b) >> r->scale.shift;
}

hbp_status hbp__vector_run_sort_down(const hbp__vector_run *r, uint32_t *items, int64_t count)
{
    int64_t mark = hbp__scratch_mark(r->context);
    uint64_t *keys = hbp__take(r->context, (uint64_t)count, sizeof *keys);
    uint32_t *by = hbp__take(r->context, (uint64_t)count, 2 * sizeof *by);
    HBP__TRY(hbp__scratch_check(r->context, WHAT));
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", i, count));
        keys[i] = (uint64_t)(HBP__VECTOR_FULL + 1 - hbp__min_i64(size_of(r, items[i]), HBP__VECTOR_FULL));
        by[i] = (uint32_t)i;
        by[count + i] = items[i];
    }
    HBP__TRY(hbp__order_by_u64(r->context, keys, by, count, WHAT));
    for (int64_t i = 0; i < count; i++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", i, count));
        items[i] = by[count + by[i]];
    }
    hbp__scratch_release(r->context, mark);
    return HBP_OK;
}

hbp_status hbp__vector_run_clear(hbp__vector_run *r, int64_t packs)
{
    if (packs > r->load_room) {
        hbp__delete(&r->context->memory, r->load);
        r->load_room = 0;
        r->load = hbp__new(&r->context->memory, (uint64_t)packs, sizeof *r->load);
        if (!r->load)
            return hbp__fail_memory(r->context, WHAT);
        r->load_room = packs;
    }
    return hbp__zero(r->context, r->load, (uint64_t)packs * sizeof *r->load);
}

static hbp_status measure_loads(hbp__vector_run *r)
{
    const hbp__vectors *v = r->vectors;
    HBP__TRY(hbp__vector_run_clear(r, r->trial.packs));
    for (int64_t i = 0; i < v->count; i++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", i, v->count));
        hbp__vector_load *load = &r->load[r->trial.pack_of[i]];
        load->a += v->a[i];
        load->b += v->b[i];
        load->weight += hbp__vector_weight(v, i);
    }
    return HBP_OK;
}

static int is_over(const hbp__vector_run *r, const hbp__vector_load *load)
{
    return load->a > r->vectors->capacity_a || load->b > r->vectors->capacity_b ||
           load->weight > r->vectors->max_weight;
}

/* Takes items[0..count) of one pack out of it, the smallest that suffices or the largest, until it is within
 * its capacities; returns how many, which are then the first. */
static int64_t take_out(const hbp__vector_run *r, hbp__vector_load *load, uint32_t *items, int64_t count)
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
static hbp_status take_out_all(hbp__vector_run *r, int64_t *count)
{
    int64_t mark = hbp__scratch_mark(r->context), held = 0;
    HBP__TRY(measure_loads(r));
    for (int64_t i = 0; i < r->vectors->count; i++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", i, r->vectors->count));
        if (is_over(r, &r->load[r->trial.pack_of[i]]))
            r->list[held++] = (uint32_t)i;
    }
    uint64_t *keys = hbp__take(r->context, (uint64_t)held, sizeof *keys);
    uint32_t *by = hbp__take(r->context, (uint64_t)held, 2 * sizeof *by);
    HBP__TRY(hbp__scratch_check(r->context, WHAT));
    for (int64_t k = 0; k < held; k++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", k, held));
        keys[k] = r->trial.pack_of[r->list[k]];
        by[k] = (uint32_t)k;
    }
    HBP__TRY(hbp__order_by_u64(r->context, keys, by, held, WHAT));
    *count = 0;
    for (int64_t k = 0; k < held; k++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", k, held));
        by[held + k] = r->list[by[k]];
    }
    for (int64_t k = 0, end; k < held; k = end) {
        uint32_t pack = r->trial.pack_of[by[held + k]];
        for (end = k; end < held && r->trial.pack_of[by[held + end]] == pack; end++)
            ;
        int64_t out = take_out(r, &r->load[pack], by + held + k, end - k);
        memcpy(r->list + *count, by + held + k, (size_t)out * sizeof *r->list);
        *count += out;
        if (*count / ITEMS_A_TICK != (*count - out) / ITEMS_A_TICK)
            HBP__TRY(hbp__tick(r->context, "pack", k, held));
    }
    hbp__scratch_release(r->context, mark);
    return HBP_OK;
}

/* The packs of the trial, as loaded, into an empty grid. */
static hbp_status add_packs(const hbp__vector_run *r, hbp__vector_grid *grid)
{
    for (int64_t p = 0; p < r->trial.packs; p++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", p, r->trial.packs));
        HBP__TRY(hbp__vector_grid_add(grid, r->load[p]));
    }
    return HBP_OK;
}

/* Places r->list[0..count) where there is room beside the other items, in new packs where there is none. */
static hbp_status place_rest(hbp__vector_run *r, int64_t count)
{
    int64_t left;
    hbp__vector_grid grid;
    HBP__TRY(hbp__vector_run_sort_down(r, r->list, count));
    HBP__TRY(hbp__vector_grid_open(r->context, r->vectors, &grid));
    hbp_status status = add_packs(r, &grid);
    if (status == HBP_OK)
        status = hbp__vector_place(&grid, HBP__PLACE_TIGHT, r->list, count, r->trial.pack_of, &left);
    r->trial.packs = grid.packs;
    hbp__vector_grid_close(&grid);
    return status;
}

/* Numbers the packs of the trial that hold something; keeps it if it is better than the best. */
static hbp_status keep_better(hbp__vector_run *r, int is_balanced)
{
    int64_t packs = 0;
    HBP__TRY(measure_loads(r));
    for (int64_t p = 0; p < r->trial.packs; p++)
        r->load[p].weight = r->load[p].weight ? packs++ : -1;
    for (int64_t i = 0; i < r->vectors->count; i++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", i, r->vectors->count));
        r->trial.pack_of[i] = (uint32_t)r->load[r->trial.pack_of[i]].weight;
    }
    r->trial.packs = packs;
    if (r->best.packs && r->best.packs <= packs)
        return HBP_OK;
    r->best_is_balanced = is_balanced;
    hbp__vector_packing swap = r->best;
    r->best = r->trial;
    r->trial = swap;
    return HBP_OK;
}

hbp_status hbp__vector_run_mend(hbp__vector_run *r)
{
    int64_t over = 0, out = 0;
    HBP__TRY(
        hbp__vector_balance(r->context, r->vectors, &r->trial, HBP__VECTOR_MEND_ROUNDS * r->effort, &over));
    if (over) {
        HBP__TRY(take_out_all(r, &out));
        HBP__TRY(place_rest(r, out));
    }
    return keep_better(r, !out);
}

hbp_status hbp__vector_run_tight(hbp__vector_run *r)
{
    hbp__vector_grid grid;
    int64_t left;
    HBP__TRY(hbp__copy(r->context, r->list, r->down, (uint64_t)r->vectors->count * sizeof *r->list));
    HBP__TRY(hbp__vector_grid_open(r->context, r->vectors, &grid));
    hbp_status status =
        hbp__vector_place(&grid, HBP__PLACE_TIGHT, r->list, r->vectors->count, r->trial.pack_of, &left);
    r->trial.packs = grid.packs;
    hbp__vector_grid_close(&grid);
    HBP__TRY(status);
    return keep_better(r, 0);
}

/* Spreads over the packs of the trial what finds room; *left counts the rest, at the front of r->list. */
static hbp_status spread_fitting(hbp__vector_run *r, hbp__vector_grid *grid, int64_t count, int64_t *left)
{
    HBP__TRY(add_packs(r, grid));
    HBP__TRY(hbp__vector_place(grid, HBP__PLACE_BALANCED, r->list, count, r->trial.pack_of, left));
    return hbp__copy(r->context, r->load, grid->load, (uint64_t)r->trial.packs * sizeof *r->load);
}

hbp_status hbp__vector_run_spread(hbp__vector_run *r, int64_t count)
{
    hbp__vector_grid grid;
    int64_t left = 0;
    HBP__TRY(hbp__vector_grid_open(r->context, r->vectors, &grid));
    hbp_status status = spread_fitting(r, &grid, count, &left);
    hbp__vector_grid_close(&grid);
    HBP__TRY(status);
    if (!left)
        return HBP_OK;
    int64_t mark = hbp__scratch_mark(r->context);
    uint64_t packs = (uint64_t)r->trial.packs;
    uint64_t *keys = hbp__take(r->context, packs, sizeof *keys);
    uint32_t *by = hbp__take(r->context, packs, sizeof *by);
    HBP__TRY(hbp__scratch_check(r->context, WHAT));
    for (int64_t p = 0; p < r->trial.packs; p++) {
        keys[p] = (uint64_t)((r->load[p].a * r->scale.a + r->load[p].b * r->scale.b) >> r->scale.shift);
        by[p] = (uint32_t)p;
    }
    HBP__TRY(hbp__order_by_u64(r->context, keys, by, r->trial.packs, WHAT));
    for (int64_t k = 0; k < left; k++) {
        HBP__TRY(hbp__tick_row(r->context, "pack", k, left));
        r->trial.pack_of[r->list[k]] = by[k % r->trial.packs];
    }
    hbp__scratch_release(r->context, mark);
    return HBP_OK;
}

hbp_status hbp__vector_run_balanced(hbp__vector_run *r, int64_t packs)
{
    HBP__TRY(hbp__copy(r->context, r->list, r->down, (uint64_t)r->vectors->count * sizeof *r->list));
    HBP__TRY(hbp__vector_run_clear(r, packs));
    r->trial.packs = packs;
    HBP__TRY(hbp__vector_run_spread(r, r->vectors->count));
    return hbp__vector_run_mend(r);
}

hbp_status hbp__vector_run_plain(hbp__vector_run *r, const uint32_t *order, int is_next)
{
    const hbp__vectors *v = r->vectors;
    int64_t packs = 0;
    /* More packs than the best has are of no use. */
    int64_t most = r->best.packs ? r->best.packs : v->count;
    HBP__TRY(hbp__vector_run_clear(r, most));
    for (int64_t k = 0, work = 0; k < v->count; k++) {
        if (k % ITEMS_A_TICK == 0 || work > PACKS_A_TICK) {
            HBP__TRY(hbp__tick(r->context, "pack", k, v->count));
            work = 0;
        }
        uint32_t i = order ? order[k] : (uint32_t)k;
        hbp__vector_load with = {0, 0, 0};
        int64_t p = is_next && packs ? packs - 1 : 0;
        for (; p <= packs; p++, work++) {
            with = p < packs ? r->load[p] : (hbp__vector_load){0, 0, 0};
            with.a += v->a[i];
            with.b += v->b[i];
            with.weight += hbp__vector_weight(v, i);
            if (!is_over(r, &with))
                break;
        }
        if (p == most)
            return HBP_OK;
        packs += p == packs;
        r->load[p] = with;
        r->trial.pack_of[i] = (uint32_t)p;
    }
    r->trial.packs = packs;
    return keep_better(r, 0);
}
