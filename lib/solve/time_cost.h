/* The time-cost trade-off of a project of activities with precedence: a lower bound on the makespan of
 * malleable tasks. */
#ifndef HBP_SOLVE_TIME_COST_H
#define HBP_SOLVE_TIME_COST_H

#include <stdint.h>

#include "base/context.h"

/* Activity a may take any duration >= duration[first[a]]; its cost is the piecewise linear function through
 * points first[a] .. first[a + 1] - 1, (duration, cost), durations rising, costs falling, convex; behind the
 * last point it stays. Arcs go from lower to higher activities. */
typedef struct hbp__project {
    int32_t activities;
    const int64_t *first;   /* [activities + 1] */
    const double *duration; /* > 0 */
    const double *cost;     /* >= 0 */
    int64_t arcs;
    const int32_t *from; /* [arcs] */
    const int32_t *to;   /* [arcs] from < to */
} hbp__project;

/* *least gets a time no greater than, and within a relative 1e-9 of, the least C for which durations exist
 * with every path's sum at most C and the costs' sum at most rate x C (rate > 0); or a smaller lower bound
 * when `limit` steps (0: no limit) did not suffice, and then *exact is 0. Steps are nodes that searches for
 * paths leave: for each component at most its nodes times, in practice, its points. The same on every
 * machine. */
hbp_status hbp__time_cost(hbp_context *context, const hbp__project *project, double rate, int64_t limit,
                          double *least, int32_t *exact);

#endif
