/* Files of task schedules as bytes. */
#ifndef HBP_TESTS_IO_TASK_FILES_H
#define HBP_TESTS_IO_TASK_FILES_H

#include "table_files.h"
#include "task_columns.h"

#include "io/tasks/task_file.h"

/* Saves the schedule at a level of zlib and returns the file's bytes; the test frees them. */
static inline uint8_t *saved(hbp_context *context, const hbp_task_schedule *schedule, int level,
                             size_t *bytes)
{
    return table_saved(context, &hbp__task_format, schedule, level, bytes);
}

/* hbp_task_schedule_load from memory. */
static inline hbp_status load_memory(hbp_context *context, const void *data, size_t bytes,
                                     hbp_task_schedule **out)
{
    void *schedule;
    hbp_status status = table_load(context, &hbp__task_format, data, bytes, &schedule);
    *out = schedule;
    return status;
}

#endif
