/* Every planner, judge and file of the library on a small input, one function each: for tests of what must
 * hold whichever is called. None of them asserts, so that they may run on any thread; a failure is returned.
 */
#ifndef HBP_TESTS_EVERY_CALL_H
#define HBP_TESTS_EVERY_CALL_H

#include <unistd.h>

#include "costs.h"
#include "hbp/io.h"
#include "methods.h"
#include "pack/partition/partition.h"
#include "test.h"

#define EVERY_SAMPLES 160
#define EVERY_COUNT   (TEST_LONG ? EVERY_SAMPLES : EVERY_SAMPLES / 2)

/* What the calls are given. The arrays are lengths' own where they borrow them. */
typedef struct every {
    uint32_t tokens[EVERY_SAMPLES];
    uint32_t vision[EVERY_SAMPLES];
    int64_t links[EVERY_SAMPLES];
    hbp_lengths *lengths; /* text */
    hbp_lengths *linked;  /* the same with links */
    hbp_lengths *sized;   /* the same with vision units */
    hbp_cost *cost;       /* without vision units */
    hbp_machine *machine; /* 32 GPUs */
    hbp_graph *graph;     /* of many tasks */
    hbp_model *model;
    hbp_vlm *vlm;
    hbp_layers *layers;
    char folder[64]; /* of files to write; gone with the rest */
} every;

#define EVERY_TRY(call)                                                                                      \
    do {                                                                                                     \
        hbp_status every_status = (call);                                                                    \
        if (every_status < 0)                                                                                \
            return every_status;                                                                             \
    } while (0)

static inline void every_open(hbp_context *context, every *e, int32_t borrow)
{
    hbp__rng rng = hbp__rng_make(31, 0, 0);
    for (int i = 0; i < EVERY_SAMPLES; i++) {
        e->vision[i] = hbp__rng_below(&rng, 7);
        e->tokens[i] = 256 * e->vision[i] + 20 + hbp__rng_below(&rng, i % 40 ? 900 : 30000);
        e->links[i] = i % 5 ? -1 : i / 10;
    }
    hbp_lengths_options options = {.struct_size = sizeof options, .borrow = borrow};
    OK(context, hbp_lengths_create_u32(context, e->tokens, EVERY_COUNT, &options, &e->lengths));
    options.links = e->links;
    OK(context, hbp_lengths_create_u32(context, e->tokens, EVERY_COUNT, &options, &e->linked));
    options.links = NULL;
    options.vision = e->vision;
    OK(context, hbp_lengths_create_u32(context, e->tokens, EVERY_COUNT, &options, &e->sized));
    e->cost = test_cost(context);
    OK(context, hbp_machine_create_preset(context, "a100-80:4", &e->machine));
    OK(context, hbp_graph_create_workload(context, "clip-4", e->machine, &e->graph));
    OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &e->model));
    OK(context, hbp_vlm_create_preset(context, "internvl-1.5-26b", &e->vlm));
    hbp_vlm_layers_options shapes = {
        .struct_size = sizeof shapes, .tensor_parallel = 4, .vision = 9, .tokens = 4096};
    OK(context, hbp_vlm_create_layers(context, e->vlm, e->machine, &shapes, &e->layers));
    snprintf(e->folder, sizeof e->folder, "/tmp/hbp-every-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(e->folder));
}

static inline void every_path(const every *e, char path[96])
{
    snprintf(path, 96, "%s/file", e->folder);
}

static inline void every_close(every *e)
{
    hbp_layers_free(e->layers);
    hbp_vlm_free(e->vlm);
    hbp_model_free(e->model);
    hbp_graph_free(e->graph);
    hbp_machine_free(e->machine);
    hbp_cost_free(e->cost);
    hbp_lengths_free(e->sized);
    hbp_lengths_free(e->linked);
    hbp_lengths_free(e->lengths);
    char path[96];
    every_path(e, path);
    unlink(path); /* a call that failed on its way leaves it */
    rmdir(e->folder);
}

static inline hbp_status every_create(hbp_context *context, const every *e)
{
    hbp_lengths *lengths = NULL;
    hbp_lengths_options options = {
        .struct_size = sizeof options, .borrow = 1, .links = e->links, .vision = e->vision};
    hbp_status status = hbp_lengths_create_u32(context, e->tokens, EVERY_COUNT, &options, &lengths);
    hbp_lengths_free(lengths);
    return status;
}

