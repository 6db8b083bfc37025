/* One option of every item, at the least cost within a budget of size: the multiple-choice knapsack problem,
 * whose sizes are summed and rounded by groups. */
#ifndef HBP_SOLVE_MULTIPLE_CHOICE_H
#define HBP_SOLVE_MULTIPLE_CHOICE_H

#include <stdint.h>

#include "base/context.h"

/* The most options that an item may have. */
#define HBP__MC_OPTIONS 8

/* All columns >= 0; the largest sizes of all items sum to at most 2^62. The size of a choice is the sum over
 * groups of round(weight * sum of its items' sizes); sums of costs saturate. */
typedef struct hbp__multiple_choice {
    int32_t items;
    int32_t groups;
    const int32_t *group; /* [items] ascending, below groups */
    const double *weight; /* [groups] */
    const int32_t *first; /* [items + 1] first option of each item: 1 to HBP__MC_OPTIONS apiece */
    const int64_t *cost;  /* [options] */
    const int64_t *size;  /* [options] */
    int64_t budget;
    int64_t below; /* only choices that cost less count; INT64_MAX: all */
} hbp__multiple_choice;

typedef struct hbp__multiple_choice_answer {
    int found;    /* a choice within the budget that costs less than `below` */
    int proven;   /* and none that costs less than this one, or none at all */
    int64_t cost; /* of the choice */
    double bound; /* no choice within the budget costs less; only where one is found */
} hbp__multiple_choice_answer;

/* Writes option numbers, counted from each item's first, to `chosen` [items] when one is found. Greedy by the
 * linear relaxation, then dynamic programming over the choices that Lagrange's bound at the relaxation's
 * multiplier leaves open (docs: recompute); what it steps through is taken off *work, and from 0 down the
 * greedy choice stands, mostly unproven. Exact otherwise. O(options log options) for the first part. */
hbp_status hbp__multiple_choice_solve(hbp_context *context, const hbp__multiple_choice *problem,
                                      int64_t *work, int32_t *chosen, hbp__multiple_choice_answer *answer);

/* The inside, shared by its two files. */

/* An option that no other of its item beats in size and cost; of an item ascending in size and descending in
 * cost. */
typedef struct hbp__mc_option {
    int64_t cost;
    int64_t size;
    double reduced; /* cost + multiplier * weight * size, above the item's least */
    int32_t number; /* in the problem */
} hbp__mc_option;

typedef struct hbp__mc_bench {
    const hbp__multiple_choice *problem;
    hbp__mc_option *option;
    int32_t *first; /* [items + 1] into option */
    double slack;   /* only choices whose reduced costs sum to no more are looked at */
} hbp__mc_bench;

/* Finds the least cost below `upper` among choices whose reduced costs stay within the slack; *cost is that,
 * or `upper`, and then `chosen` (numbers into the bench) is not written. *proven is 0 when *work ran out. */
hbp_status hbp__mc_search(hbp_context *context, const hbp__mc_bench *bench, int64_t upper, int64_t *work,
                          int32_t *chosen, int64_t *cost, int *proven);

#endif
