/* Cuts and recomputation in turns, until neither changes. */
#include <string.h>

#include "base/checked.h"
#include "base/sort.h"
#include "simulate/pipeline.h"
#include "vlm/vlm.h"

typedef struct search {
    const hbp__vlm_run *run;
    const hbp_layers *layers;
    hbp__vlm_pipeline pipeline; /* time of a usual step, bytes of the largest packs */
    hbp__schedule schedule;
    hbp__vlm_stages now;
    hbp__vlm_stages *best;
    int32_t *before; /* [layers] choices that the cuts were made for */
} search;

/* Where nothing recomputes and so large a share of the memory is left, it did not stand in the way of the
 * cuts: there is nothing to find by starting from layers that recompute. */
#define AMPLE .1

static hbp_status stages_new(const hbp__vlm_run *run, const hbp_layers *layers, hbp__vlm_stages *out)
{
    *out = (hbp__vlm_stages){.memory = run->context->memory};
    out->chunks = run->options.pipeline_stages * run->options.virtual_stages;
    out->layers = layers->count;
    out->cuts = hbp__new_zero(&out->memory, (uint64_t)out->chunks + 1, sizeof *out->cuts);
    out->choices = hbp__new_zero(&out->memory, (uint64_t)layers->count, sizeof *out->choices);
    out->bytes = hbp__new_zero(&out->memory, (uint64_t)run->options.pipeline_stages, sizeof *out->bytes);
    out->ns = INT64_MAX;
    hbp_recompute_report_init(&out->report, sizeof out->report);
    return out->cuts && out->choices && out->bytes ? HBP_OK : hbp__fail_memory(run->context, "stages");
}

void hbp__vlm_stages_close(hbp__vlm_stages *stages)
{
    hbp__delete(&stages->memory, stages->cuts);
    hbp__delete(&stages->memory, stages->choices);
    hbp__delete(&stages->memory, stages->bytes);
    stages->cuts = stages->choices = NULL;
    stages->bytes = NULL;
}

/* The `count` largest of the plan's values, descending. */
static hbp_status largest(const hbp__vlm_run *run, const hbp_plan *data, int vision, int32_t count,
                          double *out)
{
    const hbp__memory *memory = &run->context->memory;
    uint64_t *key = hbp__new(memory, (uint64_t)data->packs, sizeof *key);
    uint32_t *order = hbp__new(memory, (uint64_t)data->packs, sizeof *order);
    int ok = key && order;
    for (int64_t p = 0; ok && p < data->packs; p++) {
        hbp__vlm_size size = hbp__vlm_row_size(run, data, p);
        key[p] = (uint64_t)(vision ? size.vision : size.tokens);
        order[p] = (uint32_t)p;
    }
    ok = ok && hbp__sort_by_u64(memory, key, order, data->packs);
    for (int32_t i = 0; ok && i < count; i++)
        out[i] = i < data->packs ? (double)key[order[data->packs - 1 - i]] : 0;
    hbp__delete(memory, key);
    hbp__delete(memory, order);
    return ok ? HBP_OK : hbp__fail_memory(run->context, "the largest packs");
}

/* The step whose predicted time is the median of all full steps. */
static hbp_status usual_step(const hbp__vlm_run *run, const hbp_plan *data, int32_t micro_batches,
                             int64_t *step)
{
    const hbp__memory *memory = &run->context->memory;
    uint32_t *order = hbp__new(memory, (uint64_t)data->steps, sizeof *order);
    int64_t count = 0;
    if (!order)
        return hbp__fail_memory(run->context, "steps");
    for (int64_t s = 0; s < data->steps; s++)
        if (data->step_offsets[s + 1] - data->step_offsets[s] == micro_batches)
            order[count++] = (uint32_t)s;
    int ok = hbp__sort_by_i64(memory, data->step_ns, order, count);
    *step = ok && count ? order[count / 2] : 0;
    hbp__delete(memory, order);
    return ok ? HBP_OK : hbp__fail_memory(run->context, "steps");
}

/* Bytes from the largest packs of the whole epoch, vision and tokens apart; times from replica 0 of the usual
 * step. */