static inline hbp_status every_limit(hbp_context *context, const every *e)
{
    for (int32_t policy = HBP_OVERLONG_DROP; policy <= HBP_OVERLONG_SPLIT; policy++) {
        hbp_lengths *lengths = NULL;
        hbp_status status = hbp_lengths_limit(context, e->sized, 700, policy, &lengths);
        hbp_lengths_free(lengths);
        EVERY_TRY(status);
    }
    return HBP_OK;
}

static inline hbp_status every_packs(hbp_context *context, const every *e)
{
    hbp_status status = HBP_OK;
    for (int32_t way = 0; way < 12 && status >= 0; way++) {
        const hbp_lengths *lengths = way % 2 ? e->linked : e->lengths;
        hbp_groups_options ask = {.struct_size = sizeof ask, .method = hbp__groups_name(way / 6)};
        hbp_fill_options fill = {
            .struct_size = sizeof fill, .method = hbp__fill_name(way / 2 % 3), .effort = 2};
        hbp_groups *groups = NULL;
        hbp_packs *packs = NULL;
        status = hbp_plan_groups(context, lengths, e->cost, &ask, &groups);
        if (status >= 0)
            status = hbp_greedy_fill(context, lengths, groups, &fill, &packs);
        for (int32_t mode = HBP__BALANCE_TIME; mode <= HBP__BALANCE_VISION && status >= 0; mode++) {
            hbp_balance_options options = {.struct_size = sizeof options, .method = hbp__balance_name(mode)};
            hbp_plan *plan = NULL;
            status = hbp_balance_attention(context, packs, groups, e->cost, &options, &plan);
            hbp_plan_free(plan);
        }
        hbp_packs_free(packs);
        hbp_groups_free(groups);
    }
    return status;
}

static inline hbp_status every_iterative(hbp_context *context, const every *e)
{
    for (int32_t mode = HBP__ITERATIVE_FILL_VECTOR; mode <= HBP__ITERATIVE_FILL_ISF; mode++) {
        hbp_packs *packs = NULL;
        hbp_iterative_fill_options options = {.struct_size = sizeof options,
                                              .method = hbp__iterative_fill_name(mode),
                                              .max_tokens = 40000,
                                              .max_vision = 60,
                                              .over_long = HBP_OVERLONG_DROP};
        hbp_status status = hbp_iterative_fill(context, e->sized, &options, &packs);
        hbp_packs_free(packs);
        EVERY_TRY(status);
        hbp_budgets budgets = {.struct_size = sizeof budgets};
        hbp_budgets_options ask = {.struct_size = sizeof ask, .method = hbp__budgets_name(mode), .ranks = 2};
        EVERY_TRY(hbp_choose_budgets(context, e->sized, &ask, &budgets));
    }
    return HBP_OK;
}

/* Also writes, reads and judges what it planned. */
static inline hbp_status every_use(hbp_context *context, const every *e, const hbp_lengths *lengths,
                                   const hbp_plan *plan)
{
    char path[96];
    every_path(e, path);
    hbp_report report = {.struct_size = sizeof report};
    EVERY_TRY(hbp_simulate(context, plan, e->cost, NULL, &report));
    if (lengths)
        EVERY_TRY(hbp_plan_validate(context, plan, lengths, e->cost));
    EVERY_TRY(hbp_plan_save(context, plan, path, NULL));
    hbp_plan *again = NULL;
    hbp_status status = hbp_plan_load(context, path, &again);
    hbp_plan_free(again);
    if (status >= 0)
        status = hbp_plan_write_json(context, plan, path);
    if (status >= 0)
        status = hbp_plan_trace(context, plan, path, NULL);
    unlink(path);
    return status;
}

static inline hbp_status every_epoch(hbp_context *context, const every *e)
{
    hbp_status status = HBP_OK;
    for (int32_t way = 0; way < 12 && status >= 0; way++) {
        const hbp_lengths *lengths = way % 2 ? e->linked : e->lengths;
        hbp_epoch_options options = {.struct_size = sizeof options, .seed = 3};
        options.method = hbp__epoch_name(way / 2 == 1 ? HBP__EPOCH_HBP : HBP__EPOCH_SEARCH);
        options.samples_per_step = way / 2 == 2 ? 40 : 0;
        options.window_samples = way / 2 == 3 ? 50 : 0;
        options.composition = way / 2 == 4 ? HBP_COMPOSITION_HIERARCHY : HBP_COMPOSITION_AUTO;
        options.threads = way / 2 == 5 ? 2 : 0;
        hbp_plan *plan = NULL;
        status = hbp_plan_epoch(context, lengths, e->cost, &options, &plan);
        if (status >= 0)
            status = every_use(context, e, lengths, plan);
        hbp_plan_free(plan);
    }
    return status;
}

