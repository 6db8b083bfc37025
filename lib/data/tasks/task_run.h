/* The inside of a run of tasks. */
#ifndef HBP_DATA_TASK_RUN_H
#define HBP_DATA_TASK_RUN_H

#include <stdint.h>

#include "base/context.h"
#include "data/table/table.h"
#include "hbp/tasks.h"

struct hbp_task_run {
    hbp__memory memory;
    hbp_task_run_summary summary; /* struct_size is not kept up */
    int64_t slices;
    int64_t *slice_starts; /* [slices] */
    int64_t *slice_ends;   /* [slices] */
};

extern const hbp__table hbp__task_run_table;

/* A run of a schedule's slices, zeroed. */
hbp_status hbp__task_run_new(hbp_context *context, const hbp_task_schedule *schedule, hbp_task_run **out);

/* Whether the numbers can be those of the columns: HBP_E_INVALID names the first breach. O(slices). */
hbp_status hbp__task_run_check(hbp_context *context, const hbp_task_run *run);

uint64_t hbp__task_run_digest(const hbp_task_run *run);

#endif
