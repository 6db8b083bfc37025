/* What no schedule of many tasks beats. */
#ifndef HBP_SIMULATE_TASK_BOUND_H
#define HBP_SIMULATE_TASK_BOUND_H

#include <stdint.h>

#include "cost/scaling.h"
#include "solve/moldable.h"

typedef struct hbp__task_bounds {
    int64_t critical_path_ns; /* longest path, every operator on its fastest size */
    int64_t area_ns;          /* sum of operators' least GPU time / N, rounded up */
    int64_t relaxed_ns;       /* sum over levels of C*, rounded; not a bound where levels may overlap */
    int64_t bound_ns;         /* no schedule takes less; at least the first two. Proof and limits:
                                 docs/explanation/tasks-bound.md */
    int32_t few;              /* nonzero: the graph is so small that schedules of it were searched */
    hbp__moldable_plan best;  /* of these, the shortest; operators as in hbp__meta_graph.operators */
} hbp__task_bounds;

/* `level_ns` [levels] gets each level's C*, rounded; may be NULL. Holds for schedules on the sizes of
 * `scaling` only. A failure is of memory, or HBP_E_CANCELLED. Under a millisecond for what is common, at
 * most some .1 s for few operators, and about a second for thousands of MetaOps in one tangle, where a
 * smaller bound comes back. */
hbp_status hbp__task_bound(hbp_context *context, const hbp__meta_graph *meta, const hbp__scaling *scaling,
                           hbp__task_bounds *bounds, int64_t *level_ns);

#endif
