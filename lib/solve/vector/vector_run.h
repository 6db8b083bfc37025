/* The inside of hbp__vector_pack: one trial after another, of which the best stays; packs by the room that
 * they have left; patterns of packs where one size takes few values. */
#ifndef HBP_SOLVE_VECTOR_RUN_H
#define HBP_SOLVE_VECTOR_RUN_H

#include "base/rng.h"
#include "solve/packing/patterns.h"
#include "solve/vector/vectors.h"

/* Packs by the room that they have left in both sizes, on a grid of 64 x 64 cells. */
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
    HBP__PLACE_TIGHT,   /* where the least room is left over both sizes; else into a new pack */
    HBP__PLACE_BALANCED /* where the room is largest along the item (dot product); else nowhere */
} hbp__place_rule;

/* A grid with no packs; close it where this succeeds. */
hbp_status hbp__vector_grid_open(hbp_context *context, const hbp__vectors *vectors, hbp__vector_grid *grid);
void hbp__vector_grid_close(hbp__vector_grid *grid);

/* Adds a pack with this load; what no item can go into any more is not looked at again. */
hbp_status hbp__vector_grid_add(hbp__vector_grid *grid, hbp__vector_load load);

/* Places the items order[0..count), in this order. What PLACE_BALANCED finds no room for stays at the front
 * of `order`; *left counts it. A cell stands for all rooms that round down to it and few packs of a cell are
 * looked at, so that an item may miss the last pack that would just hold it. O(count x 64). */
hbp_status hbp__vector_place(hbp__vector_grid *grid, hbp__place_rule rule, uint32_t *order, int64_t count,
                             uint32_t *pack_of, int64_t *left);

/* The trials. */
typedef struct hbp__vector_run {
    hbp_context *context;
    const hbp__vectors *vectors;
    hbp__vector_scale scale;
    hbp__rng *rng;
    int32_t effort;
    int64_t bound;
    uint32_t *order;        /* [count] items as drawn */
    uint32_t *down;         /* [count] items by size, largest first; equal ones as drawn */
    uint32_t *list;         /* [count] items to place; scratch */
    hbp__vector_load *load; /* [load_room] of packs; scratch */
    int64_t load_room;
    hbp__vector_packing best, trial;
    int best_is_balanced; /* exchanges have balanced its packs */
} hbp__vector_run;

/* Makes room for the loads of `packs` packs, all 0. */
hbp_status hbp__vector_run_clear(hbp__vector_run *r, int64_t packs);

/* Orders `items` by their larger share of a capacity, largest first; stable. */
hbp_status hbp__vector_run_sort_down(const hbp__vector_run *r, uint32_t *items, int64_t count);

/* Spreads r->list[0..count), largest first, over the packs of the trial, whose loads are in r->load; what
 * finds no room goes past the capacities of those that hold least. */
hbp_status hbp__vector_run_spread(hbp__vector_run *r, int64_t count);

/* Brings the trial within the capacities, by exchanges, and by taking out what they do not mend; keeps it if
 * it is the best. */
hbp_status hbp__vector_run_mend(hbp__vector_run *r);

/* Tries best fit decreasing; `packs` balanced packs. */
hbp_status hbp__vector_run_tight(hbp__vector_run *r);
hbp_status hbp__vector_run_balanced(hbp__vector_run *r, int64_t packs);

/* Tries first fit, or next fit, over `order` (NULL: as the items are numbered). O(count packs) or O(count).
 */
hbp_status hbp__vector_run_plain(hbp__vector_run *r, const uint32_t *order, int is_next);

/* Tries the patterns of the first or the second size, if that takes few values, or few thousands where `many`
 * is set (vector_classes.c). */
hbp_status hbp__vector_run_patterns(hbp__vector_run *r, int second, int many);

/* Patterns of classes balanced: where one size takes few values, packs that hold the same numbers of each are
 * treated as one. */

/* The most classes. */
#define HBP__MIX_CLASSES 64

/* Sizes of a class's items: the first is the same for all, the second on average. */
typedef struct hbp__mix_class {
    int64_t first;
    int64_t second;
} hbp__mix_class;

typedef struct hbp__mix_room {
    int64_t first, second;
} hbp__mix_room;

/* Rewrites `patterns` over these classes by exchanges of up to three items (of any number, where they are all
 * of one class) between two patterns, so that packs become balanced in both sizes; no pack is taken past
 * room.first or grows in number. At most *work comparisons are made; it counts down. */
hbp_status hbp__mix_balance(hbp_context *context, const hbp__mix_class *classes, int64_t count,
                            hbp__mix_room room, int64_t *work, hbp__patterns *patterns);

#endif
