/* Task schedules drawn column by column: whatever a file can hold, whether or not a planner makes it. */
#ifndef HBP_TESTS_TASK_COLUMNS_H
#define HBP_TESTS_TASK_COLUMNS_H

#include "base/methods.h"
#include "test.h"

#include "base/rng.h"
#include "data/tasks/task_schedule.h"

static inline char *task_columns_name(const char *before, int64_t number, const char *after)
{
    hbp__memory memory = hbp__memory_default();
    char *name = hbp__new(&memory, 64, 1);
    ck_assert_ptr_nonnull(name);
    snprintf(name, 64, "%s%d%s", before, (int)number, after);
    return name;
}

/* Offsets [rows + 1] with 1 to `most` of something in each row; returns how many in all. */
static inline int64_t task_columns_deal(hbp__rng *rng, int64_t *offsets, int64_t rows, int64_t most)
{
    offsets[0] = 0;
    for (int64_t i = 0; i < rows; i++)
        offsets[i + 1] = offsets[i] + 1 + hbp__rng_below(rng, (uint64_t)most);
    return offsets[rows];
}

/* Columns of MetaOps, groups and weights. */
static inline void task_columns_tables(hbp__rng *rng, hbp_task_schedule *s)
{
    for (int64_t i = 0; i < s->operators_total; i++)
        s->operators[i] = (int32_t)(s->operators_total - 1 - i);
    for (int64_t m = 0; m < s->meta_ops; m++) {
        s->meta_op_levels[m] = (int32_t)hbp__rng_below(rng, (uint64_t)s->levels);
        s->meta_op_tasks[m] = (int32_t)hbp__rng_below(rng, (uint64_t)s->tasks);
        s->meta_op_names[m] = task_columns_name("layer \"", m, "\" of \xc3\xa9t\xc3\xa9");
    }
    for (int64_t l = 0; l < s->levels; l++)
        s->level_ns[l] = hbp__rng_below(rng, 1000000);
    for (int64_t g = 0; g < s->groups; g++) {
        int64_t count = s->group_offsets[g + 1] - s->group_offsets[g];
        int64_t first = hbp__rng_below(rng, (uint64_t)(s->ranks - count + 1));
        for (int64_t i = 0; i < count; i++)
            s->group_ranks[s->group_offsets[g] + i] = (int32_t)(first + i);
    }
    for (int64_t t = 0; t < s->tasks; t++)
        s->task_names[t] = task_columns_name("task ", t, "");
    for (int64_t p = 0; p < s->parameters; p++) {
        s->parameters_names[p] = task_columns_name("weights ", p, "");
        s->parameter_groups[p] = (int32_t)hbp__rng_below(rng, (uint64_t)s->groups + 1) - 1;
    }
    for (int64_t r = 0; r < s->ranks; r++) {
        s->rank_busy_ns[r] = hbp__rng_below(rng, 1000000);
        s->rank_bytes[r] = INT64_C(80000000000) - hbp__rng_below(rng, 1000000);
    }
}

/* Columns of slices, and the makespan. */
static inline void task_columns_slices(hbp__rng *rng, hbp_task_schedule *s)
{
    for (int64_t i = 0; i < s->slices; i++) {
        int32_t m = (int32_t)hbp__rng_below(rng, (uint64_t)s->meta_ops);
        int32_t g = (int32_t)hbp__rng_below(rng, (uint64_t)s->groups);
        int64_t count = s->meta_op_offsets[m + 1] - s->meta_op_offsets[m];
        s->slice_meta_ops[i] = m;
        s->slice_groups[i] = g;
        s->slice_gpus[i] = (int32_t)(s->group_offsets[g + 1] - s->group_offsets[g]);
        s->slice_firsts[i] = (int32_t)hbp__rng_below(rng, (uint64_t)count);
        s->slice_operators[i] = 1 + (int32_t)hbp__rng_below(rng, (uint64_t)(count - s->slice_firsts[i]));
        s->slice_starts[i] = hbp__rng_below(rng, 1000000);
        s->slice_ends[i] = s->slice_starts[i] + hbp__rng_below(rng, 1000000);
        if (s->summary.makespan_ns < s->slice_ends[i])
            s->summary.makespan_ns = s->slice_ends[i];
    }
}

