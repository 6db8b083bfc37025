/* Columns of a task schedule that are safe to walk. Every check is of values that earlier checks have made
 * safe to use, so that columns from a hostile file do no harm. */
#include "base/methods.h"
#include "data/tasks/task_schedule.h"

#include "base/options.h"

static hbp_status check_sizes(hbp_context *context, const hbp_task_schedule *s)
{
    const hbp_task_summary *summary = &s->summary;
    const struct {
        const char *what;
        int64_t told; /* by the summary */
        int64_t rows;
    } sizes[] = {{"operators", summary->operators, s->operators_total},
                 {"MetaOps", summary->meta_ops, s->meta_ops},
                 {"levels", summary->levels, s->levels},
                 {"waves", summary->waves, s->waves},
                 {"slices", summary->slices, s->slices},
                 {"groups", summary->groups, s->groups},
                 {"tasks", summary->tasks, s->tasks},
                 {"sets of weights", summary->parameters, s->parameters},
                 {"ranks", summary->gpus, s->ranks}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].told != sizes[i].rows)
            return hbp__fail(context, HBP_E_INVALID, "the summary says %lld %s; the table has %lld",
                             (long long)sizes[i].told, sizes[i].what, (long long)sizes[i].rows);
    return HBP_OK;
}

static hbp_status check_summary(hbp_context *context, const hbp_task_schedule *s)
{
    const hbp_task_summary *summary = &s->summary;
    const hbp__range ranges[] = {{"mode", s->method, 0, HBP__TASKS_METHOD_COUNT - 1},
                                 {"placement", s->placement, 0, HBP__PLACEMENT_METHOD_COUNT - 1},
                                 {"gpus", summary->gpus, 1, INT32_MAX},
                                 {"domain_gpus", summary->domain_gpus, 1, summary->gpus},
                                 {"makespan_ns", summary->makespan_ns, 0, INT64_MAX}};
    return hbp__check_ranges(context, ranges, sizeof ranges / sizeof *ranges);
}

/* Offsets [rows + 1] that rise from 0 to `total`: no row is empty. */
static hbp_status check_offsets(hbp_context *context, const char *row, const int64_t *offsets, int64_t rows,
                                int64_t total)
{
    if (offsets[0] != 0 || offsets[rows] != total)
        return hbp__fail(context, HBP_E_INVALID,
                         "%s offsets run from %lld to %lld; they must run from 0 to %lld", row,
                         (long long)offsets[0], (long long)offsets[rows], (long long)total);
    for (int64_t i = 0; i < rows; i++)
        if (offsets[i + 1] <= offsets[i])
            return hbp__fail(context, HBP_E_INVALID, "%s %lld: offsets %lld to %lld; it must hold something",
                             row, (long long)i, (long long)offsets[i], (long long)offsets[i + 1]);
    return HBP_OK;
}

/* Every column of numbers that lie in a range: X(column, what, row, table, least, most). */
#define RANGES(X)                                                                                            \
    X(operators, "a number", "place", operators_total, 0, s->operators_total - 1)                            \
    X(meta_op_levels, "the level", "MetaOp", meta_ops, 0, s->levels - 1)                                     \
    X(meta_op_tasks, "the task", "MetaOp", meta_ops, 0, s->tasks - 1)                                        \
    X(level_ns, "the time", "level", levels, 0, INT64_MAX)                                                   \
    X(slice_meta_ops, "the MetaOp", "slice", slices, 0, s->meta_ops - 1)                                     \
    X(slice_firsts, "the first operator", "slice", slices, 0, INT32_MAX)                                     \
    X(slice_operators, "the number of operators", "slice", slices, 1, INT32_MAX)                             \
    X(slice_gpus, "the number of GPUs", "slice", slices, 1, s->ranks)                                        \
    X(slice_groups, "the group", "slice", slices, 0, s->groups - 1)                                          \
    X(slice_starts, "the start", "slice", slices, 0, s->summary.makespan_ns)                                 \
    X(slice_ends, "the end", "slice", slices, s->slice_starts[i], s->summary.makespan_ns)                    \
    X(group_ranks, "a rank", "place", group_ranks_total, 0, s->ranks - 1)                                    \
    X(parameter_groups, "the group", "set of weights", parameters, -1, s->groups - 1)                        \
    X(rank_busy_ns, "the busy time", "rank", ranks, 0, INT64_MAX)                                            \
    X(rank_bytes, "the number of bytes", "rank", ranks, 0, INT64_MAX)

static hbp_status check_ranges(hbp_context *context, const hbp_task_schedule *s)
{
#define CHECK(column, what, row, table, least, most)                                                         \
    for (int64_t i = 0; i < s->table; i++)                                                                   \
        if (s->column[i] < (least) || s->column[i] > (most))                                                 \
            return hbp__fail(context, HBP_E_INVALID,                                                         \
                             row " %lld of " #column ": " what " is %lld; it must be in %lld..%lld",         \
                             (long long)i, (long long)s->column[i], (long long)(least), (long long)(most));
    RANGES(CHECK)
#undef CHECK
    return HBP_OK;
}

static hbp_status check_slices(hbp_context *context, const hbp_task_schedule *s)
{
    for (int64_t i = 0; i < s->slices; i++) {
        int32_t m = s->slice_meta_ops[i], g = s->slice_groups[i];
        int64_t count = s->meta_op_offsets[m + 1] - s->meta_op_offsets[m];
        int64_t ranks = s->group_offsets[g + 1] - s->group_offsets[g];
        if (s->slice_firsts[i] > count - s->slice_operators[i])
            return hbp__fail(
                context, HBP_E_INVALID, "slice %lld: operators %d to %lld of MetaOp %d, which has %lld",
                (long long)i, (int)s->slice_firsts[i],
                (long long)s->slice_firsts[i] + s->slice_operators[i] - 1, (int)m, (long long)count);
        if (s->slice_gpus[i] != ranks)
            return hbp__fail(context, HBP_E_INVALID, "slice %lld: %d GPUs; group %d has %lld ranks",
                             (long long)i, (int)s->slice_gpus[i], (int)g, (long long)ranks);
    }
    return HBP_OK;
}

static hbp_status check_groups(hbp_context *context, const hbp_task_schedule *s)
{
    for (int64_t g = 0; g < s->groups; g++)
        for (int64_t i = s->group_offsets[g] + 1; i < s->group_offsets[g + 1]; i++)
            if (s->group_ranks[i] <= s->group_ranks[i - 1])
                return hbp__fail(context, HBP_E_INVALID, "group %lld: rank %d comes after rank %d",
                                 (long long)g, (int)s->group_ranks[i], (int)s->group_ranks[i - 1]);
    return HBP_OK;
}

hbp_status hbp__task_columns_check(hbp_context *context, const hbp_task_schedule *schedule)
{
    const hbp_task_schedule *s = schedule;
    HBP__TRY(check_sizes(context, s));
    HBP__TRY(check_summary(context, s));
    HBP__TRY(check_offsets(context, "MetaOp", s->meta_op_offsets, s->meta_ops, s->operators_total));
    HBP__TRY(check_offsets(context, "wave", s->wave_offsets, s->waves, s->slices));
    HBP__TRY(check_offsets(context, "group", s->group_offsets, s->groups, s->group_ranks_total));
    HBP__TRY(check_ranges(context, s));
    HBP__TRY(check_slices(context, s));
    return check_groups(context, s);
}
