/* Vision-language plans as JSON: the data as any plan's, and all else under "vlm". */
#include "base/methods.h"
#include "hbp/io.h"
#include "io/plan/plan_json.h"
#include "traces.h"

#include "vlm_files.h"

static void expect_i64(json_t *object, const char *key, const int64_t *column, int64_t rows)
{
    const json_t *list = json_object_get(object, key);
    ck_assert_uint_eq(json_array_size(list), (size_t)rows);
    for (int64_t i = 0; i < rows; i++)
        ck_assert_int_eq(json_integer_value(json_array_get(list, (size_t)i)), column[i]);
}

static void expect_i32(json_t *object, const char *key, const int32_t *column, int64_t rows)
{
    const json_t *list = json_object_get(object, key);
    ck_assert_uint_eq(json_array_size(list), (size_t)rows);
    for (int64_t i = 0; i < rows; i++)
        ck_assert_int_eq(json_integer_value(json_array_get(list, (size_t)i)), column[i]);
}

START_TEST_IN_CONTEXT(data_and_stages_are_there)
{
    char folder[64], path[128], other[128];
    json_error_t error;
    folder_make(folder);
    folder_path(path, folder, "json");
    folder_path(other, folder, "data");
    for (uint64_t seed = 0; seed < 10; seed++) {
        int mark = keep_mark();
        fixture f;
        hbp_vlm_plan *plan = draw_plan(context, seed, 1 + (int32_t)(seed % 3), 1 + (int32_t)(seed % 2),
                                       (int32_t)(seed % 5), &f);
        OK(context, hbp_vlm_plan_write_json(context, plan, path));
        OK(context, hbp_plan_write_json(context, plan->data, other));
        json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
        json_t *data = json_load_file(other, JSON_REJECT_DUPLICATES, &error);
        json_t *vlm = json_incref(json_object_get(root, "vlm"));
        ck_assert_int_eq(json_object_del(root, "vlm"), 0);
        ck_assert(json_equal(root, data));
        ck_assert_int_eq(number(vlm, "stages"), plan->stages);
        ck_assert_int_eq(number(vlm, "layers"), plan->layer_count);
        ck_assert_int_eq(number(vlm, "epoch_ns"), plan->summary.epoch_ns);
        expect_i32(vlm, "cuts", plan->cuts, plan->chunks + 1);
        expect_i32(vlm, "recompute", plan->recompute, plan->layer_count);
        expect_i64(vlm, "step_ns", plan->step_ns, plan->steps);
        expect_i64(vlm, "layer_forward_ns", plan->layers->forward_ns, plan->layer_count);
        json_t *names = json_object_get(vlm, "layer_names");
        ck_assert_uint_eq(json_array_size(names), (size_t)plan->layer_count);
        ck_assert_str_eq(json_string_value(json_array_get(names, 0)), plan->layers->name[0]);
        json_decref(vlm);
        json_decref(data);
        json_decref(root);
        keep_release(mark);
    }
    FAILS(context, HBP_E_INVALID, "plan is NULL", hbp_vlm_plan_write_json(context, NULL, path));
    folder_remove(folder);
}
END_TEST

typedef struct writing {
    hbp_vlm_plan *plan;
    char path[128];
} writing;

static hbp_status write_once(hbp_context *context, void *user)
{
    writing *w = user;
    return hbp_vlm_plan_write_json(context, w->plan, w->path);
}

START_TEST_IN_CONTEXT(short_memory_and_cancelling_leave_nothing)
{
    char folder[64];
    fixture f;
    writing w = {.plan = draw_plan(context, 5, 2, 2, HBP__VLM_DATA_GROUPED, &f)};
    folder_make(folder);
    folder_path(w.path, folder, "json");
    failing_sweep(write_once, &w);
    ck_assert_int_gt(cancel_sweep(write_once, &w), 0);
    FAILS(context, HBP_E_INVALID, "path is NULL", hbp_vlm_plan_write_json(context, w.plan, NULL));
    ck_assert_int_le(folder_count(folder), 1);
    folder_remove(folder);
}
END_TEST

TEST_MAIN("vlm_json", data_and_stages_are_there, short_memory_and_cancelling_leave_nothing)
