/* Whether a schedule of tasks keeps its promises. */
#ifndef HBP_SIMULATE_TASK_CHECK_H
#define HBP_SIMULATE_TASK_CHECK_H

#include <stdint.h>

#include "cost/scaling.h"
#include "data/machine/machine.h"
#include "data/tasks/task_schedule.h"

/* A schedule with what it is held against. */
typedef struct hbp__task_checking {
    hbp_context *context;
    const hbp_task_schedule *schedule;
    const hbp_graph *graph;
    hbp__meta_graph meta;
    hbp__scaling scaling;
    int32_t gpus;
    int32_t domain_gpus;
} hbp__task_checking;

/* hbp_task_schedule_validate without entering the context. */
hbp_status hbp__task_check(hbp_context *context, const hbp_task_schedule *schedule, const hbp_graph *graph,
                           const hbp_machine *machine);

/* Its parts, in this order: each relies on what those before have found sound.
 * Tables: sizes, offsets, MetaOps and names as in the graph, groups. */
hbp_status hbp__task_check_tables(const hbp__task_checking *c);
/* Slices: sizes, times, waves, precedence, busy times. */
hbp_status hbp__task_check_slices(const hbp__task_checking *c);
/* Bytes of ranks, weights' groups, flows and the rest of the summary, digest. */
hbp_status hbp__task_check_sums(const hbp__task_checking *c);

#endif
