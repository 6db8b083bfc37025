#include "test.h"

#include "data/model/workload_presets.h"
#include "keep.h"

/* Whether the call that makes objects of the family knows the name. */
static int is_known(hbp_context *context, const char *family, const char *name)
{
    hbp_model *model = NULL;
    hbp_machine *machine = NULL;
    hbp_vlm *vlm = NULL;
    const hbp__workload *workload;
    hbp_stack_fields stack = {.struct_size = sizeof stack};
    hbp_status status = HBP_E_INVALID;
    if (strcmp(family, "model") == 0)
        status = hbp_model_create_preset(context, name, &model);
    else if (strcmp(family, "machine") == 0)
        status = hbp_machine_create_preset(context, name, &machine);
    else if (strcmp(family, "vlm") == 0)
        status = hbp_vlm_create_preset(context, name, &vlm);
    else if (strcmp(family, "workload") == 0)
        status = hbp__workload_find(context, name, &workload);
    else {
        OK(context, hbp_model_create_preset(context, "llama-3.1-8b", &model));
        OK(context, hbp_machine_create_preset(context, "h100", &machine));
        status = hbp_stack_read(context, name, model, machine, &stack);
    }
    hbp_model_free(model);
    hbp_machine_free(machine);
    hbp_vlm_free(vlm);
    return status == HBP_OK;
}

START_TEST_IN_CONTEXT(every_name_is_known_to_its_own_family_alone)
{
    static const char *const families[] = {"model", "machine", "vlm", "workload", "stack"};
    for (int f = 0; f < 5; f++) {
        int64_t count = 0;
        const char *name;
        for (; (name = hbp_preset_get_name(families[f], count)) != NULL; count++) {
            for (int other = 0; other < 5; other++)
                ck_assert_int_eq(is_known(context, families[other], name), other == f);
            for (int64_t k = 0; k < count; k++)
                ck_assert_str_ne(hbp_preset_get_name(families[f], k), name);
        }
        ck_assert_int_ge(count, 4);
        ck_assert_ptr_null(hbp_preset_get_name(families[f], -1));
        ck_assert_ptr_null(hbp_preset_get_name(families[f], INT64_MAX));
    }
}
END_TEST

START_TEST(no_other_family)
{
    ck_assert_ptr_null(hbp_preset_get_name("models", 0));
    ck_assert_ptr_null(hbp_preset_get_name("", 0));
    ck_assert_ptr_null(hbp_preset_get_name(NULL, 0));
}
END_TEST

TEST_MAIN("presets", every_name_is_known_to_its_own_family_alone, no_other_family)
