/* Packs by their room on a grid of 64 x 64 cells with a bit each: best fit and dot-product placement in O(64)
 * an item. */
#include "solve/vector/vector_run.h"

#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "solve/vector/vector_tuning.h"

#define SIDE         HBP__GRID_SIDE
#define NONE         UINT32_MAX
#define ITEMS_A_TICK 16384

hbp_status hbp__vector_grid_open(hbp_context *context, const hbp__vectors *vectors, hbp__vector_grid *grid)
{
    memset(grid, 0, sizeof *grid);
    grid->context = context;
    grid->vectors = vectors;
    grid->scale = hbp__vector_scale_of(vectors);
    grid->times_a = ((uint64_t)SIDE << 32) / (uint64_t)(vectors->capacity_a + 1);
    grid->times_b = ((uint64_t)SIDE << 32) / (uint64_t)(vectors->capacity_b + 1);
    grid->head = hbp__new(&context->memory, (uint64_t)SIDE * SIDE, sizeof *grid->head);
    if (!grid->head)
        return hbp__fail_memory(context, "the grid of packs");
    for (int64_t c = 0; c < (int64_t)SIDE * SIDE; c++)
        grid->head[c] = NONE;
    return HBP_OK;
}

void hbp__vector_grid_close(hbp__vector_grid *grid)
{
    const hbp__memory *memory = &grid->context->memory;
    hbp__delete(memory, grid->load);
    hbp__delete(memory, grid->next);
    hbp__delete(memory, grid->head);
    grid->load = NULL;
    grid->next = grid->head = NULL;
}

static inline int64_t cell_of(uint64_t times, int64_t room)
{
    return (int64_t)((uint64_t)room * times >> 32);
}

/* Enters a pack into its cell, unless it is full by weight or past a capacity. */
static void enter_pack(hbp__vector_grid *grid, uint32_t pack)
{
    const hbp__vectors *v = grid->vectors;
    const hbp__vector_load *load = &grid->load[pack];
    if (load->a > v->capacity_a || load->b > v->capacity_b || load->weight >= v->max_weight)
        return;
    int64_t row = cell_of(grid->times_a, v->capacity_a - load->a);
    int64_t column = cell_of(grid->times_b, v->capacity_b - load->b);
    grid->next[pack] = grid->head[row * SIDE + column];
    grid->head[row * SIDE + column] = pack;
    grid->bits[row] |= UINT64_C(1) << column;
}

hbp_status hbp__vector_grid_add(hbp__vector_grid *grid, hbp__vector_load load)
{
    if (grid->packs == grid->pack_room) {
        const hbp__memory *memory = &grid->context->memory;
        uint64_t room = (uint64_t)grid->pack_room * 2 + 256;
        hbp__vector_load *loads = hbp__renew(memory, grid->load, room, sizeof *loads);
        if (loads)
            grid->load = loads;
        uint32_t *next = loads ? hbp__renew(memory, grid->next, room, sizeof *next) : NULL;
        if (!next)
            return hbp__fail_memory(grid->context, "the loads of packs");
        grid->next = next;
        grid->pack_room = (int64_t)room;
    }
    grid->load[grid->packs] = load;
    enter_pack(grid, (uint32_t)grid->packs++);
    return HBP_OK;
}

/* What is being placed. */
typedef struct entrant {
    int64_t a, b, weight;
    int64_t row, column; /* packs of smaller cells do not hold it, of larger ones do */
} entrant;

static int pack_holds(const hbp__vector_grid *grid, uint32_t pack, const entrant *e)
{
    const hbp__vectors *v = grid->vectors;
    const hbp__vector_load *load = &grid->load[pack];
    return load->a + e->a <= v->capacity_a && load->b + e->b <= v->capacity_b &&
           load->weight <= v->max_weight - e->weight;
}

/* A pack of the cell that holds the item, among the first few; *before gets the one before it in the list. */
static uint32_t look_in_cell(const hbp__vector_grid *grid, int64_t cell, const entrant *e, uint32_t *before)
{
    uint32_t pack = grid->head[cell];
    *before = NONE;
    for (int32_t k = 0; k < HBP__GRID_LOOK && pack != NONE; k++) {
        if (pack_holds(grid, pack, e))
            return pack;
        *before = pack;
        pack = grid->next[pack];
    }
    return NONE;
}

