/* Tables of a schedule of tasks: what they say of the graph, and groups. */
#include <string.h>

#include "data/rank_sets.h"
#include "simulate/task_check.h"

static hbp_status breach(const hbp__task_checking *c, const char *row, int64_t index, const char *what,
                         int64_t value, int64_t right)
{
    return hbp__fail(c->context, HBP_E_INVALID, "%s %lld: %s is %lld; it must be %lld", row, (long long)index,
                     what, (long long)value, (long long)right);
}

/* Rows of every table, against the summary and the graph. */
static hbp_status check_sizes(const hbp__task_checking *c)
{
    const hbp_task_schedule *s = c->schedule;
    const hbp_task_summary *summary = &s->summary;
    const struct {
        const char *what;
        int64_t told; /* by the summary */
        int64_t rows;
        int64_t right; /* by graph and machine; -1: any */
    } sizes[] = {
        {"operators", summary->operators, s->operators_total, c->graph->operator_count},
        {"MetaOps", summary->meta_ops, s->meta_ops, c->meta.count},
        {"levels", summary->levels, s->levels, c->meta.levels},
        {"waves", summary->waves, s->waves, -1},
        {"slices", summary->slices, s->slices, -1},
        {"groups", summary->groups, s->groups, -1},
        {"tasks", summary->tasks, s->tasks, c->graph->tasks.count},
        {"sets of weights", summary->parameters, s->parameters, c->graph->parameters.count},
        {"ranks", summary->gpus, s->ranks, c->gpus},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].told != sizes[i].rows)
            return hbp__fail(c->context, HBP_E_INVALID, "the summary says %lld %s; the table has %lld",
                             (long long)sizes[i].told, sizes[i].what, (long long)sizes[i].rows);
        if (sizes[i].right >= 0 && sizes[i].rows != sizes[i].right)
            return hbp__fail(c->context, HBP_E_INVALID, "the schedule has %lld %s; it must be %lld",
                             (long long)sizes[i].rows, sizes[i].what, (long long)sizes[i].right);
    }
    if (summary->mode < HBP_TASKS_OVERLAP || summary->mode > HBP_TASKS_DISTMM)
        return hbp__fail(c->context, HBP_E_INVALID, "the mode is %d; it must be in %d..%d",
                         (int)summary->mode, HBP_TASKS_OVERLAP, HBP_TASKS_DISTMM);
    if (summary->placement < HBP_PLACE_FLOWS || summary->placement > HBP_PLACE_SEQUENTIAL)
        return hbp__fail(c->context, HBP_E_INVALID, "the placement is %d; it must be in %d..%d",
                         (int)summary->placement, HBP_PLACE_FLOWS, HBP_PLACE_SEQUENTIAL);
    return HBP_OK;
}

/* Offsets [rows + 1] that rise from 0 to `total`: no row is empty. */
static hbp_status check_offsets(const hbp__task_checking *c, const char *row, const int64_t *offsets,
                                int64_t rows, int64_t total)
{
    if (offsets[0] != 0)
        return breach(c, row, 0, "the first offset", offsets[0], 0);
    for (int64_t i = 0; i < rows; i++)
        if (offsets[i + 1] <= offsets[i] || offsets[i + 1] > total)
            return hbp__fail(c->context, HBP_E_INVALID,
                             "%s %lld: offsets %lld to %lld; it needs a row of the table's %lld", row,
                             (long long)i, (long long)offsets[i], (long long)offsets[i + 1],
                             (long long)total);
    if (offsets[rows] != total)
        return breach(c, row, rows, "the last offset", offsets[rows], total);
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
    for (int64_t l = 0; l < s->levels; l++)
        if (s->level_ns[l] < 0)
            return hbp__fail(c->context, HBP_E_INVALID, "level %lld: its time is %lld ns", (long long)l,
                             (long long)s->level_ns[l]);
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

/* Ranks of one group, ascending. */
static hbp_status check_group(const hbp__task_checking *c, int64_t g)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t i = s->group_offsets[g]; i < s->group_offsets[g + 1]; i++) {
        int32_t rank = s->group_ranks[i];
        if (rank < 0 || rank >= c->gpus)
            return hbp__fail(c->context, HBP_E_INVALID, "group %lld: rank %d; the machine has %d",
                             (long long)g, (int)rank, (int)c->gpus);
        if (i > s->group_offsets[g] && rank <= s->group_ranks[i - 1])
            return hbp__fail(c->context, HBP_E_INVALID, "group %lld: rank %d comes after rank %d",
                             (long long)g, (int)rank, (int)s->group_ranks[i - 1]);
    }
    return HBP_OK;
}

/* Whoever names a group names one that is there; one that nobody names would be made for nothing. */
static hbp_status check_users(const hbp__task_checking *c, unsigned char *used)
{
    const hbp_task_schedule *s = c->schedule;
    for (int64_t i = 0; i < s->slices; i++) {
        int32_t group = s->slice_groups[i];
        if (group < 0 || group >= s->groups)
            return hbp__fail(c->context, HBP_E_INVALID, "slice %lld: group %d; there are %lld", (long long)i,
                             (int)group, (long long)s->groups);
        used[group] = 1;
    }
    for (int64_t p = 0; p < s->parameters; p++) {
        int32_t group = s->parameter_groups[p];
        if (group < -1 || group >= s->groups)
            return hbp__fail(c->context, HBP_E_INVALID, "set of weights %lld: group %d; there are %lld",
                             (long long)p, (int)group, (long long)s->groups);
        if (group >= 0)
            used[group] = 1;
    }
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
        HBP__TRY(check_group(c, g));
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
    unsigned char *used = hbp__new_zero(&c->context->memory, (uint64_t)c->schedule->groups, 1);
    if (!used)
        return hbp__fail_memory(c->context, "the groups' users");
    status = check_users(c, used);
    hbp__delete(&c->context->memory, used);
    return status;
}

hbp_status hbp__task_check_tables(const hbp__task_checking *c)
{
    const hbp_task_schedule *s = c->schedule;
    HBP__TRY(check_sizes(c));
    HBP__TRY(check_offsets(c, "MetaOp", s->meta_op_offsets, s->meta_ops, s->operators_total));
    HBP__TRY(check_offsets(c, "wave", s->wave_offsets, s->waves, s->slices));
    HBP__TRY(check_offsets(c, "group", s->group_offsets, s->groups, s->group_ranks_total));
    HBP__TRY(check_meta_ops(c));
    HBP__TRY(check_names(c));
    return check_groups(c);
}
