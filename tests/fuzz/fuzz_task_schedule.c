/* Reads any bytes as a file of a task schedule, as they are and with the checksums made right; what comes out
 * must be safe to walk. */
#include <stdlib.h>

#include "../reseal.h"
#include "fuzz.h"

#include "data/tasks/task_schedule.h"
#include "io/tasks/task_file.h"

/* Follows every number of every column to what it names. */
static int64_t walk(const hbp_task_schedule *s)
{
    int64_t sum = 0;
    for (int64_t w = 0; w < s->waves; w++)
        for (int64_t i = s->wave_offsets[w]; i < s->wave_offsets[w + 1]; i++) {
            int32_t m = s->slice_meta_ops[i], g = s->slice_groups[i];
            for (int32_t o = 0; o < s->slice_operators[i]; o++)
                sum += s->operators[s->meta_op_offsets[m] + s->slice_firsts[i] + o];
            for (int64_t r = s->group_offsets[g]; r < s->group_offsets[g + 1]; r++)
                sum += s->rank_bytes[s->group_ranks[r]] & 1;
            sum += s->level_ns[s->meta_op_levels[m]] & 1;
            sum += s->task_names[s->meta_op_tasks[m]][0] + s->meta_op_names[m][0];
        }
    for (int64_t p = 0; p < s->parameters; p++)
        sum += s->parameters_names[p][0] + (s->parameter_groups[p] >= 0);
    return sum;
}

static void run(hbp_context *context, const uint8_t *data, size_t size)
{
    hbp__file_bytes file;
    void *loaded = NULL;
    hbp__file_open_memory(data, (int64_t)size, &file);
    hbp_status status = hbp__table_load(context, &hbp__task_format, &file, &loaded);
    hbp_task_schedule *schedule = loaded;
    CHECK((status == HBP_OK) == (schedule != NULL));
    CHECK(status == HBP_OK || status == HBP_E_FORMAT || status == HBP_E_VERSION || status == HBP_E_NO_MEMORY);
    CHECK(status == HBP_OK || hbp_context_message(context)[0]);
    if (schedule) {
        CHECK(hbp__task_columns_check(context, schedule) == HBP_OK);
        CHECK(walk(schedule) != INT64_MIN);
        CHECK(hbp__task_schedule_digest(schedule) == schedule->digest);
    }
    hbp_task_schedule_free(schedule);
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
