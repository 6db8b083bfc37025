#include "test.h"

#include <math.h>

#include "data/model/workload_presets.h"

/* Billions of parameters as published (Spindle, section 5.1); the last by the sum of its parts. */
static const struct row {
    const char *name;
    double parameters;
    int32_t tasks, components;
} rows[] = {
    {"clip-4", 1.20, 4, 7},         {"clip-7", 1.20, 7, 7},  {"clip-10", 1.20, 10, 7},
    {"ofasys-4", .66, 4, 7},        {"ofasys-7", .66, 7, 7}, {"qwen-val-3", 9.25, 3, 3},
    {"qwen-val-3-30b", 30.1, 3, 3},
};

static const int64_t row_count = sizeof rows / sizeof *rows;

START_TEST(every_row_has_the_published_parameters)
{
    for (int64_t i = 0; i < row_count; i++) {
        const hbp__workload *w = hbp__workload_get(i);
        ck_assert_str_eq(hbp_preset_get_name("workload", i), rows[i].name);
        ck_assert_str_eq(w->name, rows[i].name);
        double parameters = (double)hbp_workload_get_preset_parameters(i) / 1e9;
        ck_assert_msg(fabs(parameters / rows[i].parameters - 1) < .02, "%s: %g", rows[i].name, parameters);
        ck_assert_int_eq(w->tasks, rows[i].tasks);
        ck_assert_int_eq(w->components, rows[i].components);
    }
    for (int64_t wrong = -1; wrong <= row_count; wrong += row_count + 1) {
        ck_assert_ptr_null(hbp_preset_get_name("workload", wrong));
        ck_assert_ptr_null(hbp__workload_get(wrong));
        ck_assert_int_eq(hbp_workload_get_preset_parameters(wrong), -1);
    }
}
END_TEST

static const hbp__component *component(const char *workload, const char *name)
{
    for (int64_t i = 0; i < row_count; i++) {
        const hbp__workload *w = hbp__workload_get(i);
        for (int32_t c = 0; c < w->components; c++)
            if (strcmp(w->name, workload) == 0 && strcmp(w->component[c].name, name) == 0)
                return &w->component[c];
    }
    ck_abort_msg("%s has no %s", workload, name);
    return NULL;
}

/* Millions of parameters of parts as their authors publish them, within 2 %: ViT-H/14 632, the text tower of
 * OpenCLIP's ViT-H 354, ViT-B 86, OFA-large without its ResNet-152 472 - 58, OpenCLIP's ViT-bigG 1845 with
 * Qwen-VL's adaptor of 80, Whisper-large's encoder 635. */
START_TEST(parts_have_the_published_parameters)
{
    static const struct {
        const char *workload, *name;
        double millions;
    } parts[] = {
        {"clip-10", "vision", 632},
        {"clip-10", "text", 354},
        {"clip-10", "audio", 86},
        {"ofasys-7", "image", 86},
        {"qwen-val-3", "vision", 1845 + 80},
        {"qwen-val-3", "audio", 635},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double got = (double)hbp__component_parameters(component(parts[i].workload, parts[i].name)) / 1e6;
        ck_assert_msg(fabs(got / parts[i].millions - 1) < .02, "%s: %g", parts[i].name, got);
    }
    double lm = (double)(hbp__component_parameters(component("ofasys-7", "encoder")) +
                         hbp__component_parameters(component("ofasys-7", "decoder")));
    ck_assert_msg(fabs(lm / 414e6 - 1) < .02, "%g", lm);
}
END_TEST

START_TEST(layers_by_hand)
{
    /* 4 h^2 + 2 h f + 2 h; 32 h + 4 a with f = 4 h; 4 a d_h flops a squared token, unmasked. */
    hbp__component_layer layer = hbp__component_layer_of(component("clip-4", "vision"));
    ck_assert_int_eq(layer.attention_parameters, 4 * 1280 * 1280 + 2 * 1280);
    ck_assert_int_eq(layer.parameters, 12 * 1280 * 1280 + 2 * 1280);
    ck_assert_int_eq(layer.activation_bytes, 32 * 1280 + 4 * 16);
    ck_assert_double_eq(layer.attention_flops, 4 * 1280);
    /* A second attention: 16 h^2; its own masked scores count 2 a d_h, those across 4 a d_h. */
    layer = hbp__component_layer_of(component("ofasys-4", "decoder"));
    ck_assert_int_eq(layer.parameters, 16 * 1024 * 1024 + 4 * 1024);
    ck_assert_int_eq(layer.activation_bytes, (32 + 12) * 1024 + 8 * 16);
    ck_assert_double_eq(layer.attention_flops, 6 * 1024);
    /* Gated: three matrices, 8 h + 8 a d_h + 4 a + 6 f. */
    layer = hbp__component_layer_of(component("qwen-val-3", "language"));
    ck_assert_int_eq(layer.parameters, 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096);
    ck_assert_int_eq(layer.activation_bytes, 16 * 4096 + 4 * 32 + 6 * 11008);
    ck_assert_double_eq(layer.attention_flops, 2 * 4096);
    layer = hbp__component_layer_of(component("clip-4", "contrast"));
    ck_assert_int_eq(layer.parameters, 0);
    ck_assert_int_eq(layer.activation_bytes, 0);
    ck_assert_int_eq(hbp__component_parameters(component("clip-4", "contrast")), 0);
    ck_assert_int_eq(hbp__component_parameters(component("qwen-val-3", "language")),
                     32 * (4 * INT64_C(4096) * 4096 + 3 * 4096 * 11008 + 2 * 4096) + 2 * 32000 * 4096);
}
END_TEST

/* Steps name components and earlier steps; names differ; and the longest list of tasks uses the whole model.
 */
START_TEST(tasks_make_sense)
{
    for (int64_t i = 0; i < row_count; i++) {
        const hbp__workload *w = hbp__workload_get(i);
        uint32_t used = 0;
        for (int32_t t = 0; t < w->tasks; t++) {
            const hbp__task_shape *task = &w->task[t];
            uint32_t needed = 0;
            ck_assert_int_ge(task->steps, 1);
            ck_assert_int_le(task->steps, HBP__TASK_STEPS);
            for (int32_t k = 0; k < t; k++)
                ck_assert_str_ne(w->task[k].name, task->name);
            for (int32_t s = 0; s < task->steps; s++) {
                const hbp__task_step *step = &task->step[s];
                ck_assert_int_ge(step->component, 0);
                ck_assert_int_lt(step->component, w->components);
                ck_assert_int_ge(step->batch, 1);
                ck_assert_int_ge(step->sequence, 1);
                ck_assert_uint_eq(step->needs >> s, 0);
                needed |= step->needs;
                used |= UINT32_C(1) << step->component;
            }
            /* All but the last step feed another. */
            ck_assert_uint_eq(needed, (UINT32_C(1) << (task->steps - 1)) - 1);
        }
        if (strcmp(w->name, "clip-4") != 0 && strcmp(w->name, "ofasys-4") != 0)
            ck_assert_uint_eq(used, (UINT32_C(1) << w->components) - 1);
        for (int32_t c = 0; c < w->components; c++)
            for (int32_t k = 0; k < c; k++)
                ck_assert_str_ne(w->component[k].name, w->component[c].name);
    }
}
END_TEST

TEST_MAIN("workload_presets", every_row_has_the_published_parameters, parts_have_the_published_parameters,
          layers_by_hand, tasks_make_sense)
