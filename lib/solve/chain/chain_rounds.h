/* Cutting a chain into parts that workers take in turns, round after round: part p is worker p mod workers'.
 */
#ifndef HBP_SOLVE_CHAIN_ROUNDS_H
#define HBP_SOLVE_CHAIN_ROUNDS_H

#include "solve/chain/chain_cuts.h"

/* A worker's load is the sum of its parts' loads; the value of a partition is the chain's weight x the
 * largest load of a worker + the sum of costs and tolls. */
typedef struct hbp__rounds {
    const hbp__chain *chain; /* reach: how far each part gets that is its worker's only one */
    int32_t workers;         /* divides the parts */
    /* By how much `worker` passes its room with those of its parts that are below `parts`; 0: not at all.
     * More parts and longer ones need no less. NULL: there is always room. */
    int64_t (*over)(const void *user, const int32_t *cuts, int32_t parts, int32_t worker);
    const void *user;
} hbp__rounds;

/* A partition's value; loads into load [workers]. O(parts). */
int64_t hbp__rounds_value(const hbp__rounds *rounds, const int32_t *cuts, int64_t *load);

/* Fills the list, which may hold some to begin with, with good partitions that have room: the first is the
 * best of all, the one of earlier cuts among equals, when its value is no more than *bound, which no
 * partition with room is below. Ends early when *work, counted down by one for each part looked at, is used
 * up. Finds none: HBP_E_INFEASIBLE without a message, and nearest [parts + 1] gets the one that was short of
 * room by least. docs/explanation/pipeline.md has the algorithm. */
hbp_status hbp__cut_rounds(hbp_context *context, const hbp__rounds *rounds, int64_t *work,
                           hbp__cut_list *list, int32_t *nearest, int64_t *bound);

#endif
