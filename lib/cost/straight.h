/* Costs whose time bends, where traffic hides behind compute or compute has a least time, as costs whose time
 * is linear in what a pack holds: what planners search and bound with. Plans are then timed by the cost
 * itself.
 *
 * With C compute, G traffic, w compute_overlap, A all-to-alls and B the rest, a pack takes
 * T = A + B + max(C, (1 - w) C + G). For every h in [0, 1] the cost of A + B + (1 - h w) C + h G is a linear
 * one and never above T: (1 - h) times the first of the two and h times the second. What is a bound under it
 * is one under T, whatever h; the greatest is the best that is known. */
#ifndef HBP_COST_STRAIGHT_H
#define HBP_COST_STRAIGHT_H

#include "cost/cost.h"
#include "data/plan/plan.h"

/* How many shares h a bound is looked for with; the first is 0. */
enum { HBP__STRAIGHT_BOUNDS = 5, HBP__STRAIGHT_TRIES = 4 };

/* The cost of (1 - h w) C and h G for share `index` of 0 <= index < HBP__STRAIGHT_BOUNDS: a shallow copy that
 * is never freed. */
hbp_cost hbp__cost_below(const hbp_cost *cost, int32_t index);

/* The same of all of C, and of G what a constant overlap leaves: 0 <= index < HBP__STRAIGHT_TRIES; the first
 * hides all of it and is that of hbp__cost_below. */
hbp_cost hbp__cost_tried(const hbp_cost *cost, int32_t index);

/* How many of either are worth asking for: 1 where traffic does not hide. */
static inline int32_t hbp__cost_bounds(const hbp_cost *cost)
{
    return hbp__cost_hides(&cost->terms) ? HBP__STRAIGHT_BOUNDS : 1;
}

static inline int32_t hbp__cost_tries(const hbp_cost *cost)
{
    return hbp__cost_hides(&cost->terms) ? HBP__STRAIGHT_TRIES : 1;
}

/* Times a plan's packs, micro-batches and steps by another cost, with the same degrees, and seals it.
 * O(rows). HBP_E_OVERFLOW for a time over 2^63 ns. */
hbp_status hbp__cost_time_plan(hbp_context *context, const hbp_cost *cost, hbp_plan *plan);

/* Times `plan` by a cost and keeps it in *best where that is NULL or slower; the other is freed, after a
 * failure `plan`. */
hbp_status hbp__cost_keep_faster(hbp_context *context, const hbp_cost *cost, hbp_plan *plan, hbp_plan **best);

#endif
