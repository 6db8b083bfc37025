/* The fewest packs that a budget of work finds, and how few there can be. */
#ifndef HBP_SOLVE_TIGHT_PACK_H
#define HBP_SOLVE_TIGHT_PACK_H

#include "solve/packing/patterns.h"

#define HBP__MAX_EFFORT 9

/* Appends a packing of all classes to `patterns`, never of more packs than best fit decreasing; *bound gets a
 * lower bound. Effort 0 is the better of best fit and first fit decreasing, and where a cap on weight binds
 * of packings that mix light items with others; 1 to 9 search at growing cost, and stop when the bound is
 * met. HBP_E_INFEASIBLE when an item fits no pack. */
hbp_status hbp__tight_pack(hbp_context *context, const hbp__classes *classes, hbp__room room, int32_t effort,
                           hbp__patterns *patterns, int64_t *bound);

#endif
