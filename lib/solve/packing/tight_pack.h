/* The fewest packs that a budget of work finds, and how few there can be. */
#ifndef HBP_SOLVE_TIGHT_PACK_H
#define HBP_SOLVE_TIGHT_PACK_H

#include "solve/packing/patterns.h"

#define HBP__MAX_EFFORT 9

/* Between efforts 0 and 1: what effort 1 tries first, for as long as a try wins much. */
#define HBP__BRIEF_EFFORT (-1)

/* Appends a packing of all classes to `patterns`, never of more packs than best fit decreasing; *bound gets a
 * lower bound. Effort 0 is the better of best fit and first fit decreasing, and where a cap on weight binds
 * of packings that mix light items with others; 1 to 9 search at growing cost, never for more packs than a
 * lower effort, and stop when the bound is met or long nothing is won. HBP_E_INFEASIBLE when an item fits no
 * pack. */
hbp_status hbp__tight_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int32_t effort,
                           hbp__patterns *patterns, int64_t *bound);

/* The best of: total size and total weight over a pack's; L2 (Martello and Toth 1990); the dual feasible
 * functions u^(k) (Fekete and Schepers 2001) and f_CCM (Carlier, Clautiaux and Moukrim 2007); and, below a
 * cap on weight, how much weight the packs of items above half leave to others; each for at most 64
 * parameters. No packing has fewer packs. All items must fit a pack. O(classes). */
int64_t hbp__pack_bound(const hbp__classes *classes, hbp__room room);

#endif
