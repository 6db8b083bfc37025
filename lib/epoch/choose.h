/* The groups of an epoch: with their packs, or as a guide to a threshold or a number of tokens. */
#ifndef HBP_EPOCH_CHOOSE_H
#define HBP_EPOCH_CHOOSE_H

#include "epoch/epoch.h"

/* A hierarchy, its packs, and what an epoch over them takes. Without groups where they are given. */
typedef struct hbp__trial {
    hbp_groups *groups;
    hbp_packs *packs;
    int64_t ns;
} hbp__trial;

void hbp__trial_close(hbp__trial *trial);

/* The groups with the least time, with their packs; where groups are given their packs alone. Tried are those
 * of the estimate, and for data sets that are soon filled also the published rule's and the best of fewer
 * levels. */
hbp_status hbp__epoch_choose(const hbp__epoch *epoch, hbp__trial *best);

/* hbp__plan_groups for the epoch's lengths, cost and max_vision. */
hbp_status hbp__epoch_plan_groups(const hbp__epoch *epoch, const hbp_groups_options *options,
                                  hbp_groups **out);

/* Groups for an epoch that is planned in parts, unless they are given: epoch->groups and *chosen, which the
 * caller frees. */
hbp_status hbp__epoch_choose_groups(hbp__epoch *epoch, hbp_groups **chosen);

/* The most tokens of a step: as asked for or, where nothing is, as the groups would have them, so many for
 * each of micro_batches_per_step, or so often that every group has micro_batch_multiple. */
hbp_status hbp__epoch_choose_tokens(const hbp__epoch *epoch, int64_t *tokens);

/* The longest sample of a curriculum: the threshold of the first group. */
hbp_status hbp__epoch_shortest(const hbp__epoch *epoch, int64_t *tokens);

#endif
