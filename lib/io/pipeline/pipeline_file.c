#include "io/pipeline/pipeline_file.h"
#include "hbp/io.h"

#include "data/pipeline/pipeline_run.h"
#include "io/table/table_json.h"

static hbp_status check_run(hbp_context *context, const void *run)
{
    return hbp__pipeline_run_check(context, run);
}

static uint64_t digest_run(const void *run)
{
    return hbp__pipeline_run_digest(run);
}

const hbp__table_format hbp__pipeline_run_format = {
    .table = &hbp__pipeline_run_table,
    .name = "hbp-pipeline-run",
    .what = "a file of a pipeline's run",
    .argument = "run",
    .version = 1,
    .digest_at = offsetof(hbp_pipeline_run, summary.digest),
    .check = check_run,
    .digest = digest_run,
};

hbp_status hbp_pipeline_run_save(hbp_context *context, const hbp_pipeline_run *run, const char *path)
{
    return hbp__table_save_call(context, &hbp__pipeline_run_format, run, path);
}

hbp_status hbp_pipeline_run_load(hbp_context *context, const char *path, hbp_pipeline_run **out)
{
    HBP__TABLE_LOAD_CALL(context, &hbp__pipeline_run_format, path, out);
}

hbp_status hbp_pipeline_run_write_json(hbp_context *context, const hbp_pipeline_run *run, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    return hbp__table_write_json(context, &hbp__pipeline_run_table, run, path);
}
