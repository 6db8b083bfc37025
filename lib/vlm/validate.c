/* A vision-language plan against itself: what its numbers must be, and its steps run again. */
#include "simulate/plan/validate.h"
#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "vlm/vlm.h"

static hbp_status check_numbers(hbp_context *context, const hbp_vlm_plan *p)
{
    const hbp_vlm_plan_summary *s = &p->summary;
    const hbp_plan *data = p->data;
    const hbp__range ranges[] = {
        {"stages", s->stages, 1, INT32_MAX},
        {"virtual_stages", s->virtual_stages, 1, INT32_MAX},
        {"chunks", p->chunks, (int64_t)s->stages * s->virtual_stages, (int64_t)s->stages * s->virtual_stages},
        {"layers", p->layer_count, p->chunks, INT32_MAX},
        {"replicas", s->replicas, data->ranks, data->ranks},
        {"gpus", s->gpus, s->replicas, INT32_MAX},
        {"steps", p->steps, data->steps, data->steps},
        {"samples", s->samples, data->samples, data->samples},
        {"dropped", s->dropped, data->dropped, data->dropped},
        {"padded", p->padded, 0, 1},
    };
    HBP__TRY(hbp__check_ranges(context, ranges, sizeof ranges / sizeof *ranges));
    const struct {
        const char *name;
        double value, least;
    } reals[] = {
        {"reference_vision", p->reference_vision, 1e-30}, {"reference_tokens", p->reference_tokens, 1e-30},
        {"reference_squares", p->reference_squares, 0},   {"square_ns", p->square_ns, 0},
        {"link_bytes_per_s", p->link_bytes_per_s, 0},
    };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (!(reals[i].value >= reals[i].least && reals[i].value <= 1e30))
            return hbp__fail(context, HBP_E_INVALID, "%s is %g; it must be in %g..1e30", reals[i].name,
                             reals[i].value, reals[i].least);
    return HBP_OK;
}

/* Each replica has a pack of its own in every micro-batch, and every step has a schedule. */
static hbp_status check_data(hbp_context *context, const hbp_vlm_plan *p)
{
    const hbp_plan *data = p->data;
    if (!data->pack_vision)
        return hbp__fail(context, HBP_E_INVALID, "the data have no vision units");
    for (int64_t m = 0; m < data->micro_batches; m++) {
        int64_t packs = data->micro_batch_offsets[m + 1] - data->micro_batch_offsets[m];
        HBP__TRY(hbp__tick_row(context, "validate", m, data->micro_batches));
        if (packs != p->summary.replicas)
            return hbp__fail(context, HBP_E_INVALID, "micro-batch %lld has %lld packs for %d replicas",
                             (long long)m, (long long)packs, (int)p->summary.replicas);
    }
    for (int64_t s = 0; s < data->steps; s++) {
        int64_t count = data->step_offsets[s + 1] - data->step_offsets[s];
        int64_t multiple = p->summary.virtual_stages > 1 ? p->stages : 1;
        if (count > INT32_MAX || count % multiple)
            return hbp__fail(
                context, HBP_E_INVALID,
                "step %lld has %lld micro-batches; with virtual stages it needs a multiple of %lld",
                (long long)s, (long long)count, (long long)multiple);
    }
    return HBP_OK;
}

static hbp_status check_columns(hbp_context *context, const hbp_vlm_plan *p)
{
    if (p->layers->count != p->layer_count)
        return hbp__fail(context, HBP_E_INVALID, "layers are %d; it must be %lld", (int)p->layers->count,
                         (long long)p->layer_count);
    for (int64_t k = 0; k <= p->chunks; k++) {
        int64_t least = k ? (int64_t)p->cuts[k - 1] + 1 : 0, most = k ? p->layer_count - p->chunks + k : 0;
        least = k == p->chunks ? p->layer_count : least;
        if (p->cuts[k] < least || p->cuts[k] > most)
            return hbp__fail(context, HBP_E_INVALID, "cut %lld is %d; it must be in %lld..%lld", (long long)k,
                             (int)p->cuts[k], (long long)least, (long long)most);
    }
    for (int64_t i = 0; i < p->layer_count; i++)
        if (p->recompute[i] < HBP_RECOMPUTE_NONE || p->recompute[i] > HBP_RECOMPUTE_LAYER)
            return hbp__fail(context, HBP_E_INVALID, "recompute of layer %lld is %d; it must be in %d..%d",
                             (long long)i, (int)p->recompute[i], HBP_RECOMPUTE_NONE, HBP_RECOMPUTE_LAYER);
    for (int64_t i = 0; i < p->stages; i++)
        if (p->stage_ns[i] < 0 || p->stage_bytes[i] < 0)
            return hbp__fail(context, HBP_E_INVALID, "stage %lld takes %lld ns and %lld bytes", (long long)i,
                             (long long)p->stage_ns[i], (long long)p->stage_bytes[i]);
    for (int64_t i = 0; i < p->steps; i++)
        if (p->step_ns[i] < 0)
            return hbp__fail(context, HBP_E_INVALID, "step %lld takes %lld ns", (long long)i,
                             (long long)p->step_ns[i]);
    return HBP_OK;
}

hbp_status hbp__vlm_check(hbp_context *context, const hbp_vlm_plan *plan)
{
    HBP__TRY(check_numbers(context, plan));
    HBP__TRY(check_data(context, plan));
    return check_columns(context, plan);
}

