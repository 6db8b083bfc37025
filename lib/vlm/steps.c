/* Every step of the epoch simulated, each replica with its own packs. O(operations of all steps), and the
 * search of orders. */
#include <string.h>

#include "base/checked.h"
#include "base/scratch.h"
#include "pipeline/order.h"
#include "simulate/pipeline/pipeline.h"
#include "vlm/tuning.h"
#include "vlm/vlm.h"

typedef struct runner {
    const hbp__vlm_run *run;
    const hbp__vlm_reference *reference;
    const hbp__vlm_stages *stages;
    const hbp_plan *data;
    int32_t micro_batches; /* that the scratch is made for */
    hbp__vlm_pipeline pipeline;
    hbp__schedule schedule;
    hbp__stage_times *times; /* [replicas + 1]; the last: of every operation the slowest replica's time */
    int32_t opened;
    int32_t *order; /* [M] */
    int64_t mark;   /* of what the epoch took before steps did */
    const hbp__vlm_audience *audience;
} runner;

static void close_times(runner *r)
{
    for (int32_t i = 0; i < r->opened; i++)
        hbp__stage_times_close(&r->times[i]);
    r->opened = 0;
    hbp__schedule_close(&r->schedule);
    r->micro_batches = 0;
}

/* Pipeline and times for steps of `count` micro-batches; they nearly always are as many as before. */
static hbp_status open_times(runner *r, int32_t count)
{
    hbp_context *context = r->run->context;
    const hbp_vlm_options *o = &r->run->options;
    if (r->micro_batches == count)
        return HBP_OK;
    close_times(r);
    hbp__scratch_release(context, r->mark);
    HBP__TRY(hbp__vlm_pipeline_open(r->run, count, &r->pipeline));
    r->order = hbp__take(context, (uint64_t)count, sizeof *r->order);
    HBP__TRY(hbp__scratch_check(context, "a step"));
    r->pipeline.options.limit_bytes = NULL;
    r->pipeline.options.recompute = r->stages->choices;
    HBP__TRY(hbp__schedule_open(context, o->pipeline_stages, o->virtual_stages, count, &r->schedule));
    for (; r->opened <= o->data_parallel; r->opened++)
        HBP__TRY(hbp__stage_times_open(context, r->reference->layers, r->stages->cuts, &r->pipeline.options,
                                       &r->times[r->opened]));
    r->micro_batches = count;
    return HBP_OK;
}

static void raise_to(int64_t *most, const int64_t *value, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        most[i] = hbp__max_i64(most[i], value[i]);
}

/* Every replica's times for the step's micro-batches, and of each the most. */
static void fill_times(runner *r, int64_t first, int32_t count)
{
    int32_t replicas = r->run->options.data_parallel;
    int64_t cells = (int64_t)r->stages->chunks * count;
    hbp__stage_times *most = &r->times[replicas];
    for (int32_t d = 0; d < replicas; d++) {
        for (int32_t m = 0; m < count; m++) {
            hbp__vlm_size size =
                hbp__vlm_row_size(r->run, r->data, r->data->micro_batch_offsets[first + m] + d);
            hbp__vlm_pipeline_set(&r->pipeline, r->reference, m, &size);
        }
        hbp__stage_times_fill(&r->times[d], &r->pipeline.options, 0);
        if (!d)
            hbp__stage_times_fill(most, &r->pipeline.options, 0);
        raise_to(most->forward, r->times[d].forward, cells);
        raise_to(most->backward, r->times[d].backward, cells);
        raise_to(most->transfer, r->times[d].transfer, cells - count);
        raise_to(most->sending, r->times[d].sending, cells - count);
    }
}

static int64_t work_of(const hbp__stage_times *times, int32_t m)
{
    int64_t work = 0;
    for (int32_t k = 0; k < times->chunks; k++)
        work = hbp__add_saturating(work, times->forward[(int64_t)k * times->micro_batches + m] +
                                             times->backward[(int64_t)k * times->micro_batches + m]);
    return work;
}

