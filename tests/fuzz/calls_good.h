/* Good structs, arrays, objects and files, made once. */
#ifndef HBP_FUZZ_CALLS_GOOD_H
#define HBP_FUZZ_CALLS_GOOD_H

#include "calls_fill.h"
#include "hbp/io.h"

static void make_base(void)
{
    static const int32_t degree[ELEMENTS] = {1, 2, 4};
    static const double latency[ELEMENTS] = {0, 500, 900}, per_token[ELEMENTS] = {0, 3, 5};
    base.terms = (hbp_cost_terms){.struct_size = sizeof base.terms,
                                  .ranks = 4,
                                  .layers = 4,
                                  .ns_per_token = 100,
                                  .ns_per_token_squared = 0.01,
                                  .recompute_linear = 0.3,
                                  .activation_bytes = 10,
                                  .limit_bytes = 200000,
                                  .degrees = 3,
                                  .degree = degree,
                                  .sp_latency_ns = latency,
                                  .sp_ns_per_token = per_token};
    base.layers = (hbp_layer_columns){
        .struct_size = sizeof base.layers, .count = 8, .forward_ns = wide[LENGTHS], .cut_bytes = wide[ONES]};
    base.pipeline =
        (hbp_pipeline_options){.struct_size = sizeof base.pipeline, .stages = 2, .micro_batches = 4};
    base.timeline = (hbp_timeline_columns){.struct_size = sizeof base.timeline,
                                           .ranks = 4,
                                           .count = 20,
                                           .step = wide[ASCENDING],
                                           .micro_batch = ints[ONES],
                                           .first_rank = ints[ONES],
                                           .sp = ints[ONES],
                                           .recompute = ints[ONES],
                                           .tokens = wide[LENGTHS],
                                           .sum_squares = wide[LENGTHS],
                                           .time_ns = wide[LENGTHS]};
    base.measured = (hbp_measurements){.struct_size = sizeof base.measured,
                                       .count = 30,
                                       .sp = ints[ONES],
                                       .recompute = ints[ONES],
                                       .tokens = wide[LENGTHS],
                                       .sum_squares = wide[LENGTHS],
                                       .time_ns = wide[LENGTHS]};
    base.shapes = (hbp_vlm_layers_options){
        .struct_size = sizeof base.shapes, .tensor_parallel = 4, .vision = 9, .tokens = 4096};
    base.vlm_plan = (hbp_vlm_options){.struct_size = sizeof base.vlm_plan,
                                      .tensor_parallel = 4,
                                      .pipeline_stages = 2,
                                      .batch_samples = 8,
                                      .max_vision = 9,
                                      .max_tokens = 4096};
    base.fill = (hbp_iterative_fill_options){
        .struct_size = sizeof base.fill, .rounds = 3, .max_tokens = 4096, .max_vision = 9};
    base.partition = (hbp_partition_options){.struct_size = sizeof base.partition, .parts = 2};
    base.rate = (hbp_machine_rate){.struct_size = sizeof base.rate, .size = 1, .per_s = 1e9, .source = "me"};
    base.collective = (hbp_machine_collective){
        .struct_size = sizeof base.collective, .ranks = 2, .bytes_per_s = 1e9, .source = "me"};
}

