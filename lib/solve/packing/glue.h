/* Items glued together until a cap on weight cannot bind: what is left is bin packing by size alone. */
#ifndef HBP_SOLVE_GLUE_H
#define HBP_SOLVE_GLUE_H

#include "solve/packing/patterns.h"

/* Items and composites of them as classes of their own. */
typedef struct hbp__glued {
    hbp_context *context;
    hbp__patterns parts; /* what a composite is made of, or one item; times: how many there are */
    hbp__classes classes;
    int64_t *size, *number, *weight; /* [classes] */
    uint32_t *part;                  /* [classes] the pattern of `parts` behind a class */
} hbp__glued;

/* Call an item light when its size over a pack's is less than its weight over the cap. Items that are not
 * light and fit a pack by size fit it by weight, too: their weights, over the cap, add up to no more than
 * their sizes over the capacity. So light items are glued to others such that a composite is not light and
 * fits a pack, but for one in `loose` of every light class (0: none) and what finds no partner; these stay
 * single.
 *
 * max_weight < INT32_MAX; all items must fit a pack. O(REACH classes), REACH = 64. Close in any case. */
hbp_status hbp__glue_open(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t loose,
                          hbp__glued *glued);
void hbp__glue_close(hbp__glued *glued);

/* Whether class c of glued ones is light. */
int hbp__glue_is_light(const hbp__glued *glued, hbp__room room, int64_t c);

/* Appends packs of glued classes to `patterns`, as packs of the classes they are made of. O(runs^1.5). */
hbp_status hbp__glue_write(const hbp__glued *glued, const hbp__patterns *packs, hbp__patterns *patterns);

#endif
