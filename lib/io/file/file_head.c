#include "io/file/file_head.h"

#include <string.h>

#include "base/checked.h"
#include "io/msgpack/msgpack_buffer.h"

#define HEAD_BYTES 64

void hbp__pack_format(hbp__buffer *buffer, uint32_t entries, const char *format, int32_t version)
{
    /* Of 16 bits even where fewer would do: the version then stands at the same place in all files. */
    const unsigned char head[3] = {0xde, (unsigned char)(entries >> 8), (unsigned char)entries};
    uint8_t *at = hbp__buffer_extend(buffer, sizeof head);
    if (at)
        memcpy(at, head, sizeof head);
    hbp__pack_text(buffer, "format");
    hbp__pack_text(buffer, format);
    hbp__pack_text(buffer, "version");
    hbp__pack_u64(buffer, (uint8_t)version);
}

/* Whether the short text stands at *at, which moves behind it. */
static int take_text(const uint8_t *head, int64_t *at, const char *text)
{
    size_t bytes = strlen(text);
    int same = head[*at] == (0xa0 | bytes) && memcmp(head + *at + 1, text, bytes) == 0;
    *at += 1 + (int64_t)bytes;
    return same;
}

static hbp_status read_head(hbp_context *context, const hbp__file_bytes *file, uint8_t head[HEAD_BYTES])
{
    memset(head, 0, HEAD_BYTES);
    return hbp__file_read(context, file, 0, hbp__min_i64(file->bytes, HEAD_BYTES), head);
}

/* Where the version stands in a file of `bytes` bytes of this format; 0: it is of another. */
static int64_t find_version(const uint8_t *head, int64_t bytes, const char *format)
{
    int64_t next = 3;
    int same = bytes > hbp__format_version_at(format) && head[0] == 0xde &&
               take_text(head, &next, "format") && take_text(head, &next, format) &&
               take_text(head, &next, "version");
    return same ? next : 0;
}

static const hbp__file_kind *find_kind(const uint8_t *head, int64_t bytes)
{
    static const hbp__file_kind kinds[] = {
        {"hbp-plan", "a plan file, whose samples are listed", "hbp_plan_load", "Plan.load", "show"},
        {"hbp-patterns", "a file of a plan by patterns", "hbp_pattern_plan_load", "PatternPlan.load",
         "expand"},
        {"hbp-tasks", "a file of a task schedule", "hbp_task_schedule_load", "TaskSchedule.load", "show"},
        {"hbp-task-run", "a file of a run of tasks", "hbp_task_run_load", "TaskRun.load", "show"},
        {"hbp-pipeline-run", "a file of a pipeline's run", "hbp_pipeline_run_load", "PipelineRun.load",
         "show"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (find_version(head, bytes, kinds[i].format))
            return &kinds[i];
    return NULL;
}

hbp_status hbp__file_find_kind(hbp_context *context, const hbp__file_bytes *file, const hbp__file_kind **kind)
{
    uint8_t head[HEAD_BYTES];
    HBP__TRY(read_head(context, file, head));
    *kind = find_kind(head, file->bytes);
    return HBP_OK;
}

hbp_status hbp__file_fail_kind(hbp_context *context, const hbp__file_bytes *file, const hbp__file_kind *kind,
                               const char *what)
{
    return hbp__fail(context, HBP_E_FORMAT, "%s is %s, not %s; %s (Python: %s; command: hbp %s) reads it",
                     file->name.text, kind->what, what, kind->call, kind->python, kind->command);
}

hbp_status hbp__file_version(hbp_context *context, const hbp__file_bytes *file, const char *format,
                             const char *what, int32_t newest, int32_t *version)
{
    uint8_t head[HEAD_BYTES];
    HBP__TRY(read_head(context, file, head));
    const int64_t at = find_version(head, file->bytes, format);
    const hbp__file_kind *kind = at ? NULL : find_kind(head, file->bytes);
    if (kind)
        return hbp__file_fail_kind(context, file, kind, what);
    if (!at)
        return hbp__fail(context, HBP_E_FORMAT, "%s: byte 0: its %lld bytes are not %s", file->name.text,
                         (long long)file->bytes, what);
    if (head[at] < 1 || head[at] > newest)
        return hbp__fail(context, HBP_E_VERSION,
                         "%s is of format version %d; this library reads versions 1 to %d", file->name.text,
                         (int)head[at], (int)newest);
    *version = head[at];
    return HBP_OK;
}
