/* Options of a step's pipeline, with room for scales. */
#include "base/scratch.h"
#include "vlm/vlm.h"

hbp_status hbp__vlm_pipeline_open(const hbp__vlm_run *run, int32_t micro_batches, hbp__vlm_pipeline *pipeline)
{
    uint64_t m = (uint64_t)micro_batches, stages = (uint64_t)run->options.pipeline_stages;
    pipeline->scale = hbp__take_zero(run->context, 4 * m, sizeof *pipeline->scale);
    pipeline->limit = hbp__take(run->context, stages, sizeof *pipeline->limit);
    HBP__TRY(hbp__scratch_check(run->context, "a step's pipeline"));
    for (uint64_t s = 0; s < stages; s++)
        pipeline->limit[s] = run->limit_bytes;
    hbp_pipeline_options *o = &pipeline->options;
    *o = (hbp_pipeline_options){.struct_size = sizeof *o};
    o->stages = run->options.pipeline_stages;
    o->virtual_stages = run->options.virtual_stages;
    o->micro_batches = micro_batches;
    o->vision_scale = pipeline->scale;
    o->token_scale = pipeline->scale + m;
    o->vision_time_scale = pipeline->scale + 2 * m;
    o->token_time_scale = pipeline->scale + 3 * m;
    o->limit_bytes = pipeline->limit;
    o->link_bytes_per_s = run->link_bytes_per_s;
    o->link_latency_ns = run->link_latency_ns;
    return HBP_OK;
}

void hbp__vlm_pipeline_set(hbp__vlm_pipeline *pipeline, const hbp__vlm_reference *reference, int32_t m,
                           const hbp__vlm_size *size)
{
    int32_t count = pipeline->options.micro_batches;
    pipeline->scale[m] = hbp__vlm_vision_scale(reference, size);
    pipeline->scale[count + m] = hbp__vlm_token_scale(reference, size);
    pipeline->scale[2 * count + m] = pipeline->scale[m];
    pipeline->scale[3 * count + m] = hbp__vlm_token_time_scale(reference, size);
}
