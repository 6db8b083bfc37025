#include "hbp/io.h"
#include "task_files.h"
#include "task_schedules.h"

#include "data/tasks/task_run.h"
#include "data/tasks/task_schedule.h"
#include "io/file/file_head.h"

START_TEST(a_schedule_comes_back_as_it_was)
{
    hbp_context *context = test_context();
    for (uint64_t seed = 0; seed < 200; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed), *back;
        size_t bytes;
        uint8_t *data = saved(context, s, (int)(seed % 10), &bytes);
        OK(context, load_memory(context, data, bytes, &back));
        task_columns_same(s, back);
        hbp_task_schedule_free(back);
        hbp_task_schedule_free(s);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(paths_are_read_as_well_as_memory)
{
    hbp_context *context = test_context();
    hbp_task_schedule *s = task_columns_draw(context, 5), *back = NULL;
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "tasks");
    OK(context, hbp_task_schedule_save(context, s, path));
    OK(context, hbp_task_schedule_load(context, path, &back));
    task_columns_same(s, back);
    hbp_task_schedule_free(back);
    hbp_task_schedule_free(s);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* The smallest of some drawn schedules. */
static hbp_task_schedule *small_schedule(hbp_context *context)
{
    hbp_task_schedule *least = NULL;
    for (uint64_t seed = 0; seed < 40; seed++) {
        hbp_task_schedule *s = task_columns_draw(context, seed);
        int wide = s->slices > 2 && s->groups > 1 && s->ranks > 1 && s->meta_ops > 1 && s->parameters > 1;
        if (wide &&
            (!least || hbp__table_bytes(&hbp__task_table, s) < hbp__table_bytes(&hbp__task_table, least))) {
            hbp_task_schedule_free(least);
            least = s;
        } else {
            hbp_task_schedule_free(s);
        }
    }
    ck_assert_ptr_nonnull(least);
    return least;
}

/* The same, saved. */
static uint8_t *small_file(hbp_context *context, int level, size_t *bytes, hbp_task_schedule **schedule)
{
    hbp_task_schedule *least = small_schedule(context);
    uint8_t *data = saved(context, least, level, bytes);
    if (schedule)
        *schedule = least;
    else
        hbp_task_schedule_free(least);
    return data;
}

START_TEST_IN_CONTEXT(harm_is_found)
{
    hbp_task_schedule *schedule = small_schedule(context);
    table_bears_harm(context, &hbp__task_format, schedule);
    hbp_task_schedule_free(schedule);
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    hbp_context *context = test_context();
    size_t bytes, grown;
    hbp_task_schedule *original, *back;
    uint8_t *data = small_file(context, 0, &bytes, &original);
    const struct {
        const char *key;
        uint64_t value;
        const char *text;
    } cases[] = {
        {"mode", 9, "`mode` is 9; it must be in 0..5"},
        {"placement", 3, "`placement` is 3; it must be in 0..2"},
        {"domain_gpus", 0, "`domain_gpus` is 0; it must be in 1..2"},
        {"mode", UINT64_C(1) << 31,
         "byte 0: the header has a number 'mode' of another type, range or length"},
        {"makespan_ns", UINT64_MAX,
         "byte 0: the header has a number 'makespan_ns' of another type, range or length"},
        {"makespan_ns", 0, "slice_starts: the start is"},
        {"makespan_ns", INT64_MAX, "byte 0: the header's digest is not that of the columns"},
        {"graph_digest", 1, "byte 0: the header's digest is not that of the columns"},
        {"digest", 1, "byte 0: the header's digest is not that of the columns"},
        {"tasks", 1000, "byte 0: the header's 'task_names' are not as many as its 'tasks'"},
        {"slices", 1 << 30, "byte 0: the header's tables are too large"},
        {"slices", 100000, "the body's bytes are not those of its rows"},
        {"slices", (uint64_t)original->slices - 1,
         "the body has a column 'slice_meta_ops' of another type, range or length"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *changed = with_number(data, bytes, cases[i].key, cases[i].value, &grown);
        changed = rehead(changed, &grown);
        FAILS(context, HBP_E_FORMAT, cases[i].text, load_memory(context, changed, grown, &back));
        ck_assert_int_eq(strncmp(hbp_context_message(context), "memory: byte ", 13), 0);
        free(changed);
    }
    hbp_task_schedule many = *original;
    many.slices = 1000000;
    uint8_t *claimed = with_number(data, bytes, "slices", (uint64_t)many.slices, &grown), *changed;
    changed =
        with_number(claimed, grown, "bytes", (uint64_t)hbp__table_bytes(&hbp__task_table, &many), &grown);
    changed = rehead(changed, &grown);
    FAILS(context, HBP_E_FORMAT, "the body is smaller than its rows",
          load_memory(context, changed, grown, &back));
    free(changed);
    free(claimed);
    changed = with_number(data, bytes, "header_bytes", 1, &grown);
    FAILS(context, HBP_E_FORMAT, "'header_bytes' is not", load_memory(context, changed, grown, &back));
    free(changed);
    changed = with_number(data, bytes, "header_crc32", 1, &grown);
    FAILS(context, HBP_E_FORMAT, "byte 0: the CRC-32 of the header",
          load_memory(context, changed, grown, &back));
    free(changed);
    changed = with_number(data, bytes, "crc32", 1, &grown);
    FAILS(context, HBP_E_FORMAT, "the body's CRC-32 differs", load_memory(context, changed, grown, &back));
    free(changed);
    hbp_task_schedule_free(original);
    free(data);
    hbp_context_free(context);
}
END_TEST

START_TEST(columns_that_lead_astray_are_refused)
{
    hbp_context *context = test_context();
    for (int way = 0; way < 4; way++) {
        hbp_task_schedule *s = task_columns_draw(context, 12), *back;
        const char *text = "the MetaOp is";
        if (way == 0)
            s->slice_meta_ops[0] = (int32_t)s->meta_ops;
        else if (way == 1)
            s->wave_offsets[0] = -1, text = "wave offsets run from -1";
        else if (way == 2)
            s->group_ranks[0] = -1, text = "a rank is -1";
        else
            s->parameters_names[0][0] = '\0', text = "";
        s->digest = hbp__task_schedule_digest(s);
        size_t bytes;
        uint8_t *data = saved(context, s, 1, &bytes);
        if (way < 3)
            FAILS(context, HBP_E_FORMAT, text, load_memory(context, data, bytes, &back));
        else
            OK(context, load_memory(context, data, bytes, &back)); /* an empty name is a name */
        hbp_task_schedule_free(back);
        hbp_task_schedule_free(s);
        free(data);
    }
    hbp_context_free(context);
}
END_TEST

START_TEST(a_name_ends_where_it_says)
{
    hbp_context *context = test_context();
    size_t bytes;
    hbp_task_schedule *back;
    uint8_t *data = small_file(context, 0, &bytes, NULL);
    for (int way = 0; way < 2; way++) {
        uint8_t *changed = malloc(bytes);
        ck_assert_ptr_nonnull(changed);
        memcpy(changed, data, bytes);
        size_t at = 0;
        while (memcmp(changed + at, "task 0", 6) != 0)
            at++;
        if (way)
            changed[at - 1] = 0xc4, changed[at] = 5; /* a bin of as many bytes */
        else
            changed[at + 4] = 0;
        reseal_tasks(changed, bytes);
        FAILS(context, HBP_E_FORMAT, "byte 0: number 0 of 'task_names' is not a name",
              load_memory(context, changed, bytes, &back));
        free(changed);
    }
    free(data);
    hbp_context_free(context);
}
END_TEST

START_TEST(other_files_are_refused_by_what_they_are)
{
    hbp_context *context = test_context();
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "other");
    hbp_task_schedule *s = (hbp_task_schedule *)(uintptr_t)1;
    FAILS(context, HBP_E_SYSTEM, "No such file", hbp_task_schedule_load(context, path, &s));
    ck_assert_ptr_null(s);
    FAILS(context, HBP_E_SYSTEM, "irectory", hbp_task_schedule_load(context, folder, &s));
    FAILS(context, HBP_E_SYSTEM, "not a file that can be read at any place",
          hbp_task_schedule_load(context, "/dev/null", &s));
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_task_schedule_load(context, NULL, &s));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_task_schedule_load(context, path, NULL));
    file_write(path, "", 0);
    FAILS(context, HBP_E_FORMAT, "other: byte 0: its 0 bytes are not a file of a task schedule",
          hbp_task_schedule_load(context, path, &s));
    file_write(path, "abc", 3);
    FAILS(context, HBP_E_FORMAT, "its 3 bytes are not", hbp_task_schedule_load(context, path, &s));
    FAILS(context, HBP_E_FORMAT, "is a plan file, whose samples are listed, not a file of a task schedule",
          hbp_task_schedule_load(context, HBP_TESTS_DIR "/golden/plan.msgpack", &s));
    hbp_plan *plan;
    FAILS(context, HBP_E_FORMAT, "is a file of a task schedule, not a plan file",
          hbp_plan_load(context, HBP_TESTS_DIR "/golden/tasks.msgpack", &plan));
    size_t bytes;
    uint8_t *data = small_file(context, 1, &bytes, NULL);
    file_write(path, data, bytes / 8);
    FAILS(context, HBP_E_FORMAT, "the file is cut off or damaged in its header",
          hbp_task_schedule_load(context, path, &s));
    file_write(path, data, bytes - 1);
    FAILS(context, HBP_E_FORMAT, "the body is not one msgpack object",
          hbp_task_schedule_load(context, path, &s));
    file_write(path, data, bytes);
    ck_assert_int_eq(truncate(path, INT64_C(5) << 30), 0); /* nothing but a hole */
    FAILS(context, HBP_E_FORMAT, "byte 0: the file is too large", hbp_task_schedule_load(context, path, &s));
    uint8_t *version = &data[hbp__format_version_at(HBP__TASK_FORMAT)];
    ck_assert_int_eq(*version, 1);
    for (uint8_t wrong = 0; wrong < 3; wrong += 2) {
        *version = wrong;
        file_write(path, data, bytes);
        FAILS(context, HBP_E_VERSION, wrong ? "format version 2; this library" : "format version 0",
              hbp_task_schedule_load(context, path, &s));
    }
    free(data);
    folder_remove(folder);
    hbp_context_free(context);
}
END_TEST

