/* A pipeline run recorded operation by operation, and one held against what it was made from. */
#include "data/pipeline/pipeline_run.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "simulate/pipeline/pipeline.h"

static hbp_status check_order(hbp_context *context, const int32_t *order, int32_t count)
{
    int64_t mark = hbp__scratch_mark(context);
    char *seen = hbp__take_zero(context, (uint64_t)count, 1);
    HBP__TRY(hbp__scratch_check(context, "the order of micro-batches"));
    for (int32_t p = 0; p < count; p++) {
        if (order[p] < 0 || order[p] >= count)
            return hbp__fail(context, HBP_E_INVALID, "order of place %d is %d; there are %d micro-batches",
                             (int)p, (int)order[p], (int)count);
        if (seen[order[p]]++)
            return hbp__fail(context, HBP_E_INVALID, "order of place %d is %d; that came before", (int)p,
                             (int)order[p]);
    }
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

void hbp__pipeline_walk(const hbp__schedule *schedule, const hbp__stage_times *times, const int32_t *order,
                        void (*visit)(void *user, int64_t row, const hbp__operation_run *run), void *user)
{
    int64_t columns = schedule->micro_batches, count = schedule->segment[columns], free_at = 0;
    for (int64_t i = 0; i < count; i++) {
        const hbp__operation *o = &schedule->slot[i];
        int forward = o->direction == HBP_FORWARD;
        int32_t m = order ? order[o->place] : o->place;
        int64_t cell = o->chunk * columns + o->place, time = o->chunk * columns + m, sending = 0;
        int64_t ready = forward ? schedule->ready_forward[cell] : schedule->ready_backward[cell];
        if (forward && o->chunk < schedule->chunks - 1)
            sending = times->sending[time];
        else if (!forward && o->chunk > 0)
            sending = times->sending[time - columns];
        hbp__operation_run run = {o->stage, o->chunk, m, o->direction, 0, 0};
        run.start_ns = hbp__max_i64(i % (count / schedule->stages) ? free_at : 0, ready);
        run.end_ns =
            hbp__add_saturating(run.start_ns, forward ? times->forward[time] : times->backward[time]);
        free_at = hbp__add_saturating(run.end_ns, sending);
        visit(user, i, &run);
    }
}

static void record(void *user, int64_t row, const hbp__operation_run *o)
{
    hbp_pipeline_run *run = user;
    run->operation_stages[row] = o->stage;
    run->operation_chunks[row] = o->chunk;
    run->operation_micro_batches[row] = o->micro_batch;
    run->operation_directions[row] = o->direction;
    run->operation_starts[row] = o->start_ns;
    run->operation_ends[row] = o->end_ns;
}

static hbp_status simulate_run(hbp_context *context, hbp__schedule *schedule, const hbp__stage_times *times,
                               const int32_t *order, hbp_pipeline_run **out)
{
    hbp_pipeline_run *run = NULL;
    HBP__TRY(hbp__pipeline_run_new(context, schedule->stages, schedule->chunks / schedule->stages,
                                   schedule->micro_batches, &run));
    run->summary.total_ns = hbp__pipeline_time(schedule, times, order, run->stage_busy_ns, run->stage_bytes);
    hbp__pipeline_walk(schedule, times, order, record, run);
    hbp_status status = hbp__pipeline_bound(context, schedule, times, NULL, &run->summary.bound_ns);
    if (status < 0) {
        hbp_pipeline_run_free(run);
        return status;
    }
    hbp__pipeline_run_seal(run);
    *out = run;
    return HBP_OK;
}

hbp_status hbp__pipeline_run_open(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                  const hbp_pipeline_options *pipeline, const int32_t *order,
                                  hbp_pipeline_run **out)
{
    HBP__TRY(hbp__require(context, layers, "layers"));
    hbp_pipeline_options p;
    HBP__TRY(hbp__options_read(context, &p, sizeof p, pipeline, "hbp_pipeline_options"));
    hbp__stage_times times;
    HBP__TRY(hbp__stage_times_open(context, layers, cuts, &p, &times));
    hbp__schedule schedule;
    hbp_status status = hbp__schedule_open(context, p.stages, p.virtual_stages, p.micro_batches, &schedule);
    if (status >= 0) {
        if (order)
            status = check_order(context, order, p.micro_batches);
        if (status >= 0)
            status = simulate_run(context, &schedule, &times, order, out);
        hbp__schedule_close(&schedule);
    }
    hbp__stage_times_close(&times);
    return status;
}

hbp_status hbp_simulate_pipeline(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                                 const hbp_pipeline_options *pipeline, const int32_t *order,
                                 hbp_pipeline_run **out)
{
    HBP__ENTER_OUT(context, out);
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, hbp__pipeline_run_open(context, layers, cuts, pipeline, order, out));
}

/* Micro-batches in the order in which stage 0 begins them. */
static void read_order(const hbp_pipeline_run *run, int32_t *order)
{
    const int64_t each = run->operations / run->stages;
    int32_t place = 0;
    for (int64_t i = 0; i < each; i++)
        if (run->operation_chunks[i] == 0 && run->operation_directions[i] == HBP_FORWARD)
            order[place++] = run->operation_micro_batches[i];
}

static hbp_status check_option(hbp_context *context, const char *name, int32_t value, int32_t of_run)
{
    return value == of_run ? HBP_OK
                           : hbp__fail(context, HBP_E_INVALID, "%s is %d; the run is of %d", name, (int)value,
                                       (int)of_run);
}

static hbp_status compare_run(hbp_context *context, const hbp_pipeline_run *run, const hbp_layers *layers,
                              const int32_t *cuts, const hbp_pipeline_options *pipeline)
{
    const hbp_pipeline_summary *s = &run->summary;
    hbp_pipeline_options p;
    hbp_pipeline_run *again = NULL;
    HBP__TRY(hbp__require(context, cuts, "cuts"));
    HBP__TRY(hbp__options_read(context, &p, sizeof p, pipeline, "hbp_pipeline_options"));
    HBP__TRY(check_option(context, "stages", p.stages, s->stages));
    HBP__TRY(
        check_option(context, "virtual_stages", p.virtual_stages ? p.virtual_stages : 1, s->virtual_stages));
    HBP__TRY(check_option(context, "micro_batches", p.micro_batches, s->micro_batches));
    int32_t *order = hbp__take(context, (uint64_t)s->micro_batches, sizeof *order);
    HBP__TRY(hbp__scratch_check(context, "the order of micro-batches"));
    read_order(run, order);
    HBP__TRY(hbp__pipeline_run_open(context, layers, cuts, pipeline, order, &again));
    hbp_status status = hbp__table_compare(context, &hbp__pipeline_run_table, run, again, "the layers make");
    hbp_pipeline_run_free(again);
    return status;
}

static hbp_status validate(hbp_context *context, const hbp_pipeline_run *run, const hbp_layers *layers,
                           const int32_t *cuts, const hbp_pipeline_options *pipeline)
{
    HBP__TRY(hbp__pipeline_run_check(context, run));
    if (hbp__pipeline_run_digest(run) != run->summary.digest)
        return hbp__fail(context, HBP_E_INVALID, "the digest is not that of the operations");
    return layers ? compare_run(context, run, layers, cuts, pipeline) : HBP_OK;
}

hbp_status hbp_pipeline_run_validate(hbp_context *context, const hbp_pipeline_run *run,
                                     const hbp_layers *layers, const int32_t *cuts,
                                     const hbp_pipeline_options *pipeline)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    int64_t mark = hbp__scratch_mark(context);
    return hbp__leave(context, mark, validate(context, run, layers, cuts, pipeline));
}
