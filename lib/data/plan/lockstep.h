/* When the packs of a step run: who waits for whom (docs: lockstep).
 *
 * Ranks are cut into lockstep sets of consecutive ranks. A micro-batch begins for all ranks of a set at once
 * and ends with the slowest of their packs; sets do not wait for one another before the step ends. In sets of
 * one rank a pack begins when the last of its ranks is free. Every rank runs its packs in the order of the
 * micro-batches, so no two groups can wait for each other. */
#ifndef HBP_DATA_LOCKSTEP_H
#define HBP_DATA_LOCKSTEP_H

#include <stdint.h>

#include "data/plan/plan.h"

typedef struct hbp__clock {
    int32_t set; /* ranks of a lockstep set */
    int64_t sets;
    int64_t *free_ns; /* [sets] when each is through with the micro-batches before */
    int64_t *next_ns; /* [sets] the same with the packs of the one at hand */
} hbp__clock;

/* A clock at 0 for `ranks` ranks in sets of `set`, 0: of all; it is scratch. HBP_E_NO_MEMORY. */
hbp_status hbp__clock_open(hbp_context *context, int32_t ranks, int32_t set, hbp__clock *clock);

/* All ranks are free at `ns`. */
void hbp__clock_start(hbp__clock *clock, int64_t ns);

/* Runs a pack of `sp` ranks from `rank` on in the micro-batch at hand; returns when it begins. Times
 * saturate. O(sets that it meets). */
int64_t hbp__clock_run(hbp__clock *clock, int32_t rank, int32_t sp, int64_t ns);

/* Ends the micro-batch at hand. O(sets). */
void hbp__clock_next(hbp__clock *clock);

/* When the last rank is free of all micro-batches that have ended. */
int64_t hbp__clock_end(const hbp__clock *clock);

/* How long the micro-batches of a step take together as the plan predicts it, without what a step costs. The
 * clock is one of the plan's ranks and sets. O(packs + sets x micro-batches). */
int64_t hbp__clock_step(hbp__clock *clock, const hbp_plan *plan, int64_t step);

#endif
