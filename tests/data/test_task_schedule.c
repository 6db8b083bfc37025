/* Lists of slices, columns, names, digest (lib/data/tasks/task_schedule.c). */
#include "base/methods.h"
#include "failing.h"
#include "keep.h"
#include "task_schedules.h"

START_TEST_IN_CONTEXT(slices_grow)
{
    hbp__task_slices slices = {0};
    for (int32_t i = 0; i < 1000; i++)
        OK(context,
           hbp__task_slices_add(context, &slices, &(hbp__task_slice){i, 0, 1, 1, i % 7, 10 * i, 10 * i + 5}));
    ck_assert_int_eq(slices.count, 1000);
    ck_assert_int_eq(slices.waves, 7);
    ck_assert_int_eq(slices.makespan_ns, 9995);
    for (int32_t i = 0; i < 1000; i++)
        ck_assert_int_eq(slices.slice[i].meta_op, i);
    hbp__task_slices_close(&slices);
    ck_assert_int_eq(slices.count, 0);
    OK(context, hbp__task_slices_add(context, &slices, &(hbp__task_slice){.end_ns = 3}));
    ck_assert_int_eq(slices.makespan_ns, 3);
    hbp__task_slices_close(&slices);
}
END_TEST

START_TEST_IN_CONTEXT(new_columns_are_zero)
{
    hbp_task_schedule shape = {.meta_ops = 2, .operators_total = 5, .levels = 1, .waves = 3, .slices = 4};
    shape.groups = 2;
    shape.group_ranks_total = 6;
    shape.parameters = 5;
    shape.ranks = 8;
    shape.tasks = 1;
    hbp_task_schedule *schedule = NULL;
    OK(context, hbp__task_schedule_new(context, &shape, &schedule));
    hbp_task_schedule_view view = task_schedule_view(schedule), none = {.struct_size = sizeof none};
    ck_assert_int_eq(hbp_task_schedule_get_view(NULL, &none), HBP_E_INVALID);
#define ZERO(name, type, table, extra)                                                                       \
    ck_assert_ptr_eq(view.name, schedule->name);                                                             \
    ck_assert_int_eq(view.table, shape.table);                                                               \
    for (int64_t i = 0; i < view.table + (extra); i++)                                                       \
        ck_assert_int_eq(schedule->name[i], 0);                                                              \
    ck_assert_ptr_null(none.name);                                                                           \
    ck_assert_int_eq(none.table, 0);
    HBP__TASK_COLUMNS(ZERO)
#undef ZERO
    ck_assert_ptr_null(view.meta_op_names[0]);
    ck_assert_ptr_null(none.meta_op_names);
    hbp_task_schedule_free(schedule);
    hbp_task_schedule_free(NULL);
}
END_TEST

static hbp_status new_schedule(hbp_context *context, void *user)
{
    hbp_task_schedule *schedule = NULL;
    hbp_status status = hbp__task_schedule_new(context, user, &schedule);
    ck_assert((status < 0) == (schedule == NULL));
    hbp_task_schedule_free(schedule);
    return status;
}

START_TEST(allocations_fail)
{
    hbp_task_schedule shape = {.meta_ops = 2, .operators_total = 5, .waves = 3, .slices = 4, .tasks = 1};
    failing_sweep(new_schedule, &shape);
}
END_TEST

