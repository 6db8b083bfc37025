#include "io/task_file.h"

#include <zlib.h>

#include "data/task_columns.h"

static hbp_status check(hbp_context *context, const void *schedule)
{
    return hbp__task_columns_check(context, schedule);
}

static uint64_t digest(const void *schedule)
{
    return hbp__task_schedule_digest(schedule);
}

static const hbp__table_format format = {
    .table = &hbp__task_table,
    .name = HBP__TASK_FORMAT,
    .what = "a file of a task schedule",
    .version = HBP__TASK_FORMAT_VERSION,
    .most_names = HBP__TASK_MAX_NAMES,
    .digest_at = offsetof(hbp_task_schedule, digest),
    .check = check,
    .digest = digest,
};

hbp_status hbp__task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path,
                                   int level)
{
    return hbp__table_save(context, &format, schedule, path, level);
}

hbp_status hbp_task_schedule_save(hbp_context *context, const hbp_task_schedule *schedule, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    HBP__TRY(hbp__require(context, path, "path"));
    return hbp__task_schedule_save(context, schedule, path, Z_BEST_SPEED);
}

hbp_status hbp__task_schedule_load(hbp_context *context, const hbp__file_bytes *file, hbp_task_schedule **out)
{
    void *schedule = NULL;
    HBP__TRY(hbp__table_load(context, &format, file, &schedule));
    *out = schedule;
    (*out)->memory = context->memory;
    (*out)->summary.struct_size = sizeof(hbp_task_summary);
    return HBP_OK;
}

hbp_status hbp_task_schedule_load(hbp_context *context, const char *path, hbp_task_schedule **out)
{
    if (out)
        *out = NULL;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, path, "path"));
    HBP__TRY(hbp__require(context, out, "out"));
    hbp__file_bytes file;
    hbp_status status = hbp__file_open(context, path, &file);
    if (status == HBP_OK)
        status = hbp__task_schedule_load(context, &file, out);
    hbp__file_close(&file);
    return status;
}
