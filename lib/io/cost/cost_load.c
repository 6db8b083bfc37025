/* A cost from a file of its own, or from the header of a plan's. */
#include <string.h>
#include <sys/stat.h>

#include "base/options.h"
#include "base/scratch.h"
#include "hbp/io.h"
#include "io/cost/cost_file.h"
#include "io/file/file_error.h"
#include "io/file/file_head.h"
#include "io/file/stream.h"
#include "io/json/json_tree.h"
#include "io/plan/plan_file.h"

/* A plan file is read at any place, so it is no pipe. What cannot be read is for the reader of costs to tell.
 */
static hbp_status find_plan(hbp_context *context, const char *path, int *is_plan)
{
    struct stat there;
    hbp__file_bytes file;
    *is_plan = 0;
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode))
        return HBP_OK;
    const hbp__file_kind *kind = NULL;
    hbp_status status = hbp__file_open(context, path, &file);
    if (status == HBP_OK)
        status = hbp__file_find_kind(context, &file, &kind);
    *is_plan = kind && strcmp(kind->format, HBP__PLAN_FORMAT) == 0;
    if (kind && !*is_plan)
        status = hbp__file_fail_kind(context, &file, kind, "a cost file or a plan file");
    hbp__file_close(&file);
    return status;
}

hbp_status hbp__cost_of_plan(hbp_context *context, const hbp_plan_file *file, hbp_cost **out)
{
    HBP__TRY(hbp__plan_file_cost(context, file, out));
    if (*out)
        return HBP_OK;
    return hbp__blame_file(context, file->source.name.text,
                           hbp__fail(context, HBP_E_FORMAT, "the plan was saved without its cost"));
}

static hbp_status load_of_plan(hbp_context *context, const char *path, hbp_cost **out)
{
    hbp_plan_file *file;
    HBP__TRY(hbp__plan_file_open(context, path, &file));
    hbp_status status = hbp__cost_of_plan(context, file, out);
    hbp_plan_file_free(file);
    return status;
}

static hbp_status load_of_cost(hbp_context *context, const char *path, hbp_cost **out)
{
    char *text;
    int64_t bytes;
    HBP__TRY(hbp__read_file(context, path, HBP__JSON_MOST, &text, &bytes));
    hbp_status status = hbp__cost_read(context, hbp__show_path(path).text, text, bytes, out);
    hbp__delete(&context->memory, text);
    return status;
}

hbp_status hbp_cost_load(hbp_context *context, const char *path, hbp_cost **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, path, "path"));
    int is_plan;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(find_plan(context, path, &is_plan));
    return hbp__leave(context, mark,
                      is_plan ? load_of_plan(context, path, out) : load_of_cost(context, path, out));
}
