/* Task schedules of fixed inputs have fixed digests, as test_determinism.c says of plans. */
#include "base/methods.h"
#include "hbp/hbp.h"
#include "nodes.h"
#include "test.h"

typedef struct golden {
    const char *workload;
    int32_t nodes;
    int32_t mode, placement;
    uint64_t digest;
    int64_t makespan_ns;
} golden;

static const golden goldens[] = {
    {"clip-10", 2, HBP__TASKS_OVERLAP, HBP__PLACEMENT_FLOWS, UINT64_C(0xb8a67f62bfba2e32),
     INT64_C(497012394)},
    {"ofasys-7", 8, HBP__TASKS_OVERLAP, HBP__PLACEMENT_FLOWS, UINT64_C(0x4adda7bbf9c1b7c9),
     INT64_C(105286708)},
    {"clip-7", 4, HBP__TASKS_SPINDLE, HBP__PLACEMENT_SPINDLE, UINT64_C(0x4d3f5e4439e13279),
     INT64_C(238871908)},
    {"qwen-val-3", 4, HBP__TASKS_OPTIMUS, HBP__PLACEMENT_SEQUENTIAL, UINT64_C(0x91fbfbac33ba8aaf),
     INT64_C(1377806640)},
    {"qwen-val-3", 4, HBP__TASKS_DISTMM, HBP__PLACEMENT_FLOWS, UINT64_C(0x9138250f175227e1),
     INT64_C(1501839772)},
};

START_TEST(fixed_inputs_give_fixed_schedules)
{
    const golden *g = &goldens[_i];
    hbp_context *context = test_context();
    hbp_machine *machine = NULL;
    hbp_graph *graph = NULL;
    hbp_task_schedule *schedule = NULL;
    OK(context, make_nodes(context, "a800-80", g->nodes, &machine));
    OK(context, hbp_graph_create_workload(context, g->workload, machine, &graph));
    hbp_tasks_options options = {.struct_size = sizeof options};
    options.method = hbp__tasks_name(g->mode);
    options.placement_method = hbp__placement_name(g->placement);
    options.seed = 7;
    OK(context, hbp_plan_tasks(context, graph, machine, &options, &schedule));
    hbp_task_summary s = {.struct_size = sizeof s};
    OK(context, hbp_task_schedule_get_summary(context, schedule, &s));
    ck_assert_msg(s.digest == g->digest && s.makespan_ns == g->makespan_ns,
                  "row %d: digest is 0x%016llx, makespan_ns %lld", _i, (unsigned long long)s.digest,
                  (long long)s.makespan_ns);
    hbp_task_schedule_free(schedule);
    hbp_graph_free(graph);
    hbp_machine_free(machine);
    hbp_context_free(context);
}
END_TEST

TEST_MAIN_LOOPS("determinism_tasks", NULL, NULL,
                {fixed_inputs_give_fixed_schedules, 0, (int)(sizeof goldens / sizeof *goldens)})
