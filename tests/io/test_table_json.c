/* Objects of tables as JSON: every number, name and cell under the key of its file. */
#include "hbp/io.h"
#include "io/table/table_json.h"

#include <jansson.h>

#include "data/tasks/task_run.h"
#include "data/tasks/task_schedule.h"
#include "failing.h"
#include "files.h"
#include "keep.h"
#include "task_schedules.h"

/* Whether a JSON value is the cell's. */
static int is_cell(const json_t *value, hbp__cell cell, const void *at)
{
    char text[32];
    int32_t i32;
    int64_t i64;
    double f64;
    const char *name;
    switch (cell) {
    case HBP__CELL_I32:
        memcpy(&i32, at, sizeof i32);
        return json_is_integer(value) && json_integer_value(value) == i32;
    case HBP__CELL_F64:
        memcpy(&f64, at, sizeof f64);
        return json_is_real(value) && json_real_value(value) == f64;
    case HBP__CELL_NAME:
        memcpy(&name, at, sizeof name);
        return json_is_string(value) && strcmp(json_string_value(value), name) == 0;
    case HBP__CELL_U64:
        memcpy(&i64, at, sizeof i64);
        snprintf(text, sizeof text, "%016llx", (unsigned long long)i64);
        return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
    default:
        memcpy(&i64, at, sizeof i64);
        return json_is_integer(value) && json_integer_value(value) == i64;
    }
}

static void check(const hbp__table *table, const void *object, const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    const json_t *columns = json_object_get(root, "columns");
    size_t keys = 1, listed = 0;
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    for (int32_t i = 0; i < table->number_count; i++) {
        const hbp__member *n = &table->numbers[i];
        keys += n->cell != HBP__CELL_COUNT;
        ck_assert_msg(is_cell(json_object_get(root, n->name), n->cell, (const char *)object + n->at), "%s",
                      n->name);
    }
    for (int32_t i = 0; i < table->column_count + table->name_count; i++) {
        const hbp__member *column =
            i < table->column_count ? &table->columns[i] : &table->names[i - table->column_count];
        const int is_name = i >= table->column_count;
        const json_t *list = json_object_get(is_name ? root : columns, column->name);
        const char *cells = hbp__table_cells(object, column);
        ck_assert_uint_eq(json_array_size(list), (size_t)hbp__table_rows(object, column));
        for (size_t row = 0; row < json_array_size(list); row++)
            ck_assert(is_cell(json_array_get(list, row), column->cell,
                              cells + row * hbp__cell_bytes(column->cell)));
        keys += (size_t)is_name;
        listed += (size_t)!is_name;
    }
    ck_assert_uint_eq(json_object_size(root), keys);
    ck_assert_uint_eq(json_object_size(columns), listed);
    json_decref(root);
}

typedef struct writing {
    const hbp_task_schedule *schedule;
    const char *path;
} writing;

static hbp_status write_once(hbp_context *context, void *user)
{
    writing *w = user;
    return hbp_task_schedule_write_json(context, w->schedule, w->path);
}

START_TEST(every_cell_is_there)
{
    hbp__rng rng = hbp__rng_make(71, 0, 0);
    char folder[64], path[128];
    folder_make(folder);
    folder_path(path, folder, "json");
    for (int i = 0; i < 60; i++) {
        drawn d;
        hbp_task_run *run = NULL;
        drawn_random(&d, &rng);
        OK(d.context, hbp_simulate_tasks(d.context, d.graph, d.machine, d.schedule, NULL, &run));
        OK(d.context, hbp_task_schedule_write_json(d.context, d.schedule, path));
        check(&hbp__task_table, d.schedule, path);
        OK(d.context, hbp_task_run_write_json(d.context, run, path));
        check(&hbp__task_run_table, run, path);
        if (i == 0) {
            writing w = {d.schedule, path};
            failing_sweep(write_once, &w);
            ck_assert_int_gt(cancel_sweep(write_once, &w), 0);
            FAILS(d.context, HBP_E_INVALID, "schedule is NULL",
                  hbp_task_schedule_write_json(d.context, NULL, path));
            FAILS(d.context, HBP_E_INVALID, "path is NULL",
                  hbp_task_schedule_write_json(d.context, d.schedule, NULL));
            FAILS(d.context, HBP_E_INVALID, "run is NULL", hbp_task_run_write_json(d.context, NULL, path));
            FAILS(d.context, HBP_E_SYSTEM, "none/x",
                  hbp_task_run_write_json(d.context, run, folder_path(path, folder, "none/x")));
            folder_path(path, folder, "json");
        }
        ck_assert_int_eq(folder_count(folder), 1);
        hbp_task_run_free(run);
        drawn_close(&d);
    }
    folder_remove(folder);
}
END_TEST

TEST_MAIN("table_json", every_cell_is_there)
