/* hbp_simulate_tasks for callers inside the library. */
#ifndef HBP_SIMULATE_TASKS_H
#define HBP_SIMULATE_TASKS_H

#include "base/context.h"
#include "hbp/tasks.h"

/* hbp_simulate_tasks without options, within a call, of a schedule that is known to be sound: it is not
 * validated. *out is set on success alone. */
hbp_status hbp__simulate_tasks(hbp_context *context, const hbp_graph *graph, const hbp_machine *machine,
                               const hbp_task_schedule *schedule, hbp_task_run **out);

#endif