/* Written once by version 0.1.0: later versions read it, and write the same bytes for the same schedule. */
START_TEST(the_golden_file_is_read_and_written_as_ever)
{
    hbp_context *context = test_context();
    size_t golden_bytes, bytes;
    uint8_t *golden = (uint8_t *)file_read(HBP_TESTS_DIR "/golden/tasks.msgpack", &golden_bytes);
    hbp_task_schedule *s, *made = task_columns_draw(context, 5);
    OK(context, load_memory(context, golden, golden_bytes, &s));
    task_columns_same(s, made);
    ck_assert_uint_eq(s->digest, UINT64_C(0x5b2b0d3c7a2f21b5));
    uint8_t *data = saved(context, s, 0, &bytes);
    ck_assert_uint_eq(bytes, golden_bytes);
    ck_assert_int_eq(memcmp(data, golden, bytes), 0);
    hbp_task_schedule_free(s);
    hbp_task_schedule_free(made);
    free(data);
    free(golden);
    hbp_context_free(context);
}
END_TEST

/* Runs of drawn schedules: a file each, under the same harm. */
START_TEST(a_run_has_a_file)
{
    hbp__rng rng = hbp__rng_make(51, 0, 0);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "run");
    for (int i = 0; i < 60; i++) {
        drawn d;
        hbp_task_run *run = NULL, *back = NULL;
        drawn_random(&d, &rng);
        OK(d.context, hbp_simulate_tasks(d.context, d.graph, d.machine, d.schedule, NULL, &run));
        OK(d.context, hbp_task_run_save(d.context, run, path));
        OK(d.context, hbp_task_run_load(d.context, path, &back));
        table_expect_same(&hbp__task_run_table, run, back);
        OK(d.context, hbp_task_run_validate(d.context, back, d.graph, d.machine, d.schedule, NULL));
        hbp_task_run_free(back);
        if (i == 0) {
            table_bears_harm(d.context, &hbp__task_run_format, run);
            FAILS(d.context, HBP_E_INVALID, "run is NULL", hbp_task_run_save(d.context, NULL, path));
            FAILS(d.context, HBP_E_INVALID, "path is NULL", hbp_task_run_save(d.context, run, NULL));
            FAILS(d.context, HBP_E_INVALID, "path is NULL", hbp_task_run_load(d.context, NULL, &back));
            FAILS(d.context, HBP_E_INVALID, "out is NULL", hbp_task_run_load(d.context, path, NULL));
            run->slice_ends[0] = -1;
            OK(d.context, hbp_task_run_save(d.context, run, path));
            FAILS(d.context, HBP_E_FORMAT, "slice 0 runs from", hbp_task_run_load(d.context, path, &back));
            ck_assert_ptr_null(back);
        }
        hbp_task_run_free(run);
        drawn_close(&d);
    }
    folder_remove(folder);
}
END_TEST

TEST_MAIN("task_file", a_run_has_a_file, a_schedule_comes_back_as_it_was, paths_are_read_as_well_as_memory,
          harm_is_found, what_is_wrong_is_named, columns_that_lead_astray_are_refused,
          a_name_ends_where_it_says, other_files_are_refused_by_what_they_are,
          the_golden_file_is_read_and_written_as_ever)