static void leave_cell(hbp__vector_grid *grid, int64_t cell, uint32_t pack, uint32_t before)
{
    if (before != NONE) {
        grid->next[before] = grid->next[pack];
        return;
    }
    grid->head[cell] = grid->next[pack];
    if (grid->head[cell] == NONE)
        grid->bits[cell / SIDE] &= ~(UINT64_C(1) << (cell % SIDE));
}

/* The pack that is left with the least room, in shares of the capacities, taken out of its cell; NONE. */
static uint32_t take_tight(hbp__vector_grid *grid, const entrant *e)
{
    int64_t best = INT64_MAX, cell = -1, tries = HBP__GRID_TRIES;
    uint32_t pack = NONE, before = NONE;
    for (int64_t row = e->row; row < SIDE; row++) {
        uint64_t bits = grid->bits[row] >> e->column << e->column;
        for (; bits; bits &= bits - 1) {
            int64_t column = hbp__lowest_bit(bits);
            if (row + column >= best)
                break;
            if ((row == e->row || column == e->column) && tries-- <= 0)
                continue;
            uint32_t b, p = look_in_cell(grid, row * SIDE + column, e, &b);
            if (p != NONE) {
                best = row + column;
                cell = row * SIDE + column;
                pack = p;
                before = b;
                break;
            }
        }
        if (best <= row + 1 + e->column)
            break;
    }
    if (pack != NONE)
        leave_cell(grid, cell, pack, before);
    return pack;
}

/* The pack with the largest product of its room with the item, taken out of its cell; NONE. */
static uint32_t take_balanced(hbp__vector_grid *grid, const entrant *e)
{
    int64_t by_row = e->a * grid->scale.a, by_column = e->b * grid->scale.b;
    int64_t best = -1, cell = -1;
    for (int64_t row = SIDE - 1; row > e->row; row--) {
        if (!grid->bits[row])
            continue;
        int64_t column = hbp__highest_bit(grid->bits[row]);
        int64_t score = row * by_row + column * by_column;
        if (column > e->column && score > best) {
            best = score;
            cell = row * SIDE + column;
        }
    }
    uint32_t pack = NONE, before = NONE;
    if (cell >= 0)
        pack = look_in_cell(grid, cell, e, &before);
    int64_t tries = HBP__GRID_TRIES;
    for (int64_t row = SIDE - 1; row >= e->row && pack == NONE && tries > 0; row--) {
        uint64_t bits = grid->bits[row] >> e->column << e->column;
        for (; bits && pack == NONE && tries > 0; tries--) {
            int64_t column = hbp__highest_bit(bits);
            cell = row * SIDE + column;
            bits ^= UINT64_C(1) << column;
            pack = look_in_cell(grid, cell, e, &before);
        }
    }
    if (pack != NONE)
        leave_cell(grid, cell, pack, before);
    return pack;
}

hbp_status hbp__vector_place(hbp__vector_grid *grid, hbp__place_rule rule, uint32_t *order, int64_t count,
                             uint32_t *pack_of, int64_t *left)
{
    const hbp__vectors *v = grid->vectors;
    *left = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % ITEMS_A_TICK == 0)
            HBP__TRY(hbp__tick(grid->context, "pack", i, count));
        uint32_t item = order[i];
        entrant e = {v->a[item], v->b[item], hbp__vector_weight(v, item), 0, 0};
        e.row = cell_of(grid->times_a, e.a);
        e.column = cell_of(grid->times_b, e.b);
        uint32_t pack = rule == HBP__PLACE_TIGHT ? take_tight(grid, &e) : take_balanced(grid, &e);
        if (pack == NONE) {
            if (rule == HBP__PLACE_BALANCED) {
                order[(*left)++] = item;
                continue;
            }
            pack_of[item] = (uint32_t)grid->packs;
            HBP__TRY(hbp__vector_grid_add(grid, (hbp__vector_load){e.a, e.b, e.weight}));
            continue;
        }
        pack_of[item] = pack;
        grid->load[pack].a += e.a;
        grid->load[pack].b += e.b;
        grid->load[pack].weight += e.weight;
        enter_pack(grid, pack);
    }
    return HBP_OK;
}
