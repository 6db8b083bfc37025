#include "data/tasks/task_schedule.h"

#include <string.h>

#include "base/checked.h"
#include "base/digest.h"
#include "base/methods.h"
#include "base/options.h"
#include "data/machine/machine.h"

hbp_status hbp__task_slices_add(hbp_context *context, hbp__task_slices *slices, const hbp__task_slice *slice)
{
    if (!slices->memory.alloc)
        slices->memory = context->memory;
    if (slices->count == slices->room) {
        int64_t room = slices->room ? 2 * slices->room : 16;
        hbp__task_slice *more = hbp__renew(&slices->memory, slices->slice, (uint64_t)room, sizeof *more);
        if (!more)
            return hbp__fail_memory(context, "slices");
        slices->slice = more;
        slices->room = room;
    }
    slices->slice[slices->count++] = *slice;
    if (slices->waves <= slice->wave)
        slices->waves = slice->wave + 1;
    slices->makespan_ns = hbp__max_i64(slices->makespan_ns, slice->end_ns);
    return HBP_OK;
}

void hbp__task_slices_close(hbp__task_slices *slices)
{
    if (slices->slice)
        hbp__delete(&slices->memory, slices->slice);
    *slices = (hbp__task_slices){.memory = slices->memory};
}

#define NUMBER(field)                    HBP__MEMBER_SUMMARY(hbp_task_schedule, field),
#define COUNT(number, field)             HBP__MEMBER_COUNT(hbp_task_schedule, number, field),
#define COLUMN(name, type, table, extra) HBP__MEMBER_COLUMN(hbp_task_schedule, type, name, table, extra),
#define NAMES(name, table)               HBP__MEMBER_NAMES(hbp_task_schedule, name, table),

static const hbp__member all_numbers[] = {
    {"digest", HBP__CELL_U64, 0, offsetof(hbp_task_schedule, digest), 0},
    {"graph_digest", HBP__CELL_U64, 0, offsetof(hbp_task_schedule, graph_digest), 0},
    /* clang-format off */
    HBP__TASK_SIZES(NUMBER)
    {"mode", HBP__CELL_I32, 0, offsetof(hbp_task_schedule, method), 0},
    {"placement", HBP__CELL_I32, 0, offsetof(hbp_task_schedule, placement), 0},
    HBP__TASK_NUMBERS(NUMBER)
    {"group_ranks", HBP__CELL_I64, 0, offsetof(hbp_task_schedule, group_ranks_total), 0},
    NUMBER(gap)
    NUMBER(idle)
    COUNT("operators", operators_total)
    COUNT("meta_ops", meta_ops)
    COUNT("levels", levels)
    COUNT("waves", waves)
    COUNT("slices", slices)
    COUNT("groups", groups)
    COUNT("tasks", tasks)
    COUNT("parameters", parameters)
    COUNT("gpus", ranks)
    /* clang-format on */
};

static const hbp__member all_columns[] = {HBP__TASK_COLUMNS(COLUMN)};
static const hbp__member all_names[] = {HBP__TASK_NAMES(NAMES)};

const hbp__table hbp__task_table = {
    .what = "the schedule of tasks",
    .bytes = sizeof(hbp_task_schedule),
    .numbers = all_numbers,
    .columns = all_columns,
    .names = all_names,
    .number_count = sizeof all_numbers / sizeof *all_numbers,
    .column_count = sizeof all_columns / sizeof *all_columns,
    .name_count = sizeof all_names / sizeof *all_names,
};

hbp_status hbp__task_schedule_new(hbp_context *context, const hbp_task_schedule *shape,
                                  hbp_task_schedule **out)
{
    hbp_task_schedule *schedule = hbp__table_new(&context->memory, &hbp__task_table, shape);
    if (!schedule)
        return hbp__fail_memory(context, hbp__task_table.what);
    schedule->memory = context->memory;
    *out = schedule;
    return HBP_OK;
}

void hbp_task_schedule_free(hbp_task_schedule *schedule)
{
    if (schedule) {
        hbp__memory memory = schedule->memory;
        hbp__table_free(&memory, &hbp__task_table, schedule);
    }
}

