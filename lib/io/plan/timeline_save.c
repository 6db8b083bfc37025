#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/file/atomic_file.h"
#include "io/plan/timeline_file.h"

#define TICK_ROWS 4096

/* Room for a row: every field at its longest. */
#define ROW_BYTES (HBP__TIMELINE_FIELDS * 21 + 2)

static hbp_status put(hbp_context *context, hbp__atomic_file *file, const char *text)
{
    return hbp__atomic_write(context, file, text, (int64_t)strlen(text));
}

static hbp_status put_comment(hbp_context *context, hbp__atomic_file *file, const char *name,
                              const char *text)
{
    char line[HBP__TIMELINE_TEXT_BYTES + 32];
    if (!text[0])
        return HBP_OK;
    snprintf(line, sizeof line, "# %s: %s\n", name, text);
    return put(context, file, line);
}

static hbp_status put_head(hbp_context *context, hbp__atomic_file *file, const hbp_timeline *t)
{
    char line[64];
    const int there[] = {
#define THERE(name, type, needed) t->name != NULL,
        HBP__TIMELINE_COLUMNS(THERE)
#undef THERE
    };
    HBP__TRY(put_comment(context, file, "device", t->device));
    HBP__TRY(put_comment(context, file, "date", t->date));
    snprintf(line, sizeof line, "# ranks: %" PRId32 "\nstep", t->ranks);
    HBP__TRY(put(context, file, line));
    for (int32_t field = 1; field < HBP__TIMELINE_FIELDS; field++) {
        if (!there[field])
            continue;
        snprintf(line, sizeof line, ",%s", hbp__timeline_field_name(field));
        HBP__TRY(put(context, file, line));
    }
    return put(context, file, "\n");
}

static hbp_status put_row(hbp_context *context, hbp__atomic_file *file, const hbp_timeline *t, int64_t i)
{
    char line[ROW_BYTES];
    int at = 0;
#define PUT(name, type, needed)                                                                              \
    if (t->name)                                                                                             \
        at += snprintf(line + at, sizeof line - (size_t)at, ",%" PRId64, (int64_t)t->name[i]);
    HBP__TIMELINE_COLUMNS(PUT)
#undef PUT
    line[at++] = '\n';
    return hbp__atomic_write(context, file, line + 1, at - 1); /* less the first comma */
}

static hbp_status put_all(hbp_context *context, hbp__atomic_file *file, const hbp_timeline *t)
{
    HBP__TRY(put_head(context, file, t));
    for (int64_t i = 0; i < t->count; i++) {
        if (i % TICK_ROWS == 0)
            HBP__TRY(hbp__tick(context, "save", i, t->count));
        HBP__TRY(put_row(context, file, t, i));
    }
    return HBP_OK;
}

hbp_status hbp_timeline_save(hbp_context *context, const hbp_timeline *timeline, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, timeline, "timeline"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__atomic_file file;
    HBP__TRY(hbp__atomic_open(context, path, &file));
    return hbp__atomic_end(context, &file, put_all(context, &file, timeline));
}
