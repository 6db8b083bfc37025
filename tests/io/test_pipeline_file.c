/* Files of pipelines' runs: what is written comes back, and nothing in a file is believed. */
#include "hbp/io.h"
#include "io/pipeline/pipeline_file.h"

#include "data/pipeline/pipeline_run.h"
#include "simulate/pipelines.h"
#include "table_files.h"

static hbp_pipeline_run *draw_run(hbp_context *context, hbp__rng *rng, int32_t most, int32_t has)
{
    int32_t stages, virtual_stages, m;
    piped p;
    hbp_pipeline_run *run = NULL;
    draw_shape(rng, most, 3, 3, &stages, &virtual_stages, &m);
    piped_random(context, rng, &p, stages, virtual_stages, m, has);
    MAKES(context, run, hbp_simulate_pipeline(context, p.layers, p.cuts, &p.options, NULL, &run));
    piped_free(&p);
    return run;
}

START_TEST_IN_CONTEXT(a_run_comes_back_as_it_was)
{
    char folder[64], path[128];
    hbp__rng rng = hbp__rng_make(21, 0, 0);
    folder_make(folder);
    folder_path(path, folder, "run");
    for (int trial = 0, mark = keep_mark(); trial < 100; keep_release(mark), trial++) {
        hbp_pipeline_run *run = draw_run(context, &rng, 6, PIPED_ALL), *back = NULL;
        OK(context, hbp_pipeline_run_save(context, run, path));
        MAKES(context, back, hbp_pipeline_run_load(context, path, &back));
        table_expect_same(&hbp__pipeline_run_table, run, back);
        OK(context, hbp_pipeline_run_validate(context, back, NULL, NULL, NULL));
        ck_assert_int_eq(folder_count(folder), 1);
    }
    folder_remove(folder);
}
END_TEST

START_TEST_IN_CONTEXT(harm_is_found)
{
    hbp__rng rng = hbp__rng_make(3, 0, 0);
    piped p;
    hbp_pipeline_run *run = NULL;
    piped_random(context, &rng, &p, 2, 1, 2, PIPED_ALL);
    MAKES(context, run, hbp_simulate_pipeline(context, p.layers, p.cuts, &p.options, NULL, &run));
    piped_free(&p);
    table_bears_harm(context, &hbp__pipeline_run_format, run);
}
END_TEST

START_TEST_IN_CONTEXT(what_is_wrong_is_named)
{
    hbp__rng rng = hbp__rng_make(9, 0, 0);
    hbp_pipeline_run *run = draw_run(context, &rng, 3, PIPED_ALL), *back = run;
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "run");
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_pipeline_run_load(context, path, &back));
    ck_assert_ptr_null(back);
    run->operation_stages[0] = 7;
    OK(context, hbp_pipeline_run_save(context, run, path));
    FAILS(context, HBP_E_FORMAT, "operation_stages of operation 0 is 7; it must be in 0..0",
          hbp_pipeline_run_load(context, path, &back));
    FAILS(context, HBP_E_FORMAT, "is a file of a task schedule, not a file of a pipeline's run",
          hbp_pipeline_run_load(context, HBP_TESTS_DIR "/golden/tasks.msgpack", &back));
    hbp_task_schedule *schedule;
    FAILS(context, HBP_E_FORMAT, "is a file of a pipeline's run, not a file of a task schedule",
          hbp_task_schedule_load(context, path, &schedule));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_pipeline_run_load(context, NULL, &back));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_pipeline_run_load(context, path, NULL));
    FAILS(context, HBP_E_INVALID, "run is NULL", hbp_pipeline_run_save(context, NULL, path));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_pipeline_run_save(context, run, NULL));
    folder_remove(folder);
}
END_TEST

TEST_MAIN("pipeline_file", a_run_comes_back_as_it_was, harm_is_found, what_is_wrong_is_named)