static inline void task_columns_summary(hbp__rng *rng, uint64_t seed, hbp_task_schedule *s)
{
    hbp_task_summary *summary = &s->summary;
    summary->struct_size = sizeof *summary;
    s->method = (int32_t)(seed % 6);
    s->placement = (int32_t)(seed % 3);
    summary->gpus = (int32_t)s->ranks;
    summary->domain_gpus = s->ranks < 8 ? (int32_t)s->ranks : 8;
    summary->operators = (int32_t)s->operators_total;
    summary->meta_ops = (int32_t)s->meta_ops;
    summary->levels = (int32_t)s->levels;
    summary->waves = (int32_t)s->waves;
    summary->slices = (int32_t)s->slices;
    summary->groups = (int32_t)s->groups;
    summary->tasks = (int32_t)s->tasks;
    summary->parameters = (int32_t)s->parameters;
    summary->bound_ns = summary->makespan_ns - (int64_t)(seed % 4) * 10;
    summary->proven = summary->makespan_ns == summary->bound_ns;
    int64_t *sums[] = {&summary->critical_path_ns, &summary->area_ns,     &summary->relaxed_ns,
                       &summary->flow_bytes,       &summary->moved_bytes, &summary->crossing_bytes,
                       &summary->limit_bytes,      &summary->peak_bytes,  &summary->kept_bytes,
                       &summary->fetched_bytes};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        *sums[i] = (int64_t)(hbp__rng_next(rng) >> 24);
    summary->gap = (double)summary->makespan_ns / (double)summary->bound_ns - 1;
    summary->idle = (double)hbp__rng_below(rng, 1000) / 1000;
}

/* A schedule that hbp__task_columns_check takes; the test frees it. */
static inline hbp_task_schedule *task_columns_draw(hbp_context *context, uint64_t seed)
{
    hbp__rng rng = hbp__rng_make(seed, 11, 0);
    int64_t offsets[3][16];
    hbp_task_schedule shape = {.meta_ops = 1 + hbp__rng_below(&rng, 9),
                               .levels = 1 + hbp__rng_below(&rng, 5),
                               .waves = 1 + hbp__rng_below(&rng, 9),
                               .groups = 1 + hbp__rng_below(&rng, 9),
                               .parameters = hbp__rng_below(&rng, 12),
                               .ranks = INT64_C(1) << hbp__rng_below(&rng, 6),
                               .tasks = 1 + hbp__rng_below(&rng, 12)};
    shape.operators_total = task_columns_deal(&rng, offsets[0], shape.meta_ops, 12);
    shape.slices = task_columns_deal(&rng, offsets[1], shape.waves, 4);
    shape.group_ranks_total = task_columns_deal(&rng, offsets[2], shape.groups, shape.ranks);
    hbp_task_schedule *s = NULL;
    OK(context, hbp__task_schedule_new(context, &shape, &s));
    memcpy(s->meta_op_offsets, offsets[0], (size_t)(s->meta_ops + 1) * sizeof **offsets);
    memcpy(s->wave_offsets, offsets[1], (size_t)(s->waves + 1) * sizeof **offsets);
    memcpy(s->group_offsets, offsets[2], (size_t)(s->groups + 1) * sizeof **offsets);
    task_columns_tables(&rng, s);
    task_columns_slices(&rng, s);
    task_columns_summary(&rng, seed, s);
    s->graph_digest = hbp__rng_next(&rng);
    s->digest = hbp__task_schedule_digest(s);
    return s;
}

/* Every field, column and name, one by one: the digest is compared apart. */
static inline void task_columns_same(const hbp_task_schedule *a, const hbp_task_schedule *b)
{
    hbp_task_summary summary = b->summary;
    summary.struct_size = a->summary.struct_size; /* which is not kept up */
    ck_assert_int_eq(memcmp(&a->summary, &summary, sizeof summary), 0);
    ck_assert_uint_eq(a->digest, b->digest);
    ck_assert_uint_eq(a->graph_digest, b->graph_digest);
#define SAME(name, type, table, extra)                                                                       \
    ck_assert_int_eq(a->table, b->table);                                                                    \
    ck_assert_int_eq(memcmp(a->name, b->name, (size_t)(a->table + (extra)) * sizeof(type)), 0);
    HBP__TASK_COLUMNS(SAME)
#undef SAME
    ck_assert_int_eq(a->tasks, b->tasks);
    for (int64_t i = 0; i < a->meta_ops; i++)
        ck_assert_str_eq(a->meta_op_names[i], b->meta_op_names[i]);
    for (int64_t i = 0; i < a->tasks; i++)
        ck_assert_str_eq(a->task_names[i], b->task_names[i]);
    for (int64_t i = 0; i < a->parameters; i++)
        ck_assert_str_eq(a->parameters_names[i], b->parameters_names[i]);
}

#endif
