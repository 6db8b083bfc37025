/* Levels and thresholds that the choice of groups is made from. */
#ifndef HBP_PACK_LEVEL_LIST_H
#define HBP_PACK_LEVEL_LIST_H

#include "pack/groups/hierarchy.h"

#define HBP__MAX_LEVELS 256

typedef struct hbp__level_list {
    hbp__level level[HBP__MAX_LEVELS];
    int64_t levels;
    int64_t threshold[HBP__MAX_LEVELS + 1]; /* from 0, ascending, all the items between two: below the last */
    int64_t bin[HBP__MAX_LEVELS + 1];       /* bins of items of at most the threshold */
    int64_t thresholds;
} hbp__level_list;

/* Levels: for each legal degree d and number m of micro-batches in a step, packs of tokens_per_step d /
 * (ranks m) tokens, so that a step carries the same whatever its level, with the fewest recomputed layers
 * that fit; the somewhat shorter pack, within the step's slack, at which a token takes least; and packs of
 * the longest item. Where a level makes many micro-batches of the data, it is left out if longer packs of its
 * degree take no more time a token. Thresholds: the pack lengths and the longest item, but of several with
 * few items between them one. The last holds every item if any level does. */
void hbp__level_list_make(const hbp__estimator *estimator, const hbp__level_limits *limits,
                          hbp__level_list *list);

#endif
