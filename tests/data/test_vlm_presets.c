#include "failing.h"
#include "keep.h"

#include <math.h>

/* Millions of parameters. Encoders as published: InternViT-6B-448px's card says 5540; OpenCLIP's profile
 * 4350.56 for EVA02-E-14's image tower with a head of 1792 x 1024; Qwen2-VL's paper 675 with the merger.
 * Projectors by hand: norm, two matrices, two biases. The sums are those of the cards, 25.5 and 40 billion
 * for InternVL. */
static const struct row {
    const char *name, *language;
    double vision, projector, language_model, all;
    int32_t layers;
} rows[] = {
    {"internvl-1.5-26b", "internlm2-20b", 5540, 116.43, 19861, 25500, 45 + 48 + 5},
    {"internvl-1.2-plus-40b", "yi-34b", 5540, 143.17, 34389, 40000, 45 + 60 + 5},
    {"eva-clip-llama-3-8b", "llama-3-8b", 4350.56 - 1.84, 46.16, 8030, 12425, 64 + 32 + 5},
    {"qwen2-vl-7b", "qwen2-7b", 675 - 44.57, 44.57, 7616, 8291, 32 + 28 + 5},
};

static const int64_t row_count = sizeof rows / sizeof *rows;

static void near(const char *name, const char *what, double got, double published)
{
    ck_assert_msg(fabs(got / published - 1) < .01, "%s: %s is %g instead of %g", name, what, got, published);
}

START_TEST_IN_CONTEXT(every_row_has_the_published_parameters)
{
    for (int64_t i = 0; i < row_count; i++) {
        const struct row *row = &rows[i];
        ck_assert_str_eq(hbp_preset_get_name("vlm", i), row->name);
        hbp_vlm *vlm = NULL;
        OK(context, hbp_vlm_create_preset(context, row->name, &vlm));
        ck_assert_str_eq(hbp_vlm_get_name(vlm), row->name);
        ck_assert_str_eq(hbp_model_get_name(hbp_vlm_get_language(vlm)), row->language);
        hbp_vlm_summary s = {.struct_size = sizeof s};
        OK(context, hbp_vlm_get_summary(context, vlm, &s));
        near(row->name, "the encoder", (double)s.vision_parameters / 1e6, row->vision);
        near(row->name, "the projector", (double)s.projector_parameters / 1e6, row->projector);
        near(row->name, "the language model", (double)s.language_parameters / 1e6, row->language_model);
        near(row->name, "all of it",
             (double)(s.vision_parameters + s.projector_parameters + s.language_parameters) / 1e6, row->all);
        ck_assert_int_eq(s.layers, row->layers);
        hbp_vlm_free(vlm);
    }
    ck_assert_ptr_null(hbp_preset_get_name("vlm", row_count));
    ck_assert_ptr_null(hbp_preset_get_name("vlm", -1));
}
END_TEST

/* OpenCLIP's profile: 2264.33 GFLOP for EVA02-E-14's image tower at 224 x 224, 257 tokens. */
START_TEST_IN_CONTEXT(flops_are_those_of_a_profile)
{
    hbp_vlm *preset = NULL;
    hbp_vlm *vlm = NULL;
    MAKES(context, preset, hbp_vlm_create_preset(context, "eva-clip-llama-3-8b", &preset));
    hbp_vlm_fields f = {.struct_size = sizeof f};
    OK(context, hbp_vlm_get_fields(context, preset, &f));
    f.tokens_per_unit = 257;
    f.attention_tokens = 0;
    f.projected_per_unit = f.projector_input = f.projector_hidden = 1;
    MAKES(context, vlm, hbp_vlm_create(context, &f, hbp_vlm_get_language(preset), &vlm));
    hbp_vlm_summary s = {.struct_size = sizeof s};
    OK(context, hbp_vlm_get_summary(context, vlm, &s));
    ck_assert_msg(fabs(s.vision_flops_per_unit / 2264.33e9 - 1) < .002, "%g", s.vision_flops_per_unit);
}
END_TEST

START_TEST_IN_CONTEXT(an_unknown_name_gets_the_nearest)
{
    hbp_vlm *vlm = (hbp_vlm *)context;
    FAILS(context, HBP_E_INVALID, "no vision-language preset 'qwen2vl-7b'; the nearest is 'qwen2-vl-7b'",
          hbp_vlm_create_preset(context, "qwen2vl-7b", &vlm));
    ck_assert_ptr_null(vlm);
    FAILS(context, HBP_E_INVALID, "the nearest is 'internvl-1.2-plus-40b'",
          hbp_vlm_create_preset(context, "internvl-1.2-plus-34b", &vlm));
    FAILS(context, HBP_E_INVALID, "name is NULL", hbp_vlm_create_preset(context, NULL, &vlm));
    FAILS(context, HBP_E_INVALID, "out is NULL", hbp_vlm_create_preset(context, "qwen2-vl-7b", NULL));
}
END_TEST

static hbp_status create_once(hbp_context *context, void *user)
{
    hbp_vlm *vlm = NULL;
    hbp_status status = hbp_vlm_create_preset(context, user, &vlm);
    ck_assert_int_eq(status == HBP_OK, vlm != NULL);
    hbp_vlm_free(vlm);
    return status;
}

START_TEST(failed_allocations_leave_nothing)
{
    failing_sweep(create_once, "internvl-1.5-26b");
}
END_TEST

TEST_MAIN("vlm_presets", every_row_has_the_published_parameters, flops_are_those_of_a_profile,
          an_unknown_name_gets_the_nearest, failed_allocations_leave_nothing)
