#include "costs.h"
#include "data/pattern/pattern_plan.h"
#include "hbp/io.h"
#include "io/file/file_head.h"
#include "io/pipeline/pipeline_file.h"
#include "io/plan/pattern_file.h"
#include "io/plan/plan_format.h"
#include "io/tasks/task_file.h"
#include "table_files.h"

static hbp_pattern_plan *make(hbp_context *context, int64_t count, uint64_t seed)
{
    uint32_t *values = keep((uint32_t *)malloc((size_t)count * sizeof *values));
    hbp__rng rng = hbp__rng_make(seed, 0, 0);
    for (int64_t i = 0; i < count; i++)
        values[i] = 1 + hbp__rng_below(&rng, 20000);
    hbp_lengths *lengths;
    hbp_pattern_plan *plan;
    hbp_cost *cost = keep(test_cost(context));
    const hbp_epoch_options o = {.struct_size = sizeof o, .seed = seed, .micro_batch_multiple = 2};
    OK(context, hbp_lengths_create_u32(context, values, count, NULL, &lengths));
    keep(lengths);
    OK(context, hbp_plan_patterns(context, lengths, cost, &o, &plan));
    return keep(plan);
}

START_TEST_IN_CONTEXT(a_plan_comes_back_as_it_was)
{
    char folder[64], path[128];
    for (uint64_t seed = 0; seed < 20; seed++) {
        hbp_pattern_plan *plan = make(context, 1 + 40 * (int64_t)seed, seed), *back;
        folder_make(folder);
        folder_path(path, folder, "patterns");
        OK(context, hbp_pattern_plan_save(context, plan, path));
        OK(context, hbp_pattern_plan_load(context, path, &back));
        table_expect_same(&hbp__pattern_table, plan, keep(back));
        OK(context, hbp_pattern_plan_validate(context, back, NULL, NULL));
        folder_remove(folder);
    }
    hbp_pattern_plan *none;
    FAILS(context, HBP_E_SYSTEM, "no-such-file", hbp_pattern_plan_load(context, "/no-such-file", &none));
}
END_TEST

START_TEST_IN_CONTEXT(other_files_are_called_what_they_are)
{
    char folder[64], patterns[128], listed[128];
    hbp_pattern_plan *plan = make(context, 300, 1), *none;
    hbp_plan *all;
    hbp_cost *cost;
    folder_make(folder);
    folder_path(patterns, folder, "plan.patterns");
    folder_path(listed, folder, "plan.msgpack");
    OK(context, hbp_pattern_plan_save(context, plan, patterns));
    OK(context, hbp_pattern_plan_expand(context, plan, NULL, 0, 1, &all));
    OK(context, hbp_plan_save(context, keep(all), listed, NULL));
    FAILS(context, HBP_E_FORMAT,
          "plan.patterns is a file of a plan by patterns, not a plan file; hbp_pattern_plan_load (Python: "
          "PatternPlan.load; command: hbp expand) reads it",
          hbp_plan_load(context, patterns, &all));
    FAILS(context, HBP_E_FORMAT,
          "plan.msgpack is a plan file, whose samples are listed, not a file of a plan by patterns; "
          "hbp_plan_load (Python: Plan.load; command: hbp show) reads it",
          hbp_pattern_plan_load(context, listed, &none));
    FAILS(context, HBP_E_FORMAT,
          "plan.patterns is a file of a plan by patterns, not a cost file or a plan file; ",
          hbp_cost_load(context, patterns, &cost));
    folder_remove(folder);
}
END_TEST

/* A kind that the head of files does not know is called no file of ours. */
START_TEST_IN_CONTEXT(every_kind_is_known)
{
    const char *const formats[] = {HBP__PLAN_FORMAT, hbp__pattern_format.name, hbp__task_format.name,
                                   hbp__task_run_format.name, hbp__pipeline_run_format.name};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        hbp__buffer head = {.memory = context->memory};
        hbp__file_bytes file;
        const hbp__file_kind *kind = NULL;
        hbp__pack_format(&head, 2, formats[i], 1);
        hbp__file_open_memory(head.data, (int64_t)head.bytes, &file);
        OK(context, hbp__file_find_kind(context, &file, &kind));
        ck_assert_ptr_nonnull(kind);
        ck_assert_str_eq(kind->format, formats[i]);
        hbp__buffer_free(&head);
    }
}
END_TEST

START_TEST_IN_CONTEXT(harm_is_found)
{
    table_bears_harm(context, &hbp__pattern_format, make(context, 12, 3));
}
END_TEST

TEST_MAIN("pattern_file", a_plan_comes_back_as_it_was, other_files_are_called_what_they_are,
          every_kind_is_known, harm_is_found)
