/* What an epoch over given packs takes once they are balanced: the sum over micro-batches of the slowest
 * pack. */
#ifndef HBP_PACK_SCORE_H
#define HBP_PACK_SCORE_H

#include "base/context.h"
#include "data/packs/packs.h"

/* Sorts each group's packs by time, which makes the sum of the slowest in each micro-batch least, and adds
 * up, with `step_ns` for every step; vision units take vision_ns [groups] each, NULL: nothing. *least_ns,
 * unless it is NULL, gets an estimate of what a search for fewer packs can reach: without what is paid for
 * each micro-batch and step that a group has over its bound, and without one of these micro-batches at all,
 * whose samples others may have places for. In ns. O(packs). */
hbp_status hbp__packs_score(hbp_context *context, const hbp_packs *packs, const hbp_groups *groups,
                            const double *vision_ns, double step_ns, int64_t *ns, int64_t *least_ns);

#endif
