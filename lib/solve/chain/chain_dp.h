/* The least sums over partitions of a chain whose loads stay within a limit. */
#ifndef HBP_SOLVE_CHAIN_DP_H
#define HBP_SOLVE_CHAIN_DP_H

#include "solve/chain/chain_cuts.h"

typedef struct hbp__chain_dp {
    const hbp__chain *chain;
    int32_t best;    /* partitions wanted, 1..64 */
    int32_t *near;   /* [parts + 1] where cut p may lie at least, under the last limit */
    int32_t *far;    /* [parts + 1] and at most */
    int64_t *first;  /* [parts + 2] first cell of cut p; a cell is a place of a cut */
    int64_t mark;    /* of what was taken before the cells */
    int64_t room;    /* cells */
    int32_t *number; /* [cells] ways from there to the end of the chain, at most `best` */
    int64_t *sum;    /* [cells * best] of costs and tolls behind it, ascending; ties by earlier cuts */
    int32_t *next;   /* [cells * best] the next cut */
    int32_t *rank;   /* [cells * best] which of its ways goes on */
} hbp__chain_dp;

/* On scratch. Whoever runs it takes nothing between two runs: cells that no longer suffice are released. */
hbp_status hbp__chain_dp_open(hbp_context *context, const hbp__chain *chain, int32_t best, hbp__chain_dp *dp);

/* Bounds where cuts may lie when no cost passes `limit`; 0 when they cannot lie anywhere. O(parts log items).
 */
int hbp__chain_dp_ranges(hbp__chain_dp *dp, int64_t limit);

/* Finds the `best` partitions of least sum with loads up to `limit`; *count of them, 0 when there is none.
 * Counts *work down by one for each part looked at: O(sum over parts of places of the cut x length of a part
 * within the limit). */
hbp_status hbp__chain_dp_run(hbp_context *context, hbp__chain_dp *dp, int64_t limit, int64_t *work,
                             int32_t *count);

/* The sum of the index-th best of the last run; its cuts [parts + 1]. */
int64_t hbp__chain_dp_get(const hbp__chain_dp *dp, int32_t index, int32_t *cuts);

#endif
