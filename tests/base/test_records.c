/* What the records say, held against the compiler: sizes, places, names and ranges. */
#include "base/records.h"

#include <stddef.h>

#include "hbp/io.h"
#include "test.h"

START_TEST(fields_are_where_the_compiler_has_them)
{
    hbp_field f = {.struct_size = sizeof f};
    ck_assert_int_eq(hbp_record_get_field("hbp_step_options", -1, &f), HBP_OK);
    ck_assert_int_eq(f.type, HBP_FIELD_STRUCT);
    ck_assert_int_eq(f.bytes, sizeof(hbp_step_options));
    ck_assert_str_eq(f.name, "hbp_step_options");
    int64_t structs = 0;
    for (const char *name; (name = hbp_record_get_struct_name(structs)) != NULL; structs++) {
        hbp_field of = {.struct_size = sizeof of};
        int32_t end = 0;
        ck_assert_int_eq(hbp_record_get_field(name, -1, &of), HBP_OK);
        for (int64_t i = 0; hbp_record_get_field(name, i, &f) >= 0; i++) {
            if (i == 0)
                ck_assert_str_eq(f.name, "struct_size");
            ck_assert_int_ge(f.offset, end); /* in the order of the struct, none of them twice */
            ck_assert_int_le(f.offset - end, 4);
            end = f.offset + f.bytes;
            ck_assert_ptr_nonnull(f.declared);
            ck_assert_int_le(f.least, f.most);
            hbp_choice c = {.struct_size = sizeof c};
            if (f.choices)
                ck_assert_int_eq(hbp_record_get_choice(f.choices, 0, &c), HBP_OK);
        }
        ck_assert_int_gt(end, 0);
        ck_assert_int_le(of.bytes - end, 4); /* no field is missing at the end */
        ck_assert_ptr_eq(hbp__record_of(name)->of, hbp_record_get_struct_name(structs));
    }
    ck_assert_int_gt(structs, 60);
    ck_assert_ptr_null(hbp_record_get_struct_name(-1));
}
END_TEST

START_TEST(a_range_is_that_of_the_header)
{
    hbp_field f = {.struct_size = sizeof f};
    int found = 0;
    for (int64_t i = 0; hbp_record_get_field("hbp_cost_options", i, &f) >= 0; i++) {
        if (strcmp(f.name, "zero_stage") == 0) {
            ck_assert(f.is_ranged && !f.is_flag && f.least == 0 && f.most == HBP_ZERO_NONE);
            ck_assert_str_eq(f.choices, "HBP_ZERO");
            ck_assert_int_eq(f.offset, offsetof(hbp_cost_options, zero_stage));
            found++;
        } else if (strcmp(f.name, "dp_overlap") == 0) {
            ck_assert(f.is_ranged && f.type == HBP_FIELD_DOUBLE && f.least_real == 0 && f.most_real == 1);
            found++;
        } else if (strcmp(f.name, "fused_cross_entropy") == 0) {
            ck_assert(f.is_flag && !f.is_ranged);
            ck_assert_str_eq(f.text, "nonzero: logits are never held whole");
            found++;
        }
    }
    ck_assert_int_eq(found, 3);
    for (int64_t i = 0; hbp_record_get_field("hbp_lengths_view", i, &f) >= 0; i++)
        if (strcmp(f.name, "histogram_lengths") == 0) {
            ck_assert_str_eq(f.shape, "distinct_lengths");
            ck_assert_str_eq(f.declared, "const int64_t *");
            found++;
        }
    ck_assert_int_eq(found, 4);
}
END_TEST

START_TEST(choices_have_names)
{
    static const char *const names[] = {"error", "drop", "truncate", "split", "alone"};
    hbp_choice c = {.struct_size = sizeof c};
    for (int64_t i = 0; i < 5; i++) {
        ck_assert_int_eq(hbp_record_get_choice("HBP_OVERLONG", i, &c), HBP_OK);
        ck_assert_int_eq(c.value, i);
        ck_assert_str_eq(c.name, names[i]);
    }
    ck_assert_str_eq(c.constant, "HBP_OVERLONG_ALONE");
    ck_assert_int_eq(hbp_record_get_choice("HBP_OVERLONG", 5, &c), HBP_E_INVALID);
    ck_assert_ptr_null(c.name);
}
END_TEST

START_TEST(what_is_not_there_is_refused)
{
    hbp_field f = {.struct_size = sizeof f, .type = 99};
    hbp_choice c = {.struct_size = sizeof c};
    ck_assert_int_eq(hbp_record_get_field("hbp_step_options", 1000, &f), HBP_E_INVALID);
    ck_assert_int_eq(f.type, 0);
    ck_assert_int_eq(hbp_record_get_field("hbp_step_options", -2, &f), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_field("hbp_step_options", INT64_MIN, &f), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_field("hbp_step_options", INT64_MAX, &f), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_field("hbp_none", 0, &f), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_field(NULL, 0, &f), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_field("hbp_step_options", 0, NULL), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_choice("HBP_NONE", 0, &c), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_choice(NULL, 0, &c), HBP_E_INVALID);
    ck_assert_int_eq(hbp_record_get_choice("HBP_ZERO", -1, &c), HBP_E_INVALID);
}
END_TEST

TEST_MAIN("records", fields_are_where_the_compiler_has_them, a_range_is_that_of_the_header,
          choices_have_names, what_is_not_there_is_refused)
