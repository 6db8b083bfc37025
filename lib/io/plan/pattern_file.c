#include "io/plan/pattern_file.h"

#include "data/pattern/pattern_plan.h"
#include "hbp/io.h"

static hbp_status check(hbp_context *context, const void *plan)
{
    return hbp__pattern_plan_check(context, plan);
}

static uint64_t digest(const void *plan)
{
    return hbp__pattern_plan_digest(plan);
}

const hbp__table_format hbp__pattern_format = {
    .table = &hbp__pattern_table,
    .name = HBP__PATTERN_FORMAT,
    .what = "a file of a plan by patterns",
    .argument = "plan",
    .version = 1,
    .digest_at = offsetof(hbp_pattern_plan, digest),
    .check = check,
    .digest = digest,
};

hbp_status hbp_pattern_plan_save(hbp_context *context, const hbp_pattern_plan *plan, const char *path)
{
    return hbp__table_save_call(context, &hbp__pattern_format, plan, path);
}

hbp_status hbp_pattern_plan_load(hbp_context *context, const char *path, hbp_pattern_plan **out)
{
    HBP__TABLE_LOAD_CALL(context, &hbp__pattern_format, path, out);
}
