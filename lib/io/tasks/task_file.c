#include "io/tasks/task_file.h"
#include "hbp/io.h"

#include "data/tasks/task_run.h"
#include "data/tasks/task_schedule.h"
#include "io/table/table_json.h"

/* Names of MetaOps, tasks and weights in all: unpacked, each takes some memory before it is known to be one.
 */
#define MOST_NAMES (INT64_C(1) << 22)

static hbp_status check_schedule(hbp_context *context, const void *schedule)
{
    return hbp__task_columns_check(context, schedule);
}

static uint64_t digest_schedule(const void *schedule)
{
    return hbp__task_schedule_digest(schedule);
}

const hbp__table_format hbp__task_format = {
    .table = &hbp__task_table,
    .name = HBP__TASK_FORMAT,
    .what = "a file of a task schedule",
    .argument = "schedule",
    .version = 1,
    .most_names = MOST_NAMES,
    .digest_at = offsetof(hbp_task_schedule, digest),
    .check = check_schedule,
    .digest = digest_schedule,
};

static hbp_status check_run(hbp_context *context, const void *run)
{
    return hbp__task_run_check(context, run);
}

static uint64_t digest_run(const void *run)
{
    return hbp__task_run_digest(run);
}

const hbp__table_format hbp__task_run_format = {
    .table = &hbp__task_run_table,
    .name = "hbp-task-run",
    .what = "a file of a run of tasks",
    .argument = "run",
    .version = 1,
    .digest_at = offsetof(hbp_task_run, summary.digest),
    .check = check_run,
    .digest = digest_run,
};

hbp_status hbp_task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path)
{
    return hbp__table_save_call(context, &hbp__task_format, schedule, path);
}

hbp_status hbp_task_schedule_load(hbp_context *context, const char *path, hbp_task_schedule **out)
{
    HBP__TABLE_LOAD_CALL(context, &hbp__task_format, path, out);
}

hbp_status hbp_task_run_save(hbp_context *context, const hbp_task_run *run, const char *path)
{
    return hbp__table_save_call(context, &hbp__task_run_format, run, path);
}

hbp_status hbp_task_run_load(hbp_context *context, const char *path, hbp_task_run **out)
{
    HBP__TABLE_LOAD_CALL(context, &hbp__task_run_format, path, out);
}

hbp_status hbp_task_schedule_write_json(hbp_context *context, const hbp_task_schedule *schedule,
                                        const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    return hbp__table_write_json(context, &hbp__task_table, schedule, path);
}

hbp_status hbp_task_run_write_json(hbp_context *context, const hbp_task_run *run, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    return hbp__table_write_json(context, &hbp__task_run_table, run, path);
}
