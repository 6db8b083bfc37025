/* Cuts and recomputation in turns, until neither changes. */
#include <string.h>

#include "base/checked.h"
#include "base/methods.h"
#include "base/scratch.h"
#include "base/sort.h"
#include "pipeline/partition.h"
#include "pipeline/recompute.h"
#include "simulate/pipeline/pipeline.h"
#include "vlm/tuning.h"
#include "vlm/vlm.h"

typedef struct search {
    const hbp__vlm_run *run;
    const hbp_layers *layers;
    hbp__vlm_pipeline pipeline; /* time of a usual step, bytes of the largest packs */
    hbp__schedule schedule;
    hbp__vlm_stages now;
    hbp__vlm_stages here; /* best since the last start */
    hbp__vlm_stages *best;
    int32_t *before;        /* [layers] choices that the cuts were made for */
    int32_t judged;         /* partitions, beyond those that the turns made */
    hbp__shortage shortage; /* of the last cuts that did not fit */
} search;

static hbp_status take_stages(const hbp__vlm_run *run, const hbp_layers *layers, hbp__vlm_stages *out)
{
    hbp_context *context = run->context;
    *out = (hbp__vlm_stages){.ns = INT64_MAX};
    out->chunks = run->options.pipeline_stages * run->options.virtual_stages;
    out->layers = layers->count;
    out->cuts = hbp__take_zero(context, (uint64_t)out->chunks + 1, sizeof *out->cuts);
    out->choices = hbp__take_zero(context, (uint64_t)layers->count, sizeof *out->choices);
    out->bytes = hbp__take_zero(context, (uint64_t)run->options.pipeline_stages, sizeof *out->bytes);
    out->report = (hbp_recompute_report){.struct_size = sizeof out->report};
    return hbp__scratch_check(context, "stages");
}