static inline hbp_status every_long(hbp_context *context, const every *e)
{
    hbp_epoch_options options = {
        .struct_size = sizeof options, .max_length = 1000, .over_long = HBP_OVERLONG_SPLIT, .drop_last = 1};
    hbp_plan *plan = NULL;
    hbp_status status = hbp_plan_epoch(context, e->lengths, e->cost, &options, &plan);
    hbp_plan_free(plan);
    return status;
}

static inline hbp_status every_baseline(hbp_context *context, const every *e)
{
    for (int32_t method = HBP__EPOCH_HBP; method < HBP__EPOCH_METHOD_COUNT; method++) {
        hbp_epoch_options options = {.struct_size = sizeof options, .samples_per_step = 32};
        if (method != HBP__EPOCH_NO_PACKING && method != HBP__EPOCH_SORTED)
            options.samples_per_step = 0;
        hbp_plan *plan = NULL;
        hbp_status status = test_plan_by(context, e->lengths, e->cost, method, &options, &plan);
        hbp_plan_free(plan);
        EVERY_TRY(status);
    }
    return HBP_OK;
}

static inline hbp_status every_step(hbp_context *context, const every *e)
{
    for (int32_t way = 0; way < 2 * (HBP__STEP_METHOD_COUNT + 3); way++) {
        const hbp_lengths *lengths = way % 2 ? e->linked : e->lengths;
        hbp_step_options options = {.struct_size = sizeof options};
        if (way / 2 < HBP__STEP_METHOD_COUNT)
            options.method = hbp__step_name(way / 2);
        else if (way / 2 == HBP__STEP_METHOD_COUNT)
            options.equal_samples = 1;
        else if (way / 2 == HBP__STEP_METHOD_COUNT + 1)
            options.any_degree = 1;
        else
            options.effort = 3;
        if (way % 2 && hbp__step_method(options.method) == HBP__STEP_FLEXSP)
            continue; /* refuses links */
        hbp_plan *plan = NULL;
        hbp_status status = hbp_plan_step(context, lengths, e->cost, &options, &plan);
        if (status >= 0)
            status = every_use(context, e, NULL, plan);
        hbp_plan_free(plan);
        if (hbp__step_method(options.method) == HBP__STEP_SEARCH)
            EVERY_TRY(status);
    }
    return HBP_OK;
}

static inline hbp_status every_stepper(hbp_context *context, const every *e)
{
    hbp_stepper *stepper = NULL;
    hbp_plan *plan = NULL;
    EVERY_TRY(hbp_stepper_create(context, e->cost, NULL, NULL, &stepper));
    hbp_status status = hbp_stepper_submit_lengths(context, stepper, e->lengths);
    if (status >= 0)
        status = hbp_stepper_take(context, stepper, &plan);
    hbp_plan_free(plan);
    hbp_stepper_free(stepper);
    return status;
}

static inline hbp_status every_bound(hbp_context *context, const every *e)
{
    int64_t bound_ns;
    hbp_sp_choice choice = {.struct_size = sizeof choice};
    EVERY_TRY(hbp_choose_sp(context, e->cost, 20000, NULL, &choice));
    return hbp_bound_epoch(context, e->lengths, e->cost, 3, &bound_ns);
}

