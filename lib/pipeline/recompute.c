/* Which layers recompute: options, methods, report. */
#include "pipeline/recompute.h"

#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/options.h"
#include "base/scratch.h"
#include "pipeline/tuning.h"

/* Sums over layers stay below, as those of columns do, and what is said to be free above its negative: so
 * that sums and differences stay within 64 bits. */
#define MOST_SUM   (INT64_C(1) << 62)
#define LEAST_FREE (-MOST_SUM)

static hbp_status read_options(hbp_context *context, const hbp_recompute_options *given,
                               const hbp_layers *layers, int32_t stages, hbp_recompute_options *o)
{
    HBP__TRY(hbp__options_read(context, o, sizeof *o, given, "hbp_recompute_options"));
    if (o->selective == 0)
        o->selective = HBP_SELECT_ATTENTION | HBP_SELECT_MLP;
    else if (o->selective < 0)
        o->selective = 0;
    const struct {
        const char *name;
        int64_t value;
    } measured[] = {{"measured_vision_bytes", o->measured_vision_bytes},
                    {"measured_language_bytes", o->measured_language_bytes}};
    int64_t most = MOST_SUM / layers->count;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (measured[i].value < 0 || measured[i].value > most)
            return hbp__fail(context, HBP_E_INVALID, "%s is %lld; for %d layers it must be in 0..%lld",
                             measured[i].name, (long long)measured[i].value, (int)layers->count,
                             (long long)most);
    for (int32_t s = 0; o->measured_free_bytes && s < stages; s++)
        if (o->measured_free_bytes[s] < LEAST_FREE)
            return hbp__fail(context, HBP_E_INVALID,
                             "measured_free_bytes of stage %d is %lld; it must be at least %lld", (int)s,
                             (long long)o->measured_free_bytes[s], (long long)LEAST_FREE);
    return HBP_OK;
}

/* Checks pipeline and cuts as every run of the pipeline does. */
static hbp_status read_pipeline(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                const hbp_pipeline_options *given, hbp_pipeline_options *pipeline)
{
    HBP__TRY(hbp__options_read(context, pipeline, sizeof *pipeline, given, "hbp_pipeline_options"));
    pipeline->recompute = NULL;
    hbp__stage_times times;
    HBP__TRY(hbp__stage_times_open(context, layers, cuts, pipeline, &times));
    hbp__stage_times_close(&times);
    return HBP_OK;
}

/* What all stages share. */
typedef struct choosing {
    const hbp_layers *layers;
    const int32_t *cuts;
    hbp_pipeline_options pipeline;
    hbp_recompute_options options;
    hbp__live live;
    hbp__shortage *shortage;
    int64_t work;
    hbp_recompute_report report;
} choosing;

static hbp_status choose_by_method(hbp_context *context, choosing *r, const hbp__recompute_stage *stage,
                                   int32_t *choices)
{
    int proven = 0;
    switch (hbp__recompute_method(r->options.method)) {
    case HBP__RECOMPUTE_OPTIMAL:
        HBP__TRY(hbp__recompute_optimal(context, stage, r->options.selective, &r->work, choices, &proven));
        break;
    case HBP__RECOMPUTE_OMNIBAL:
        HBP__TRY(hbp__recompute_paper(stage, choices));
        break;
    case HBP__RECOMPUTE_ALL:
        hbp__recompute_all(stage, choices);
        break;
    default:
        for (int32_t i = 0; i < stage->count; i++)
            choices[stage->layer[i]] = HBP_RECOMPUTE_NONE;
        break;
    }
    int64_t need = hbp__recompute_need(stage, choices);
    if (need > stage->limit)
        return hbp__recompute_short(stage, need,
                                    hbp__recompute_method(r->options.method) == HBP__RECOMPUTE_NONE
                                        ? "no layer recomputed"
                                        : "every layer recomputed");
    int64_t added = hbp__recompute_added_ns(stage, choices);
    r->report.proven &= proven || added == 0;
    r->report.recompute_ns = hbp__add_saturating(r->report.recompute_ns, added);
    if (stage->limit != INT64_MAX)
        r->report.slack_bytes = hbp__min_i64(r->report.slack_bytes, stage->limit - need);
    return HBP_OK;
}

