#include "data/tasks/task_schedule.h"

#include "keep.h"
#include "task_columns.h"

START_TEST_IN_CONTEXT(drawn_schedules_are_safe)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed);
        OK(context, hbp__task_columns_check(context, s));
        hbp_task_schedule_free(s);
    }
}
END_TEST

/* One value changed: the message names it. The change is undone. */
#define BREAKS(field, value, text)                                                                           \
    do {                                                                                                     \
        unsigned char kept[sizeof(field)];                                                                   \
        memcpy(kept, &(field), sizeof(field));                                                               \
        (field) = (value);                                                                                   \
        FAILS(context, HBP_E_INVALID, text, hbp__task_columns_check(context, s));                            \
        memcpy(&(field), kept, sizeof(field));                                                               \
        OK(context, hbp__task_columns_check(context, s));                                                    \
    } while (0)

/* A schedule with at least two rows of everything. */
static hbp_task_schedule *wide_schedule(hbp_context *context)
{
    for (uint64_t seed = 0;; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed);
        int64_t longest = 0;
        for (int64_t g = 0; g < s->groups; g++)
            if (longest < s->group_offsets[g + 1] - s->group_offsets[g])
                longest = s->group_offsets[g + 1] - s->group_offsets[g];
        if (s->meta_ops > 1 && s->waves > 1 && s->groups > 1 && s->levels > 1 && s->parameters > 1 &&
            longest > 1)
            return s;
        hbp_task_schedule_free(s);
    }
}

START_TEST_IN_CONTEXT(every_breach_is_named)
{
    hbp_task_schedule *s = keep(wide_schedule(context));
    BREAKS(s->summary.operators, 1000, "the summary says 1000 operators; the table has");
    BREAKS(s->summary.meta_ops, 1000, "the summary says 1000 MetaOps");
    BREAKS(s->summary.levels, 1000, "the summary says 1000 levels");
    BREAKS(s->summary.waves, 1000, "the summary says 1000 waves");
    BREAKS(s->summary.slices, 1000, "the summary says 1000 slices");
    BREAKS(s->summary.groups, 1000, "the summary says 1000 groups");
    BREAKS(s->summary.tasks, 1000, "the summary says 1000 tasks");
    BREAKS(s->summary.parameters, 1000, "the summary says 1000 sets of weights");
    BREAKS(s->summary.gpus, 1000, "the summary says 1000 ranks");
    BREAKS(s->method, 6, "`mode` is 6; it must be in 0..5");
    BREAKS(s->method, -1, "`mode` is -1; it must be in 0..5");
    BREAKS(s->placement, 3, "`placement` is 3; it must be in 0..2");
    BREAKS(s->summary.domain_gpus, 0, "`domain_gpus` is 0; it must be in 1..8");
    BREAKS(s->summary.domain_gpus, s->summary.gpus + 1, "`domain_gpus` is 9; it must be in 1..8");
    BREAKS(s->summary.makespan_ns, -1, "`makespan_ns` is -1; it must be in 0..9223372036854775807");
    BREAKS(s->meta_op_offsets[0], 1, "MetaOp offsets run from 1");
    BREAKS(s->meta_op_offsets[1], 0, "MetaOp 0: offsets 0 to 0; it must hold something");
    BREAKS(s->meta_op_offsets[1], INT64_MAX, "MetaOp 1: offsets 9223372036854775807 to");
    BREAKS(s->meta_op_offsets[1], INT64_MIN, "MetaOp 0: offsets 0 to -9223372036854775808");
    BREAKS(s->wave_offsets[s->waves], 1000, "wave offsets run from 0 to 1000; they must run from 0 to");
    BREAKS(s->wave_offsets[1], 0, "wave 0: offsets 0 to 0");
    BREAKS(s->group_offsets[1], 0, "group 0: offsets 0 to 0");
    BREAKS(s->operators[1], (int32_t)s->operators_total, "place 1 of operators: a number is");
    BREAKS(s->operators[1], -1, "place 1 of operators: a number is -1; it must be in 0..");
    BREAKS(s->meta_op_levels[1], (int32_t)s->levels, "MetaOp 1 of meta_op_levels: the level is");
    BREAKS(s->meta_op_tasks[0], -1, "MetaOp 0 of meta_op_tasks: the task is -1");
    BREAKS(s->meta_op_tasks[0], (int32_t)s->tasks, "MetaOp 0 of meta_op_tasks: the task is");
    BREAKS(s->level_ns[1], -5, "level 1 of level_ns: the time is -5");
    BREAKS(s->slice_meta_ops[1], (int32_t)s->meta_ops, "slice 1 of slice_meta_ops: the MetaOp is");
    BREAKS(s->slice_firsts[0], -1, "slice 0 of slice_firsts: the first operator is -1");
    BREAKS(s->slice_firsts[0], INT32_MAX, "slice 0: operators 2147483647 to");
    BREAKS(s->slice_operators[0], 0, "slice 0 of slice_operators: the number of operators is 0");
    BREAKS(s->slice_operators[0], INT32_MAX, "slice 0: operators");
    BREAKS(s->slice_gpus[0], 0, "slice 0 of slice_gpus: the number of GPUs is 0");
    BREAKS(s->slice_gpus[0], (int32_t)s->ranks + 1, "slice 0 of slice_gpus: the number of GPUs is");
    BREAKS(s->slice_gpus[0], s->slice_gpus[0] > 1 ? 1 : 2, "GPUs; group");
    BREAKS(s->slice_groups[0], -1, "slice 0 of slice_groups: the group is -1");
    BREAKS(s->slice_groups[0], (int32_t)s->groups, "slice 0 of slice_groups: the group is");
    BREAKS(s->slice_starts[0], -1, "slice 0 of slice_starts: the start is -1");
    BREAKS(s->slice_ends[0], s->slice_starts[0] - 1, "slice 0 of slice_ends: the end is");
    BREAKS(s->slice_ends[0], s->summary.makespan_ns + 1, "slice 0 of slice_ends: the end is");
    BREAKS(s->group_ranks[0], -1, "place 0 of group_ranks: a rank is -1");
    BREAKS(s->group_ranks[0], (int32_t)s->ranks, "place 0 of group_ranks: a rank is");
    BREAKS(s->parameter_groups[1], -2,
           "set of weights 1 of parameter_groups: the group is -2; it must be in -1");
    BREAKS(s->parameter_groups[1], (int32_t)s->groups, "set of weights 1 of parameter_groups");
    BREAKS(s->rank_busy_ns[1], -1, "rank 1 of rank_busy_ns: the busy time is -1");
    BREAKS(s->rank_bytes[1], -1, "rank 1 of rank_bytes: the number of bytes is -1");
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t first = s->group_offsets[g];
        if (s->group_offsets[g + 1] - first > 1)
            BREAKS(s->group_ranks[first + 1], s->group_ranks[first], "comes after rank");
    }
}
END_TEST

TEST_MAIN("task_columns", drawn_schedules_are_safe, every_breach_is_named)
