/* Every step of the epoch run on paper. */
#include <string.h>

#include "base/checked.h"
#include "simulate/pipeline.h"
#include "vlm/vlm.h"

/* Orders that are tried in a step: as drawn, by time both ways, and the largest in the middle. */
enum { DRAWN = 0, ASCENDING = 1, DESCENDING = 2, MIDDLE = 3, ORDERS = 4 };

typedef struct runner {
    const hbp__vlm_run *run;
    const hbp__vlm_reference *reference;
    const hbp__vlm_stages *stages;
    const hbp_plan *data;
    int32_t micro_batches; /* that the scratch is made for */
    hbp__vlm_pipeline pipeline;
    hbp__schedule schedule;
    hbp__stage_times *times; /* [replicas] */
    int32_t opened;
    int32_t *order; /* [ORDERS][M] */
    int64_t *key;   /* [M] */
} runner;

static void close_scratch(runner *r)
{
    const hbp__memory *memory = &r->run->context->memory;
    for (int32_t i = 0; i < r->opened; i++)
        hbp__stage_times_close(&r->times[i]);
    r->opened = 0;
    hbp__schedule_close(&r->schedule);
    hbp__vlm_pipeline_close(&r->pipeline);
    hbp__delete(memory, r->order);
    hbp__delete(memory, r->key);
    r->order = NULL;
    r->key = NULL;
    r->micro_batches = 0;
}

/* Scratch for steps of `count` micro-batches; they nearly always are as many as before. */
static hbp_status make_scratch(runner *r, int32_t count)
{
    hbp_context *context = r->run->context;
    const hbp_vlm_options *o = &r->run->options;
    if (r->micro_batches == count)
        return HBP_OK;
    close_scratch(r);
    HBP__TRY(hbp__vlm_pipeline_open(r->run, count, &r->pipeline));
    r->pipeline.options.limit_bytes = NULL;
    r->pipeline.options.recompute = r->stages->choices;
    HBP__TRY(hbp__schedule_open(context, o->pipeline_stages, o->virtual_stages, count, &r->schedule));
    for (; r->opened < o->data_parallel; r->opened++)
        HBP__TRY(hbp__stage_times_open(context, r->reference->layers, r->stages->cuts, &r->pipeline.options,
                                       &r->times[r->opened]));
    r->order = hbp__new(&context->memory, ORDERS * (uint64_t)count, sizeof *r->order);
    r->key = hbp__new(&context->memory, (uint64_t)count, sizeof *r->key);
    if (!r->order || !r->key)
        return hbp__fail_memory(context, "a step");
    r->micro_batches = count;
    return HBP_OK;
}

/* Every replica's times for the step's micro-batches; key: the slowest replica's work, by micro-batch. */
static void fill_times(runner *r, int64_t first, int32_t count)
{
    memset(r->key, 0, (size_t)count * sizeof *r->key);
    for (int32_t d = 0; d < r->run->options.data_parallel; d++) {
        for (int32_t m = 0; m < count; m++) {
            hbp__vlm_size size =
                hbp__vlm_row_size(r->run, r->data, r->data->micro_batch_offsets[first + m] + d);
            hbp__vlm_pipeline_set(&r->pipeline, r->reference, m, &size);
        }
        hbp__stage_times_fill(&r->times[d], &r->pipeline.options, 0);
        for (int32_t m = 0; m < count; m++) {
            int64_t work = 0;
            for (int32_t k = 0; k < r->stages->chunks; k++)
                work += r->times[d].forward[(int64_t)k * count + m] +
                        r->times[d].backward[(int64_t)k * count + m];
            r->key[m] = hbp__max_i64(r->key[m], work);
        }
    }
}

/* The orders to try; insertion sort, as a step has few micro-batches. */
static void make_orders(runner *r, int32_t count)
{
    int32_t *drawn = r->order, *up = drawn + count, *down = up + count, *middle = down + count;
    for (int32_t m = 0; m < count; m++) {
        int32_t at = m;
        drawn[m] = m;
        for (; at > 0 && r->key[up[at - 1]] > r->key[m]; at--)
            up[at] = up[at - 1];
        up[at] = m;
    }
    for (int32_t m = 0; m < count; m++) {
        down[m] = up[count - 1 - m];
        middle[m % 2 ? count - 1 - m / 2 : m / 2] = up[m];
    }
}

/* The slowest replica's time in this order. */
static int64_t run_order(runner *r, const int32_t *order)
{
    int64_t slowest = 0;
    for (int32_t d = 0; d < r->run->options.data_parallel; d++)
        slowest = hbp__max_i64(slowest, hbp__pipeline_time(&r->schedule, &r->times[d], order, NULL, NULL));
    return slowest;
}

static hbp_status run_step(runner *r, int64_t step, int32_t *permutation, int64_t *ns, int64_t *busy)
{
    int64_t first = r->data->step_offsets[step];
    int32_t count = (int32_t)(r->data->step_offsets[step + 1] - first);
    HBP__TRY(make_scratch(r, count));
    fill_times(r, first, count);
    for (int32_t d = 0; d < r->run->options.data_parallel; d++)
        for (int64_t i = 0; i < (int64_t)r->stages->chunks * count; i++)
            *busy = hbp__add_saturating(*busy,
                                        hbp__add_saturating(r->times[d].forward[i], r->times[d].backward[i]));
    make_orders(r, count);
    int tried = r->run->options.order < 0 ? 1 : ORDERS, best = 0;
    int64_t least = run_order(r, r->order);
    for (int i = 1; i < tried; i++) {
        int64_t other = run_order(r, r->order + (int64_t)i * count);
        if (other < least) {
            least = other;
            best = i;
        }
    }
    for (int32_t m = 0; m < count; m++)
        permutation[first + m] = (int32_t)first + r->order[(int64_t)best * count + m];
    *ns = least;
    return HBP_OK;
}

static hbp_status run_all(runner *r, int32_t *permutation, hbp_vlm_plan *out)
{
    for (int64_t s = 0; s < r->data->steps; s++) {
        HBP__TRY(run_step(r, s, permutation, &out->step_ns[s], &out->busy_ns));
        if (s % 64 == 0)
            HBP__TRY(hbp__tick(r->run->context, "steps", s, r->data->steps));
    }
    return HBP_OK;
}

hbp_status hbp__vlm_steps(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                          const hbp__vlm_stages *stages, hbp_plan **data, hbp_vlm_plan *out)
{
    hbp_context *context = run->context;
    runner r = {.run = run, .reference = reference, .stages = stages, .data = *data};
    int32_t *permutation = hbp__new(&context->memory, (uint64_t)r.data->micro_batches, sizeof *permutation);
    r.times = hbp__new_zero(&context->memory, (uint64_t)run->options.data_parallel, sizeof *r.times);
    hbp_status status = permutation && r.times ? HBP_OK : hbp__fail_memory(context, "the epoch");
    if (status >= 0)
        status = run_all(&r, permutation, out);
    if (status >= 0) {
        hbp_plan *ordered = hbp__plan_permute(&context->memory, r.data, permutation);
        if (ordered) {
            hbp_plan_free(*data);
            *data = ordered;
        } else {
            status = hbp__fail_memory(context, "the ordered plan");
        }
    }
    close_scratch(&r);
    hbp__delete(&context->memory, r.times);
    hbp__delete(&context->memory, permutation);
    return status;
}