static inline hbp_status every_tasks(hbp_context *context, const every *e)
{
    char path[96];
    every_path(e, path);
    for (int32_t way = 0; way < 6 + 3; way++) {
        hbp_tasks_options options = {.struct_size = sizeof options, .effort = 1, .reserve_bytes = -1};
        options.method = hbp__tasks_name(way < 6 ? way : HBP__TASKS_OVERLAP);
        options.placement_method = hbp__placement_name(way < 6 ? HBP__PLACEMENT_FLOWS : way - 6);
        hbp_task_schedule *schedule = NULL, *again = NULL;
        hbp_task_run *run = NULL, *back = NULL;
        hbp_status status = hbp_plan_tasks(context, e->graph, e->machine, &options, &schedule);
        if (status >= 0)
            status = hbp_simulate_tasks(context, e->graph, e->machine, schedule, NULL, &run);
        if (status >= 0)
            status = hbp_task_schedule_save(context, schedule, path);
        if (status >= 0)
            status = hbp_task_schedule_load(context, path, &again);
        if (status >= 0)
            status = hbp_task_schedule_trace(context, schedule, run, path);
        if (status >= 0)
            status = hbp_task_run_save(context, run, path);
        if (status >= 0)
            status = hbp_task_run_load(context, path, &back);
        if (status >= 0)
            status = hbp_task_run_write_json(context, run, path);
        if (status >= 0)
            status = hbp_task_schedule_write_json(context, schedule, path);
        if (status >= 0)
            status = hbp_task_run_validate(context, back, e->graph, e->machine, schedule, NULL);
        unlink(path);
        hbp_task_run_free(back);
        hbp_task_run_free(run);
        hbp_task_schedule_free(again);
        hbp_task_schedule_free(schedule);
        EVERY_TRY(status);
    }
    return HBP_OK;
}

static inline hbp_status every_pipeline(hbp_context *context, const every *e)
{
    char path[96];
    every_path(e, path);
    int32_t order[8], choices[512];
    hbp_pipeline_options pipeline = {.struct_size = sizeof pipeline, .stages = 4, .micro_batches = 8};
    if (layers_view(e->layers).layers > 512)
        return HBP_E_INVALID;
    for (int32_t mode = HBP__LAYER_PARTITION_OPTIMAL; mode <= HBP__LAYER_PARTITION_OMNIBAL; mode++) {
        hbp_layer_partition_options options = {
            .struct_size = sizeof options, .method = hbp__layer_partition_name(mode), .order = 1};
        hbp_layer_partition *partition = NULL;
        hbp_pipeline_run *run = NULL, *back = NULL;
        EVERY_TRY(hbp_partition_layers(context, e->layers, &pipeline, &options, &partition));
        const int32_t *cuts = layer_partition_view(partition).cuts;
        hbp_status status = hbp_simulate_pipeline(context, e->layers, cuts, &pipeline, NULL, &run);
        if (status >= 0)
            status = hbp_order_micro_batches(context, e->layers, cuts, &pipeline, order, NULL, NULL);
        for (int32_t memory = HBP__RECOMPUTE_OPTIMAL; memory <= HBP__RECOMPUTE_NONE && status >= 0;
             memory++) {
            hbp_recompute_options ask = {.struct_size = sizeof ask, .method = hbp__recompute_name(memory)};
            status = hbp_choose_recompute(context, e->layers, cuts, &pipeline, &ask, choices, NULL);
        }
        if (status >= 0)
            status = hbp_pipeline_run_save(context, run, path);
        if (status >= 0)
            status = hbp_pipeline_run_load(context, path, &back);
        if (status >= 0)
            status = hbp_pipeline_run_validate(context, back, e->layers, cuts, &pipeline);
        if (status >= 0)
            status = hbp_pipeline_run_trace(context, run, path);
        if (status >= 0)
            status = hbp_pipeline_run_write_json(context, run, path);
        unlink(path);
        hbp_pipeline_run_free(back);
        hbp_pipeline_run_free(run);
        hbp_layer_partition_free(partition);
        EVERY_TRY(status);
    }
    return HBP_OK;
}

static inline hbp_status every_vlm(hbp_context *context, const every *e)
{
    char path[96];
    every_path(e, path);
    for (int32_t data = HBP__VLM_DATA_PACKED; data <= HBP__VLM_DATA_SORTED; data++) {
        hbp_vlm_options options = {.struct_size = sizeof options, .tensor_parallel = 4, .pipeline_stages = 4};
        options.data_method = hbp__vlm_data_name(data);
        if (data > HBP__VLM_DATA_PACKED && !TEST_LONG) /* what is chosen takes longest */
            options.recompute_method = "all";
        options.batch_samples = 40;
        options.over_long = HBP_OVERLONG_DROP;
        options.max_tokens = 40000;
        options.max_vision = 60;
        hbp_vlm_plan *plan = NULL, *back = NULL;
        hbp_status status = hbp_plan_vlm(context, e->sized, e->vlm, e->machine, &options, &plan);
        if (status >= 0)
            status = hbp_vlm_plan_save(context, plan, path, NULL);
        if (status >= 0)
            status = hbp_vlm_plan_load(context, path, &back);
        if (status >= 0)
            status = hbp_vlm_plan_validate(context, back, e->sized);
        if (status >= 0)
            status = hbp_vlm_plan_trace(
                context, plan, path,
                &(hbp_trace_options){.struct_size = sizeof(hbp_trace_options), .steps = 1});
        if (status >= 0)
            status = hbp_vlm_plan_write_json(context, plan, path);
        hbp_pipeline_run *run = NULL;
        if (status >= 0)
            status = hbp_vlm_plan_run_step(context, plan, 0, 0, &run);
        hbp_pipeline_run_free(run);
        unlink(path);
        hbp_vlm_plan_free(back);
        hbp_vlm_plan_free(plan);
        EVERY_TRY(status);
    }
    return HBP_OK;
}

