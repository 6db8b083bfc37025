#include "base/checked.h"
#include "base/options.h"
#include "base/scratch.h"
#include "simulate/pipeline.h"

struct hbp_pipeline_run {
    hbp__memory memory;
    hbp_pipeline_summary summary;
    int64_t *busy_ns;    /* [S] */
    int64_t *peak_bytes; /* [S] */
    int32_t *stage;      /* [operations], as are all that follow */
    int32_t *chunk;
    int32_t *micro_batch;
    int32_t *direction;
    int64_t *start_ns;
    int64_t *end_ns;
};

/* Every column of operations. */
#define COLUMNS(X)                                                                                           \
    X(stage)                                                                                                 \
    X(chunk)                                                                                                 \
    X(micro_batch)                                                                                           \
    X(direction)                                                                                             \
    X(start_ns)                                                                                              \
    X(end_ns)

void hbp_pipeline_run_free(hbp_pipeline_run *run)
{
    if (!run)
        return;
    const hbp__memory memory = run->memory;
    hbp__delete(&memory, run->busy_ns);
    hbp__delete(&memory, run->peak_bytes);
#define DELETE(column) hbp__delete(&memory, run->column);
    COLUMNS(DELETE)
#undef DELETE
    hbp__delete(&memory, run);
}

static hbp_status create(hbp_context *context, const hbp__schedule *schedule, hbp_pipeline_run **out)
{
    const hbp__memory *memory = &context->memory;
    hbp_pipeline_run *run = hbp__new_zero(memory, 1, sizeof *run);
    if (!run)
        return hbp__fail_memory(context, "a pipeline's run");
    run->memory = *memory;
    run->summary.stages = schedule->stages;
    run->summary.operations = schedule->segment[schedule->micro_batches];
    uint64_t operations = (uint64_t)run->summary.operations;
    int have = 1;
    have &= (run->busy_ns = hbp__new(memory, (uint64_t)schedule->stages, sizeof *run->busy_ns)) != NULL;
    have &= (run->peak_bytes = hbp__new(memory, (uint64_t)schedule->stages, sizeof *run->peak_bytes)) != NULL;
#define NEW(column) have &= (run->column = hbp__new(memory, operations, sizeof *run->column)) != NULL;
    COLUMNS(NEW)
#undef NEW
    if (!have) {
        hbp_pipeline_run_free(run);
        return hbp__fail_memory(context, "a pipeline's operations");
    }
    *out = run;
    return HBP_OK;
}

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
    run->stage[row] = o->stage;
    run->chunk[row] = o->chunk;
    run->micro_batch[row] = o->micro_batch;
    run->direction[row] = o->direction;
    run->start_ns[row] = o->start_ns;
    run->end_ns[row] = o->end_ns;
}

static hbp_status simulate(hbp_context *context, hbp__schedule *schedule, const hbp__stage_times *times,
                           const int32_t *order, hbp_pipeline_run **out)
{
    hbp_pipeline_run *run = NULL;
    HBP__TRY(create(context, schedule, &run));
    hbp_pipeline_summary *summary = &run->summary;
    summary->total_ns = hbp__pipeline_time(schedule, times, order, run->busy_ns, run->peak_bytes);
    hbp__pipeline_walk(schedule, times, order, record, run);
    hbp_status status = hbp__pipeline_bound(context, schedule, times, NULL, &summary->bound_ns);
    if (status < 0) {
        hbp_pipeline_run_free(run);
        return status;
    }
    double busy = 0;
    for (int32_t s = 0; s < schedule->stages; s++) {
        summary->peak_bytes = hbp__max_i64(summary->peak_bytes, run->peak_bytes[s]);
        busy += (double)run->busy_ns[s];
    }
    if (summary->total_ns > 0)
        summary->bubble = 1 - busy / ((double)summary->total_ns * schedule->stages);
    *out = run;
    return HBP_OK;
}

static hbp_status run_pipeline(hbp_context *context, const hbp_layers *layers, const int32_t *cuts,
                               const hbp_pipeline_options *pipeline, const int32_t *order,
                               hbp_pipeline_run **out)
{
    HBP__TRY(hbp__require(context, layers, "layers"));
    hbp_pipeline_options p;
    HBP__TRY(hbp__options_read(context, &p, sizeof p, pipeline, "pipeline"));
    hbp__stage_times times;
    HBP__TRY(hbp__stage_times_open(context, layers, cuts, &p, &times));
    hbp__schedule schedule;
    hbp_status status = hbp__schedule_open(context, p.stages, p.virtual_stages, p.micro_batches, &schedule);
    if (status >= 0) {
        if (order)
            status = check_order(context, order, p.micro_batches);
        if (status >= 0)
            status = simulate(context, &schedule, &times, order, out);
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
    return hbp__leave(context, mark, run_pipeline(context, layers, cuts, pipeline, order, out));
}

hbp_status hbp_pipeline_run_get_summary(hbp_context *context, const hbp_pipeline_run *run,
                                        hbp_pipeline_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    return hbp__struct_write(context, summary, &run->summary, sizeof run->summary, "summary");
}

hbp_status hbp_pipeline_run_get_view(const hbp_pipeline_run *run, hbp_pipeline_run_view *view)
{
    hbp_pipeline_run_view all = {0};
    if (run)
        all = (hbp_pipeline_run_view){.stages = run->summary.stages,
                                      .operations = run->summary.operations,
                                      .stage_busy_ns = run->busy_ns,
                                      .stage_bytes = run->peak_bytes,
                                      .operation_stages = run->stage,
                                      .operation_chunks = run->chunk,
                                      .operation_micro_batches = run->micro_batch,
                                      .operation_directions = run->direction,
                                      .operation_starts = run->start_ns,
                                      .operation_ends = run->end_ns};
    return hbp__view_write(view, run, &all, sizeof all);
}