static int is_uneven(const hbp__stage_times *times)
{
    int64_t least = INT64_MAX, most = 0;
    for (int32_t m = 0; m < times->micro_batches; m++) {
        int64_t work = work_of(times, m);
        least = hbp__min_i64(least, work);
        most = hbp__max_i64(most, work);
    }
    return most - least > most / HBP__VLM_BALANCED;
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
    HBP__TRY(open_times(r, count));
    fill_times(r, first, count);
    for (int32_t d = 0; d < r->run->options.data_parallel; d++)
        for (int64_t i = 0; i < (int64_t)r->stages->chunks * count; i++)
            *busy = hbp__add_saturating(*busy,
                                        hbp__add_saturating(r->times[d].forward[i], r->times[d].backward[i]));
    for (int32_t m = 0; m < count; m++)
        permutation[first + m] = (int32_t)first + m;
    *ns = run_order(r, NULL);
    const hbp__stage_times *most = &r->times[r->run->options.data_parallel];
    if (r->run->options.keep_order || !is_uneven(most))
        return HBP_OK;
    for (int32_t m = 0; m < count; m++)
        r->order[m] = m;
    HBP__TRY(hbp__order_micro_batches(r->run->context, &r->schedule, most, NULL, HBP__VLM_ORDER_WORK,
                                      r->order, NULL, NULL));
    int64_t ordered = run_order(r, r->order);
    if (ordered >= *ns)
        return HBP_OK;
    *ns = ordered;
    for (int32_t m = 0; m < count; m++)
        permutation[first + m] = (int32_t)first + r->order[m];
    return HBP_OK;
}

/* Shows the operations of a step that has just been run in the order given. */
static hbp_status show_step(runner *r, int64_t step, int64_t ns)
{
    const hbp__vlm_audience *a = r->audience;
    for (int32_t d = 0; d < r->run->options.data_parallel; d++) {
        a->replica(a->user, d);
        hbp__pipeline_time(&r->schedule, &r->times[d], NULL, NULL, NULL);
        hbp__pipeline_walk(&r->schedule, &r->times[d], NULL, a->operation, a->user);
    }
    return a->end(a->user, step, ns);
}

static hbp_status run_steps(runner *r, int64_t first, int64_t end, int32_t *permutation, int64_t *step_ns,
                            int64_t *busy_ns)
{
    for (int64_t s = first; s < end; s++) {
        HBP__TRY(run_step(r, s, permutation, &step_ns[s - first], busy_ns));
        if (r->audience)
            HBP__TRY(show_step(r, s, step_ns[s - first]));
        if (s % 64 == 0)
            HBP__TRY(hbp__tick(r->run->context, "steps", s - first, end - first));
    }
    return HBP_OK;
}

/* Times of steps [first, end); *permutation, scratch, gets the order of micro-batches. */
static hbp_status run_epoch(runner *r, int64_t first, int64_t end, int32_t **permutation, int64_t *step_ns,
                            int64_t *busy_ns)
{
    hbp_context *context = r->run->context;
    *permutation = hbp__take(context, (uint64_t)r->data->micro_batches, sizeof **permutation);
    r->times = hbp__take_zero(context, (uint64_t)r->run->options.data_parallel + 1, sizeof *r->times);
    HBP__TRY(hbp__scratch_check(context, "the epoch"));
    r->mark = hbp__scratch_mark(context);
    hbp_status status = run_steps(r, first, end, *permutation, step_ns, busy_ns);
    close_times(r);
    hbp__scratch_release(context, r->mark);
    return status;
}

hbp_status hbp__vlm_steps(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                          const hbp__vlm_stages *stages, hbp_plan **data, hbp_vlm_plan *out)
{
    hbp_context *context = run->context;
    runner r = {.run = run, .reference = reference, .stages = stages, .data = *data};
    int64_t mark = hbp__scratch_mark(context);
    int32_t *permutation = NULL;
    hbp_plan *ordered = NULL;
    HBP__TRY(run_epoch(&r, 0, r.data->steps, &permutation, out->step_ns, &out->busy_ns));
    HBP__TRY(hbp__plan_permute(context, r.data, permutation, &ordered));
    hbp_plan_free(*data);
    *data = ordered;
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

hbp_status hbp__vlm_replay(const hbp__vlm_run *run, const hbp__vlm_reference *reference,
                           const hbp__vlm_stages *stages, const hbp_plan *data, int64_t first, int64_t end,
                           const hbp__vlm_audience *audience, int64_t *step_ns, int64_t *busy_ns)
{
    hbp__vlm_run as_it_is = *run;
    runner r = {
        .run = &as_it_is, .reference = reference, .stages = stages, .data = data, .audience = audience};
    int64_t mark = hbp__scratch_mark(run->context);
    int32_t *permutation = NULL;
    as_it_is.options.keep_order = 1;
    *busy_ns = 0;
    HBP__TRY(run_epoch(&r, first, end, &permutation, step_ns, busy_ns));
    hbp__scratch_release(run->context, mark);
    return HBP_OK;
}
