#include "failing.h"
#include "keep.h"

#include <math.h>

/* Published parameters in billions, KiB of activation a layer with experts keeps per token, and the legal
 * degrees of Ulysses sequence parallelism; a last degree of 0 stands for all powers of two up to the one
 * before. */
static const struct row {
    const char *name;
    double total, active, kib;
    int32_t sp[8];
} rows[] = {
    {"llama-3-8b", 8.03, 8.03, 136.1, {32, 0}},
    {"llama-3.1-8b", 8.03, 8.03, 136.1, {32, 0}},
    {"llama-3.1-70b", 70.55, 70.55, 268.2, {64, 0}},
    {"llama-3.1-405b", 405.9, 405.9, 508.5, {128, 0}},
    {"internlm2-20b", 19.86, 19.86, 172.2, {1, 2, 4, 8, 16, 24, 48}},
    {"yi-34b", 34.39, 34.39, 208.2, {1, 2, 4, 8, 56}},
    {"qwen2-7b", 7.62, 7.62, 155.1, {1, 2, 4, 28}},
    {"qwen2.5-7b", 7.62, 7.62, 155.1, {1, 2, 4, 28}},
    {"qwen2.5-14b", 14.77, 14.77, 145.2, {1, 2, 4, 8, 40}},
    {"qwen2.5-32b", 32.76, 32.76, 226.2, {1, 2, 4, 8, 40}},
    {"qwen2.5-72b", 72.70, 72.70, 273.5, {64, 0}},
    {"qwen3-8b", 8.19, 8.19, 124.1, {32, 0}},
    {"qwen3-14b", 14.77, 14.77, 166.2, {1, 2, 4, 8, 40}},
    {"qwen3-32b", 32.76, 32.76, 226.2, {64, 0}},
    {"qwen3-30b-a3b", 30.53, 3.35, 134.1, {32, 0}},
    {"qwen3-235b-a22b", 235.1, 22.2, 266.2, {64, 0}},
    {"mixtral-8x7b", 46.7, 12.9, 252.1, {32, 0}},
    {"mixtral-8x22b", 140.6, 39.2, 316.2, {1, 2, 4, 8, 16, 24, 48}},
    {"deepseek-v2", 235.7, 21.4, 400.6, {128, 0}},
    {"deepseek-v3", 671, 37.6, 556.6, {128, 0}},
    {"gpt-7b", 6.65, 6.65, 128.2, {64, 0}},
    {"gpt-13b", 12.84, 12.84, 160.2, {64, 0}},
    {"gpt-30b", 32.23, 32.23, 208.2, {64, 0}},
};

static const int64_t row_count = sizeof rows / sizeof *rows;

static int is_listed(const struct row *row, int32_t sp)
{
    if (row->sp[1] == 0)
        return sp <= row->sp[0] && (sp & (sp - 1)) == 0;
    for (int i = 0; i < 8 && row->sp[i]; i++)
        if (row->sp[i] == sp)
            return 1;
    return 0;
}

static void check_row(hbp_context *context, const struct row *row)
{
    hbp_model *model = NULL;
    OK(context, hbp_model_create_preset(context, row->name, &model));
    ck_assert_str_eq(hbp_model_get_name(model), row->name);
    hbp_model_summary s = {.struct_size = sizeof s};
    hbp_model_fields f = {.struct_size = sizeof f};
    OK(context, hbp_model_get_summary(context, model, &s));
    OK(context, hbp_model_get_fields(context, model, &f));
    ck_assert_msg(fabs((double)s.parameters / 1e9 / row->total - 1) < .01, "%s: %lld", row->name,
                  (long long)s.parameters);
    ck_assert_msg(fabs((double)s.active_parameters / 1e9 / row->active - 1) < .01, "%s: %lld active",
                  row->name, (long long)s.active_parameters);
    for (int32_t sp = 1; sp <= 300; sp++)
        ck_assert_msg(hbp_model_is_sp_legal(model, sp) == is_listed(row, sp), "%s: SP %d", row->name,
                      (int)sp);
    hbp_model_free(model);

    /* The table's bytes are those of a layer with experts; the summary's are the mean over layers. */
    f.dense_layers = 0;
    OK(context, hbp_model_create(context, &f, &model));
    OK(context, hbp_model_get_summary(context, model, &s));
    ck_assert_msg(fabs((double)s.activation_bytes / 1024 - row->kib) < .1, "%s: %lld bytes", row->name,
                  (long long)s.activation_bytes);
    hbp_model_free(model);
}

START_TEST_IN_CONTEXT(every_row_of_the_table)
{
    for (int64_t i = 0; i < row_count; i++) {
        ck_assert_str_eq(hbp_preset_get_name("model", i), rows[i].name);
        check_row(context, &rows[i]);
    }
    ck_assert_ptr_null(hbp_preset_get_name("model", row_count));
    ck_assert_ptr_null(hbp_preset_get_name("model", -1));
}
END_TEST

START_TEST_IN_CONTEXT(an_unknown_name_gets_the_nearest)
{
    hbp_model *model = (hbp_model *)context;
    FAILS(context, HBP_E_INVALID, "no model preset 'llama3.1-8b'; the nearest is 'llama-3.1-8b'",
          hbp_model_create_preset(context, "llama3.1-8b", &model));
    ck_assert_ptr_null(model);
    FAILS(context, HBP_E_INVALID, "the nearest is 'deepseek-v3'",
          hbp_model_create_preset(context, "deepseekv3", &model));
    FAILS(context, HBP_E_INVALID, "text is NULL", hbp_model_create_preset(context, NULL, &model));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_model_create_preset(context, "gpt-7b", NULL));
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_model *model;
    hbp_status status = hbp_model_create_preset(context, user, &model);
    hbp_model_free(model);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(create_once, "qwen3-8b");
}
END_TEST

TEST_MAIN("model_presets", every_row_of_the_table, an_unknown_name_gets_the_nearest,
          failed_allocations_leave_nothing)
