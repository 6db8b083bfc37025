/* Tables of a schedule of tasks: what they say of the graph, and groups. */
#include <string.h>

#include "data/tasks/rank_sets.h"

#include "base/scratch.h"
#include "data/tasks/task_schedule.h"
#include "simulate/tasks/task_check.h"

static hbp_status breach(const hbp__task_checking *c, const char *row, int64_t index, const char *what,
                         int64_t value, int64_t right)
{
    return hbp__fail(c->context, HBP_E_INVALID, "%s %lld: %s is %lld; it must be %lld", row, (long long)index,
                     what, (long long)value, (long long)right);
}

/* Rows of the tables, against graph and machine. */
static hbp_status check_sizes(const hbp__task_checking *c)
{
    const hbp_task_schedule *s = c->schedule;
    const struct {
        const char *what;
        int64_t rows;
        int64_t right;
    } sizes[] = {
        {"operators", s->operators_total, c->graph->operator_count},
        {"MetaOps", s->meta_ops, c->meta.count},
        {"levels", s->levels, c->meta.levels},
        {"tasks", s->tasks, c->graph->tasks.count},
        {"sets of weights", s->parameters, c->graph->parameters.count},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].rows != sizes[i].right)
            return hbp__fail(c->context, HBP_E_INVALID, "the schedule has %lld %s; the graph has %lld",
                             (long long)sizes[i].rows, sizes[i].what, (long long)sizes[i].right);
    return HBP_OK;
}

static hbp_status check_name(const hbp__task_checking *c, const char *row, int64_t index, const char *name,
                             const char *right)
{
    if (name && strcmp(name, right) == 0)
        return HBP_OK;
    return hbp__fail(c->context, HBP_E_INVALID,
                     "%s %lld is named '%.100s' in the schedule and '%.100s' in the graph", row,
                     (long long)index, name ? name : "", right);
}

/* MetaOps as contraction makes them, whose result is unique. */
static hbp_status check_meta_ops(const hbp__task_checking *c)
{
    const hbp_task_schedule *s = c->schedule;
    for (int32_t m = 0; m < c->meta.count; m++) {
        const hbp__meta_op *right = &c->meta.meta_op[m];
        int64_t first = s->meta_op_offsets[m], count = s->meta_op_offsets[m + 1] - first;
        if (count != right->count)
            return breach(c, "MetaOp", m, "the number of operators", count, right->count);
        for (int64_t i = 0; i < count; i++)
            if (s->operators[first + i] != c->meta.operators[right->first + i])
                return hbp__fail(c->context, HBP_E_INVALID,
                                 "MetaOp %d: operator %lld of its chain is number %d of the graph; it must "
                                 "be %d",
                                 (int)m, (long long)i, (int)s->operators[first + i],
                                 (int)c->meta.operators[right->first + i]);
        if (s->meta_op_levels[m] != right->level)
            return breach(c, "MetaOp", m, "the level", s->meta_op_levels[m], right->level);
        if (s->meta_op_tasks[m] != right->task)
            return breach(c, "MetaOp", m, "the task", s->meta_op_tasks[m], right->task);
        HBP__TRY(
            check_name(c, "MetaOp", m, s->meta_op_names[m], hbp__meta_operator(c->graph, &c->meta, m)->name));
    }
    return HBP_OK;
}

static hbp_status check_names(const hbp__task_checking *c)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t t = 0; t < s->tasks; t++)
        HBP__TRY(check_name(c, "task", t, s->task_names[t], c->graph->tasks.name[t]));
    for (int64_t p = 0; p < s->parameters; p++)
        HBP__TRY(check_name(c, "set of weights", p, s->parameters_names[p], c->graph->parameters.name[p]));
    return HBP_OK;
}

/* A group that nobody names would be made for nothing. */
static hbp_status check_users(const hbp__task_checking *c, unsigned char *used)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t i = 0; i < s->slices; i++)
        used[s->slice_groups[i]] = 1;
    for (int64_t p = 0; p < s->parameters; p++)
        if (s->parameter_groups[p] >= 0)
            used[s->parameter_groups[p]] = 1;
    for (int64_t g = 0; g < s->groups; g++)
        if (!used[g])
            return hbp__fail(c->context, HBP_E_INVALID, "group %lld is used by no slice and no weights",
                             (long long)g);
    return HBP_OK;
}

static hbp_status check_distinct(const hbp__task_checking *c, hbp__rank_sets *sets)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t g = 0; g < s->groups; g++) {
        int32_t number;
        HBP__TRY(hbp__rank_sets_add(c->context, sets, &s->group_ranks[s->group_offsets[g]],
                                    s->group_offsets[g + 1] - s->group_offsets[g], &number));
        if (number != g)
            return hbp__fail(c->context, HBP_E_INVALID, "groups %d and %lld have the same ranks", (int)number,
                             (long long)g);
    }
    return HBP_OK;
}

static hbp_status check_groups(const hbp__task_checking *c)
{
    hbp__rank_sets sets = {0};
    hbp_status status = check_distinct(c, &sets);
    hbp__rank_sets_close(&sets);
    HBP__TRY(status);
    int64_t mark = hbp__scratch_mark(c->context);
    unsigned char *used = hbp__take_zero(c->context, (uint64_t)c->schedule->groups, 1);
    HBP__TRY(hbp__scratch_check(c->context, "the groups' users"));
    HBP__TRY(check_users(c, used));
    hbp__scratch_release(c->context, mark);
    return HBP_OK;
}

hbp_status hbp__task_check_tables(const hbp__task_checking *c)
{
    HBP__TRY(hbp__task_columns_check(c->context, c->schedule));
    HBP__TRY(check_sizes(c));
    HBP__TRY(check_meta_ops(c));
    HBP__TRY(check_names(c));
    return check_groups(c);
}
