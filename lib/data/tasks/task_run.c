#include "data/tasks/task_run.h"

#include "base/checked.h"
#include "base/options.h"
#include "data/tasks/task_schedule.h"

#define NUMBER(name) HBP__MEMBER_SUMMARY(hbp_task_run, name)

/* Times and bytes, none of them negative: X(name). */
#define SUMS(X)                                                                                              \
    X(total_ns)                                                                                              \
    X(slices_ns)                                                                                             \
    X(transfer_ns)                                                                                           \
    X(gradient_ns)                                                                                           \
    X(flow_bytes)                                                                                            \
    X(moved_bytes)                                                                                           \
    X(crossing_bytes)                                                                                        \
    X(peak_bytes)

#define SUM(name) NUMBER(name),

static const hbp__member all_numbers[] = {
    /* clang-format off */
    NUMBER(gpus),
    SUMS(SUM)
    NUMBER(idle),
    NUMBER(schedule_digest),
    NUMBER(digest),
    HBP__MEMBER_NUMBER(hbp_task_run, int64_t, slices),
    /* clang-format on */
};

static const hbp__member all_columns[] = {
    HBP__MEMBER_COLUMN(hbp_task_run, int64_t, slice_starts, slices, 0),
    HBP__MEMBER_COLUMN(hbp_task_run, int64_t, slice_ends, slices, 0),
};

const hbp__table hbp__task_run_table = {
    .what = "the run of tasks",
    .bytes = sizeof(hbp_task_run),
    .numbers = all_numbers,
    .columns = all_columns,
    .number_count = sizeof all_numbers / sizeof *all_numbers,
    .column_count = sizeof all_columns / sizeof *all_columns,
};

hbp_status hbp__task_run_new(hbp_context *context, const hbp_task_schedule *schedule, hbp_task_run **out)
{
    const hbp_task_run shape = {
        .memory = context->memory,
        .summary = {.gpus = schedule->summary.gpus,
                    .peak_bytes = schedule->summary.peak_bytes,
                    .schedule_digest = schedule->digest},
        .slices = schedule->slices,
    };
    *out = hbp__table_new(&context->memory, &hbp__task_run_table, &shape);
    return *out ? HBP_OK : hbp__fail_memory(context, hbp__task_run_table.what);
}

void hbp_task_run_free(hbp_task_run *run)
{
    if (!run)
        return;
    const hbp__memory memory = run->memory;
    hbp__table_free(&memory, &hbp__task_run_table, run);
}

uint64_t hbp__task_run_digest(const hbp_task_run *run)
{
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_u64(&digest, run->summary.schedule_digest);
    hbp__digest_u64(&digest, (uint64_t)run->summary.gpus);
#define DIGEST(name) hbp__digest_u64(&digest, (uint64_t)run->summary.name);
    SUMS(DIGEST)
#undef DIGEST
    hbp__table_digest(&hbp__task_run_table, run, &digest);
    return hbp__digest_end(&digest);
}

hbp_status hbp__task_run_check(hbp_context *context, const hbp_task_run *run)
{
    const hbp_task_run_summary *s = &run->summary;
    const struct {
        const char *name;
        int64_t value;
    } sums[] = {
#define NAMED(name) {#name, s->name},
        SUMS(NAMED)
#undef NAMED
    };
    int64_t last = 0;
    if (s->gpus < 1)
        return hbp__fail(context, HBP_E_INVALID, "gpus is %d; it must be 1 or more", (int)s->gpus);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (sums[i].value < 0)
            return hbp__fail(context, HBP_E_INVALID, "%s is %lld; it must not be negative", sums[i].name,
                             (long long)sums[i].value);
    for (int64_t i = 0; i < run->slices; i++) {
        if (run->slice_starts[i] < 0 || run->slice_ends[i] < run->slice_starts[i])
            return hbp__fail(context, HBP_E_INVALID, "slice %lld runs from %lld to %lld ns", (long long)i,
                             (long long)run->slice_starts[i], (long long)run->slice_ends[i]);
        last = hbp__max_i64(last, run->slice_ends[i]);
    }
    if (s->slices_ns != last || s->total_ns < last || s->gradient_ns != s->total_ns - last)
        return hbp__fail(context, HBP_E_INVALID,
                         "slices_ns is %lld, gradient_ns %lld and total_ns %lld; the last slice ends at %lld",
                         (long long)s->slices_ns, (long long)s->gradient_ns, (long long)s->total_ns,
                         (long long)last);
    if (!(s->idle >= -1e-9 && s->idle <= 1))
        return hbp__fail(context, HBP_E_INVALID, "idle is %g; it is a share of GPU time", s->idle);
    return HBP_OK;
}

hbp_status hbp_task_run_get_summary(hbp_context *context, const hbp_task_run *run,
                                    hbp_task_run_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, run, "run"));
    return hbp__struct_write(context, summary, &run->summary, sizeof run->summary, "hbp_task_run_summary");
}

hbp_status hbp_task_run_get_view(const hbp_task_run *run, hbp_task_run_view *view)
{
    hbp_task_run_view all = {0};
    if (run)
        all = (hbp_task_run_view){
            .slices = run->slices, .slice_starts = run->slice_starts, .slice_ends = run->slice_ends};
    return hbp__view_write(view, run, &all, sizeof all);
}
