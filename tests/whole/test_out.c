/* *out is NULL after every failure of every function that makes an object: what a caller frees or looks at is
 * never what stood there before. The list is held against the headers. */
#include <dirent.h>

#include "hbp/io.h"
#include "test.h"

static int places; /* the out pointers point here, so that a set one is seen */

/* As failing calls: without a context, and with one but without whatever else they need. */
#define OUT(type, name, ...)                                                                                 \
    static void out_##name(hbp_context *context)                                                             \
    {                                                                                                        \
        (void)context; /* two need nothing else */                                                           \
        type *out = (type *)&places;                                                                         \
        ck_assert_int_lt(name(__VA_ARGS__, &out), 0);                                                        \
        ck_assert_msg(out == NULL, #name " leaves *out as it was");                                          \
    }

OUT(hbp_cost, hbp_cost_create, context, NULL, NULL, NULL)
OUT(hbp_cost, hbp_cost_create_terms, context, NULL)
OUT(hbp_cost, hbp_cost_anchor, context, NULL, NULL)
OUT(hbp_cost, hbp_cost_create_plain, context, -1)
OUT(hbp_cost, hbp_cost_load, context, NULL)
OUT(hbp_plan, hbp_balance_attention, context, NULL, NULL, NULL, NULL)
OUT(hbp_plan, hbp_plan_epoch, context, NULL, NULL, NULL)
OUT(hbp_graph, hbp_graph_create, NULL)
OUT(hbp_graph, hbp_graph_load, context, NULL)
OUT(hbp_groups, hbp_plan_groups, context, NULL, NULL, NULL)
OUT(hbp_groups, hbp_groups_create, context, NULL, -1, NULL, NULL, NULL, -1)
OUT(hbp_packs, hbp_iterative_fill, context, NULL, NULL)
OUT(hbp_layers, hbp_layers_create, context, NULL)
OUT(hbp_layers, hbp_layers_load, context, NULL)
OUT(hbp_lengths, hbp_lengths_create_u32, context, NULL, -1, NULL)
OUT(hbp_lengths, hbp_lengths_create_i32, context, NULL, -1, NULL)
OUT(hbp_lengths, hbp_lengths_create_i64, context, NULL, -1, NULL)
OUT(hbp_lengths, hbp_lengths_create_histogram, context, NULL, NULL, -1)
OUT(hbp_lengths_builder, hbp_lengths_builder_create, NULL)
OUT(hbp_lengths, hbp_lengths_builder_finish, context, NULL)
OUT(hbp_length_index, hbp_length_index_create, context, NULL)
OUT(hbp_length_index_builder, hbp_length_index_builder_create, context, NULL)
OUT(hbp_length_index, hbp_length_index_builder_finish, context, NULL)
OUT(hbp_pattern_plan, hbp_plan_patterns, context, NULL, NULL, NULL)
OUT(hbp_pattern_plan, hbp_pattern_plan_redraw, context, NULL, 0, 0)
OUT(hbp_plan, hbp_pattern_plan_expand, context, NULL, NULL, -1, -1)
OUT(hbp_pattern_plan, hbp_pattern_plan_load, context, NULL)
OUT(hbp_lengths, hbp_lengths_load, context, NULL, NULL)
OUT(hbp_lengths, hbp_lengths_limit, context, NULL, -1, -1)
OUT(hbp_machine, hbp_machine_create, context, NULL)
OUT(hbp_machine, hbp_machine_create_preset, context, NULL)
OUT(hbp_machine, hbp_machine_probe, context, -1, NULL)
OUT(hbp_machine, hbp_machine_load, context, NULL)
OUT(hbp_machine, hbp_machine_create_text, context, NULL)
OUT(hbp_model, hbp_model_create, context, NULL)
OUT(hbp_model, hbp_model_create_preset, context, NULL)
OUT(hbp_model, hbp_model_create_variant, context, NULL, NULL)
OUT(hbp_model, hbp_model_create_config, context, NULL, -1)
OUT(hbp_model, hbp_model_load, context, NULL)
OUT(hbp_model, hbp_model_create_text, context, NULL)
OUT(hbp_packs, hbp_packs_create, context, NULL, NULL, -1, NULL, NULL, NULL, NULL)
OUT(hbp_packs, hbp_greedy_fill, context, NULL, NULL, NULL)
OUT(hbp_layer_partition, hbp_partition_layers, context, NULL, NULL, NULL)
OUT(hbp_pipeline_run, hbp_simulate_pipeline, context, NULL, NULL, NULL, NULL)
OUT(hbp_pipeline_run, hbp_vlm_plan_run_step, context, NULL, 0, 0)
OUT(hbp_pipeline_run, hbp_pipeline_run_load, context, NULL)
OUT(hbp_plan, hbp_plan_load, context, NULL)
OUT(hbp_plan_file, hbp_plan_file_open, context, NULL)
OUT(hbp_cost, hbp_plan_file_get_cost, context, NULL)
OUT(hbp_plan, hbp_plan_file_read, context, NULL, -1, -1)
OUT(hbp_vlm_plan, hbp_plan_vlm, context, NULL, NULL, NULL, NULL)
OUT(hbp_vlm_plan, hbp_vlm_plan_load, context, NULL)
OUT(hbp_plan, hbp_plan_step, context, NULL, NULL, NULL)
OUT(hbp_stepper, hbp_stepper_create, context, NULL, NULL, NULL)
OUT(hbp_plan, hbp_stepper_take, context, NULL)
OUT(hbp_task_schedule, hbp_task_schedule_load, context, NULL)
OUT(hbp_task_schedule, hbp_plan_tasks, context, NULL, NULL, NULL)
OUT(hbp_task_run, hbp_simulate_tasks, context, NULL, NULL, NULL, NULL)
OUT(hbp_task_run, hbp_task_run_load, context, NULL)
OUT(hbp_timeline, hbp_timeline_create, context, NULL)
OUT(hbp_timeline, hbp_timeline_load, context, NULL)
OUT(hbp_vlm, hbp_vlm_create, context, NULL, NULL)
OUT(hbp_vlm, hbp_vlm_create_preset, context, NULL)
OUT(hbp_layers, hbp_vlm_create_layers, context, NULL, NULL, NULL)
OUT(hbp_graph, hbp_graph_create_workload, context, NULL, NULL)

static void out_hbp_cost_fit(hbp_context *context)
{
    hbp_cost *out = (hbp_cost *)&places;
    ck_assert_int_lt(hbp_cost_fit(context, NULL, NULL, &out, NULL), 0);
    ck_assert_ptr_null(out);
}

static void out_hbp_partition_samples(hbp_context *context)
{
    hbp_partition *out = (hbp_partition *)&places;
    (void)context;
    ck_assert_int_lt(hbp_partition_samples(NULL, 1, NULL, &out, NULL, 0), 0);
    ck_assert_ptr_null(out);
}

static void out_hbp_plan_quick(hbp_context *context)
{
    hbp_plan *out = (hbp_plan *)&places;
    (void)context;
    ck_assert_int_lt(hbp_plan_quick(NULL, 1, "gpt2", "h100", NULL, &out, NULL, 0), 0);
    ck_assert_ptr_null(out);
}

typedef struct out_call {
    const char *name;
    void (*run)(hbp_context *context);
} out_call;

#define CALL(name)                                                                                           \
    {                                                                                                        \
#name, out_##name                                                                                    \
    }
static const out_call OUT_CALL[] = {
    CALL(hbp_cost_create),
    CALL(hbp_cost_create_terms),
    CALL(hbp_cost_anchor),
    CALL(hbp_cost_load),
    CALL(hbp_balance_attention),
    CALL(hbp_plan_epoch),
    CALL(hbp_graph_create),
    CALL(hbp_graph_load),
    CALL(hbp_plan_groups),
    CALL(hbp_groups_create),
    CALL(hbp_cost_create_plain),
    CALL(hbp_partition_samples),
    CALL(hbp_plan_quick),
    CALL(hbp_cost_fit),
    CALL(hbp_packs_create),
    CALL(hbp_iterative_fill),
    CALL(hbp_layers_create),
    CALL(hbp_layers_load),
    CALL(hbp_lengths_create_u32),
    CALL(hbp_lengths_create_i32),
    CALL(hbp_lengths_create_i64),
    CALL(hbp_lengths_create_histogram),
    CALL(hbp_lengths_builder_create),
    CALL(hbp_lengths_builder_finish),
    CALL(hbp_length_index_create),
    CALL(hbp_length_index_builder_create),
    CALL(hbp_length_index_builder_finish),
    CALL(hbp_plan_patterns),
    CALL(hbp_pattern_plan_redraw),
    CALL(hbp_pattern_plan_expand),
    CALL(hbp_pattern_plan_load),
    CALL(hbp_lengths_load),
    CALL(hbp_lengths_limit),
    CALL(hbp_machine_create),
    CALL(hbp_machine_create_preset),
    CALL(hbp_machine_probe),
    CALL(hbp_machine_load),
    CALL(hbp_machine_create_text),
    CALL(hbp_model_create),
    CALL(hbp_model_create_preset),
    CALL(hbp_model_create_variant),
    CALL(hbp_model_create_config),
    CALL(hbp_model_load),
    CALL(hbp_model_create_text),
    CALL(hbp_greedy_fill),
    CALL(hbp_partition_layers),
    CALL(hbp_simulate_pipeline),
    CALL(hbp_vlm_plan_run_step),
    CALL(hbp_pipeline_run_load),
    CALL(hbp_plan_load),
    CALL(hbp_plan_file_open),
    CALL(hbp_plan_file_get_cost),
    CALL(hbp_plan_file_read),
    CALL(hbp_plan_vlm),
    CALL(hbp_vlm_plan_load),
    CALL(hbp_plan_step),
    CALL(hbp_stepper_create),
    CALL(hbp_stepper_take),
    CALL(hbp_task_schedule_load),
    CALL(hbp_plan_tasks),
    CALL(hbp_simulate_tasks),
    CALL(hbp_task_run_load),
    CALL(hbp_timeline_create),
    CALL(hbp_timeline_load),
    CALL(hbp_vlm_create),
    CALL(hbp_vlm_create_preset),
    CALL(hbp_vlm_create_layers),
    CALL(hbp_graph_create_workload),
};

enum { OUT_CALLS = sizeof OUT_CALL / sizeof *OUT_CALL };

START_TEST(out_is_null_after_a_failure)
{
    hbp_context *context = test_context();
    OUT_CALL[_i].run(context);
    OUT_CALL[_i].run(NULL);
    hbp_context_free(context);
}
END_TEST

START_TEST(a_context_is_null_after_a_failure)
{
    hbp_context *context = (hbp_context *)&places;
    hbp_context_options options = {.struct_size = 3};
    ck_assert_int_eq(hbp_context_create(&options, &context), HBP_E_INVALID);
    ck_assert_ptr_null(context);
}
END_TEST

static int64_t count_in(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    int64_t found = 0;
    for (const char *at = text; (at = strstr(at, "**out")); at++)
        found++;
    return found;
}

/* A function that a header declares and the list lacks. */
START_TEST(the_list_is_whole)
{
    const char *folder = HBP_TESTS_DIR "/../include/hbp";
    DIR *headers = opendir(folder);
    ck_assert_ptr_nonnull(headers);
    int64_t found = 0;
    for (struct dirent *entry; (entry = readdir(headers));) {
        char path[1024];
        if (!strstr(entry->d_name, ".h"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        found += count_in(path);
    }
    closedir(headers);
    ck_assert_int_eq(found, OUT_CALLS);
}
END_TEST

TEST_MAIN_LOOPS("out", NULL, NULL, {out_is_null_after_a_failure, 0, OUT_CALLS},
                {a_context_is_null_after_a_failure, 0, 1}, {the_list_is_whole, 0, 1})