uint64_t hbp__task_schedule_digest(const hbp_task_schedule *schedule)
{
    const hbp_task_summary *s = &schedule->summary;
    const int64_t fields[] = {schedule->method, s->gpus, s->domain_gpus, s->makespan_ns};
    hbp__digest digest = hbp__digest_begin();
    hbp__digest_column_i64(&digest, fields, sizeof fields / sizeof *fields);
    hbp__digest_u64(&digest, schedule->graph_digest);
    hbp__table_digest(&hbp__task_table, schedule, &digest);
    return hbp__digest_end(&digest);
}

hbp_status hbp__task_machine(hbp_context *context, const hbp_machine *machine, int32_t *gpus,
                             int32_t *domain_gpus)
{
    const hbp_machine_fields *f = &machine->fields;
    uint32_t missing = (f->nodes < 1 ? UINT32_C(1) << HBP__MACHINE_nodes : 0) |
                       (f->gpus_per_node < 1 ? UINT32_C(1) << HBP__MACHINE_gpus_per_node : 0) |
                       (f->domain_gpus < 1 ? UINT32_C(1) << HBP__MACHINE_domain_gpus : 0);
    if (missing)
        return hbp__machine_fail_missing(context, machine, missing);
    int64_t all = (int64_t)f->nodes * f->gpus_per_node;
    if (all > INT32_MAX)
        return hbp__fail(context, HBP_E_OVERFLOW, "machine %s has %lld GPUs; at most %d", machine->name,
                         (long long)all, INT32_MAX);
    *gpus = (int32_t)all;
    *domain_gpus = f->domain_gpus < *gpus ? f->domain_gpus : *gpus;
    return HBP_OK;
}

hbp_status hbp__task_schedule_slices(hbp_context *context, const hbp_task_schedule *schedule,
                                     hbp__task_slices *slices)
{
    *slices = (hbp__task_slices){.memory = context->memory};
    for (int32_t w = 0; w < schedule->waves; w++)
        for (int64_t s = schedule->wave_offsets[w]; s < schedule->wave_offsets[w + 1]; s++) {
            hbp_status status = hbp__task_slices_add(
                context, slices,
                &(hbp__task_slice){schedule->slice_meta_ops[s], schedule->slice_firsts[s],
                                   schedule->slice_operators[s], schedule->slice_gpus[s], w,
                                   schedule->slice_starts[s], schedule->slice_ends[s]});
            if (status < 0) {
                hbp__task_slices_close(slices);
                return status;
            }
        }
    return HBP_OK;
}

hbp_status hbp_task_schedule_get_summary(hbp_context *context, const hbp_task_schedule *schedule,
                                         hbp_task_summary *summary)
{
    HBP__TRY(hbp__enter(context));
    HBP__TRY(hbp__require(context, schedule, "schedule"));
    hbp_task_summary all = schedule->summary;
    all.method = hbp__tasks_name(schedule->method);
    all.placement_method = hbp__placement_name(schedule->placement);
    all.digest = schedule->digest;
    return hbp__struct_write(context, summary, &all, sizeof all, "hbp_task_summary");
}

hbp_status hbp_task_schedule_get_view(const hbp_task_schedule *schedule, hbp_task_schedule_view *view)
{
    hbp_task_schedule_view all = {0};
    if (schedule) {
        all.meta_ops = schedule->meta_ops;
        all.operators_total = schedule->operators_total;
        all.levels = schedule->levels;
        all.waves = schedule->waves;
        all.slices = schedule->slices;
        all.groups = schedule->groups;
        all.group_ranks_total = schedule->group_ranks_total;
        all.parameters = schedule->parameters;
        all.ranks = schedule->ranks;
        all.tasks = schedule->tasks;
        all.meta_op_names = (const char *const *)schedule->meta_op_names;
        all.task_names = (const char *const *)schedule->task_names;
        all.parameter_names = (const char *const *)schedule->parameters_names;
#define SHOW(name, type, table, extra) all.name = schedule->name;
        HBP__TASK_COLUMNS(SHOW)
#undef SHOW
    }
    return hbp__view_write(view, schedule, &all, sizeof all);
}