static hbp_status set_scales(search *s, const hbp_plan *data, const hbp__vlm_reference *reference)
{
    int32_t count = s->pipeline.options.micro_batches;
    double *scale = s->pipeline.scale;
    HBP__TRY(largest(s->run, data, 1, count, scale));
    HBP__TRY(largest(s->run, data, 0, count, scale + count));
    int64_t step = 0;
    HBP__TRY(usual_step(s->run, data, count, &step));
    int64_t first = data->step_offsets[step], rows = data->step_offsets[step + 1] - first;
    for (int32_t m = 0; m < count; m++) {
        scale[m] /= reference->mean.vision;
        scale[count + m] /= reference->mean.tokens;
        hbp__vlm_size size = {0, 0, 0};
        if (m < rows)
            size = hbp__vlm_row_size(s->run, data, data->micro_batch_offsets[first + m]);
        scale[2 * count + m] = hbp__vlm_vision_scale(reference, &size);
        scale[3 * count + m] = hbp__vlm_token_time_scale(reference, &size);
    }
    return HBP_OK;
}

static hbp_status simulate(search *s, const int32_t *cuts, const int32_t *choices, int64_t *ns)
{
    hbp_pipeline_options options = s->pipeline.options;
    hbp__stage_times times;
    options.recompute = choices;
    HBP__TRY(hbp__stage_times_open(s->run->context, s->layers, cuts, &options, &times));
    *ns = hbp__pipeline_time(&s->schedule, &times, NULL, NULL, NULL);
    hbp__stage_times_close(&times);
    return HBP_OK;
}

/* What `now`'s cuts come to: the least recomputation that fits them, and their time; kept when it is the best
 * so far. HBP_E_INFEASIBLE when they do not fit. */
static hbp_status judge(search *s)
{
    const hbp_vlm_options *o = &s->run->options;
    hbp_recompute_options options;
    hbp_recompute_options_init(&options, sizeof options);
    options.mode = o->memory;
    options.selective = o->selective;
    HBP__TRY(hbp_choose_recompute(s->run->context, s->layers, s->now.cuts, &s->pipeline.options, &options,
                                  s->now.choices, &s->now.report));
    HBP__TRY(simulate(s, s->now.cuts, s->now.choices, &s->now.ns));
    if (s->now.ns < s->best->ns) {
        s->best->ns = s->now.ns;
        s->best->report = s->now.report;
        memcpy(s->best->cuts, s->now.cuts, (size_t)(s->now.chunks + 1) * sizeof *s->now.cuts);
        memcpy(s->best->choices, s->now.choices, (size_t)s->now.layers * sizeof *s->now.choices);
    }
    return HBP_OK;
}

/* Cuts for layers that recompute `choices`, into `now`. */
static hbp_status cut(search *s, const int32_t *choices)
{
    hbp_pipeline_options pipeline = s->pipeline.options;
    hbp_partition_options options;
    hbp_partition *partition = NULL;
    pipeline.recompute = choices;
    hbp_partition_options_init(&options, sizeof options);
    options.mode = s->run->options.model;
    options.run = 1;
    HBP__TRY(hbp_partition_layers(s->run->context, s->layers, &pipeline, &options, &partition));
    memcpy(s->now.cuts, hbp_partition_get_cuts(partition, NULL),
           (size_t)(s->now.chunks + 1) * sizeof *s->now.cuts);
    hbp_partition_free(partition);
    return HBP_OK;
}

static int same_choices(const search *s)
{
    return memcmp(s->now.choices, s->before, (size_t)s->now.layers * sizeof *s->before) == 0;
}

/* Model and memory in turns, from layers that all recompute as `choice` says. Ends when the choices come
 * back, or the time no longer falls. */
static hbp_status alternate(search *s, int32_t choice)
{
    int32_t rounds = 0, limit = s->run->options.rounds;
    hbp_status status = HBP_OK;
    for (int32_t i = 0; i < s->now.layers; i++)
        s->now.choices[i] = choice;
    for (int changed = 1; changed && rounds < limit && status >= 0; rounds++) {
        int64_t ns = s->best->ns;
        memcpy(s->before, s->now.choices, (size_t)s->now.layers * sizeof *s->before);
        status = cut(s, s->before);
        if (status >= 0)
            status = judge(s);
        changed = s->best->ns < ns && !same_choices(s);
    }
    if (rounds > s->best->rounds)
        s->best->rounds = rounds;
    /* A later round that does not fit ends the search, it does not undo what was found. */
    return status == HBP_E_INFEASIBLE && s->best->ns < INT64_MAX ? HBP_OK : status;
}