/* The `count` largest of the plan's values, descending. */
static hbp_status find_largest(const hbp__vlm_run *run, const hbp_plan *data, int vision, int32_t count,
                               double *out)
{
    hbp_context *context = run->context;
    int64_t mark = hbp__scratch_mark(context);
    uint64_t *key = hbp__take(context, (uint64_t)data->packs, sizeof *key);
    uint32_t *order = hbp__take(context, (uint64_t)data->packs, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the largest packs"));
    for (int64_t p = 0; p < data->packs; p++) {
        HBP__TRY(hbp__tick_row(context, "memory", p, data->packs));
        hbp__vlm_size size = hbp__vlm_row_size(run, data, p);
        key[p] = (uint64_t)(vision ? size.vision : size.tokens);
        order[p] = (uint32_t)p;
    }
    HBP__TRY(hbp__order_by_u64(context, key, order, data->packs, "the largest packs"));
    for (int32_t i = 0; i < count; i++)
        out[i] = i < data->packs ? (double)key[order[data->packs - 1 - i]] : 0;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* The step whose predicted time is the median of all full steps. */
static hbp_status usual_step(const hbp__vlm_run *run, const hbp_plan *data, int32_t micro_batches,
                             int64_t *step)
{
    hbp_context *context = run->context;
    int64_t mark = hbp__scratch_mark(context), count = 0;
    uint32_t *order = hbp__take(context, (uint64_t)data->steps, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "steps"));
    for (int64_t s = 0; s < data->steps; s++)
        if (data->step_offsets[s + 1] - data->step_offsets[s] == micro_batches)
            order[count++] = (uint32_t)s;
    HBP__TRY(hbp__order_by_i64(context, data->step_ns, order, count, "steps"));
    *step = count ? order[count / 2] : 0;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Bytes from the largest packs of the whole epoch, vision and tokens apart. */
static hbp_status set_byte_scales(const hbp__vlm_run *run, const hbp_plan *data,
                                  const hbp__vlm_reference *reference, hbp__vlm_pipeline *pipeline)
{
    int32_t count = pipeline->options.micro_batches;
    double *scale = pipeline->scale;
    HBP__TRY(find_largest(run, data, 1, count, scale));
    HBP__TRY(find_largest(run, data, 0, count, scale + count));
    for (int32_t m = 0; m < count; m++) {
        scale[m] /= reference->mean.vision;
        scale[count + m] /= reference->mean.tokens;
    }
    return HBP_OK;
}

/* These, and times from replica 0 of the usual step. */
static hbp_status set_scales(search *s, const hbp_plan *data, const hbp__vlm_reference *reference)
{
    int32_t count = s->pipeline.options.micro_batches;
    double *scale = s->pipeline.scale;
    HBP__TRY(set_byte_scales(s->run, data, reference, &s->pipeline));
    int64_t step = 0;
    HBP__TRY(usual_step(s->run, data, count, &step));
    int64_t first = data->step_offsets[step], rows = data->step_offsets[step + 1] - first;
    for (int32_t m = 0; m < count; m++) {
        hbp__vlm_size size = {0, 0, 0};
        if (m < rows)
            size = hbp__vlm_row_size(s->run, data, data->micro_batch_offsets[first + m]);
        scale[2 * count + m] = hbp__vlm_vision_scale(reference, &size);
        scale[3 * count + m] = hbp__vlm_token_time_scale(reference, &size);
    }
    return HBP_OK;
}

static hbp_status simulate_cuts(search *s, const int32_t *cuts, const int32_t *choices, int64_t *ns)
{
    hbp_pipeline_options options = s->pipeline.options;
    hbp__stage_times times;
    options.recompute = choices;
    HBP__TRY(hbp__stage_times_open(s->run->context, s->layers, cuts, &options, &times));
    *ns = hbp__pipeline_time(&s->schedule, &times, NULL, NULL, NULL);
    hbp__stage_times_close(&times);
    return HBP_OK;
}

static void keep_less(const hbp__vlm_stages *now, hbp__vlm_stages *best)
{
    if (now->ns >= best->ns)
        return;
    best->ns = now->ns;
    best->report = now->report;
    memcpy(best->cuts, now->cuts, (size_t)(now->chunks + 1) * sizeof *now->cuts);
    memcpy(best->choices, now->choices, (size_t)now->layers * sizeof *now->choices);
}

/* What `now`'s cuts come to: the least recomputation that fits them, and their time; kept where it is the
 * best so far. HBP_E_INFEASIBLE without a message when they do not fit. */
static hbp_status judge_cuts(search *s)
{
    const hbp_vlm_options *o = &s->run->options;
    hbp_recompute_options options = {.struct_size = sizeof options};
    options.method = o->recompute_method;
    options.selective = o->selective;
    HBP__TRY(hbp__choose_recompute(s->run->context, s->layers, s->now.cuts, &s->pipeline.options, &options,
                                   s->now.choices, &s->now.report, &s->shortage));
    HBP__TRY(simulate_cuts(s, s->now.cuts, s->now.choices, &s->now.ns));
    keep_less(&s->now, &s->here);
    keep_less(&s->now, s->best);
    return HBP_OK;
}

/* Cuts for layers that recompute `choices`, within `limit_bytes`. */
static hbp_status partition_for(search *s, const int32_t *choices, const int64_t *limit_bytes,
                                hbp_layer_partition **out)
{
    hbp_pipeline_options pipeline = s->pipeline.options;
    hbp_layer_partition_options options = {.struct_size = sizeof options};
    pipeline.recompute = choices;
    pipeline.limit_bytes = limit_bytes;
    options.method = s->run->options.partition_method;
    options.run = 1;
    options.candidates = limit_bytes ? 0 : HBP__VLM_STARTS;
    return hbp__partition_layers(s->run->context, s->layers, &pipeline, &options, out, &s->shortage);
}

static hbp_status cut_layers(search *s, const int32_t *choices)
{
    hbp_layer_partition *partition = NULL;
    HBP__TRY(partition_for(s, choices, s->pipeline.options.limit_bytes, &partition));
    memcpy(s->now.cuts, partition->cuts, (size_t)(s->now.chunks + 1) * sizeof *s->now.cuts);
    hbp_layer_partition_free(partition);
    return HBP_OK;
}

static int same_choices(const search *s)
{
    return memcmp(s->now.choices, s->before, (size_t)s->now.layers * sizeof *s->before) == 0;
}

/* Model and memory in turns, from layers that all recompute as `choice` says. Ends when the choices come
 * back, or the time no longer falls. */
static hbp_status take_turns(search *s, int32_t choice)
{
    int32_t rounds = 0, limit = s->run->options.rounds;
    hbp_status status = HBP_OK;
    s->here.ns = INT64_MAX;
    for (int32_t i = 0; i < s->now.layers; i++)
        s->now.choices[i] = choice;
    for (int changed = 1; changed && rounds < limit && status >= 0; rounds++) {
        int64_t ns = s->here.ns;
        memcpy(s->before, s->now.choices, (size_t)s->now.layers * sizeof *s->before);
        status = cut_layers(s, s->before);
        if (status >= 0)
            status = judge_cuts(s);
        changed = s->here.ns < ns && !same_choices(s);
    }
    if (rounds > s->best->rounds)
        s->best->rounds = rounds;
    /* A later round that does not fit ends the search, it does not undo what was found. */
    return status == HBP_E_INFEASIBLE && s->here.ns < INT64_MAX ? HBP_OK : status;
}

/* Judges `now`; cuts that do not fit are passed over. */
static hbp_status judge_fitting(search *s)
{
    s->judged++;
    hbp_status status = judge_cuts(s);
    return status == HBP_E_INFEASIBLE ? HBP_OK : status;
}

static void set_cuts(search *s, const int32_t *cuts)
{
    memcpy(s->now.cuts, cuts, (size_t)(s->now.chunks + 1) * sizeof *cuts);
}

/* Judges the best cuts for layers that all recompute as `choice` says, whether these fit or not: what each
 * stage then recomputes of its own may. */
static hbp_status judge_unlimited(search *s, int32_t choice)
{
    hbp_layer_partition *partition = NULL;
    hbp_status status = HBP_OK;
    for (int32_t i = 0; i < s->now.layers; i++)
        s->before[i] = choice;
    s->here.ns = INT64_MAX;
    HBP__TRY(partition_for(s, s->before, NULL, &partition));
    for (int32_t i = 0; i < partition->candidates && status >= 0; i++) {
        set_cuts(s, hbp__partition_cuts(partition, i));
        status = judge_fitting(s);
    }
    hbp_layer_partition_free(partition);
    return status;
}

/* `here` with cuts k .. l moved by `by` layers, and cut k by `more` beyond that. Cuts that are none
 * are passed over. */
static hbp_status attempt_move(search *s, int32_t k, int32_t l, int32_t by, int32_t more)
{
    set_cuts(s, s->here.cuts);
    s->now.cuts[k] += more;
    for (int32_t i = k; i <= l; i++)
        s->now.cuts[i] += by;
    for (int32_t i = 0; i < s->now.chunks; i++)
        if (s->now.cuts[i] >= s->now.cuts[i + 1])
            return HBP_OK;
    return judge_fitting(s);
}

/* Moves near `here` that change chunks k - 1 and l: a layer or two over one cut; a layer from the one to
 * the other, all between moving up; one cut forth and the next one back. */
static hbp_status attempt_moves(search *s, int32_t k, int32_t l)
{
    for (int32_t by = -1; by <= 1; by += 2) {
        HBP__TRY(attempt_move(s, k, l, by, 0));
        if (l == k)
            HBP__TRY(attempt_move(s, k, k, 2 * by, 0));
        if (l == k + 1)
            HBP__TRY(attempt_move(s, k, l, by, -2 * by));
    }
    return HBP_OK;
}

/* Near moves of `here`, recomputation chosen anew each time, until none helps. */
static hbp_status descend_moves(search *s)
{
    int32_t chunks = s->now.chunks;
    int64_t ns;
    do {
        ns = s->here.ns;
        for (int32_t apart = 0; apart + 1 < chunks && s->here.ns == ns; apart++)
            for (int32_t k = 1; k + apart < chunks && s->judged < HBP__VLM_MOST_JUDGED; k++) {
                HBP__TRY(attempt_moves(s, k, k + apart));
                HBP__TRY(hbp__tick(s->run->context, "stages", k, chunks));
            }
    } while (s->here.ns < ns && s->judged < HBP__VLM_MOST_JUDGED);
    return HBP_OK;
}

/* Where nothing recomputes and much memory is left, memory did not stand in the way of the cuts. */
static int is_ample(const search *s)
{
    return s->here.ns < INT64_MAX && !s->here.report.recompute_ns &&
           (double)s->here.report.slack_bytes > HBP__VLM_AMPLE_MEMORY * (double)s->run->limit_bytes;
}

/* A start, and what lies near it. */
static hbp_status search_turns(search *s, int32_t choice)
{
    HBP__TRY(take_turns(s, choice));
    return hbp__layer_partition_method(s->run->options.partition_method) == HBP__LAYER_PARTITION_OPTIMAL
               ? descend_moves(s)
               : HBP_OK;
}

static hbp_status search_unlimited(search *s, int32_t choice)
{
    HBP__TRY(judge_unlimited(s, choice));
    return s->here.ns < INT64_MAX ? descend_moves(s) : HBP_OK;
}

/* Partitions of the layers into chunks, or `most` when there are more. */
static int64_t count_partitions(const search *s, int64_t most)
{
    int64_t count = 1;
    /* C(layers - 1, k) for k = 1 .. chunks - 1; they rise at least up to the middle. */
    int32_t cuts = s->now.layers - 1, inner = s->now.chunks - 1;
    inner = inner < cuts - inner ? inner : cuts - inner;
    for (int32_t k = 1; k <= inner && count < most; k++)
        count = count * (cuts - k + 1) / k;
    return hbp__min_i64(count, most);
}

/* Judges every partition, earlier cuts first. */
static hbp_status judge_all(search *s)
{
    int32_t chunks = s->now.chunks, k;
    for (int32_t i = 0; i < chunks; i++)
        s->now.cuts[i] = i;
    s->now.cuts[chunks] = s->now.layers;
    s->best->rounds = 1;
    do {
        HBP__TRY(judge_fitting(s));
        for (k = chunks - 1; k > 0 && s->now.cuts[k] == s->now.layers - (chunks - k); k--)
            ;
        if (k > 0)
            s->now.cuts[k]++;
        for (int32_t i = k + 1; k > 0 && i < chunks; i++)
            s->now.cuts[i] = s->now.cuts[i - 1] + 1;
    } while (k > 0);
    return HBP_OK;
}

static hbp_status find_stages(search *s)
{
    const hbp_vlm_options *o = &s->run->options;
    int is_optimal = hbp__layer_partition_method(o->partition_method) == HBP__LAYER_PARTITION_OPTIMAL;
    int32_t recompute = hbp__recompute_method(o->recompute_method);
    if (is_optimal && s->now.chunks <= s->now.layers &&
        count_partitions(s, HBP__VLM_FEW_PARTITIONS + 1) <= HBP__VLM_FEW_PARTITIONS) {
        HBP__TRY(judge_all(s));
        if (s->best->ns < INT64_MAX)
            return HBP_OK;
    }
    hbp_status status = HBP_E_INFEASIBLE;
    if (recompute != HBP__RECOMPUTE_ALL)
        status = search_turns(s, HBP_RECOMPUTE_NONE);
    if (status >= 0 && is_ample(s))
        return HBP_OK;
    if ((status >= 0 || status == HBP_E_INFEASIBLE) && recompute != HBP__RECOMPUTE_NONE)
        status = search_turns(s, HBP_RECOMPUTE_LAYER);
    if (status < 0 && status != HBP_E_INFEASIBLE)
        return status;
    hbp__shortage shortage = s->shortage; /* of the turns, where they found nothing */
    shortage.remedy = "more pipeline_stages, a larger tensor_parallel or GPUs with more memory may do";
    if (is_optimal && recompute == HBP__RECOMPUTE_OPTIMAL) {
        HBP__TRY(search_unlimited(s, HBP_RECOMPUTE_NONE));
        HBP__TRY(search_unlimited(s, HBP_RECOMPUTE_LAYER));
    }
    return s->best->ns < INT64_MAX ? HBP_OK : hbp__shortage_fail(s->run->context, &shortage);
}

static hbp_status measure_bytes(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                                const hbp_pipeline_options *pipeline, const hbp__vlm_stages *stages,
                                int64_t *bytes)
{
    hbp__live live;
    HBP__TRY(hbp__live_open(run->context, pipeline, &live));
    for (int32_t i = 0; i < run->options.pipeline_stages; i++)
        bytes[i] =
            hbp__stage_peak_bytes(reference->layers, stages->cuts, pipeline, &live, stages->choices, i);
    hbp__live_close(&live);
    return HBP_OK;
}

static int32_t most_micro_batches(const hbp_plan *data)
{
    int64_t most = 0;
    for (int64_t s = 0; s < data->steps; s++)
        most = hbp__max_i64(most, data->step_offsets[s + 1] - data->step_offsets[s]);
    return (int32_t)most;
}

void hbp__vlm_stage_ns(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                       const hbp__vlm_stages *stages, int64_t *ns)
{
    const hbp_layers *l = reference->layers;
    memset(ns, 0, (size_t)run->options.pipeline_stages * sizeof *ns);
    for (int32_t k = 0; k < stages->chunks; k++)
        for (int32_t i = stages->cuts[k]; i < stages->cuts[k + 1]; i++)
            ns[k % run->options.pipeline_stages] +=
                l->forward_ns[i] + l->backward_ns[i] + hbp__layer_extra_ns(l, i, stages->choices[i]);
}

hbp_status hbp__vlm_stage_bytes(const hbp__vlm_run *run, const hbp_plan *data,
                                const hbp__vlm_reference *reference, const hbp__vlm_stages *stages,
                                int64_t *bytes)
{
    hbp__vlm_pipeline pipeline;
    int64_t mark = hbp__scratch_mark(run->context);
    HBP__TRY(hbp__vlm_pipeline_open(run, most_micro_batches(data), &pipeline));
    HBP__TRY(set_byte_scales(run, data, reference, &pipeline));
    HBP__TRY(measure_bytes(run, reference, &pipeline.options, stages, bytes));
    hbp__scratch_release(run->context, mark);
    return HBP_OK;
}

static hbp_status search_stages(search *s, const hbp_plan *data, const hbp__vlm_reference *reference,
                                int32_t micro_batches)
{
    hbp_context *context = s->run->context;
    HBP__TRY(take_stages(s->run, s->layers, &s->now));
    HBP__TRY(take_stages(s->run, s->layers, &s->here));
    HBP__TRY(hbp__vlm_pipeline_open(s->run, micro_batches, &s->pipeline));
    s->before = hbp__take(context, (uint64_t)s->layers->count, sizeof *s->before);
    HBP__TRY(hbp__scratch_check(context, "stages"));
    HBP__TRY(set_scales(s, data, reference));
    HBP__TRY(find_stages(s));
    return measure_bytes(s->run, reference, &s->pipeline.options, s->best, s->best->bytes);
}

hbp_status hbp__vlm_stages_open(const hbp__vlm_run *run, const hbp_plan *data,
                                const hbp__vlm_reference *reference, hbp__vlm_stages *stages)
{
    const hbp_vlm_options *o = &run->options;
    int32_t most = most_micro_batches(data);
    search s = {.run = run, .layers = reference->layers, .best = stages};
    HBP__TRY(take_stages(run, s.layers, stages));
    int64_t mark = hbp__scratch_mark(run->context);
    HBP__TRY(hbp__schedule_open(run->context, o->pipeline_stages, o->virtual_stages, most, &s.schedule));
    hbp_status status = search_stages(&s, data, reference, most);
    hbp__schedule_close(&s.schedule);
    return hbp__leave(run->context, mark, status);
}
