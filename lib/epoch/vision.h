/* Groups and their packs where vision units count. */
#ifndef HBP_EPOCH_VISION_H
#define HBP_EPOCH_VISION_H

#include "epoch/epoch.h"

/* Refuses what no way of planning has where vision units count. */
hbp_status hbp__epoch_check_vision_options(const hbp__epoch *epoch);

/* The fill of groups under two budgets: max_vision and what memory leaves beside a full pack's tokens. The
 * options have no padding by degree left. HBP_E_INFEASIBLE where the last group does not hold a sample. */
hbp_status hbp__epoch_fill_vision(const hbp__epoch *epoch, const hbp_lengths *lengths,
                                  const hbp_groups *groups, const hbp_fill_options *options, hbp_packs **out);

/* What a unit takes in a pack of each group; vision_ns [groups]. */
void hbp__epoch_vision_ns(const hbp__epoch *epoch, const hbp_groups *groups, double *vision_ns);

#endif
