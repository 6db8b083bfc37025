/* One replica's pipeline in one step of a vision-language plan, operation by operation. */
#include "base/options.h"
#include "base/scratch.h"
#include "vlm/vlm.h"

static hbp_status run_step(hbp_context *context, const hbp_vlm_plan *plan, int64_t step, int32_t replica,
                           hbp_pipeline_run **out)
{
    const hbp_plan *data = plan->data;
    hbp__vlm_replayed r;
    hbp__vlm_pipeline pipeline;
    const int64_t first = data->step_offsets[step];
    const int32_t count = (int32_t)(data->step_offsets[step + 1] - first);
    hbp__vlm_restore(context, plan, &r);
    HBP__TRY(hbp__vlm_pipeline_open(&r.run, count, &pipeline));
    pipeline.options.recompute = r.stages.choices;
    for (int32_t m = 0; m < count; m++) {
        const hbp__vlm_size size =
            hbp__vlm_row_size(&r.run, data, data->micro_batch_offsets[first + m] + replica);
        hbp__vlm_pipeline_set(&pipeline, &r.reference, m, &size);
    }
    return hbp__pipeline_run_open(context, plan->layers, plan->cuts, &pipeline.options, NULL, out);
}

hbp_status hbp_vlm_plan_run_step(hbp_context *context, const hbp_vlm_plan *plan, int64_t step,
                                 int32_t replica, hbp_pipeline_run **out)
{
    HBP__ENTER_OUT(context, out);
    HBP__TRY(hbp__require(context, plan, "plan"));
    const hbp__range rows[] = {{"step", step, 0, plan->steps - 1},
                               {"replica", replica, 0, plan->summary.replicas - 1}};
    HBP__TRY(hbp__check_ranges(context, rows, sizeof rows / sizeof *rows));
    const int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, run_step(context, plan, step, replica, out));
}