void hbp__vlm_restore(hbp_context *context, const hbp_vlm_plan *plan, hbp__vlm_replayed *out)
{
    const hbp_vlm_plan_summary *s = &plan->summary;
    *out = (hbp__vlm_replayed){
        .run = {.context = context,
                .options = {.pipeline_stages = s->stages,
                            .virtual_stages = s->virtual_stages,
                            .data_parallel = s->replicas,
                            .data_method = hbp__vlm_data_name(plan->padded ? HBP__VLM_DATA_RANDOM
                                                                           : HBP__VLM_DATA_PACKED),
                            .keep_order = 1},
                .gpus = s->gpus,
                .limit_bytes = s->limit_bytes,
                .link_bytes_per_s = plan->link_bytes_per_s,
                .link_latency_ns = plan->link_latency_ns},
        .reference = {.layers = plan->layers,
                      .mean = {plan->reference_vision, plan->reference_tokens, plan->reference_squares},
                      .square_ns = plan->square_ns},
        .stages = {.chunks = (int32_t)plan->chunks,
                   .layers = (int32_t)plan->layer_count,
                   .cuts = plan->cuts,
                   .choices = plan->recompute},
    };
    hbp__vlm_reference_fill(&out->reference);
}

static hbp_status fail_differs(hbp_context *context, const char *what, int64_t row, int64_t reported,
                               int64_t found)
{
    return hbp__fail(context, HBP_E_INVALID, "%s %lld is %lld; the layers and packs make it %lld", what,
                     (long long)row, (long long)reported, (long long)found);
}

static hbp_status compare_columns(hbp_context *context, const char *what, const int64_t *reported,
                                  const int64_t *found, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (reported[i] != found[i])
            return fail_differs(context, what, i, reported[i], found[i]);
    return HBP_OK;
}

static hbp_status check_stages(hbp_context *context, const hbp_vlm_plan *p, const hbp__vlm_replayed *r)
{
    int64_t *found = hbp__take(context, (uint64_t)p->stages, sizeof *found), peak = 0;
    HBP__TRY(hbp__scratch_check(context, "the stages"));
    hbp__vlm_stage_ns(&r->run, &r->reference, &r->stages, found);
    HBP__TRY(compare_columns(context, "stage_ns of stage", p->stage_ns, found, p->stages));
    HBP__TRY(hbp__vlm_stage_bytes(&r->run, p->data, &r->reference, &r->stages, found));
    HBP__TRY(compare_columns(context, "stage_bytes of stage", p->stage_bytes, found, p->stages));
    for (int64_t i = 0; i < p->stages; i++) {
        peak = hbp__max_i64(peak, found[i]);
        if (found[i] > p->summary.limit_bytes)
            return hbp__fail(context, HBP_E_INVALID, "stage %lld takes %lld bytes; the limit is %lld",
                             (long long)i, (long long)found[i], (long long)p->summary.limit_bytes);
    }
    return p->summary.peak_bytes == peak
               ? HBP_OK
               : hbp__fail(context, HBP_E_INVALID, "peak_bytes is %lld; the fullest stage takes %lld",
                           (long long)p->summary.peak_bytes, (long long)peak);
}

static hbp_status check_steps(hbp_context *context, const hbp_vlm_plan *p, const hbp__vlm_replayed *r)
{
    const hbp_vlm_plan_summary *s = &p->summary;
    int64_t *found = hbp__take(context, (uint64_t)p->steps, sizeof *found), busy = 0, epoch = 0;
    HBP__TRY(hbp__scratch_check(context, "the steps"));
    HBP__TRY(hbp__vlm_replay(&r->run, &r->reference, &r->stages, p->data, 0, p->steps, NULL, found, &busy));
    HBP__TRY(compare_columns(context, "step_ns of step", p->step_ns, found, p->steps));
    for (int64_t i = 0; i < p->steps; i++)
        epoch = hbp__add_saturating(epoch, found[i]);
    if (s->epoch_ns != epoch || s->bound_ns > epoch || s->packs_bound_ns > epoch)
        return hbp__fail(context, HBP_E_INVALID,
                         "epoch_ns is %lld, bound_ns %lld and packs_bound_ns %lld; all steps take %lld",
                         (long long)s->epoch_ns, (long long)s->bound_ns, (long long)s->packs_bound_ns,
                         (long long)epoch);
    return p->busy_ns == busy ? HBP_OK : fail_differs(context, "busy_ns of plan", 0, p->busy_ns, busy);
}

static hbp_status validate_plan(hbp_context *context, const hbp_vlm_plan *plan, const hbp_lengths *lengths)
{
    hbp__vlm_replayed r;
    HBP__TRY(hbp__plan_validate(context, plan->data, lengths, NULL));
    HBP__TRY(hbp__vlm_check(context, plan));
    hbp__vlm_restore(context, plan, &r);
    HBP__TRY(check_stages(context, plan, &r));
    HBP__TRY(check_steps(context, plan, &r));
    if (hbp__vlm_digest(plan) != plan->summary.digest)
        return hbp__fail(context, HBP_E_INVALID, "the digest is not that of data, cuts and recomputation");
    return HBP_OK;
}

hbp_status hbp_vlm_plan_validate(hbp_context *context, const hbp_vlm_plan *plan, const hbp_lengths *lengths)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, plan, "plan"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, validate_plan(context, plan, lengths));
}
