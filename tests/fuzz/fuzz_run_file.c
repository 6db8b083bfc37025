/* Reads any bytes as the file of a pipeline's run and of a run of tasks, as they are and with the checksums
 * made right; what comes out must hold together and be safe to walk. */
#include <stdlib.h>

#include "../reseal.h"
#include "fuzz.h"

#include "data/pipeline/pipeline_run.h"
#include "data/tasks/task_run.h"
#include "io/pipeline/pipeline_file.h"
#include "io/tasks/task_file.h"

static void *load(hbp_context *context, const hbp__table_format *format, const uint8_t *data, size_t size)
{
    hbp__file_bytes file;
    void *object = NULL;
    hbp__file_open_memory(data, (int64_t)size, &file);
    hbp_status status = hbp__table_load(context, format, &file, &object);
    CHECK((status == HBP_OK) == (object != NULL));
    CHECK(status == HBP_OK || status == HBP_E_FORMAT || status == HBP_E_VERSION || status == HBP_E_NO_MEMORY);
    CHECK(status == HBP_OK || hbp_context_message(context)[0]);
    return object;
}

static void run(hbp_context *context, const uint8_t *data, size_t size)
{
    hbp_pipeline_run *pipeline = load(context, &hbp__pipeline_run_format, data, size);
    hbp_task_run *tasks = load(context, &hbp__task_run_format, data, size);
    CHECK(!pipeline || !tasks);
    if (pipeline) {
        int64_t last = 0;
        CHECK(hbp_pipeline_run_validate(context, pipeline, NULL, NULL, NULL) == HBP_OK);
        for (int64_t i = 0; i < pipeline->operations; i++)
            last = pipeline->operation_ends[i] > last ? pipeline->operation_ends[i] : last;
        CHECK(last == pipeline->summary.total_ns);
    }
    if (tasks) {
        int64_t last = 0;
        CHECK(hbp_task_run_validate(context, tasks, NULL, NULL, NULL, NULL) == HBP_OK);
        for (int64_t i = 0; i < tasks->slices; i++)
            last = tasks->slice_ends[i] > last ? tasks->slice_ends[i] : last;
        CHECK(last == tasks->summary.slices_ns);
    }
    hbp_pipeline_run_free(pipeline);
    hbp_task_run_free(tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hbp_context *context;
    CHECK(hbp_context_create(NULL, &context) == HBP_OK);
    run(context, data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (copy) {
        if (size)
            memcpy(copy, data, size);
        reseal_tasks(copy, size);
        run(context, copy, size);
        free(copy);
    }
    hbp_context_free(context);
    return 0;
}