START_TEST(names)
{
    hbp__rng rng = hbp__rng_make(1, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    const hbp_task_schedule *s = d.schedule;
    hbp_task_schedule_view view = task_schedule_view(s);
    ck_assert_int_eq(view.tasks, d.graph->tasks.count);
    ck_assert_str_eq(view.task_names[0], "task 0");
    ck_assert_str_eq(view.parameter_names[view.parameters - 1],
                     graph_view(d.graph).parameter_names[view.parameters - 1]);
    ck_assert_ptr_nonnull(view.meta_op_names[view.meta_ops - 1]);
    ck_assert_ptr_nonnull(view.task_names[view.tasks - 1]);
    drawn_close(&d);
}
END_TEST

START_TEST(summaries)
{
    hbp__rng rng = hbp__rng_make(2, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    hbp_task_summary summary = {.struct_size = sizeof summary};
    OK(d.context, hbp_task_schedule_get_summary(d.context, d.schedule, &summary));
    ck_assert_uint_eq(summary.struct_size, sizeof summary);
    ck_assert_int_eq(summary.slices, d.schedule->slices);
    ck_assert_int_eq(summary.makespan_ns, d.slices.makespan_ns);
    /* A caller of an older version gets what it knows. */
    struct {
        hbp_task_summary known;
    } old;
    memset(&old, 0x5a, sizeof old);
    old.known.struct_size = offsetof(hbp_task_summary, domain_gpus);
    OK(d.context, hbp_task_schedule_get_summary(d.context, d.schedule, &old.known));
    ck_assert_str_eq(old.known.placement_method, hbp__placement_name(d.schedule->placement));
    ck_assert_int_eq(old.known.domain_gpus, 0x5a5a5a5a);
    FAILS(d.context, HBP_E_INVALID, "schedule is NULL",
          hbp_task_schedule_get_summary(d.context, NULL, &summary));
    FAILS(d.context, HBP_E_INVALID, "hbp_task_summary",
          hbp_task_schedule_get_summary(d.context, d.schedule, NULL));
    ck_assert_int_eq(hbp_task_schedule_get_summary(NULL, d.schedule, &summary), HBP_E_INVALID);
    ck_assert_uint_eq(sizeof(hbp_task_summary), 184);
    ck_assert_uint_eq(offsetof(hbp_task_summary, makespan_ns), 64);
    drawn_close(&d);
}
END_TEST

/* Every value of every column, every name, and what the summary says of them changes the digest. */
START_TEST(digests)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    drawn d;
    drawn_random(&d, &rng);
    hbp_task_schedule *s = d.schedule;
    const uint64_t digest = task_schedule_digest(s);
    ck_assert_uint_eq(digest, hbp__task_schedule_digest(s));
#define CHANGES(value)                                                                                       \
    (value)++;                                                                                               \
    ck_assert_uint_ne(hbp__task_schedule_digest(s), digest);                                                 \
    (value)--;
#define COLUMN(name, type, table, extra)                                                                     \
    for (int64_t i = 0; i < s->table + (extra); i++) {                                                       \
        CHANGES(s->name[i])                                                                                  \
    }
    HBP__TASK_COLUMNS(COLUMN)
#undef COLUMN
    CHANGES(s->method)
    CHANGES(s->summary.gpus)
    CHANGES(s->summary.domain_gpus)
    CHANGES(s->summary.makespan_ns)
    CHANGES(s->graph_digest)
    CHANGES(s->meta_op_names[0][0])
    CHANGES(s->task_names[0][5])
    char *name = s->parameters_names[0];
    for (size_t i = 0; i < strlen(name); i++) {
        CHANGES(name[i])
    }
#undef CHANGES
    s->parameters_names[0] = NULL;
    ck_assert_uint_ne(hbp__task_schedule_digest(s), digest);
    s->parameters_names[0] = name;
    ck_assert_uint_eq(hbp__task_schedule_digest(s), digest);
    drawn_close(&d);
}
END_TEST

/* A list made of the columns is the one that they were built from. */
START_TEST(slices_of_columns)
{
    hbp__rng rng = hbp__rng_make(4, 0, 0);
    for (int i = 0; i < 100; i++) {
        drawn d;
        drawn_random(&d, &rng);
        hbp__task_slices slices;
        OK(d.context, hbp__task_schedule_slices(d.context, d.schedule, &slices));
        ck_assert_int_eq(slices.count, d.slices.count);
        ck_assert_int_eq(slices.waves, d.slices.waves);
        ck_assert_int_eq(slices.makespan_ns, d.slices.makespan_ns);
        for (int64_t s = 0; s < slices.count; s++) {
            const hbp__task_slice *a = &slices.slice[s], *b = &d.slices.slice[s];
            ck_assert(a->meta_op == b->meta_op && a->first == b->first && a->count == b->count);
            ck_assert(a->gpus == b->gpus && a->wave == b->wave);
            ck_assert(a->start_ns == b->start_ns && a->end_ns == b->end_ns);
        }
        hbp__task_slices_close(&slices);
        drawn_close(&d);
    }
}
END_TEST

static hbp_status list_slices(hbp_context *context, void *user)
{
    hbp__task_slices slices;
    HBP__TRY(hbp__task_schedule_slices(context, user, &slices));
    hbp__task_slices_close(&slices);
    return HBP_OK;
}

START_TEST(slices_of_columns_without_memory)
{
    hbp__rng rng = hbp__rng_make(5, 0, 0);
    drawn d;
    do {
        drawn_random(&d, &rng);
    } while (d.slices.count < 20 && (drawn_close(&d), 1));
    failing_sweep(list_slices, d.schedule);
    drawn_close(&d);
}
END_TEST

START_TEST_IN_CONTEXT(machines)
{
    const struct {
        int32_t nodes, gpus_per_node, domain_gpus, gpus, domain;
    } cases[] = {{4, 8, 8, 32, 8}, {1, 4, 8, 4, 4}, {2, 8, 1, 16, 1}, {9, 8, 72, 72, 72}};
    int32_t gpus, domain;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hbp_machine *machine =
            drawn_machine(context, cases[i].nodes, cases[i].gpus_per_node, cases[i].domain_gpus);
        OK(context, hbp__task_machine(context, machine, &gpus, &domain));
        ck_assert_int_eq(gpus, cases[i].gpus);
        ck_assert_int_eq(domain, cases[i].domain);
        hbp_machine_free(machine);
    }
    hbp_machine *machine = drawn_machine(context, 1, 8, 8);
    static const char *const fields[] = {"nodes", "gpus_per_node", "domain_gpus"};
    for (int i = 0; i < 3; i++) {
        OK(context, hbp_machine_set_field(context, machine, fields[i], 0, "test"));
        char message[96];
        snprintf(message, sizeof message,
                 "%s of machine given is 0 or unknown; set it, for example %s=", fields[i], fields[i]);
        FAILS(context, HBP_E_INVALID, message, hbp__task_machine(context, machine, &gpus, &domain));
        OK(context, hbp_machine_set_field(context, machine, fields[i], 70000, "test"));
    }
    FAILS(context, HBP_E_OVERFLOW, "has 4900000000 GPUs; at most 2147483647",
          hbp__task_machine(context, machine, &gpus, &domain));
    hbp_machine_free(machine);
}
END_TEST

TEST_MAIN("task_schedule", slices_grow, new_columns_are_zero, allocations_fail, names, summaries, digests,
          slices_of_columns, slices_of_columns_without_memory, machines)
