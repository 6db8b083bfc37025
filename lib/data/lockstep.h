/* When the packs of a step run: who waits for whom (docs: lockstep).
 *
 * Ranks are cut into sets of consecutive ranks. A micro-batch begins for all ranks of a set at once and ends
 * with the slowest of their packs; sets do not wait for one another before the step ends. In sets of one rank
 * a pack begins when the last of its ranks is free. Every rank runs its packs in the order of the
 * micro-batches, so no two groups can wait for each other. */
#ifndef HBP_DATA_LOCKSTEP_H
#define HBP_DATA_LOCKSTEP_H

#include <stdint.h>

#include "data/plan.h"

/* Runs a micro-batch in sets of `set` ranks, its packs taking `pack_ns` [packs of the micro-batch]: moves
 * `free_ns` [ranks], when each rank is free, over it, and writes into `start_ns` [packs of the micro-batch],
 * unless it is NULL, when its packs begin. Times saturate. O(ranks). */
void hbp__lockstep_run(const hbp_plan *plan, int64_t micro_batch, int32_t set, const int64_t *pack_ns,
                       int64_t *free_ns, int64_t *start_ns);

/* When the last of `ranks` ranks is free. */
int64_t hbp__lockstep_end(const int64_t *free_ns, int32_t ranks);

/* How long the micro-batches of a step take together as the plan predicts it, without what a step costs;
 * saturates. `free_ns` [ranks] is scratch. O(packs + ranks x micro-batches). */
int64_t hbp__lockstep_span(const hbp_plan *plan, int64_t step, int64_t *free_ns);

/* Scratch for hbp__lockstep_span, owned by the caller; NULL where it needs none. */
hbp_status hbp__lockstep_open(hbp_context *context, const hbp_plan *plan, int64_t **free_ns);

#endif
