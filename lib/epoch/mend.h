/* Steps with idle ranks, changed after they are planned. */
#ifndef HBP_EPOCH_MEND_H
#define HBP_EPOCH_MEND_H

#include "epoch/epoch.h"

/* The pieces of the lengths that the rows of the plan's samples are, in *piece [plan->samples], in scratch:
 * pieces have other numbers than samples where a limit drops or splits some. O(samples log pieces).
 */
hbp_status hbp__epoch_pieces(const hbp__epoch *epoch, const hbp_plan *plan, uint32_t **piece);

/* Plans the steps of *plan in which a rank is idle anew, each with its own samples, where that leaves fewer
 * idle and takes at most a hundredth longer; *plan becomes another one then. Steps that hold more samples
 * than are left of *room stay, which the others are taken from. Given groups and an order of modalities have
 * hbp__epoch_share instead. */
hbp_status hbp__epoch_mend(const hbp__epoch *epoch, int64_t *room, hbp_plan **plan);

/* Gives padding packs samples of fuller packs of their step, where that takes at most a hundredth longer: the
 * places with their degrees, recomputation and capacities stay, and the modalities of samples in a
 * micro-batch. O(samples of the plan), and padding packs times samples of their steps. */
hbp_status hbp__epoch_share(const hbp__epoch *epoch, hbp_plan *plan);

#endif
