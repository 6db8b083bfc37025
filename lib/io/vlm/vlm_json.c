/* A vision-language plan as JSON: its data as any plan's, and under "vlm" what it has beside them, with the
 * keys of its file. */
#include "hbp/io.h"
#include "io/plan/plan_json.h"
#include "io/table/table_json.h"
#include "vlm/vlm.h"

static hbp_status put_plan(hbp__json_out *out, const hbp_vlm_plan *plan)
{
    HBP__TRY(hbp__json_put_plan(out, plan->data));
    HBP__TRY(hbp__json_put_numbers(out, &hbp__vlm_table, plan, ",\n\"vlm\":{"));
    HBP__TRY(hbp__json_put_columns(out, &hbp__vlm_table, plan, ",\n"));
    hbp__table layers = hbp__layers_table;
    layers.number_count = 0; /* the plan has said how many */
    HBP__TRY(hbp__json_put_numbers(out, &layers, plan->layers, ",\n"));
    HBP__TRY(hbp__json_put_columns(out, &layers, plan->layers, ",\n"));
    hbp__json_put(out, "}}\n");
    return out->status;
}

hbp_status hbp_vlm_plan_write_json(hbp_context *context, const hbp_vlm_plan *plan, const char *path)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    HBP__TRY(hbp__require(context, path, "path"));
    hbp__atomic_file file;
    hbp__json_out out = {.context = context, .file = &file};
    HBP__TRY(hbp__atomic_open(context, path, &file));
    return hbp__atomic_end(context, &file, put_plan(&out, plan));
}