static inline hbp_status every_machine(hbp_context *context, const every *e)
{
    char path[96];
    every_path(e, path);
    hbp_cost *cost = NULL, *read = NULL;
    hbp_machine *machine = NULL;
    hbp_graph *graph = NULL;
    hbp_status status = hbp_cost_create(context, e->model, e->machine, NULL, &cost);
    if (status >= 0)
        status = hbp_cost_save(context, cost, path, NULL);
    if (status >= 0)
        status = hbp_cost_load(context, path, &read);
    if (status >= 0)
        status = hbp_machine_save(context, e->machine, path);
    if (status >= 0)
        status = hbp_machine_load(context, path, &machine);
    if (status >= 0)
        status = hbp_graph_save(context, e->graph, path, 0);
    if (status >= 0)
        status = hbp_graph_load(context, path, &graph);
    unlink(path);
    hbp_graph_free(graph);
    hbp_machine_free(machine);
    hbp_cost_free(read);
    hbp_cost_free(cost);
    return status;
}

static inline hbp_status every_partition(hbp_context *context, const every *e)
{
    int64_t lengths[EVERY_SAMPLES], classes[EVERY_SAMPLES];
    for (int i = 0; i < EVERY_SAMPLES; i++) {
        lengths[i] = e->tokens[i];
        classes[i] = i / 10 % 3;
    }
    hbp_partition_options ask[] = {{.parts = 7, .links = e->links, .classes = classes},
                                   {.capacity = 8192, .over_long = HBP_OVERLONG_SPLIT, .multiple_of = 4},
                                   {.capacity = 40000, .equal_count = 1, .linear = 24576, .square = 1}};
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        hbp_partition *made = NULL;
        ask[i].struct_size = sizeof *ask;
        hbp_status status = hbp__partition_samples(context, lengths, EVERY_SAMPLES, &ask[i], &made);
        hbp_partition_free(made);
        EVERY_TRY(status);
    }
    return HBP_OK;
}

typedef struct every_call {
    const char *name;
    hbp_status (*run)(hbp_context *context, const every *e);
} every_call;

static const every_call EVERY_CALL[] = {
    {"create", every_create},
    {"limit", every_limit},
    {"packs", every_packs},
    {"iterative", every_iterative},
    {"epoch", every_epoch},
    {"long", every_long},
    {"baseline", every_baseline},
    {"step", every_step},
    {"stepper", every_stepper},
    {"bound", every_bound},
    {"tasks", every_tasks},
    {"pipeline", every_pipeline},
    {"vlm", every_vlm},
    {"machine", every_machine},
    {"partition", every_partition},
};

#define EVERY_CALLS ((int)(sizeof EVERY_CALL / sizeof *EVERY_CALL))

/* Adds `test` for each call, _i being its number, in a case that has the call's name. */
static inline void every_add(Suite *suite, const TTest *test)
{
    for (int i = 0; i < EVERY_CALLS; i++) {
        TCase *cases = tcase_create(EVERY_CALL[i].name);
        tcase_set_timeout(cases, 120);
        tcase_add_loop_test(cases, test, i, i + 1);
        suite_add_tcase(suite, cases);
    }
}

/* The suite of `test` alone. */
#define EVERY_MAIN(name, test)                                                                               \
    TEST_SUITE_FUNCTION                                                                                      \
    {                                                                                                        \
        Suite *suite = suite_create(name);                                                                   \
        every_add(suite, test);                                                                              \
        return suite;                                                                                        \
    }

#endif