static hbp_status make_good(hbp_context *c)
{
    enum { SAMPLES = 48 };
    hbp_lengths_options seen = {.struct_size = sizeof seen, .vision = uints[ONES]};
#define MAKE(of, function, ...) MAKE_AS(of, made_##of, function, __VA_ARGS__)
#define MAKE_AS(of, name, function, ...)                                                                     \
    if (function(c, __VA_ARGS__, (void *)&good[KIND_##of]) < 0)                                              \
        return HBP_E_INTERNAL;
    MAKE(lengths, hbp_lengths_create_u32, uints[LENGTHS], SAMPLES, &seen)
    MAKE(model, hbp_model_create_preset, "llama-3.1-8b")
    MAKE(machine, hbp_machine_create_preset, "h100")
    MAKE(cost, hbp_cost_create_terms, &base.terms)
    MAKE(groups, hbp_plan_groups, good[KIND_lengths], good[KIND_cost], NULL)
    MAKE(packs, hbp_greedy_fill, good[KIND_lengths], good[KIND_groups], NULL)
    MAKE(plan, hbp_balance_attention, good[KIND_packs], good[KIND_groups], good[KIND_cost], NULL)
    MAKE(layers, hbp_layers_create, &base.layers)
    MAKE(layer_partition, hbp_partition_layers, good[KIND_layers], &base.pipeline, NULL)
    hbp_layer_partition_view view = {.struct_size = sizeof view};
    (void)hbp_layer_partition_get_view(good[KIND_layer_partition], &view);
    MAKE(pipeline_run, hbp_simulate_pipeline, good[KIND_layers], view.cuts, &base.pipeline, NULL)
    if (hbp_partition_samples(wide[ONES], SAMPLES, &base.partition, (hbp_partition **)&good[KIND_partition],
                              NULL, 0) < 0)
        return HBP_E_INTERNAL;
    MAKE(graph, hbp_graph_create_workload, "clip-4", good[KIND_machine])
    MAKE(schedule, hbp_plan_tasks, good[KIND_graph], good[KIND_machine], NULL)
    MAKE(task_run, hbp_simulate_tasks, good[KIND_graph], good[KIND_machine], good[KIND_schedule], NULL)
    MAKE(timeline, hbp_timeline_create, &base.timeline)
    MAKE(vlm, hbp_vlm_create_preset, "internvl-1.5-26b")
    hbp_vlm_options run = base.vlm_plan;
    run.over_long = HBP_OVERLONG_DROP;
    run.layers = good[KIND_layers];
    run.layers_vision = 1;
    run.layers_tokens = 100;
    MAKE(vlm_plan, hbp_plan_vlm, good[KIND_lengths], NULL, good[KIND_machine], &run)
#undef MAKE
#undef MAKE_AS
    base.machine.struct_size = sizeof base.machine;
    base.model.struct_size = sizeof base.model;
    base.vlm.struct_size = sizeof base.vlm;
    hbp_status status = hbp_machine_get_fields(c, good[KIND_machine], &base.machine);
    if (status >= 0)
        status = hbp_model_get_fields(c, good[KIND_model], &base.model);
    if (status >= 0)
        status = hbp_vlm_get_fields(c, good[KIND_vlm], &base.vlm);
    return status;
}

static hbp_status write_text(const char *to, const char *content)
{
    FILE *file = fopen(to, "w");
    return file && fputs(content, file) >= 0 && fclose(file) == 0 ? HBP_OK : HBP_E_SYSTEM;
}

static hbp_status write_good(hbp_context *c)
{
    snprintf(good_folder, sizeof good_folder, "/tmp/hbp-good-XXXXXX");
    if (!mkdtemp(good_folder))
        return HBP_E_SYSTEM;
    for (int32_t i = 0; i < GOOD_FILES; i++)
        snprintf(good_path[i], sizeof good_path[i], "%s/%s", good_folder, good_files[i].name);
    hbp_status status[] = {hbp_plan_save(c, good[KIND_plan], good_path[0], NULL),
                           hbp_cost_save(c, good[KIND_cost], good_path[2], NULL),
                           hbp_machine_save(c, good[KIND_machine], good_path[3]),
                           hbp_graph_save(c, good[KIND_graph], good_path[4], 0),
                           hbp_timeline_save(c, good[KIND_timeline], good_path[5]),
                           hbp_task_schedule_save(c, good[KIND_schedule], good_path[6]),
                           write_text(good_path[7], "forward_ns,name\n100,a\n200,b\n"),
                           write_text(good_path[8], "100\n20\n4000\n"),
                           write_text(good_path[9], good_config),
                           hbp_vlm_plan_save(c, good[KIND_vlm_plan], good_path[10], NULL),
                           hbp_pipeline_run_save(c, good[KIND_pipeline_run], good_path[11]),
                           hbp_task_run_save(c, good[KIND_task_run], good_path[12])};
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        if (status[i] < 0)
            return status[i];
    return HBP_OK;
}

static void free_good(void)
{
    for (int32_t i = 0; i < GOOD_FILES; i++)
        unlink(good_path[i]);
    rmdir(good_folder);
#define FREE_GOOD(of, type, release) release(good[KIND_##of]);
    KINDS(FREE_GOOD)
#undef FREE_GOOD
}

static void open_good(void)
{
    hbp_context *c = NULL;
    now_called = "the good objects";
    setenv("HWLOC_PLUGINS_PATH", "/nowhere", 1); /* where they are installed, they leak on their own */
    fill_arrays();
    make_base();
    CHECK(hbp_context_create(NULL, &c) == HBP_OK);
    hbp_status status = make_good(c);
    if (status >= 0)
        status = write_good(c);
    if (status < 0)
        fprintf(stderr, "%s\n", hbp_context_message(c));
    CHECK(status >= 0);
    hbp_context_free(c);
    (void)atexit(free_good);
}

#endif
