#include "base/methods.h"

#include "hbp/base.h"
#include "test.h"

/* Every list: names are found by text and by the table's own pointer, are each once, and all have a text. */
START_TEST(names_and_places_are_inverse)
{
#define FAMILY(family, list) &hbp__##family##_methods,
    static const hbp__methods *const families[] = {HBP__METHOD_FAMILIES(FAMILY)};
#undef FAMILY
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        const hbp__methods *m = families[f];
        ck_assert_ptr_eq(hbp__methods_of(m->list), m);
        ck_assert_int_eq(hbp__method_of(m, NULL), 0);
        ck_assert_int_eq(hbp__method_of(m, "none-such"), -1);
        for (int32_t i = 0; i < m->count; i++) {
            char copy[64];
            snprintf(copy, sizeof copy, "%s", m->rows[i].name);
            ck_assert_int_eq(hbp__method_of(m, copy), i);
            ck_assert_int_eq(hbp__method_of(m, m->rows[i].name), i);
            ck_assert(m->rows[i].text[0]);
            hbp_choice choice = {.struct_size = sizeof choice};
            ck_assert_int_eq(hbp_record_get_choice(m->list, i, &choice), HBP_OK);
            ck_assert_int_eq(choice.value, i);
            ck_assert_str_eq(choice.name, copy);
            ck_assert_ptr_eq(choice.paper, m->rows[i].paper);
            ck_assert_ptr_null(choice.constant);
        }
        hbp_choice choice = {.struct_size = sizeof choice};
        ck_assert_int_eq(hbp_record_get_choice(m->list, m->count, &choice), HBP_E_INVALID);
        ck_assert_int_eq(hbp_record_get_choice(m->list, -1, &choice), HBP_E_INVALID);
    }
    ck_assert_ptr_null(hbp__methods_of("HBP_NONE_METHODS"));
    ck_assert_ptr_null(hbp__methods_of(NULL));
    ck_assert_int_eq(hbp__step_method("flexsp"), HBP__STEP_FLEXSP);
    ck_assert_str_eq(hbp__step_name(HBP__STEP_STATIC_SP), "static-sp");
}
END_TEST

/* Files and digests hold places: lists only grow. */
START_TEST(places_of_files_stay)
{
    static const char *const tasks[] = {"overlap", "spindle", "sequential", "uniform", "optimus", "distmm"};
    static const char *const placements[] = {"flows", "spindle", "sequential"};
    for (int32_t i = 0; i < 6; i++)
        ck_assert_str_eq(hbp__tasks_name(i), tasks[i]);
    for (int32_t i = 0; i < 3; i++)
        ck_assert_str_eq(hbp__placement_name(i), placements[i]);
}
END_TEST

START_TEST(an_unknown_name_is_answered_with_the_nearest_and_all)
{
    hbp_context *context = test_context();
    OK(context, hbp__method_check(context, &hbp__fill_methods, "method", NULL));
    OK(context, hbp__method_check(context, &hbp__fill_methods, "method", "tight"));
    FAILS(context, HBP_E_INVALID,
          "`method` is 'tigth'; did you mean 'tight'? It must be one of balanced, tight, hbp",
          hbp__method_check(context, &hbp__fill_methods, "method", "tigth"));
    char longest[4096];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    FAILS(context, HBP_E_INVALID, "`method` is 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
          hbp__method_check(context, &hbp__epoch_methods, "method", longest));
    hbp_context_free(context);
}
END_TEST

TEST_MAIN("methods", names_and_places_are_inverse, places_of_files_stay,
          an_unknown_name_is_answered_with_the_nearest_and_all)
