/* The parts of hbp__tight_pack: items glued until a cap on weight cannot bind, classes taken together as
 * rows, the linear relaxation over rows, and exact filling of what that leaves. */
#ifndef HBP_SOLVE_TIGHT_PARTS_H
#define HBP_SOLVE_TIGHT_PARTS_H

#include "solve/packing/patterns.h"

/* Items glued together until a cap on weight cannot bind: what is left is bin packing by size alone. */

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
 * max_weight < INT32_MAX; all items must fit a pack. O(64 classes). Close in any case. */
hbp_status hbp__glue_open(hbp_context *context, const hbp__classes *classes, hbp__room room, int64_t loose,
                          hbp__glued *glued);
void hbp__glue_close(hbp__glued *glued);

/* Whether class c of glued ones is light. */
int hbp__glue_is_light(const hbp__glued *glued, hbp__room room, int64_t c);

/* Appends packs of glued classes to `patterns`, as packs of the classes they are made of. O(runs^1.5). */
hbp_status hbp__glue_write(const hbp__glued *glued, const hbp__patterns *packs, hbp__patterns *patterns);

/* Neighbouring classes taken together as one row of the size of the largest, so that a linear program stays
 * small. */
typedef struct hbp__coarse {
    hbp__classes rows;
    int64_t *size, *number; /* [rows] */
    int64_t *top;           /* [rows] the largest class of the row that has items left */
    int64_t *first;         /* [rows] the row's first class */
    int64_t *left;          /* [rows] items left */
} hbp__coarse;

/* At most `rows` rows of the classes with number[c] > 0. The loss of a row, what its items are short of its
 * size in all, is about the same for all rows: a row ends where the loss would pass a threshold, which is
 * bisected. Weights must be absent. O(classes log). On scratch. */
hbp_status hbp__coarse_open(hbp_context *context, const hbp__classes *classes, const int64_t *number,
                            int64_t rows, hbp__coarse *coarse);

/* Uses a pattern of rows `times` times, or as long as every row has items: draws items from the rows, largest
 * first, counts number[c] down and appends patterns of classes. Returns in *used how often it was used. */
hbp_status hbp__coarse_use(hbp_context *context, hbp__coarse *coarse, int64_t times, const hbp__run *run,
                           int64_t runs, int64_t *number, hbp__patterns *patterns, int64_t *used);

/* The linear relaxation of cutting stock: how often to use which pattern, in fractions (Gilmore and Gomory
 * 1961). */

/* Patterns of the relaxation's basis; times is 0, uses[p] says how often pattern p is used. */
typedef struct hbp__relaxation {
    hbp__patterns patterns;
    double *uses;    /* [rows] */
    int64_t *column; /* [rows] the pattern behind uses[i]; -1: none */
    int64_t rows;
    double packs; /* sum of uses */
} hbp__relaxation;

/* Covers number[c] items of every class by patterns of `capacity`, weights aside, so that the sum of uses is
 * within `gap` packs of the least, or as near as `work` operations lead, which it counts down. Column
 * generation: a dense revised simplex prices patterns that an unbounded knapsack finds. O(classes capacity) a
 * round, O(classes^2) a pivot, 8 bytes x classes^2 of scratch. Only sums, products and quotients of doubles:
 * the same bits everywhere. Close in any case. */
hbp_status hbp__relaxation_open(hbp_context *context, const hbp__classes *classes, int64_t capacity,
                                double gap, int64_t *work, hbp__relaxation *relaxation);
void hbp__relaxation_close(hbp__relaxation *relaxation);

/* Packing by exact filling: each pack gets the largest item left and the subset of the others that leaves the
 * least room (minimum bin slack, Gupta and Ho 1999), found by a subset-sum over bit sets. */

/* Packs number[c] items of every class, which it counts down to 0, and appends the patterns. Among equal
 * fills it prefers large items, which leaves the small ones for later packs. Weights must be absent. At most
 * `work` word operations are spent on subset sums (*work counts down); once they are spent, the rest is
 * packed best fit decreasing. capacity / 8 bytes x classes of scratch. */
hbp_status hbp__subset_fill(hbp_context *context, const hbp__classes *classes, int64_t capacity,
                            int64_t *number, int64_t *work, hbp__patterns *patterns);

#endif
