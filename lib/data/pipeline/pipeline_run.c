#include "data/pipeline/pipeline_run.h"

#include "base/checked.h"
#include "base/digest.h"
#include "base/options.h"
#include "base/scratch.h"

#define NUMBER(name)              HBP__MEMBER_SUMMARY(hbp_pipeline_run, name)
#define COLUMN(name, type, table) HBP__MEMBER_COLUMN(hbp_pipeline_run, type, name, table, 0),

static const hbp__member all_numbers[] = {
    NUMBER(stages),
    NUMBER(virtual_stages),
    NUMBER(micro_batches),
    NUMBER(operations),
    NUMBER(total_ns),
    NUMBER(bound_ns),
    NUMBER(peak_bytes),
    NUMBER(bubble),
    NUMBER(digest),
    HBP__MEMBER_COUNT(hbp_pipeline_run, "stages", stages),
    HBP__MEMBER_COUNT(hbp_pipeline_run, "operations", operations),
};

static const hbp__member all_columns[] = {HBP__PIPELINE_RUN_COLUMNS(COLUMN)};

const hbp__table hbp__pipeline_run_table = {
    .what = "the run of a pipeline",
    .bytes = sizeof(hbp_pipeline_run),
    .numbers = all_numbers,
    .columns = all_columns,
    .number_count = sizeof all_numbers / sizeof *all_numbers,
    .column_count = sizeof all_columns / sizeof *all_columns,
};

hbp_status hbp__pipeline_run_new(hbp_context *context, int32_t stages, int32_t virtual_stages,
                                 int32_t micro_batches, hbp_pipeline_run **out)
{
    const int64_t operations = 2 * (int64_t)stages * virtual_stages * micro_batches;
    const hbp_pipeline_run shape = {
        .memory = context->memory,
        .summary = {.stages = stages,
                    .virtual_stages = virtual_stages,
                    .micro_batches = micro_batches,
                    .operations = operations},
        .stages = stages,
        .operations = operations,
    };
    *out = hbp__table_new(&context->memory, &hbp__pipeline_run_table, &shape);
    return *out ? HBP_OK : hbp__fail_memory(context, hbp__pipeline_run_table.what);
}

void hbp_pipeline_run_free(hbp_pipeline_run *run)
{
    if (!run)
        return;
    const hbp__memory memory = run->memory;
    hbp__table_free(&memory, &hbp__pipeline_run_table, run);
}

uint64_t hbp__pipeline_run_digest(const hbp_pipeline_run *run)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_u64(&digest, (uint64_t)run->summary.virtual_stages);
    hbp__digest_u64(&digest, (uint64_t)run->summary.micro_batches);
    hbp__digest_u64(&digest, (uint64_t)run->summary.total_ns);
    hbp__digest_u64(&digest, (uint64_t)run->summary.bound_ns);
    hbp__table_digest(&hbp__pipeline_run_table, run, &digest);
    return hbp__digest_end(&digest);
}

static int64_t peak_of(const hbp_pipeline_run *run)
{
    int64_t peak = 0;
    for (int64_t s = 0; s < run->stages; s++)
        peak = hbp__max_i64(peak, run->stage_bytes[s]);
    return peak;
}

static double bubble_of(const hbp_pipeline_run *run)
{
    double busy = 0;
    for (int64_t s = 0; s < run->stages; s++)
        busy += (double)run->stage_busy_ns[s];
    return run->summary.total_ns > 0 ? 1 - busy / ((double)run->summary.total_ns * (double)run->stages) : 0;
}

void hbp__pipeline_run_seal(hbp_pipeline_run *run)
{
    run->summary.peak_bytes = peak_of(run);
    run->summary.bubble = bubble_of(run);
    run->summary.digest = hbp__pipeline_run_digest(run);
}

