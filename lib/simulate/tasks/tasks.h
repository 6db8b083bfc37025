/* hbp_simulate_tasks for callers inside the library. */
#ifndef HBP_SIMULATE_TASKS_H
#define HBP_SIMULATE_TASKS_H

#include "base/context.h"
#include "hbp/tasks.h"

/* hbp_simulate_tasks, within a call. *out is set on success alone. */
hbp_status hbp__simulate_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                               const hbp_task_schedule *schedule, const hbp_task_run_options *options,
                               hbp_task_run **out);

#endif
