/* One call of hbp_plan_tasks: what was given, what it was turned into, and the steps from slices to a
 * schedule.
 */
#ifndef HBP_TASKS_PLANNING_H
#define HBP_TASKS_PLANNING_H

#include <stdint.h>

#include "simulate/tasks/task_bound.h"
#include "tasks/place/place.h"
#include "tasks/problem.h"

typedef struct hbp__planning {
    hbp_context *context;
    const hbp_graph *graph;
    const hbp_machine *machine;
    hbp_tasks_options options;
    hbp__meta_graph meta;
    const hbp__scaling *scaling; /* of all sizes */
    hbp__task_bounds bounds;
    int64_t *level_ns;
    int32_t gpus;
    int32_t domain_gpus;
    int64_t limit_bytes; /* INT64_MAX: none */
    hbp__misfit misfit;  /* of the last slices that were not placed */
} hbp__planning;

/* Slices of one of the published methods, by HBP__TASKS_*; none for HBP__TASKS_OVERLAP. */
hbp_status hbp__planning_slices(hbp__planning *planning, int32_t method, const hbp__task_problem *problem,
                                hbp__task_slices *slices);

/* The schedule of slices placed; HBP_E_INFEASIBLE without a message when their memory is not to be had, and
 * `misfit` says why. Slices that are not in waves yet are put in waves. */
hbp_status hbp__planning_place(hbp__planning *planning, const hbp__task_problem *problem,
                               hbp__task_slices *slices, int32_t in_waves, hbp_task_schedule **out);

/* The schedule before, as it stands, where nothing has changed: the same graph, machine, method and
 * placement, and memory that suffices; else *out stays NULL. */
hbp_status hbp__planning_reuse(hbp__planning *planning, hbp_task_schedule **out);

/* Keeps `schedule` in *best, whose time is *best_ns, when it runs faster than the one there (transfers,
 * gradients and states fetched included), else frees it. The published waves also take the place of a
 * schedule of longer makespan, for none is to be longer than they. */
hbp_status hbp__planning_keep(hbp__planning *planning, hbp_task_schedule *schedule, int32_t published,
                              hbp_task_schedule **best, int64_t *best_ns);

/* The default method: the fastest of several schedules goes to *best; nothing happens where none fits in
 * memory. `short_of_memory`: more methods are tried, with less effort. *published is set where the published
 * waves fit, too; then *best is not longer than they. */
hbp_status hbp__planning_own(hbp__planning *planning, const hbp__task_problem *problem,
                             int32_t short_of_memory, hbp_task_schedule **best, int64_t *best_ns,
                             int32_t *published);

#endif