static hbp_status choose_stage(hbp_context *context, choosing *r, int32_t s, int32_t *choices)
{
    hbp__recompute_stage stage;
    int64_t mark = hbp__scratch_mark(context);
    HBP__TRY(
        hbp__recompute_open(context, r->layers, r->cuts, &r->pipeline, &r->options, &r->live, s, &stage));
    stage.shortage = r->shortage;
    hbp__recompute_all(&stage, choices);
    /* What is free was measured with every layer recomputed. */
    if (r->options.measured_free_bytes &&
        !hbp__add_i64(hbp__recompute_need(&stage, choices), r->options.measured_free_bytes[s], &stage.limit))
        stage.limit = INT64_MAX;
    r->report.saved_ns = hbp__add_saturating(r->report.saved_ns, hbp__recompute_added_ns(&stage, choices));
    HBP__TRY(choose_by_method(context, r, &stage, choices));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

static hbp_status choose_all(hbp_context *context, choosing *r, int32_t *choices)
{
    r->work = HBP__RECOMPUTE_WORK;
    r->report =
        (hbp_recompute_report){.struct_size = sizeof r->report, .proven = 1, .slack_bytes = INT64_MAX};
    for (int32_t s = 0; s < r->pipeline.stages; s++) {
        HBP__TRY(hbp__tick(context, "recompute", s, r->pipeline.stages));
        HBP__TRY(choose_stage(context, r, s, choices));
    }
    r->report.saved_ns -= r->report.recompute_ns;
    for (int32_t i = 0; i < r->layers->count; i++) {
        r->report.recomputed += choices[i] == HBP_RECOMPUTE_LAYER;
        r->report.selective += choices[i] == HBP_RECOMPUTE_ATTENTION || choices[i] == HBP_RECOMPUTE_MLP;
    }
    return hbp__recompute_method(r->options.method) == HBP__RECOMPUTE_OPTIMAL && !r->report.proven
               ? HBP_NOT_PROVEN
               : HBP_OK;
}

static hbp_status read_and_choose(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                  const hbp_pipeline_options *pipeline, const hbp_recompute_options *options,
                                  int32_t *choices, hbp_recompute_report *report, hbp__shortage *shortage)
{
    choosing r = {.layers = layers, .cuts = cuts, .shortage = shortage};
    HBP__TRY(read_pipeline(context, layers, cuts, pipeline, &r.pipeline));
    HBP__TRY(read_options(context, options, layers, r.pipeline.stages, &r.options));
    uint64_t count = (uint64_t)layers->count;
    int32_t *made = hbp__take(context, count, sizeof *made);
    HBP__TRY(hbp__scratch_check(context, "choices of layers"));
    HBP__TRY(hbp__live_open(context, &r.pipeline, &r.live));
    hbp_status status = choose_all(context, &r, made);
    hbp__live_close(&r.live);
    HBP__TRY(status);
    if (report)
        HBP__TRY(hbp__struct_write(context, report, &r.report, sizeof r.report, "report"));
    memcpy(choices, made, count * sizeof *made);
    return status;
}

hbp_status hbp__choose_recompute(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                 const hbp_pipeline_options *pipeline, const hbp_recompute_options *options,
                                 int32_t *choices, hbp_recompute_report *report, hbp__shortage *shortage)
{
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark,
                      read_and_choose(context, layers, cuts, pipeline, options, choices, report, shortage));
}

hbp_status hbp_choose_recompute(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                const hbp_pipeline_options *pipeline, const hbp_recompute_options *options,
                                int32_t *choices, hbp_recompute_report *report)
{
    hbp__shortage shortage;
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, layers, "layers"));
    HBP__TRY(hbp__require(context, cuts, "cuts"));
    HBP__TRY(hbp__require(context, pipeline, "pipeline"));
    HBP__TRY(hbp__require(context, choices, "choices"));
    hbp_status status =
        hbp__choose_recompute(context, layers, cuts, pipeline, options, choices, report, &shortage);
    return status == HBP_E_INFEASIBLE ? hbp__shortage_fail(context, &shortage) : status;
}
