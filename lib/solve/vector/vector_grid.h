/* Packs by the room that they have left in both sizes, on a grid of 64 x 64 cells; and the greedy packers
 * over it. */
#ifndef HBP_SOLVE_VECTOR_GRID_H
#define HBP_SOLVE_VECTOR_GRID_H

#include "solve/vector/vectors.h"

#define HBP__GRID_SIDE 64

typedef struct hbp__vector_grid {
    hbp_context *context;
    const hbp__vectors *vectors;
    hbp__vector_scale scale;
    uint64_t times_a, times_b; /* cell = room * times >> 32 */
    int64_t packs, pack_room;
    hbp__vector_load *load;        /* [packs] */
    uint32_t *next;                /* [packs] of the same cell */
    uint32_t *head;                /* [cells] */
    uint64_t bits[HBP__GRID_SIDE]; /* cells with packs, a row each: the second size */
} hbp__vector_grid;

typedef enum hbp__place_rule {
    HBP__PLACE_TIGHT, /* where the least room is left over both sizes; else into a new pack */
    HBP__PLACE_EVEN   /* where the room is largest along the item (dot product); else nowhere */
} hbp__place_rule;

/* A grid with no packs. Close in any case. */
hbp_status hbp__vector_grid_open(hbp_context *context, const hbp__vectors *vectors, hbp__vector_grid *grid);
void hbp__vector_grid_close(hbp__vector_grid *grid);

/* Adds a pack with this load; what no item can go into any more is not looked at again. */
hbp_status hbp__vector_grid_add(hbp__vector_grid *grid, hbp__vector_load load);

/* Places the items order[0..count), in this order. What PLACE_EVEN finds no room for stays at the front of
 * `order`; *left counts it. A cell stands for all rooms that round down to it and few packs of a cell are
 * looked at, so that an item may miss the last pack that would just hold it. O(count x 64). */
hbp_status hbp__vector_place(hbp__vector_grid *grid, hbp__place_rule rule, uint32_t *order, int64_t count,
                             uint32_t *pack_of, int64_t *left);

#endif