static hbp_status check_shape(hbp_context *context, const hbp_pipeline_run *run)
{
    const hbp_pipeline_summary *s = &run->summary;
    const hbp__range numbers[] = {{"stages", s->stages, 1, INT32_MAX},
                                  {"virtual_stages", s->virtual_stages, 1, INT32_MAX},
                                  {"micro_batches", s->micro_batches, 1, INT32_MAX}};
    HBP__TRY(hbp__check_ranges(context, numbers, 3));
    int64_t chunks = (int64_t)s->stages * s->virtual_stages, operations;
    if (!hbp__mul_i64(chunks, 2 * (int64_t)s->micro_batches, &operations) || s->operations != operations)
        return hbp__fail(context, HBP_E_INVALID,
                         "operations is %lld; each of %lld chunks has 2 for each of %d micro-batches",
                         (long long)s->operations, (long long)chunks, (int)s->micro_batches);
    return HBP_OK;
}

/* A run and where its operations stand. */
typedef struct walk {
    hbp_context *context;
    const hbp_pipeline_run *run;
    int64_t chunks;
    int64_t *rows; /* [direction][chunk][micro-batch] 1 + row of the operation; 0: not seen */
} walk;

static int64_t *row_of(const walk *w, int32_t direction, int64_t chunk, int32_t micro_batch)
{
    return &w->rows[(direction * w->chunks + chunk) * w->run->summary.micro_batches + micro_batch];
}

static hbp_status fail_cell(const walk *w, const char *column, int64_t row, int64_t value, int64_t least,
                            int64_t most)
{
    return hbp__fail(w->context, HBP_E_INVALID, "%s of operation %lld is %lld; it must be in %lld..%lld",
                     column, (long long)row, (long long)value, (long long)least, (long long)most);
}

/* What one operation is, and that its stage is free. */
static hbp_status check_operation(const walk *w, int64_t i)
{
    const hbp_pipeline_run *r = w->run;
    const int64_t each = r->operations / r->stages, stage = i / each;
    const int32_t chunk = r->operation_chunks[i], m = r->operation_micro_batches[i];
    const int32_t direction = r->operation_directions[i];
    const int64_t free_at = i % each ? r->operation_ends[i - 1] : 0;
    if (r->operation_stages[i] != stage)
        return fail_cell(w, "operation_stages", i, r->operation_stages[i], stage, stage);
    if (chunk < 0 || chunk >= w->chunks)
        return fail_cell(w, "operation_chunks", i, chunk, 0, w->chunks - 1);
    if (chunk % r->stages != stage)
        return hbp__fail(w->context, HBP_E_INVALID,
                         "operation_chunks of operation %lld is %d, a chunk of stage %lld and not %lld",
                         (long long)i, (int)chunk, (long long)(chunk % r->stages), (long long)stage);
    if (m < 0 || m >= r->summary.micro_batches)
        return fail_cell(w, "operation_micro_batches", i, m, 0, r->summary.micro_batches - 1);
    if (direction != HBP_FORWARD && direction != HBP_BACKWARD)
        return fail_cell(w, "operation_directions", i, direction, HBP_FORWARD, HBP_BACKWARD);
    if (r->operation_starts[i] < free_at)
        return fail_cell(w, "operation_starts", i, r->operation_starts[i], free_at, INT64_MAX);
    if (r->operation_ends[i] < r->operation_starts[i])
        return fail_cell(w, "operation_ends", i, r->operation_ends[i], r->operation_starts[i], INT64_MAX);
    int64_t *row = row_of(w, direction, chunk, m);
    if (*row)
        return hbp__fail(w->context, HBP_E_INVALID, "operation %lld is operation %lld once more",
                         (long long)i, (long long)(*row - 1));
    *row = i + 1;
    return HBP_OK;
}

