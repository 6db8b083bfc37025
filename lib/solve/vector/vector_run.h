/* The parts of a search for few packs: one trial after another, of which the best stays. */
#ifndef HBP_SOLVE_VECTOR_RUN_H
#define HBP_SOLVE_VECTOR_RUN_H

#include "base/rng.h"
#include "solve/vector/vectors.h"

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
    int best_is_even; /* exchanges have made its packs alike */
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

/* Tries best fit decreasing; `packs` even packs. */
hbp_status hbp__vector_run_tight(hbp__vector_run *r);
hbp_status hbp__vector_run_even(hbp__vector_run *r, int64_t packs);

/* Tries first fit, or next fit, over `order` (NULL: as the items are numbered). O(count packs) or O(count).
 */
hbp_status hbp__vector_run_plain(hbp__vector_run *r, const uint32_t *order, int is_next);

/* Tries the patterns of the first or the second size, if that takes few values, or few thousands where `many`
 * is set (vector_classes.c). */
hbp_status hbp__vector_run_patterns(hbp__vector_run *r, int second, int many);

#endif