/* Moves single cuts of the best by one layer, recomputation chosen anew each time, until none helps. */
static hbp_status descend(search *s)
{
    int32_t chunks = s->now.chunks;
    int improved = 1;
    for (int32_t turn = 0; improved && turn < 16; turn++) {
        improved = 0;
        for (int32_t k = 1; k < chunks; k++)
            for (int32_t by = -1; by <= 1; by += 2) {
                int64_t before = s->best->ns;
                memcpy(s->now.cuts, s->best->cuts, (size_t)(chunks + 1) * sizeof *s->now.cuts);
                s->now.cuts[k] += by;
                if (s->now.cuts[k] <= s->now.cuts[k - 1] || s->now.cuts[k] >= s->now.cuts[k + 1])
                    continue;
                hbp_status status = judge(s);
                if (status < 0 && status != HBP_E_INFEASIBLE)
                    return status;
                improved |= s->best->ns < before;
            }
        HBP__TRY(hbp__tick(s->run->context, "stages", turn, 16));
    }
    return hbp__enter(s->run->context); /* clears the message of cuts that did not fit */
}

static hbp_status find(search *s)
{
    const hbp_vlm_options *o = &s->run->options;
    hbp_status status = HBP_OK;
    if (o->memory != HBP_MEMORY_ALL) {
        status = alternate(s, HBP_RECOMPUTE_NONE);
        if (status < 0 && (status != HBP_E_INFEASIBLE || o->memory == HBP_MEMORY_NONE))
            return status;
    }
    int ample = s->best->ns < INT64_MAX && !s->best->report.recompute_ns &&
                (double)s->best->report.slack_bytes > AMPLE * (double)s->run->limit_bytes;
    if (o->memory != HBP_MEMORY_NONE && !ample) {
        status = alternate(s, HBP_RECOMPUTE_LAYER);
        if (status == HBP_E_INFEASIBLE && s->best->ns < INT64_MAX)
            status = HBP_OK;
        if (status < 0)
            return status;
    }
    return o->model == HBP_PARTITION_OPTIMAL ? descend(s) : hbp__enter(s->run->context);
}

static hbp_status measure_bytes(search *s)
{
    hbp__live live;
    HBP__TRY(hbp__live_open(s->run->context, &s->pipeline.options, &live));
    for (int32_t i = 0; i < s->run->options.pipeline_stages; i++)
        s->best->bytes[i] =
            hbp__stage_peak_bytes(s->layers, s->best->cuts, &s->pipeline.options, &live, s->best->choices, i);
    hbp__live_close(&live);
    return HBP_OK;
}

hbp_status hbp__vlm_stages_open(const hbp__vlm_run *run, const hbp_plan *data,
                                const hbp__vlm_reference *reference, hbp__vlm_stages *stages)
{
    int64_t most = 0;
    for (int64_t s = 0; s < data->steps; s++)
        most = hbp__max_i64(most, data->step_offsets[s + 1] - data->step_offsets[s]);
    search s = {.run = run, .layers = reference->layers, .best = stages};
    hbp_status status = stages_new(run, s.layers, stages);
    if (status >= 0)
        status = stages_new(run, s.layers, &s.now);
    if (status >= 0)
        status = hbp__vlm_pipeline_open(run, (int32_t)most, &s.pipeline);
    if (status >= 0)
        status = hbp__schedule_open(run->context, run->options.pipeline_stages, run->options.virtual_stages,
                                    (int32_t)most, &s.schedule);
    if (status >= 0 &&
        !(s.before = hbp__new(&run->context->memory, (uint64_t)s.layers->count, sizeof *s.before)))
        status = hbp__fail_memory(run->context, "stages");
    if (status >= 0)
        status = set_scales(&s, data, reference);
    if (status >= 0)
        status = find(&s);
    if (status >= 0)
        status = measure_bytes(&s);
    hbp__delete(&run->context->memory, s.before);
    hbp__schedule_close(&s.schedule);
    hbp__vlm_pipeline_close(&s.pipeline);
    hbp__vlm_stages_close(&s.now);
    if (status < 0)
        hbp__vlm_stages_close(stages);
    return status;
}
