/* The inside of hbp__cut_rounds: what its relaxation, its local search and its search of everything share. */
#ifndef HBP_SOLVE_ROUNDS_SEARCH_H
#define HBP_SOLVE_ROUNDS_SEARCH_H

#include "base/rng.h"
#include "solve/chain/chain.h"

typedef struct hbp__rounds_search {
    hbp_context *context;
    const hbp__rounds *rounds;
    hbp__cut_list *list; /* everything good that is met */
    int64_t *work;
    int64_t scale;  /* of shares */
    int64_t *share; /* [workers] of scale x weight: the largest load is no less than a mean of loads */
    int64_t *plain; /* [(parts + 1) * (items + 1)] the least sum of the parts from p on, which begin at a */
    int64_t *mean;  /* the same of scale x sum + share x load */
    int32_t *next;  /* scratch of as many */
    int64_t bound;  /* proven: no partition is below it */
    int64_t *load;  /* [workers] scratch */
    int32_t *cuts;  /* [parts + 1] scratch */
    int32_t *nearest;
    int64_t nearest_over;
} hbp__rounds_search;

/* Bounds the value from below by Lagrange's relaxation: fills plain, mean and bound, and lists the partitions
 * that the relaxation finds on its way. O(parts items^2) a step. */
hbp_status hbp__rounds_relax(hbp__rounds_search *search, int64_t work);

/* Moves cuts of `cuts` while that makes the partition better; then perturbs it and goes on while there is
 * work. Leaves the best in `cuts`. */
hbp_status hbp__rounds_improve(hbp__rounds_search *search, int64_t work, int32_t *cuts);

/* Lists a partition if it has room; else notes how near it is. The value, or INT64_MAX. */
int64_t hbp__rounds_offer(hbp__rounds_search *search, const int32_t *cuts);

/* How much the partition lacks, over all workers. */
int64_t hbp__rounds_over(const hbp__rounds *rounds, const int32_t *cuts);

#endif