/* That what the operation needs has been made when it starts. */
static hbp_status check_input(const walk *w, int64_t i)
{
    const hbp_pipeline_run *r = w->run;
    const int32_t chunk = r->operation_chunks[i], m = r->operation_micro_batches[i];
    int64_t before;
    if (r->operation_directions[i] == HBP_FORWARD) {
        if (chunk == 0)
            return HBP_OK;
        before = *row_of(w, HBP_FORWARD, chunk - 1, m) - 1;
    } else if (chunk == w->chunks - 1) {
        before = *row_of(w, HBP_FORWARD, chunk, m) - 1;
    } else {
        before = *row_of(w, HBP_BACKWARD, chunk + 1, m) - 1;
    }
    if (r->operation_starts[i] < r->operation_ends[before])
        return hbp__fail(w->context, HBP_E_INVALID,
                         "operation %lld starts at %lld; operation %lld, which it needs, ends at %lld",
                         (long long)i, (long long)r->operation_starts[i], (long long)before,
                         (long long)r->operation_ends[before]);
    return HBP_OK;
}

static hbp_status check_operations(hbp_context *context, const hbp_pipeline_run *run)
{
    int64_t mark = hbp__scratch_mark(context);
    walk w = {context, run, (int64_t)run->summary.stages * run->summary.virtual_stages,
              hbp__take_zero(context, (uint64_t)run->operations, sizeof *w.rows)};
    HBP__TRY(hbp__scratch_check(context, "the operations"));
    for (int64_t i = 0; i < run->operations; i++)
        HBP__TRY(check_operation(&w, i));
    for (int64_t i = 0; i < run->operations; i++)
        HBP__TRY(check_input(&w, i));
    hbp__scratch_release(context, mark);
    return HBP_OK;
}

/* Stages work on their operations and on sending what these made. */
static hbp_status check_stages(hbp_context *context, const hbp_pipeline_run *r)
{
    const int64_t each = r->operations / r->stages;
    for (int64_t s = 0; s < r->stages; s++) {
        int64_t work = 0;
        for (int64_t i = s * each; i < (s + 1) * each; i++)
            work += r->operation_ends[i] - r->operation_starts[i];
        if (r->stage_busy_ns[s] < work || r->stage_busy_ns[s] > r->summary.total_ns)
            return hbp__fail(context, HBP_E_INVALID,
                             "stage_busy_ns of stage %lld is %lld; it must be in %lld..%lld", (long long)s,
                             (long long)r->stage_busy_ns[s], (long long)work, (long long)r->summary.total_ns);
        if (r->stage_bytes[s] < 0)
            return hbp__fail(context, HBP_E_INVALID, "stage_bytes of stage %lld is %lld", (long long)s,
                             (long long)r->stage_bytes[s]);
    }
    return HBP_OK;
}

static hbp_status check_numbers(hbp_context *context, const hbp_pipeline_run *r)
{
    const hbp_pipeline_summary *s = &r->summary;
    const int64_t last = r->operation_ends[r->operations / r->stages - 1];
    if (s->total_ns != last)
        return hbp__fail(context, HBP_E_INVALID, "total_ns is %lld; stage 0 ends at %lld",
                         (long long)s->total_ns, (long long)last);
    HBP__TRY(check_stages(context, r));
    if (s->bound_ns < 0 || s->bound_ns > s->total_ns)
        return hbp__fail(context, HBP_E_INVALID, "bound_ns is %lld; it must be in 0..%lld",
                         (long long)s->bound_ns, (long long)s->total_ns);
    if (s->peak_bytes != peak_of(r))
        return hbp__fail(context, HBP_E_INVALID, "peak_bytes is %lld; the fullest stage takes %lld",
                         (long long)s->peak_bytes, (long long)peak_of(r));
    if (!(s->bubble == bubble_of(r)))
        return hbp__fail(context, HBP_E_INVALID, "bubble is %.17g; the stages make it %.17g", s->bubble,
                         bubble_of(r));
    return HBP_OK;
}

hbp_status hbp__pipeline_run_check(hbp_context *context, const hbp_pipeline_run *run)
{
    HBP__TRY(check_shape(context, run));
    HBP__TRY(check_operations(context, run));
    return check_numbers(context, run);
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
    if (run) {
        all.stages = run->stages;
        all.operations = run->operations;
#define GIVE(name, type, table) all.name = run->name;
        HBP__PIPELINE_RUN_COLUMNS(GIVE)
#undef GIVE
    }
    return hbp__view_write(view, run, &all, sizeof all);
}
