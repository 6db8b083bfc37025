/* Schedules to start from, and the search for shorter ones. */
#ifndef HBP_TASKS_OVERLAP_SEARCH_H
#define HBP_TASKS_OVERLAP_SEARCH_H

#include "tasks/overlap/overlap_list.h"

/* Offers a list for each of `given`, without barriers, and for shares of the whole graph that end together;
 * *best gets the best of them, placed, sorted by start. `spare` is scratch. */
hbp_status hbp__overlap_seeds(hbp_context *context, hbp__placer *placer, const hbp__task_slices *const *given,
                              int32_t givens, int64_t bound_ns, hbp__list *best, hbp__list *spare);

/* Improves `best` by small changes until some number of pieces were placed, which `effort` and the size of
 * the problem set, or its makespan is `bound_ns`. */
hbp_status hbp__overlap_improve(hbp_context *context, hbp__placer *placer, int64_t bound_ns, int32_t effort,
                                hbp__list *best);

/* Joins neighbouring pieces of a MetaOp on one size that follow without a gap. The list is sorted by start.
 */
void hbp__overlap_join(hbp__placer *placer, hbp__list *list);

#endif
