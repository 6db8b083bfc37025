/* Multiway number partitioning: items into a given number of parts, the heaviest of which is to be light.
 *
 * Input: for each item a weight, in which parts are balanced, a size, of which a part holds at most
 * `capacity`, and how many samples it stands for, of which a part holds `least_samples` to `most_samples`.
 * Output: the part of each item, the weight of the heaviest, and a lower bound on it. Graham's rule of the
 * longest processing time (1969) makes the first partition; exchanges of items between the heaviest part and
 * light ones improve it, as in Finn and Horowitz (1979). O(n log n), with at most 2 n + 2^21 looks at parts
 * for an order of the items, and for each exchange O((n / k) log (n / k)) a pair of parts that is looked at,
 * 2 n + 2^22 items in all. Oracle: every partition tried (tests/solve/test_multiway.c). */
#ifndef HBP_SOLVE_MULTIWAY_H
#define HBP_SOLVE_MULTIWAY_H

#include <stdint.h>

#include "base/context.h"

typedef struct hbp__multiway {
    int64_t items;
    const int64_t *weight;  /* [items] >= 0; their sum is below 2^62 */
    const int64_t *size;    /* [items] 0..capacity each; NULL: weight */
    const int32_t *samples; /* [items] >= 1 each; NULL: 1 */
    int64_t parts;          /* at least 1 */
    int64_t capacity;       /* INT64_MAX: none */
    int64_t least_samples;
    int64_t most_samples; /* INT64_MAX: any number */
} hbp__multiway;

/* Writes the part [items] of each item, 0..parts - 1, and *heaviest. HBP_E_INFEASIBLE where none was found
 * that keeps to capacity and samples: with items of several sizes or samples there may be one all the same.
 * Ties are broken by the lower index. */
hbp_status hbp__multiway_solve(hbp_context *context, const hbp__multiway *problem, uint32_t *part,
                               int64_t *heaviest);

/* The same from a partition that keeps to capacity and samples, which it makes lighter. */
hbp_status hbp__multiway_improve(hbp_context *context, const hbp__multiway *problem, uint32_t *part,
                                 int64_t *heaviest);

/* Writes the part [items] of each item for as few parts as are found under capacity (at most INT32_MAX; sizes
 * from 1) and most_samples, whatever `parts` says; *parts is how many there are, *bound how many there are at
 * least. Bin packing at an effort of 0..9 (solve/packing/tight_pack.h). HBP_E_INFEASIBLE names an item that
 * fits no part. */
hbp_status hbp__multiway_pack(hbp_context *context, const hbp__multiway *problem, int32_t effort,
                              uint32_t *part, int64_t *parts, int64_t *bound);

/* No partition's heaviest part weighs less: the mean, the heaviest item, the j + 1 lightest of the j k + 1
 * heaviest items, since some part has j + 1 of these, and the heaviest item with as many of the lightest as
 * its part has at least. O(n log n); O(n) where the first two are `heaviest` already, that of a partition. */
hbp_status hbp__multiway_bound(hbp_context *context, const hbp__multiway *problem, int64_t heaviest,
                               int64_t *bound);

#endif
