/* Whole plans weighed against each other: packs of groups, steps that mix them, steps planned one by one. */
#ifndef HBP_EPOCH_WEIGH_H
#define HBP_EPOCH_WEIGH_H

#include "epoch/epoch.h"

/* Weighs the hierarchy against steps that are small copies of the epoch, and keeps what the composition asks
 * for: groups and packs are chosen here. */
hbp_status hbp__epoch_weigh(const hbp__epoch *epoch, hbp_plan **out);

/* The same for a window of the epoch: `lengths`, given groups, and the packs that the hierarchy would run.
 * `room` is hbp__epoch_mend's. */
hbp_status hbp__epoch_mix(const hbp__epoch *epoch, const hbp_lengths *lengths, const hbp_groups *groups,
                          const hbp_packs *packs, const hbp_fill_options *fill,
                          const hbp_balance_options *balance, int64_t *room, hbp_plan **out);

/* The hierarchy where no groups keep to `tokens_per_step`, which no plan keeps to in less than `bound_ns` (0:
 * not known): steps of samples of like length, planned one by one, and groups for those that are short
 * enough. *out stays NULL where those do not keep to the options either. */
hbp_status hbp__epoch_sort(const hbp__epoch *epoch, int64_t tokens_per_step, int64_t bound_ns,
                           hbp_plan **out);

#endif
