/* Lower bounds on the number of packs. */
#ifndef HBP_SOLVE_PACK_BOUND_H
#define HBP_SOLVE_PACK_BOUND_H

#include "solve/packing/patterns.h"

/* The best of: total size and total weight over a pack's; L2 (Martello and Toth 1990); the dual feasible
 * functions u^(k) (Fekete and Schepers 2001) and f_CCM (Carlier, Clautiaux and Moukrim 2007); and, below a
 * cap on weight, how much weight the packs of items above half leave to others; each for at most 64
 * parameters. No packing has fewer packs. All items must fit a pack. O(classes). */
int64_t hbp__pack_bound(const hbp__classes *classes, hbp__room room);

#endif
