/* Files of task schedules as bytes. */
#ifndef HBP_TESTS_IO_TASK_FILES_H
#define HBP_TESTS_IO_TASK_FILES_H

#include "failing.h"
#include "files.h"
#include "task_columns.h"

#include "io/task_file.h"

/* Saves the schedule at a level of zlib and returns the file's bytes; the test frees them. */
static inline uint8_t *saved(hbp_context *context, const hbp_task_schedule *schedule, int level,
                             size_t *bytes)
{
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "tasks.msgpack");
    OK(context, hbp__task_schedule_save(context, schedule, path, level));
    ck_assert_int_eq(folder_count(folder), 1);
    uint8_t *data = (uint8_t *)file_read(path, bytes);
    folder_remove(folder);
    return data;
}

/* hbp_task_schedule_load from memory. */
static inline hbp_status load_memory(hbp_context *context, const void *data, size_t bytes,
                                     hbp_task_schedule **out)
{
    hbp__file_bytes file;
    *out = NULL;
    HBP__TRY(hbp__enter(context));
    hbp__file_open_memory(data, (int64_t)bytes, &file);
    return hbp__task_schedule_load(context, &file, out);
}

#endif
